"""What helps a small ViT that has 400 photographs? One change at a time.

Notebook 07. Every arm trains the same model for 1,000 steps with AdamW at one learning rate; the
one with ten times as many photographs has Muon, which learns faster. Each seed draws photographs of
its own, and weights. Accuracies of training and test are measured afterwards on photographs as they
are.
"""

from dataclasses import replace
from typing import Any

import torch

from vitedu.bench.experiments import DATA, Arms, Profile, cut, load, look_up, train_and_measure
from vitedu.data.loading import Data, Split
from vitedu.extras.options import ViTConfigWithOptions, build_model
from vitedu.fitting.loop import TrainConfig, measure
from vitedu.less_data import random_resized_crop
from vitedu.patches import sincos_positions_2d
from vitedu.vit import VisionTransformer

CONFIG = ViTConfigWithOptions(32, 8, embed_dim=64, depth=4, num_heads=4, mlp_ratio=2, pool="mean")
COUNT, STEPS = 400, 1_000  # labelled photographs, and steps
COPIES = 8  # of each image, where windows are cut beforehand
SHIFTS, MUON = {"crop_padding": 4}, {"optimizer": "muon", "lr": 0.016}
ARMS: Arms = {
    "nothing": {},
    "shifts and mirrors": SHIFTS,
    "shifts and mixup": SHIFTS | {"mixup_share": 0.8},
    "4,000 photographs": SHIFTS | {"count": 4_000, "label_smoothing": 0.1} | MUON,
    "shifts and drop-path": SHIFTS | {"model": {"drop_path_rate": 0.2}},
    "random-resized crops": {"resized": 0.5},
    "one operation of a policy": {"policy_share": 0.8},
    "shifts and CutMix": SHIFTS | {"cutmix_share": 0.8},
    "label smoothing": {"label_smoothing": 0.1},
    "dropout": {"model": {"drop_rate": 0.1}},
    "fixed positions": {"fixed_positions": True},
}
FEW: dict = {"batch_size": 50, "precision": "float32"}  # how few photographs are learned from


def build(seed: int, *, fixed_positions: bool = False, **changes: Any) -> VisionTransformer:
    """Make the untrained model; ``changes`` are fields of its configuration."""
    torch.manual_seed(seed)
    model = build_model(replace(CONFIG, fused=True, **changes))
    if fixed_positions:
        table = sincos_positions_2d(CONFIG.grid_size, CONFIG.embed_dim)
        model.pos_embed.data.copy_(table / table.std() * model.pos_embed.std())
        model.pos_embed.requires_grad_(False)
    return model


def run(arm: str, seed: int, profile: Profile) -> dict:
    """Train one model and measure it on training and test photographs as they are."""
    return learn(look_up(arm, ARMS), seed, profile)


def learn(settings: dict, seed: int, profile: Profile) -> dict:
    """Train with any settings: those of an arm, or one's own."""
    options = {"crop_padding": None, "lr": 2e-3, **settings}
    changes, fixed = options.pop("model", {}), options.pop("fixed_positions", False)
    data = few_photographs(seed, profile, options.pop("count", COUNT))
    train = data.train
    epochs = cut(round(STEPS * FEW["batch_size"] / len(train)), profile, 1)
    if least := options.pop("resized", None):
        train, epochs = windows(train, least, seed), max(1, epochs // COPIES)
    config = TrainConfig(epochs=epochs, seed=seed, **FEW, **options)
    model, train_data = build(seed, fixed_positions=fixed, **changes), replace(data, train=train)
    results = train_and_measure(model, train_data, config, "test_accuracy", 10)
    train_accuracy = measure(model, data.train, data)[1]
    return {"train_accuracy": train_accuracy, **results}


def photographs(profile: Profile) -> Data:
    """Give all photographs, the first 2,000 of the test images; in the quick profile a few."""
    limit, held_out = (2_000, 200) if profile.name == "quick" else (None, 2_000)
    return load(DATA, limit=limit, held_out=held_out)


def few_photographs(seed: int, profile: Profile, count: int = COUNT) -> Data:
    """Draw ``count`` of the training photographs, as many of each class; the seed says which."""
    data = photographs(profile)
    return replace(data, train=draw(data.train, cut(count, profile, 100), seed))


def draw(split: Split, count: int, seed: int) -> Split:
    """Draw ``count`` labelled images, a tenth of each of ten classes, in an order of their own."""
    order = torch.randperm(len(split), generator=torch.Generator().manual_seed(seed))
    chosen = [order[split.labels[order] == k][: count // 10] for k in range(10)]
    rows = torch.stack(chosen, dim=1).flatten()  # one of each class after the other
    return Split(split.images[rows], split.labels[rows])


def windows(split: Split, least: float, seed: int) -> Split:
    """Cut ``COPIES`` random windows out of every image, once."""
    generator = torch.Generator().manual_seed(seed)
    images = split.images.repeat(COPIES, 1, 1, 1).float()
    crops = random_resized_crop(images, least, generator).round().clamp(0, 255).to(torch.uint8)
    return Split(crops, split.labels.repeat(COPIES))
