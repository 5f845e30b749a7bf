"""Four shapes filled with four textures: both name the class, or they disagree."""

from functools import cache
from typing import Any

import torch

from vitedu.data.loading import Data, Split, load_data

KINDS = ("disk", "triangle", "cross", "star")


def fill(masks: torch.Tensor, textures: torch.Tensor, contrast: float) -> torch.Tensor:
    """Draw objects (N, 32, 32) anew, grey and filled with textures (N,) of 0 .. 3."""
    y, x = torch.meshgrid(torch.arange(32), torch.arange(32), indexing="ij")
    waves = torch.stack([y % 4 < 2, x % 4 < 2, (x + y) % 4 < 2, (x % 4 < 2) ^ (y % 4 < 2)])
    pattern = contrast * (waves[textures].float() - 0.5)  # (N, 32, 32)
    generator = torch.Generator().manual_seed(len(masks))
    noise = 0.05 * torch.randn(pattern.shape, generator=generator)
    image = 0.25 + 0.4 * masks.float() + pattern * masks + noise
    return (255 * image).clamp(0, 255).byte()[:, None].expand(-1, 3, -1, -1).contiguous()


@cache
def textured_shapes(contrast: float, limit: int) -> Data:
    """Give at most so many images a split whose texture names the class as well as the shape."""
    data = load_data("shapes", limit=3 * limit, held_out=3 * limit)  # four kinds of ten
    numbers = torch.tensor([data.class_names.index(kind) for kind in KINDS])
    parts = []
    for split in (data.train, data.validation, data.test):
        rows, labels = (split.labels[:, None] == numbers).nonzero()[:limit].unbind(dim=1)
        masks: Any = split.masks  # drawn shapes have them
        parts.append(Split(fill(masks[rows], labels, contrast), labels, masks[rows]))
    pixels = parts[0].images.float().transpose(0, 1).flatten(1) / 255
    train, validation, test = parts
    return Data("textures", KINDS, train, validation, test, pixels.mean(dim=1), pixels.std(dim=1))


def cue_conflict(data: Data, contrast: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Give test images of another texture than shape: images, shapes, textures (N,) of 0 .. 3."""
    shape, masks = data.test.labels, data.test.masks
    assert masks is not None
    other = torch.randint(1, 4, shape.shape, generator=torch.Generator().manual_seed(1))
    texture = (shape + other) % 4
    return fill(masks, texture, contrast), shape, texture
