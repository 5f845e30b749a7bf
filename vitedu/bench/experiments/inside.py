"""What did it learn? One small ViT, its pooling, its registers, and images whose patches are shuffled.

Role: the arms and one run of notebook 05. Not here: the measurements themselves (``vitedu.inside``), the file
of measurements (the package around this module).

Every arm trains the same small model with at most one thing changed, and measures on test images that no
choice used. Its patches have 8 px, twice those of the model that the notebook looks into, so that a run costs a
quarter. What is said of the untrained model is measured on the same model before its first step.
"""

from dataclasses import replace
from functools import cache
from statistics import fmean
from typing import Any

import torch

from vitedu.bench.experiments import Results
from vitedu.data import Data, load_data
from vitedu.fitting import TrainConfig, fit
from vitedu.fitting.loop import measure_test_accuracy
from vitedu.hardware import Profile
from vitedu.inside import (
    attention_distance,
    attention_rollout,
    class_attention,
    grid_distances,
    input_gradient,
    pointing_game,
    position_similarity,
)
from vitedu.vit import VisionTransformer, ViTConfig, capture

CONFIG = ViTConfig(patch_size=8, embed_dim=64, depth=4, num_heads=4, mlp_ratio=2.0)
ARMS: dict[str, dict[str, Any]] = {
    "class token": {},
    "mean of the patches": {"pool": "mean"},
    "largest of the patches": {"pool": "max"},
    "4 registers": {"num_registers": 4},
    "one fixed patch shuffle": {"shuffled": True},
}
IMAGES = 500  # test images that maps are measured on
OUTLIER = 3.0  # a token of more than so many median norms counts as an outlier
FAR = 2.5  # patches; the grid is 4 x 4


class LargestPatch(VisionTransformer):
    """Pool by the largest value that any patch has, feature by feature; there is no class token."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (B, C, H, W) to logits (B, K)."""
        x = self.patch_embed(images) + self.pos_embed  # (B, N, D)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).amax(dim=1))  # (B, N, D) -> (B, D) -> (B, K)


def build(arm: str, seed: int, data: Data) -> VisionTransformer:
    """Make the untrained model of an arm."""
    options = {name: value for name, value in ARMS[arm].items() if name != "shuffled"}
    kind = LargestPatch if options.get("pool") == "max" else VisionTransformer
    if kind is LargestPatch:
        options["pool"] = "mean"  # the shape without a class token
    sizes: dict[str, Any] = {"num_classes": data.num_classes, "in_channels": data.in_channels}
    torch.manual_seed(seed)
    return kind(replace(CONFIG, fused=True, **sizes, **options))


def settings(seed: int, epochs: int) -> TrainConfig:
    """Say how every arm is trained."""
    return TrainConfig(
        epochs=epochs, batch_size=64, optimizer="muon", lr=4e-3, crop_padding=2, seed=seed
    )


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one model and measure what the notebook measures."""
    data = images(profile.pick(quick=300, laptop=None, gpu=None))
    order = patch_shuffle(seed)
    if ARMS[arm].get("shuffled"):
        data = shuffled(data, order)
    model = build(arm, seed, data)
    before = looked_into(model, data)
    history = fit(model, data, settings(seed, profile.pick(quick=1, laptop=4, gpu=4)))
    if history.interrupted:
        raise KeyboardInterrupt
    model = model.cpu()
    results: Results = {
        "test_accuracy": measure_test_accuracy(model, data, torch.float32),
        "train_accuracy": history.rows[-1].train_accuracy,
    }
    for when, found in (("untrained", before), ("trained", looked_into(model, data))):
        results |= {f"{when}: {name}": round(value, 4) for name, value in found.items()}
    if ARMS[arm].get("shuffled"):  # put the positions where their content came from
        back = model.pos_embed.detach()[:, CONFIG.num_tokens - CONFIG.num_patches :][
            :, order.argsort()
        ]
        results["trained: neighbours unshuffled"] = round(structure(back), 4)
    return results | {"precision": history.precision, "seconds": round(history.seconds, 1)}


@cache
def images(limit: int | None) -> Data:
    """Draw the images once."""
    return load_data("shapes", limit=limit)


def patch_shuffle(seed: int) -> torch.Tensor:
    """Draw one order of the patches (N,); place i takes what stood at place ``order[i]``."""
    return torch.randperm(CONFIG.num_patches, generator=torch.Generator().manual_seed(seed))


def shuffled(data: Data, order: torch.Tensor) -> Data:
    """Give the data with the patches of every image in another order, the same for all."""
    splits = {}
    for name in ("train", "validation", "test"):
        split = getattr(data, name)
        splits[name] = replace(split, images=move_patches(split.images, order), masks=None)
    return replace(data, **splits)


def move_patches(images: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """Put the patch from place ``order[i]`` to place i: (B, C, H, W) -> (B, C, H, W)."""
    P, (gh, gw) = CONFIG.patch_size, CONFIG.grid_size
    cells = (
        images.unflatten(3, (gw, P)).unflatten(2, (gh, P)).transpose(3, 4)
    )  # (B, C, gh, gw, P, P)
    moved = cells.flatten(2, 3)[:, :, order].unflatten(2, (gh, gw))
    return moved.transpose(3, 4).flatten(4, 5).flatten(2, 3)


def structure(pos_embed: torch.Tensor) -> float:
    """Give the mean cosine of neighbouring positions minus that of far ones."""
    cosines = position_similarity(pos_embed, CONFIG.grid_size).flatten(1)  # (N, N)
    apart = grid_distances(CONFIG.grid_size)
    return (cosines[apart == 1].mean() - cosines[apart > FAR].mean()).item()


def looked_into(model: Any, data: Data) -> dict[str, float]:
    """Measure distances, positions, norms and, where there are masks, what the maps point at."""
    config = model.config
    pictures = data.normalize(data.test.images[:IMAGES])
    found = capture(model, pictures)
    layers = [found[f"blocks.{i}.attn.weights"] for i in range(config.depth)]
    spans = [attention_distance(weights, config.grid_size) for weights in layers]
    norms = found[f"blocks.{config.depth - 1}"].norm(dim=-1)  # (B, T)
    patches = norms[:, -config.num_patches :]
    results = {
        "head spread": fmean((span.max() - span.min()).item() for span in spans),  # patches
        "mean distance": fmean(span.mean().item() for span in spans),
        "neighbours": structure(model.pos_embed.detach()),
        "outliers": (patches > OUTLIER * patches.median()).double().mean().item(),
        "largest norm": (patches.max() / patches.median()).item(),
    }
    if config.num_registers:
        registers = norms[:, 1 : 1 + config.num_registers]
        results["register norm"] = (registers.mean() / patches.median()).item()
    masks = data.test.masks
    if masks is not None and config.pool == "cls":
        masks = masks[:IMAGES]
        last = class_attention(layers[-1], config.grid_size).mean(dim=1)
        rolled = attention_rollout(layers)[:, 0, -config.num_patches :]
        maps = {
            "last block": last,
            "rollout": rolled.unflatten(1, config.grid_size),
            "gradient": input_gradient(model.eval(), pictures, config.grid_size),
        }
        results |= {f"pointing, {name}": pointing_game(each, masks) for name, each in maps.items()}
    return results
