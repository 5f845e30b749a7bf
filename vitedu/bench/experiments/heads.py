"""One frozen backbone and four small heads: class, box, mask and depth of drawn shapes.

Role: the targets of section 6 of notebook 09, its arms and one run.

The heads are trained together on the tokens of a backbone that does not learn. One arm has the
shipped backbone, the other one of random weights, which differ from seed to seed.
"""

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.bench.experiments import Results
from vitedu.bench.experiments.captions import drawings
from vitedu.data.shapes import SHAPES
from vitedu.hardware import Profile
from vitedu.options import build_model
from vitedu.patches import unpatchify
from vitedu.pretrained.shown import read_own
from vitedu.vit import VisionTransformer, ViTConfig, capture

ARMS: dict[str, dict[str, Any]] = {"trained": {"trained": True}, "untrained": {"trained": False}}
Tensors = dict[str, torch.Tensor]


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train the heads on one backbone and measure all four tasks."""
    return train(arm, seed, profile)[0]


def train(arm: str, seed: int, profile: Profile) -> tuple[Results, Tensors]:
    """Train the heads on one backbone: the scores, and what the heads say of the test images."""
    config, weights, known = read_own("looked_into")
    torch.manual_seed(seed)
    backbone = build_model(config).eval()
    if ARMS[arm]["trained"]:
        backbone.load_state_dict(weights)
    images, truth = learned_from(profile)
    torch.manual_seed(seed)
    heads = four_heads(config)
    optimizer = torch.optim.AdamW(heads.parameters(), lr=1e-2)
    steps = profile.pick(quick=5, laptop=300, gpu=600)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 1 - k / steps)
    tokens = tokens_of(backbone, images, known)
    for _ in range(steps):
        some = torch.randint(len(tokens), (128,))
        found = read_out(heads, tokens[some], config)
        wanted = {task: target[some] for task, target in truth.items()}
        loss = F.cross_entropy(found["class"], wanted["class"])
        loss = loss + 4 * F.l1_loss(found["box"], wanted["box"])
        loss = loss + F.binary_cross_entropy_with_logits(found["mask"], wanted["mask"])
        loss = loss + F.l1_loss(found["depth"], wanted["depth"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    images, wanted = tested(profile)
    with torch.no_grad():
        found = read_out(heads, tokens_of(backbone, images, known), config)
    return score(found, wanted), found


def learned_from(profile: Profile) -> tuple[torch.Tensor, Tensors]:
    """The images that the heads learn from, and their targets."""
    return targets(profile.pick(quick=100, laptop=1_500, gpu=4_000), 0)


def tested(profile: Profile) -> tuple[torch.Tensor, Tensors]:
    """The images that the heads are tested on, and their targets."""
    return targets(profile.pick(quick=50, laptop=500, gpu=1_000), 2)


def without_looking(profile: Profile) -> Results:
    """Score the mean box and the mean depth of what was learned from, the same for every image."""
    known, wanted = learned_from(profile)[1], tested(profile)[1]
    return {
        "box": overlap(known["box"].mean(dim=0).expand_as(wanted["box"]), wanted["box"]),
        "depth": (known["depth"].mean(dim=0) - wanted["depth"]).abs().mean().item(),
    }


@cache
def targets(count: int, stream: int) -> tuple[torch.Tensor, Tensors]:
    """Drawings of a stream and the four targets of each."""
    images, labels, masks = drawings(count, stream)
    return images, {
        "class": labels,
        "box": boxes_of(masks),
        "mask": masks.float(),
        "depth": cushion(masks),
    }


def boxes_of(masks: torch.Tensor) -> torch.Tensor:
    """The smallest box around each object (n, H, W): left, top, right, bottom (n, 4), as shares."""
    S = masks.shape[-1]
    places = torch.arange(S)
    found = []
    for used in (masks.any(dim=1), masks.any(dim=2)):  # columns, then rows: (n, S)
        low = torch.where(used, places, S).amin(dim=1)
        high = torch.where(used, places, -1).amax(dim=1) + 1
        found.append((low, high))
    (left, right), (top, bottom) = found
    return torch.stack([left, top, right, bottom], dim=1) / S


def cushion(masks: torch.Tensor, most: int = 8) -> torch.Tensor:
    """How far each pixel of an object (n, H, W) is from its edge: peel off layer after layer."""
    inside, height = masks[:, None].float(), torch.zeros(len(masks), 1, *masks.shape[1:])
    for _ in range(most):
        height += inside
        inside = 1 - F.max_pool2d(1 - F.pad(inside, (1, 1, 1, 1)), 3, stride=1)
    return height[:, 0]


def overlap(found: torch.Tensor, truth: torch.Tensor) -> float:
    """Area of both boxes (n, 4) over the area of either, averaged."""
    low, high = torch.maximum(found[:, :2], truth[:, :2]), torch.minimum(found[:, 2:], truth[:, 2:])
    both = (high - low).clamp(min=0).prod(dim=1)
    areas = [(b[:, 2:] - b[:, :2]).clamp(min=0).prod(dim=1) for b in (found, truth)]
    return (both / (areas[0] + areas[1] - both)).mean().item()


@torch.no_grad()
def tokens_of(model: VisionTransformer, images: torch.Tensor, known: dict) -> torch.Tensor:
    """All tokens after the last norm (n, T, D), float16: they are many."""
    mean, std = (torch.tensor(known[key]).view(-1, 1, 1) for key in ("mean", "std"))
    parts = [capture(model, (some / 255 - mean) / std)["norm"].half() for some in images.split(100)]
    return torch.cat(parts)


def four_heads(config: ViTConfig) -> nn.ModuleDict:
    """One linear layer a task; the box reads four numbers of each patch and gets a hidden layer."""
    D, pixels = config.embed_dim, config.patch_size**2
    box = nn.Sequential(
        nn.Linear(D, 4),
        nn.Flatten(),
        nn.Linear(4 * config.num_patches, 64),
        nn.GELU(),
        nn.Linear(64, 4),
        nn.Sigmoid(),
    )
    heads = {"class": nn.Linear(D, len(SHAPES)), "box": box}
    return nn.ModuleDict(heads | {task: nn.Linear(D, pixels) for task in ("mask", "depth")})


def read_out(heads: nn.ModuleDict, tokens: torch.Tensor, config: ViTConfig) -> Tensors:
    """What the four heads say of tokens (n, T, D); masks (as logits) and depths are (n, H, W)."""
    tokens = tokens.float()
    summary, patches = tokens[:, 0], tokens[:, -config.num_patches :]
    size = (config.image_size, config.image_size)
    maps = {
        task: unpatchify(heads[task](patches), config.patch_size, size)[:, 0]
        for task in ("mask", "depth")
    }
    return {"class": heads["class"](summary), "box": heads["box"](patches), **maps}


def score(found: Tensors, truth: Tensors) -> Results:
    """Share of right classes, overlap of boxes and of masks, mean error of the depth in pixels."""
    on, wanted = found["mask"] > 0, truth["mask"] > 0.5
    masks = (on & wanted).sum(dim=(1, 2)) / (on | wanted).sum(dim=(1, 2))
    results = {
        "class": (found["class"].argmax(dim=1) == truth["class"]).double().mean().item(),
        "box": overlap(found["box"], truth["box"]),
        "mask": masks.mean().item(),
        "depth": (found["depth"] - truth["depth"]).abs().mean().item(),
    }
    return {task: round(value, 4) for task, value in results.items()}
