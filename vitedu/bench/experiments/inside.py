"""What did it learn? One small ViT, its pooling, its registers, and images with shuffled patches.

Notebook 05. Every arm trains the same small model with at most one thing changed. Its patches have
8 px, twice those of the model that the notebook looks into, so that a run costs a quarter. The
shuffle stands before its model, behind crops and flips, which are made for pictures.
"""

from statistics import fmean
from typing import Any

import torch
import torch.nn.functional as F

from vitedu.bench.experiments import Arms, Results, cut, images, settings_of, train_and_measure
from vitedu.data import Data
from vitedu.extras.options import build_model, with_options
from vitedu.fitting import TrainConfig
from vitedu.ground.hardware import Profile
from vitedu.inside import (
    attention_distance,
    attention_rollout,
    pointing_game,
    position_similarity,
)
from vitedu.vit import VisionTransformer, ViTConfig, capture
from vitedu.vit_and_cnn import shuffle_patches

CONFIG = ViTConfig(patch_size=8, embed_dim=64, depth=4, num_heads=4, mlp_ratio=2.0)
DATA = "shapes"  # maps are set beside masks
ARMS: Arms = {
    "class token": {},
    "mean of the patches": {"pool": "mean"},
    "largest of the patches": {"pool": "max"},
    "4 registers": {"num_registers": 4},
    "one fixed patch shuffle": {"shuffled": True},
}
IMAGES = 500  # test images that maps are measured on
OUTLIER = 3.0  # a patch of more than so many median norms counts as an outlier


def build(arm: str, seed: int) -> VisionTransformer:
    """Make the untrained model of an arm; where it is shuffled, place i gets patch ``order[i]``."""
    torch.manual_seed(seed)
    options = {"fused": True, **settings_of(arm, ARMS)[0]}
    shuffled = options.pop("shuffled", False)
    model: Any = build_model(with_options(CONFIG, **options))
    if shuffled:
        generator = torch.Generator().manual_seed(seed)
        model.order = order = torch.randperm(CONFIG.num_patches, generator=generator)
        model.register_forward_pre_hook(lambda _, seen: shuffle_patches(seen[0], 8, order))
    return model


def settings(seed: int, epochs: int) -> TrainConfig:
    """Say how every arm is trained."""
    return TrainConfig(epochs, 64, 4e-3, optimizer="muon", crop_padding=2, seed=seed)


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one model and measure what the notebook measures."""
    data, config = images(profile, None, (64, 50), DATA), settings(seed, cut(4, profile, 1))
    model = build(arm, seed)
    before = measure_inside(model, data)
    columns = "test_accuracy train_accuracy precision seconds"
    results = train_and_measure(model, data, config, columns, validation_images=100)
    for when, measures in (("untrained", before), ("trained", measure_inside(model, data))):
        results |= {f"{when}: {name}": round(value, 4) for name, value in measures.items()}
    return results


def measure_inside(model: Any, data: Data) -> dict[str, float]:
    """Measure distances, norms, positions and what rollout points at, on the first test images."""
    config, grid = model.config, model.config.grid_size
    masks: Any = data.test.masks
    images, masks = data.normalize(data.test.images[:IMAGES]), masks[:IMAGES]
    tensors = capture(model, images)
    layers = [tensors[f"blocks.{i}.attn.weights"] for i in range(config.depth)]
    spans = [attention_distance(weights, grid) for weights in layers]
    norms = tensors[f"blocks.{config.depth - 1}"].norm(dim=-1)  # (B, T)
    patches = norms[:, -config.num_patches :]
    results = {
        "head spread": fmean((span.max() - span.min()).item() for span in spans),  # patches
        "outliers": (patches > OUTLIER * patches.median()).double().mean().item(),
    }
    positions, order = model.pos_embed.detach(), getattr(model, "order", None)
    covered = F.max_pool2d(masks[:, None].float(), config.patch_size).mean(dim=0).flatten()  # (N,)
    results["like content"] = content_correlation(positions, covered)
    if order is not None:  # place i holds what comes from place order[i]
        results["like content, put back"] = content_correlation(positions, covered[order])
    elif config.pool == "cls":
        rollout = attention_rollout(layers)[:, 0, -config.num_patches :].unflatten(1, grid)
        results["pointing, rollout"] = pointing_game(rollout, masks)
    return results


def content_correlation(pos_embed: torch.Tensor, covered: torch.Tensor) -> float:
    """Correlate how alike two positions are with how alike what is usually seen at them is.

    ``covered`` (N,) is the share of images in which the object touches what stands at each place.
    """
    cosines = position_similarity(pos_embed, CONFIG.grid_size).flatten(1)  # (N, N)
    unlike = (covered[:, None] - covered).abs()
    others = ~torch.eye(len(covered), dtype=torch.bool)
    return torch.corrcoef(torch.stack([cosines[others], -unlike[others]]))[0, 1].item()
