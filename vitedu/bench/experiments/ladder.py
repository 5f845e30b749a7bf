"""From no attention to a whole block, one part at a time: what is each part worth on new images?

At the end of notebook 03. Every model has patches, positions, a class token, at most one block and
a head. Weights are drawn in the same way; images, order and steps are the same.
"""

from typing import Any

import torch
from torch import nn

from vitedu.bench.experiments import Arms, settings_of, training
from vitedu.bench.experiments.without_one_part import PartialBlock
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


def build(arm: str, seed: int, config: ViTConfig = CONFIG) -> VisionTransformer:
    """Make the model of an arm; there is no norm before the head."""
    torch.manual_seed(seed)
    model, parts = VisionTransformer(config), settings_of(arm, ARMS)[0]["parts"]
    model.register_module("norm", nn.Identity())
    blocks: Any = model.blocks if parts else []
    for block in blocks:  # the number of heads changes no shape
        block.attn.num_heads = ARMS[arm].get("heads", config.num_heads)
    has = {"mlp": "MLP" in parts, "residual": "skip" in parts, "norms": "norm" in parts}
    model.blocks = nn.ModuleList([PartialBlock(block, **has) for block in blocks])
    return model


RECIPE: Any = {"batch_size": 64, "lr": 3e-3, "crop_padding": 2, "precision": "float32"}
run = training(ARMS, build, quick=(200, 100), epochs=1, **RECIPE)
