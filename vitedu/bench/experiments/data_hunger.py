"""How does accuracy grow with the number of photographs? A small CNN and a small ViT of equal size.

Notebook 06. Both have about 0.15 million parameters, see the same photographs, shifts and mirror
images, and take the same number of steps, whatever the number of photographs. Each has its own
optimizer and learning rate: a common one would favour one network. A seed draws the photographs to
learn from as well as the weights; all are measured on the same others.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import nn

from vitedu.bench.experiments import DATA, Arms, Profile, Results, cut, load, train_and_measure
from vitedu.data import Data
from vitedu.extras.options import ViTConfigWithOptions, build_model
from vitedu.fitting.loop import TrainConfig, logits_of
from vitedu.vit_and_cnn import SmallCNN

COUNTS = (200, 800, 3_200)
NETWORKS = ("CNN", "ViT")
ARMS: Arms = {
    f"{network}, {count} images": {"network": network, "images": count}
    for count in COUNTS
    for network in NETWORKS
}
CONFIG = ViTConfigWithOptions(32, 8, embed_dim=64, depth=4, num_heads=4, mlp_ratio=2, pool="mean")
RECIPES: Arms = {
    "CNN": {"optimizer": "adamw", "lr": 3e-3},
    "ViT": {"optimizer": "muon", "lr": 1.6e-2},  # the best of ``rates``
}
COMMON: dict = {"batch_size": 64, "crop_padding": 2, "label_smoothing": 0.1}


def build(network: str, seed: int, **changes: Any) -> nn.Module:
    """Make the small CNN, or the small ViT with some fields changed; the seed draws its weights."""
    torch.manual_seed(seed)
    return build_model(replace(CONFIG, **changes)) if network == "ViT" else SmallCNN(width=25)


def settings(network: str, *, steps: int, images: int, seed: int) -> TrainConfig:
    """Give the recipe of a network for about so many steps."""
    epochs = max(1, round(steps * COMMON["batch_size"] / images))
    return TrainConfig(epochs=epochs, seed=seed, **COMMON, **RECIPES[network])


def photographs(count: int, seed: int, profile: Profile) -> Data:
    """Draw photographs to learn from; those to validate and to test on are always the same."""
    held_out = cut(2_000, profile, 200)
    drawn = load(DATA, seed=seed, limit=cut(count, profile, 400), held_out=1)
    return replace(load(DATA, limit=1, held_out=held_out), train=drawn.train)


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one network; with a digit for each of 1,000 answers, for questions across seeds."""
    network, count = ARMS[arm].values()
    data, model = photographs(count, seed, profile), build(network, seed)
    config = settings(network, steps=cut(600, profile, 6), images=len(data.train), seed=seed)
    columns = "parameters train_accuracy test_accuracy train_accuracies cpu_seconds precision"
    results = train_and_measure(model, data, config, columns, validation_images=100)
    answers = logits_of(model, data.test.images[:1000], data, torch.float32).argmax(dim=1)
    return results | {"answers": "".join(map(str, answers.tolist()))}
