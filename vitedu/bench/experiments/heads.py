"""One frozen backbone and four small heads: class, box, mask and depth of drawn shapes.

The heads learn together. The backbone does not: it is the shipped one, or random in each seed.
"""

from functools import cache

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.bench.experiments import Arms, Profile, Results, drawings
from vitedu.data.shapes import SHAPES
from vitedu.data.targets import boxes_of, depth_of, overlap
from vitedu.extras.options import build_model
from vitedu.less_data import descend
from vitedu.patches import unpatchify
from vitedu.pretrained.reading import normalize, read_course_model
from vitedu.vit import VisionTransformer, ViTConfig, capture

DATA = "shapes"  # box, mask and depth need the object
ARMS: Arms = {"trained": {"trained": True}, "untrained": {"trained": False}}
Tensors = dict[str, torch.Tensor]
LOSSES: list[tuple] = [("class", 1, F.cross_entropy), ("box", 4, F.l1_loss)]
LOSSES += [("mask", 1, F.binary_cross_entropy_with_logits), ("depth", 1, F.l1_loss)]


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train the heads on one backbone and measure all four tasks."""
    return train(arm, seed, profile)[0]


def train(arm: str, seed: int, profile: Profile) -> tuple[Results, Tensors]:
    """Train the heads on one backbone: the scores, and what the heads say of the test images."""
    config, weights, data = read_course_model("shapes_patch4")
    torch.manual_seed(seed)
    backbone = build_model(config).eval()
    if ARMS[arm]["trained"]:
        backbone.load_state_dict(weights)
    (images, truth), (new, new_truth) = targets(profile, 0), targets(profile, 2)
    torch.manual_seed(seed)
    heads, steps = four_heads(config), profile.pick(quick=5, laptop=300, gpu=600)
    optimizer = torch.optim.AdamW(heads.parameters())
    tokens = tokens_of(backbone, normalize(images, data))
    for k in range(steps):
        some = torch.randint(len(tokens), (128,))
        said = apply_heads(heads, tokens[some], config)
        loss = sum(weight * of(said[task], truth[task][some]) for task, weight, of in LOSSES)
        descend(optimizer, loss, 1e-2 * (1 - k / steps))
    with torch.no_grad():
        predictions = apply_heads(heads, tokens_of(backbone, normalize(new, data)), config)
    return score(predictions, new_truth), predictions


@cache
def targets(profile: Profile, stream: int) -> tuple[torch.Tensor, Tensors]:
    """Give drawings, of stream 0 to learn from and 2 to test on, and the four targets of each."""
    sizes = profile.pick(quick=(100, 50), laptop=(1_500, 500), gpu=(4_000, 1_000))
    images, labels, masks = drawings(sizes[stream > 0], stream)
    truth = {"class": labels, "box": boxes_of(masks), "mask": masks.float()}
    return images, {**truth, "depth": depth_of(masks)}


def constant_baseline(profile: Profile) -> Results:
    """Score the mean box and the mean depth of what was learned from, the same for every image."""
    learnt, truth = targets(profile, 0)[1], targets(profile, 2)[1]
    box = overlap(learnt["box"].mean(dim=0).expand_as(truth["box"]), truth["box"])
    return {"box": box, "depth": (learnt["depth"].mean(dim=0) - truth["depth"]).abs().mean().item()}


@torch.no_grad()
def tokens_of(model: VisionTransformer, images: torch.Tensor) -> torch.Tensor:
    """Give all tokens after the last norm (n, T, D), float16: they are many."""
    return torch.cat([capture(model, some)["norm"].half() for some in images.split(100)])


def four_heads(config: ViTConfig) -> nn.ModuleDict:
    """Make a linear layer a task; the box reads four numbers of each patch, with a hidden layer."""
    D, pixels = config.embed_dim, config.patch_size**2
    hidden = nn.Linear(D, 4), nn.Flatten(), nn.Linear(4 * config.num_patches, 64), nn.GELU()
    box = nn.Sequential(*hidden, nn.Linear(64, 4), nn.Sigmoid())
    heads = {"class": nn.Linear(D, len(SHAPES)), "box": box}
    return nn.ModuleDict(heads | {task: nn.Linear(D, pixels) for task in ("mask", "depth")})


def apply_heads(heads: nn.ModuleDict, tokens: torch.Tensor, config: ViTConfig) -> Tensors:
    """Say what the four heads find in tokens (n, T, D); masks (logits) and depths are (n, H, W)."""
    tokens, size = tokens.float(), (config.image_size, config.image_size)
    patches = tokens[:, -config.num_patches :]
    predictions = {"class": heads["class"](tokens[:, 0]), "box": heads["box"](patches)}
    for task in ("mask", "depth"):
        predictions[task] = unpatchify(heads[task](patches), config.patch_size, size)[:, 0]
    return predictions


def score(predictions: Tensors, truth: Tensors) -> Results:
    """Give right classes, overlap of boxes and masks (shares), and mean error of depth (pixels)."""
    mask, true_mask = predictions["mask"] > 0, truth["mask"] > 0.5
    masks = (mask & true_mask).sum(dim=(1, 2)) / (mask | true_mask).sum(dim=(1, 2))
    right = (predictions["class"].argmax(dim=1) == truth["class"]).double()
    results = {"class": right.mean().item(), "box": overlap(predictions["box"], truth["box"])}
    off = (predictions["depth"] - truth["depth"]).abs()
    results |= {"mask": masks.mean().item(), "depth": off.mean().item()}
    return {task: round(value, 4) for task, value in results.items()}
