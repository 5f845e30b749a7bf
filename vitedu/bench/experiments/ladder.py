"""From no attention to a whole block, one part at a time: what is each part worth on new images?

Section 7 of notebook 03. Every model has patches, positions, a class token, at most one block and a
head. Weights are drawn in the same way; images, order and steps are the same.
"""

from typing import Any

import torch
from torch import nn

from vitedu.bench.experiments import Arms, Results, cut, shapes, train_and_measure
from vitedu.encoder import EncoderBlock
from vitedu.fitting import TrainConfig
from vitedu.hardware import Profile
from vitedu.vit import VisionTransformer, ViTConfig

CONFIG = ViTConfig(patch_size=8, embed_dim=64, depth=1, num_heads=4)
ARMS: Arms = {
    "no attention": {"parts": []},
    "one head": {"parts": ["attention"], "heads": 1},
    "four heads": {"parts": ["attention"]},
    "and a skip": {"parts": ["attention", "skip"]},
    "and a norm": {"parts": ["attention", "skip", "norm"]},
    "and the MLP": {"parts": ["attention", "skip", "norm", "MLP"]},
}
RECIPE: Any = {"batch_size": 64, "lr": 3e-3, "crop_padding": 2, "precision": "float32"}


class PartialBlock(nn.Module):
    """A block that has some of its parts; the MLP has its own norm and skip, as everywhere."""

    def __init__(self, block: EncoderBlock, parts: list[str]):
        super().__init__()
        self.attn, self.has_skip = block.attn, "skip" in parts
        self.norm1 = block.norm1 if "norm" in parts else nn.Identity()
        self.norm2 = block.norm2 if "MLP" in parts else nn.Identity()
        self.mlp = block.mlp if "MLP" in parts else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map tokens (B, T, D) to (B, T, D)."""
        attended = self.attn(self.norm1(x))[0]
        x = x + attended if self.has_skip else attended
        return x if self.mlp is None else x + self.mlp(self.norm2(x))


def build(arm: str, seed: int, config: ViTConfig = CONFIG) -> VisionTransformer:
    """Make the model of an arm; there is no norm before the head."""
    torch.manual_seed(seed)
    model, parts = VisionTransformer(config), ARMS[arm]["parts"]
    model.register_module("norm", nn.Identity())
    blocks: Any = model.blocks if parts else []
    for block in blocks:  # the number of heads changes no shape
        block.attn.num_heads = ARMS[arm].get("heads", config.num_heads)
    model.blocks = nn.ModuleList([PartialBlock(block, parts) for block in blocks])
    return model


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one model and measure it on images that it has not seen."""
    config = TrainConfig(epochs=cut(5, profile, 1), seed=seed, **RECIPE)
    return train_and_measure(build(arm, seed), shapes(profile, 4_000, quick=(64, 50)), config)
