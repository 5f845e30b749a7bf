"""What helps a small ViT that has 400 images? One change at a time, measured by the gap between
training and test.

Role: the arms and one run of sections 1 to 6 of notebook 07. Not here: the operations themselves
(``vitedu.fitting``, ``vitedu.less_data``).

Every arm trains the same model on the same 400 drawn shapes for the same number of steps, and
differs in one thing from "nothing". Both accuracies are measured afterwards on images as they are,
so that they can be compared.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import torch

from vitedu.bench.experiments import Results, train_to_end
from vitedu.bench.experiments.data_hunger import CONFIG
from vitedu.data import Data, load_data
from vitedu.data.loading import Split
from vitedu.fitting import TrainConfig
from vitedu.fitting.loop import measure, measure_test_accuracy
from vitedu.hardware import Profile
from vitedu.less_data import random_resized_crop
from vitedu.options import build_model
from vitedu.patches import sincos_positions_2d
from vitedu.vit import VisionTransformer

COUNT = 400  # training images
COPIES = 8  # of each image, where windows are cut beforehand
ARMS: dict[str, dict[str, Any]] = {
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
    options = {"crop_padding": None, **settings}
    changes = options.pop("model", {})
    least, fixed = options.pop("resized", None), options.pop("fixed_positions", False)
    data = few_shapes(profile.pick(quick=100, laptop=COUNT, gpu=COUNT))
    epochs = profile.pick(quick=1, laptop=32, gpu=64)
    learnt_from = data
    if least:
        learnt_from = replace(data, train=windows(data.train, least, seed))
        epochs = max(1, epochs // COPIES)
    config = TrainConfig(
        epochs=epochs, batch_size=50, lr=2e-3, precision="float32", seed=seed, **options
    )
    model = build(seed, fixed_positions=fixed, **changes)
    history = train_to_end(model, learnt_from, config, validation_images=10)
    model = model.cpu()
    cpu = torch.device("cpu")
    return {
        "train_accuracy": measure(model, data.train, data, cpu, torch.float32)[1],
        "test_accuracy": measure_test_accuracy(model, data, torch.float32),
        "seconds": round(history.seconds, 1),
    }


@cache
def few_shapes(count: int) -> Data:
    """Draw ``count`` training and 1,000 test images, fewer for few; 100 stand for validation."""
    parts = {"train": count, "validation": 100, "test": min(1_000, 3 * count)}
    data = load_data("shapes", limit=count, held_out=max(100, parts["test"]))
    kept: dict[str, Any] = {
        name: Split(getattr(data, name).images[:most], getattr(data, name).labels[:most])
        for name, most in parts.items()
    }
    return replace(data, **kept)


def windows(split: Split, least: float, seed: int) -> Split:
    """Cut ``COPIES`` random windows out of every image, once."""
    generator = torch.Generator().manual_seed(seed)
    images = split.images.repeat(COPIES, 1, 1, 1).float()
    cut = random_resized_crop(images, least, generator).round().clamp(0, 255).to(torch.uint8)
    return Split(cut, split.labels.repeat(COPIES))
