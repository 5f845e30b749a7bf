"""One shape, three tasks: what the same small network became for labels, DINO and masked patches.

Section 5 of notebook 07. The three encoders are the shipped ones of ``label_counts``, one of each
task; a seed draws the weights of "untrained" and the 4,000 labelled photographs of the probes. All
is measured on the first test photographs: how far patches look, how much of the three largest
principal components of patch features their place, photograph and colour explain, and what a linear
layer reads after every block, from the class token and from the mean of the patches.
"""

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.bench.experiments import Arms, Data, Measurement, Profile, Results, by_arm, cut
from vitedu.bench.experiments.label_counts import ARMS as ENCODERS
from vitedu.bench.experiments.label_counts import COUNTS, encoder
from vitedu.bench.experiments.less_data import draw, photographs
from vitedu.inside import attention_distance, class_attention, nearest_accuracy, probe_accuracy
from vitedu.patches import patchify
from vitedu.pretrained.photographs import leading_directions
from vitedu.vit import capture

ARMS: Arms = {arm: ENCODERS[arm] for arm in ("supervised", "dino", "masked", "untrained")}
IMAGES = 1_000  # test photographs that maps are measured on; probes have 2,000


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Look into one encoder: {"probe, class token, block 1": accuracy, ...}."""
    model, data = encoder(arm, seed), photographs(profile)
    few = draw(data.train, min(max(COUNTS), len(data.train) // 2), seed)
    known, new = (summaries(model, split.images, data) for split in (few, data.test))
    found = {}
    for name in known:
        task = known[name], few.labels, new[name], data.test.labels
        found[f"probe, {name}"] = probe_accuracy(*task)
    found["10 nearest"] = nearest_accuracy(*task)  # of the last: class token, block 4
    count = cut(IMAGES, profile, 50)
    found |= look_inside(model, data.normalize(data.test.images[:count]))
    return {name: round(value, 4) for name, value in found.items()}


def inside(model: nn.Module, images: torch.Tensor) -> Iterator[dict[str, torch.Tensor]]:
    """Give what passes through an encoder, some normalised images after the other."""
    for part in images.split(250):
        yield capture(model, part)


def summaries(model: Any, images: torch.Tensor, data: Data) -> dict[str, torch.Tensor]:
    """Give the mean of the patches and the class token after every block, each (n, D)."""
    found: dict[str, list] = {}
    for tensors in inside(model, data.normalize(images)):
        for number in range(len(model.blocks)):
            x = tensors[f"blocks.{number}"]  # (B, T, D)
            found.setdefault(f"patch mean, block {number + 1}", []).append(x[:, 1:].mean(dim=1))
            found.setdefault(f"class token, block {number + 1}", []).append(x[:, 0])
    return {name: torch.cat(parts) for name, parts in found.items()}


def look_inside(model: Any, images: torch.Tensor) -> dict[str, float]:
    """Measure the reach of heads, and what explains the last look and the patch features."""
    depth, grid = len(model.blocks), model.config.grid_size
    reach = [torch.zeros(model.config.num_heads) for _ in range(depth)]  # patches
    features: dict[int, list] = {depth - 1: [], depth: []}
    looks = []
    for tensors in inside(model, images):
        for block in range(depth):
            weights = tensors[f"blocks.{block}.attn.weights"]
            reach[block] += attention_distance(weights, grid) * len(weights) / len(images)
        for number, parts in features.items():
            parts.append(tensors[f"blocks.{number - 1}"][:, 1:])
        looks.append(class_attention(weights, grid).mean(dim=1).flatten(1))
    found = {
        f"reach, block {block}, head {head}": far
        for block, heads in enumerate(reach, start=1)
        for head, far in enumerate(heads.tolist(), start=1)
    }
    colour = patchify(images, model.config.patch_size).unflatten(-1, (3, -1)).mean(dim=-1)
    for number, parts in features.items():
        shares = explained(leading_directions(torch.cat(parts), 3), colour)
        found |= {f"components, block {number}: {cause}": share for cause, share in shares.items()}
    maps = torch.cat(looks)[:, :, None]  # (n, N, 1); of a photograph they sum to about 1
    return found | {"look: place": explained(maps, colour)["place"]}


def explained(values: torch.Tensor, colour: torch.Tensor) -> dict[str, float]:
    """Give the shares of the variance of values (n, N, k) that other things explain, each alone.

    They are the place of a patch, its mean colour (n, N, 3) linearly, and its photograph.
    """
    values = (values - values.mean(dim=(0, 1))).double()
    known = F.pad(colour.flatten(0, 1).double(), (0, 1), value=1.0)
    guesses = {
        "place": values.mean(dim=0),
        "colour": known @ torch.linalg.lstsq(known, values.flatten(0, 1)).solution,
        "photograph": values.mean(dim=1),
    }
    whole = values.square().mean(dim=(0, 1)).sum()
    return {
        name: (each.square().mean(dim=0).sum() / whole).item() for name, each in guesses.items()
    }


def pictures(model: Any, images: torch.Tensor, data: Data) -> tuple[torch.Tensor, torch.Tensor]:
    """Show uint8 images (n, 3, S, S) as an encoder sees them.

    Returns:
        Where the class token looks in the last block, the mean of its heads (n, gh, gw); and what
        the last block reads of the patches, in the three leading directions of these and 500 test
        photographs, as colours (n, 3, S, S). Each photograph is cut P x P times, a pixel further
        each time.
    """
    P, (gh, gw), last = model.config.patch_size, model.config.grid_size, len(model.blocks) - 1
    padded = F.pad(data.normalize(images), (P // 2, P - 1 - P // 2) * 2, mode="reflect")
    cuts = padded.unfold(2, gh * P, 1).unfold(3, gw * P, 1)  # (n, 3, P, P, S, S)
    cuts = cuts.permute(2, 3, 0, 1, 4, 5).flatten(0, 2)  # (P * P * n, 3, S, S)
    many = torch.cat([cuts, data.normalize(data.test.images[:500])])
    read = torch.cat([each[f"blocks.{last - 1}"][:, 1:] for each in inside(model, many)])
    turned = leading_directions(read, 3)  # (P * P * n + 500, N, 3)
    turned = turned / (4 * turned.std(dim=(0, 1))) * turned.pow(3).sum(dim=(0, 1)).sign()
    of_cuts = turned[: len(cuts)].view(P, P, len(images), gh, gw, 3)
    colours = of_cuts.permute(2, 5, 3, 0, 4, 1).reshape(len(images), 3, gh * P, gw * P)
    weights = capture(model, data.normalize(images))[f"blocks.{last}.attn.weights"]
    return class_attention(weights, (gh, gw)).mean(dim=1), (0.5 + colours).clamp(0, 1)


def in_panels(rows: Sequence[Measurement]) -> tuple[dict[str, list], dict[str, dict[str, list]]]:
    """Give means: reach (patches), arm -> block -> heads; probes (%), arm -> token -> block."""

    def means(name: str, factor: float = 1) -> dict[str, float]:
        return {arm: fmean(seeds) for arm, seeds in by_arm(rows, name, factor).items()}

    names, blocks = ("class token", "patch mean"), range(1, 5)
    far = [[means(f"reach, block {block}, head {head}") for head in (1, 2, 3)] for block in blocks]
    right = {
        name: [means(f"probe, {name}, block {block}", 100) for block in blocks] for name in names
    }
    reach = {arm: [[head[arm] for head in heads] for heads in far] for arm in ARMS}
    return reach, {
        arm: {name: [each[arm] for each in right[name]] for name in names} for arm in ARMS
    }
