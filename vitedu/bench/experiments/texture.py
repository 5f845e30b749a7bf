"""Shape or texture: what does a network go by when the two disagree? An open question with a sweep.

Role: the images and one run of "shape or texture" in section 7 of notebook 06. Networks and
recipes: ``data_hunger``.

Four shapes are filled with four textures. In training, shape and texture say the same. In the test
they disagree, and the answer shows which of them was used. The contrast of the texture is swept: it
makes that cue easy or hard.
"""

import time
from functools import cache
from typing import Any, cast

import torch

from vitedu.bench.experiments import Results, train_to_end
from vitedu.bench.experiments.data_hunger import NETWORKS, build, settings
from vitedu.data import Data, load_data
from vitedu.data.loading import Split
from vitedu.fitting.loop import predict
from vitedu.hardware import Profile

KINDS = ("disk", "triangle", "cross", "star")
CONTRASTS = (0.05, 0.1, 0.2, 0.4)
ARMS: dict[str, dict[str, Any]] = {
    f"{network}, contrast {contrast:g}": {"network": network, "contrast": contrast}
    for contrast in CONTRASTS
    for network in NETWORKS
}


def fill(split: Split, textures: torch.Tensor, contrast: float) -> torch.Tensor:
    """Draw the objects of a split (N images) anew, grey and filled with textures (N,) of 0 .. 3."""
    y, x = torch.meshgrid(torch.arange(32), torch.arange(32), indexing="ij")
    waves = torch.stack([y % 4 < 2, x % 4 < 2, (x + y) % 4 < 2, (x % 4 < 2) ^ (y % 4 < 2)])
    pattern = contrast * (waves[textures].float() - 0.5)  # (N, 32, 32)
    generator = torch.Generator().manual_seed(len(split))
    noise = 0.05 * torch.randn(pattern.shape, generator=generator)
    masks = cast(torch.Tensor, split.masks)  # drawn shapes have them
    image = 0.25 + 0.4 * masks.float() + pattern * masks + noise
    return (255 * image).clamp(0, 255).byte()[:, None].expand(-1, 3, -1, -1).contiguous()


@cache
def kinds_of_shapes(limit: int) -> dict[str, Split]:
    """Give at least so many images of the four kinds (0 .. 3), split by split, or all there are."""
    data = load_data("shapes", limit=3 * limit, held_out=3 * limit)  # four kinds of ten
    numbers = torch.tensor([data.class_names.index(kind) for kind in KINDS])
    chosen = {}
    for name in ("train", "validation", "test"):
        split = getattr(data, name)
        is_kind = split.labels[:, None] == numbers  # (N, 4)
        keep = is_kind.any(dim=1)
        labels = is_kind[keep].int().argmax(dim=1)
        chosen[name] = Split(split.images[keep], labels, split.masks[keep])
    return chosen


def textured(contrast: float, limit: int) -> Data:
    """Give images whose texture names the class as well as the shape does."""
    splits = {}
    for name, split in kinds_of_shapes(limit).items():
        masks = cast(torch.Tensor, split.masks)[:limit]
        split = Split(split.images[:limit], split.labels[:limit], masks)
        splits[name] = Split(fill(split, split.labels, contrast), split.labels, masks)
    pixels = splits["train"].images.float().transpose(0, 1).flatten(1) / 255
    parts = splits["train"], splits["validation"], splits["test"]
    return Data("textures", KINDS, *parts, mean=pixels.mean(dim=1), std=pixels.std(dim=1))


def learn(network: str, contrast: float, seed: int, profile: Profile) -> Results:
    """Train one network and say what it goes by where shape and texture disagree.

    Returns:
        Accuracy on test images in which both agree; of the answers that follow either cue in torn
        images, the share that follows the shape; the share of torn images whose answer follows
        either; seconds of the processor.
    """
    data = textured(contrast, profile.pick(quick=100, laptop=2_000, gpu=2_000))
    started, steps = time.process_time(), profile.pick(quick=6, laptop=250, gpu=250)
    model: Any = build(network, seed)
    model.head = torch.nn.Linear(model.head.in_features, len(KINDS))
    config = settings(network, steps=steps, images=len(data.train), seed=seed)
    train_to_end(model, data, config)
    answers = predict(model, data.test.images, data).argmax(dim=1).cpu()
    images, shape, texture = torn(data, contrast)
    said = predict(model, images, data).argmax(dim=1).cpu()
    by_shape, by_texture = (said == shape).sum().item(), (said == texture).sum().item()
    return {
        "test_accuracy": round((answers == shape).float().mean().item(), 4),
        "shape_share": round(by_shape / max(1, by_shape + by_texture), 4),
        "answered_either": round((by_shape + by_texture) / len(said), 4),
        "cpu_seconds": round(time.process_time() - started, 1),
    }


def torn(data: Data, contrast: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Give test images of another texture than shape: images, shapes, textures (N,) of 0 .. 3."""
    shape = data.test.labels
    other = torch.randint(1, 4, shape.shape, generator=torch.Generator().manual_seed(1))
    texture = (shape + other) % 4
    return fill(data.test, texture, contrast), shape, texture


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one network at one contrast."""
    return learn(**ARMS[arm], seed=seed, profile=profile)
