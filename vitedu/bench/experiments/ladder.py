"""From no attention to a whole block, one part at a time: what is each part worth on new images?

Role: the arms and one run of section 7 of notebook 03.

Every model has patches, positions, a class token, at most one block and a head. Nothing else
differs between one arm and the next: the weights are drawn in the same way, and the images, the
order and the steps are the same.
"""

import time
from functools import cache
from typing import Any

import torch
from torch import nn

from vitedu.bench.experiments import Results, train_to_end
from vitedu.data import Data, load_data
from vitedu.encoder import EncoderBlock
from vitedu.fitting import TrainConfig
from vitedu.fitting.loop import measure_test_accuracy
from vitedu.hardware import Profile
from vitedu.vit import VisionTransformer, ViTConfig

CONFIG = ViTConfig(patch_size=8, embed_dim=64, depth=1, num_heads=4)
ARMS: dict[str, dict[str, Any]] = {
    "no attention": {"parts": []},
    "one head": {"parts": ["attention"], "heads": 1},
    "four heads": {"parts": ["attention"]},
    "and a skip": {"parts": ["attention", "skip"]},
    "and a norm": {"parts": ["attention", "skip", "norm"]},
    "and the MLP": {"parts": ["attention", "skip", "norm", "MLP"]},
}


class Rung(nn.Module):
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
    parts = ARMS[arm]["parts"]
    heads = ARMS[arm].get("heads", config.num_heads)
    model = VisionTransformer(config)
    model.register_module("norm", nn.Identity())
    rungs = []
    for block in model.blocks:
        assert isinstance(block, EncoderBlock)
        block.attn.num_heads = heads  # the number of heads changes no shape
        rungs.append(Rung(block, parts))
    model.blocks = nn.ModuleList(rungs if parts else [])
    return model


@cache
def images(limit: int, held_out: int | None) -> Data:
    """Draw the images once."""
    return load_data("shapes", limit=limit, held_out=held_out)


def run(arm: str, seed: int, profile: Profile) -> Results:
    """Train one model and measure it on images that it has not seen."""
    data = images(*profile.pick(quick=(64, 50), laptop=(4_000, None), gpu=(4_000, None)))
    model, started = build(arm, seed), time.process_time()
    config = TrainConfig(
        epochs=profile.pick(quick=1, laptop=5, gpu=5),
        batch_size=64,
        lr=3e-3,
        crop_padding=2,
        precision="float32",
        seed=seed,
    )
    history = train_to_end(model, data, config)
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "train_accuracy": round(history.rows[-1].train_accuracy, 4),
        "test_accuracy": measure_test_accuracy(model.cpu(), data, torch.float32),
        "cpu_seconds": round(time.process_time() - started, 1),
    }
