"""Shape or texture: what does a network go by when the two disagree?

Section 7 of notebook 06; networks and recipes of ``data_hunger``. Four shapes are filled with four
textures. In training, both say the same. In the test they disagree, and the answer shows which was
used. The contrast of the texture is swept: it makes that cue easy or hard.
"""

from typing import Any

import torch

from vitedu.bench.experiments import Arms, Results, cut, load, train_and_measure
from vitedu.bench.experiments.data_hunger import NETWORKS, build, settings
from vitedu.data.loading import Data, Split
from vitedu.fitting.loop import predict
from vitedu.hardware import Profile

KINDS = ("disk", "triangle", "cross", "star")
CONTRASTS = (0.05, 0.1, 0.2, 0.4)
ARMS: Arms = {
    f"{network}, contrast {contrast:g}": {"network": network, "contrast": contrast}
    for contrast in CONTRASTS
    for network in NETWORKS
}


def fill(masks: torch.Tensor, textures: torch.Tensor, contrast: float) -> torch.Tensor:
    """Draw objects (N, 32, 32) anew, grey and filled with textures (N,) of 0 .. 3."""
    y, x = torch.meshgrid(torch.arange(32), torch.arange(32), indexing="ij")
    waves = torch.stack([y % 4 < 2, x % 4 < 2, (x + y) % 4 < 2, (x % 4 < 2) ^ (y % 4 < 2)])
    pattern = contrast * (waves[textures].float() - 0.5)  # (N, 32, 32)
    generator = torch.Generator().manual_seed(len(masks))
    noise = 0.05 * torch.randn(pattern.shape, generator=generator)
    image = 0.25 + 0.4 * masks.float() + pattern * masks + noise
    return (255 * image).clamp(0, 255).byte()[:, None].expand(-1, 3, -1, -1).contiguous()


def textured(contrast: float, limit: int) -> Data:
    """Give at most so many images a split whose texture names the class as well as the shape."""
    data = load("shapes", limit=3 * limit, held_out=3 * limit)  # four kinds of ten
    numbers = torch.tensor([data.class_names.index(kind) for kind in KINDS])
    parts = []
    for split in (data.train, data.validation, data.test):
        found, labels = (split.labels[:, None] == numbers).nonzero()[:limit].unbind(dim=1)
        masks: Any = split.masks  # drawn shapes have them
        parts.append(Split(fill(masks[found], labels, contrast), labels, masks[found]))
    pixels = parts[0].images.float().transpose(0, 1).flatten(1) / 255
    return Data("textures", KINDS, *parts, mean=pixels.mean(dim=1), std=pixels.std(dim=1))


def torn(data: Data, contrast: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Give test images of another texture than shape: images, shapes, textures (N,) of 0 .. 3."""
    shape, masks = data.test.labels, data.test.masks
    assert masks is not None
    other = torch.randint(1, 4, shape.shape, generator=torch.Generator().manual_seed(1))
    texture = (shape + other) % 4
    return fill(masks, texture, contrast), shape, texture


def learn(network: str, contrast: float, seed: int, profile: Profile) -> Results:
    """Train one network; give its test accuracy where both agree, and, of torn images, how many
    answers follow either cue and the share of these that follows the shape.
    """
    data = textured(contrast, cut(2_000, profile, 100))
    model: Any = build(network, seed)
    model.head = torch.nn.Linear(model.head.in_features, len(KINDS))
    config = settings(network, steps=cut(250, profile, 6), images=len(data.train), seed=seed)
    found = train_and_measure(model, data, config, "test_accuracy cpu_seconds")
    images, shape, texture = torn(data, contrast)
    said = predict(model, images, data).argmax(dim=1)
    by_shape, by_texture = (said == shape).sum().item(), (said == texture).sum().item()
    return {
        "test_accuracy": round(found["test_accuracy"], 4),
        "shape_share": round(by_shape / max(1, by_shape + by_texture), 4),
        "answered_either": round((by_shape + by_texture) / len(said), 4),
        "cpu_seconds": found["cpu_seconds"],
    }


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one network at one contrast."""
    return learn(**ARMS[arm], seed=seed, profile=profile)
