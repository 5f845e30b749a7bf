"""What do simple networks reach on photographs? Lines to compare an accuracy with.

They stand in figures of accuracy on CIFAR-10 (``vitedu.data.horizons``) under the names of their
arms. The CNN has about as many parameters as ``vit_pico_patch4_32``.
"""

from typing import Any

import torch
from torch import nn

from vitedu.bench.experiments import Arms, Results, images, train_and_measure
from vitedu.data.cifar10 import CLASS_NAMES
from vitedu.fitting import TrainConfig
from vitedu.hardware import Profile
from vitedu.vit_and_cnn import SmallCNN

LINEAR, CNN = "linear layer on pixels", "small CNN, 1 epoch"
ARMS: Arms = {LINEAR: {"epochs": 1, "lr": 1e-3}, CNN: {"epochs": 1, "lr": 3e-3}}
COMMON: Any = {"batch_size": 64, "crop_padding": 1}


def build(arm: str, seed: int) -> nn.Module:
    """Make a network; the seed draws its weights."""
    torch.manual_seed(seed)
    if arm == CNN:
        return SmallCNN(width=36)
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, len(CLASS_NAMES)))


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one network on all photographs and measure it."""
    data = images(profile, None, quick=(200, 200))
    config = TrainConfig(seed=seed, **COMMON, **ARMS[arm])
    columns = "parameters validation_accuracy test_accuracy precision cpu_seconds"
    return train_and_measure(build(arm, seed), data, config, columns)
