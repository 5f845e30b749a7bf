"""How does accuracy grow with the number of images? A small CNN and a small ViT of equal size.

Role: the two networks, their recipes and one run of section "data" of notebook 06. Not here: the
figure (``vitedu.plots.vit_and_cnn``).

Both networks have about 0.15 million parameters. Both see the same drawn shapes, the same shifts
and mirror images, and the same number of steps, whatever the number of images: a small set is seen
more often. Each has its own optimizer and learning rate: a common one would favour one network.
"""

import time
from functools import cache
from typing import Any

import torch
from torch import nn

from vitedu.bench.experiments import Results, train_to_end
from vitedu.data import Data, load_data
from vitedu.fitting import TrainConfig
from vitedu.fitting.evaluating import logits_of
from vitedu.hardware import Profile
from vitedu.options import ViTConfigWithOptions, build_model
from vitedu.vit_and_cnn import SmallCNN

COUNTS = (200, 800, 3_200)
NETWORKS = ("CNN", "ViT")
ARMS: dict[str, dict[str, Any]] = {
    f"{network}, {count} images": {"network": network, "images": count}
    for count in COUNTS
    for network in NETWORKS
}
CONFIG = ViTConfigWithOptions(32, 8, embed_dim=64, depth=4, num_heads=4, mlp_ratio=2, pool="mean")
RECIPES: dict[str, dict[str, Any]] = {
    "CNN": {"optimizer": "adamw", "lr": 3e-3},
    "ViT": {"optimizer": "muon", "lr": 1.6e-2},  # the best of ``rates``
}
COMMON: dict[str, Any] = {"batch_size": 64, "crop_padding": 2, "label_smoothing": 0.1}


def build(network: str, seed: int) -> nn.Module:
    """Make the small CNN or the small ViT; the seed draws its weights."""
    torch.manual_seed(seed)
    return build_model(CONFIG) if network == "ViT" else SmallCNN(width=25)


@cache
def shapes(count: int, held_out: int | None) -> Data:
    """Draw the data set with so many training images, and no more validation or test images."""
    return load_data("shapes", limit=count, held_out=held_out)


def settings(network: str, *, steps: int, images: int, seed: int) -> TrainConfig:
    """Give the recipe of a network for about so many steps."""
    epochs = max(1, round(steps * COMMON["batch_size"] / images))
    return TrainConfig(epochs=epochs, seed=seed, **COMMON, **RECIPES[network])


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one network on some images and measure it on training and test images."""
    network, count = ARMS[arm].values()
    data = shapes(
        *profile.pick(quick=(min(count, 400), 200), laptop=(count, None), gpu=(count, None))
    )
    steps = profile.pick(quick=6, laptop=600, gpu=600)
    model, started = build(network, seed), time.process_time()
    config = settings(network, steps=steps, images=len(data.train), seed=seed)
    history = train_to_end(model, data, config, validation_images=100)
    answers = logits_of(model, data.test.images, data, torch.float32).argmax(dim=1).cpu()
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "train_accuracy": round(history.rows[-1].train_accuracy, 4),
        "test_accuracy": (answers == data.test.labels).sum().item() / len(answers),
        # for questions across seeds: accuracy epoch by epoch, and a digit an image
        "train_accuracies": [round(row.train_accuracy, 3) for row in history.rows],
        "answers": "".join(map(str, answers[:1000].tolist())),
        "cpu_seconds": round(time.process_time() - started, 1),
        "precision": history.precision,
    }
