"""What did it learn? One small ViT, its pooling, its registers, and images whose patches are
shuffled.

Role: the arms and one run of notebook 05. Not here: the measurements themselves
(``vitedu.inside``).

Every arm trains the same small model with at most one thing changed, and measures on test images
that no choice used. Its patches have 8 px, twice those of the model that the notebook looks into,
so that a run costs a quarter. The untrained model is the same one before its first step.

The shuffle stands inside its model, behind the crops and flips of training. A shuffle of the images
themselves would be cropped and flipped as if it were a picture.
"""

from functools import cache
from statistics import fmean
from typing import Any

import torch
import torch.nn.functional as F

from vitedu.bench.experiments import Results, train_to_end
from vitedu.data import Data, load_data
from vitedu.fitting import TrainConfig
from vitedu.fitting.loop import measure_test_accuracy
from vitedu.hardware import Profile
from vitedu.inside import (
    attention_distance,
    attention_rollout,
    class_attention,
    input_gradient,
    pointing_game,
    position_similarity,
)
from vitedu.options import VisionTransformerWithOptions, with_options
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


class LargestPatch(VisionTransformerWithOptions):
    """Pool by the largest value that any patch has, feature by feature; there is no class token."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (B, C, H, W) to logits (B, K)."""
        x = self.patch_embed(images) + self.pos_embed  # (B, N, D)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).amax(dim=1))  # (B, N, D) -> (B, D) -> (B, K)


class ShuffledPatches(VisionTransformerWithOptions):
    """See the patches of every image in another order: place i gets patch ``order[i]``."""

    order: torch.Tensor  # (N,)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map images (B, C, H, W) to logits (B, K)."""
        return super().forward(move_patches(images, self.order))


def build(arm: str, seed: int, data: Data) -> VisionTransformer:
    """Make the untrained model of an arm."""
    options = {name: value for name, value in ARMS[arm].items() if name != "shuffled"}
    kind = LargestPatch if options.get("pool") == "max" else VisionTransformerWithOptions
    if kind is LargestPatch:
        options["pool"] = "mean"  # the shape without a class token
    if ARMS[arm].get("shuffled"):
        kind = ShuffledPatches
    sizes: dict[str, Any] = {"num_classes": data.num_classes, "in_channels": data.in_channels}
    torch.manual_seed(seed)
    model = kind(with_options(CONFIG, fused=True, **sizes, **options))
    if isinstance(model, ShuffledPatches):
        model.register_buffer("order", patch_shuffle(seed), persistent=False)
    return model


def settings(seed: int, epochs: int) -> TrainConfig:
    """Say how every arm is trained."""
    return TrainConfig(
        epochs=epochs, batch_size=64, optimizer="muon", lr=4e-3, crop_padding=2, seed=seed
    )


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one model and measure what the notebook measures."""
    data = images(*profile.pick(quick=(64, 50), laptop=(None, None), gpu=(None, None)))
    model = build(arm, seed, data)
    before = looked_into(model, data)
    config = settings(seed, profile.pick(quick=1, laptop=4, gpu=4))
    history = train_to_end(model, data, config, validation_images=100)
    model = model.cpu()
    results: Results = {
        "test_accuracy": measure_test_accuracy(model, data, torch.float32),
        "train_accuracy": history.rows[-1].train_accuracy,
    }
    for when, found in (("untrained", before), ("trained", looked_into(model, data))):
        results |= {f"{when}: {name}": round(value, 4) for name, value in found.items()}
    return results | {"precision": history.precision, "seconds": round(history.seconds, 1)}


@cache
def images(limit: int | None, held_out: int | None) -> Data:
    """Draw the images once."""
    return load_data("shapes", limit=limit, held_out=held_out)


def patch_shuffle(seed: int) -> torch.Tensor:
    """Draw one order of the patches (N,); place i takes what stood at place ``order[i]``."""
    return torch.randperm(CONFIG.num_patches, generator=torch.Generator().manual_seed(seed))


def move_patches(images: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """Put the patch from place ``order[i]`` to place i: (B, C, H, W) -> (B, C, H, W)."""
    P, (gh, gw) = CONFIG.patch_size, CONFIG.grid_size
    cells = (
        images.unflatten(3, (gw, P)).unflatten(2, (gh, P)).transpose(3, 4)
    )  # (B, C, gh, gw, P, P)
    moved = cells.flatten(2, 3)[:, :, order].unflatten(2, (gh, gw))
    return moved.transpose(3, 4).flatten(4, 5).flatten(2, 3)


def like_content(pos_embed: torch.Tensor, covered: torch.Tensor) -> float:
    """Correlate how alike two positions are with how alike what is usually seen at them is.

    Args:
        pos_embed: (1, T, D).
        covered: (N,), the share of images in which the object touches what stands at each place.
    """
    cosines = position_similarity(pos_embed, CONFIG.grid_size).flatten(1)  # (N, N)
    unlike = (covered[:, None] - covered).abs()
    others = unlike.new_ones(unlike.shape).fill_diagonal_(0).bool()
    return torch.corrcoef(torch.stack([cosines[others], -unlike[others]]))[0, 1].item()


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
        "outliers": (patches > OUTLIER * patches.median()).double().mean().item(),
        "largest norm": (patches.max() / patches.median()).item(),
    }
    if config.num_registers:
        registers = norms[:, 1 : 1 + config.num_registers]
        results["register norm"] = (registers.mean() / patches.median()).item()
    masks = data.test.masks
    if masks is None:
        return results
    masks = masks[:IMAGES]
    covered = F.max_pool2d(masks[:, None].float(), config.patch_size).mean(dim=0).flatten()  # (N,)
    positions = model.pos_embed.detach()
    results["like content"] = like_content(positions, covered)
    if isinstance(model, ShuffledPatches):  # place i holds what comes from place order[i]
        results["like content, put back"] = like_content(positions, covered[model.order])
    elif config.pool == "cls":
        last = class_attention(layers[-1], config.grid_size).mean(dim=1)
        rolled = attention_rollout(layers)[:, 0, -config.num_patches :]
        maps = {
            "last block": last,
            "rollout": rolled.unflatten(1, config.grid_size),
            "gradient": input_gradient(model.eval(), pictures, config.grid_size),
        }
        results |= {f"pointing, {name}": pointing_game(each, masks) for name, each in maps.items()}
    return results
