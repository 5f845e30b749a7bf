"""What does each cheaper form of attention cost in accuracy, if all of them are trained alike?

For 08_efficient_more; the models stand in ``vitedu.efficient``. Images, steps, shifts
and mirror images and the recipe are the same, and nothing was tuned for any of them. All have about
80,000 parameters.
"""

import torch
from torch import nn

from vitedu.bench.experiments import Arms, Profile, images, settings_of, train_and_measure, training
from vitedu.efficient import StagedNetwork
from vitedu.fitting.loop import TrainConfig

ONE_GRID = {"patch_size": 4, "widths": [48], "depths": [4], "has_positions": True}
FOUR_STAGES = {"patch_size": 2, "widths": [8, 16, 32, 64], "depths": [2, 2, 4, 1]}
WINDOWS = {**FOUR_STAGES, "kinds": ["windows"] * 4}
MIXED = {**FOUR_STAGES, "kinds": ["convolution", "convolution", "global", "global"]}
ARMS: Arms = {
    "four stages, offset bias": {**WINDOWS, "has_bias": True},
    "four stages, no positions": WINDOWS,
    "ConvNeXt": {**ONE_GRID, "kinds": ["convolution"]},
    "MLP-Mixer": {**ONE_GRID, "kinds": ["mixer"]},
    "convolutions, then attention": {**MIXED, "has_positions": True},
    "global attention": {**ONE_GRID, "kinds": ["global"]},
    "patches of 8 px": {**ONE_GRID, "kinds": ["global"], "patch_size": 8},
    "windows": {**ONE_GRID, "kinds": ["windows"]},
    "averaged keys": {**ONE_GRID, "kinds": ["averaged keys"]},
    "linear attention": {**ONE_GRID, "kinds": ["linear"]},
    "random features": {**ONE_GRID, "kinds": ["random features"]},
}
RECIPE: dict = {"epochs": 1, "batch_size": 64, "optimizer": "muon", "lr": 4e-3, "crop_padding": 2}
RECIPE |= {"label_smoothing": 0.1, "precision": "float32"}


def build(arm: str, seed: int) -> StagedNetwork:
    """Make the untrained model of an arm; the seed draws its weights."""
    torch.manual_seed(seed)
    return StagedNetwork(**settings_of(arm, ARMS)[0])


def learn(model: nn.Module, seed: int, profile: Profile) -> float:
    """Train any model as all arms are, but on a third of the photographs; give its accuracy."""
    data, config = images(profile, 15_000, (200, 200)), TrainConfig(seed=seed, **RECIPE)
    return train_and_measure(model, data, config, "test_accuracy", 100)["test_accuracy"]


run = training(ARMS, build, **RECIPE)
