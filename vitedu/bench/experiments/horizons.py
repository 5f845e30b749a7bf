"""What do simple networks reach on photographs? Lines to compare an accuracy with.

They stand in figures of accuracy on CIFAR-10 (``vitedu.data.horizons``) under the names of their
arms. The CNN has about as many parameters as ``vit_pico_patch4_32``.
"""

import torch
from torch import nn

from vitedu.bench.experiments import Arms, training
from vitedu.vit_and_cnn import SmallCNN

LINEAR, CNN = "linear layer on pixels", "small CNN, 1 epoch"
ARMS: Arms = {LINEAR: {"epochs": 1, "lr": 1e-3}, CNN: {"epochs": 1, "lr": 3e-3}}
COLUMNS = "parameters validation_accuracy test_accuracy precision cpu_seconds"


def build(arm: str, seed: int) -> nn.Module:
    """Make a network; the seed draws its weights."""
    torch.manual_seed(seed)
    if arm == CNN:
        return SmallCNN(width=36)
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 10))


run = training(ARMS, build, COLUMNS, validation=None, batch_size=64, crop_padding=1)
