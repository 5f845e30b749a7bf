"""What helps a small ViT that has 400 images? One change at a time.

Sections 1 to 6 of notebook 07. Every arm trains the same model on the same drawn shapes for the
same number of steps. Accuracies of training and test are measured afterwards on images as they are.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import torch

from vitedu.bench.experiments import Arms, Results, cut, load, train_and_measure
from vitedu.bench.experiments.data_hunger import CONFIG
from vitedu.data.loading import Data, Split
from vitedu.fitting.loop import TrainConfig, measure
from vitedu.hardware import Profile
from vitedu.less_data import random_resized_crop
from vitedu.options import build_model
from vitedu.patches import sincos_positions_2d
from vitedu.vit import VisionTransformer

COPIES = 8  # of each image, where windows are cut beforehand
ARMS: Arms = {
    "nothing": {},
    "shifts and mirrors": {"crop_padding": 4},
    "random-resized crops": {"resized": 0.5},
    "one operation of a policy": {"policy_share": 0.8},
    "mixup": {"mixup_share": 0.8},
    "CutMix": {"cutmix_share": 0.8},
    "label smoothing": {"label_smoothing": 0.1},
    "dropout": {"model": {"drop_rate": 0.1}},
    "drop-path": {"model": {"drop_path_rate": 0.2}},
    "fixed positions": {"fixed_positions": True},
    "shifts and CutMix": {"crop_padding": 4, "cutmix_share": 0.5},
}
FEW: Any = {"batch_size": 50, "precision": "float32"}  # how few images are learned from


def build(seed: int, *, fixed_positions: bool = False, **changes) -> VisionTransformer:
    """Make the untrained model; ``changes`` are fields of its configuration."""
    torch.manual_seed(seed)
    model = build_model(replace(CONFIG, fused=True, **changes))
    if fixed_positions:
        table = sincos_positions_2d(CONFIG.grid_size, CONFIG.embed_dim)
        model.pos_embed.data.copy_(table / table.std() * model.pos_embed.std())
        model.pos_embed.requires_grad_(False)
    return model


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one model and measure it on training and test images as they are."""
    return learn(ARMS[arm], seed, profile)


def learn(settings: dict[str, Any], seed: int, profile: Profile) -> Results:
    """Train with any settings: those of an arm, or one's own."""
    options = {"crop_padding": None, "lr": 2e-3, **settings}
    changes, fixed = options.pop("model", {}), options.pop("fixed_positions", False)
    data = few_shapes(cut(400, profile, 100))
    train, epochs = data.train, profile.pick(quick=1, laptop=32, gpu=64)
    if least := options.pop("resized", None):
        train, epochs = windows(train, least, seed), max(1, epochs // COPIES)
    config = TrainConfig(epochs=epochs, seed=seed, **FEW, **options)
    model, train_data = build(seed, fixed_positions=fixed, **changes), replace(data, train=train)
    columns = "test_accuracy seconds"
    results = train_and_measure(model, train_data, config, columns, validation_images=10)
    train_accuracy = measure(model, data.train, data, torch.device("cpu"), torch.float32)[1]
    return {"train_accuracy": train_accuracy, **results}


@cache
def few_shapes(count: int) -> Data:
    """Draw ``count`` training and 1,000 test images, fewer for few; 100 stand for validation."""
    test_count = min(1_000, 3 * count)
    data = load("shapes", limit=count, held_out=max(100, test_count))
    parts = (data.train, count), (data.validation, 100), (data.test, test_count)
    train, validation, test = (Split(p.images[:most], p.labels[:most]) for p, most in parts)
    return replace(data, train=train, validation=validation, test=test)


def windows(split: Split, least: float, seed: int) -> Split:
    """Cut ``COPIES`` random windows out of every image, once."""
    generator = torch.Generator().manual_seed(seed)
    images = split.images.repeat(COPIES, 1, 1, 1).float()
    crops = random_resized_crop(images, least, generator).round().clamp(0, 255).to(torch.uint8)
    return Split(crops, split.labels.repeat(COPIES))
