"""What is each part of the textbook model worth after one epoch of all photographs?

The last run of notebook 03. Every arm lacks one part; starting weights, images, their order and the
recipe are the same. ``PartialBlock`` is a block that lacks some of its parts.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn

from vitedu.bench.experiments import Arms, settings_of, training
from vitedu.fitting.recipes import thread_recipe
from vitedu.vit import PRESETS, VisionTransformer

CONFIG = PRESETS["vit_pico_patch4_32"]
ARMS: Arms = {
    "whole": {},
    "no positions": {"positions": False},
    "even weights": {"even_weights": True},
    "one head": {"num_heads": 1},
    "no residual": {"residual": False},
    "no norms": {"norms": False},
    "no MLP": {"mlp": False},
}


class EvenAttention(nn.Module):
    """Attention whose weights are all the same: every token gets the mean of the values."""

    def __init__(self, attn: Any):
        super().__init__()
        self.qkv, self.proj = attn.qkv, attn.proj

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Map tokens (B, T, D) to (B, T, D) and no weights."""
        values = self.qkv(x).chunk(3, dim=-1)[2].mean(dim=1, keepdim=True)  # (B, 1, D)
        return self.proj(values).expand_as(x), None


class PartialBlock(nn.Module):
    """A block that lacks some of its parts.

    Args:
        block: has ``norm1``, ``attn``, ``norm2`` and ``mlp``, as the course's or a student's.
        attention, mlp, norms: whether it has them; without the MLP, its norm goes as well.
        residual: whether anything is added to what came in.
        mlp_residual: whether the MLP is, where attention is.
    """

    def __init__(
        self,
        block: Any,
        *,
        attention: bool = True,
        mlp: bool = True,
        residual: bool = True,
        mlp_residual: bool = True,
        norms: bool = True,
    ):
        super().__init__()
        self.norm1 = block.norm1 if norms else nn.Identity()
        self.norm2 = block.norm2 if norms and mlp else nn.Identity()
        self.attn = block.attn if attention else None
        self.mlp = block.mlp if mlp else None
        self.residual, self.mlp_residual = residual, residual and mlp_residual

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map tokens (B, T, D) to (B, T, D)."""
        if self.attn is not None:
            step = self.attn(self.norm1(x))[0]
            x = x + step if self.residual else step
        if self.mlp is not None:
            step = self.mlp(self.norm2(x))
            x = x + step if self.mlp_residual else step
        return x


def build(arm: str, seed: int, make: Callable[..., Any] = VisionTransformer) -> Any:
    """Make the model of an arm, with the starting weights of a seed.

    ``make`` maps a ``ViTConfig`` to a model with our attribute names, a student's class too.
    """
    lacks, _ = settings_of(arm, ARMS)
    torch.manual_seed(seed)
    model = make(replace(CONFIG, num_heads=lacks.pop("num_heads", CONFIG.num_heads)))
    if not lacks.pop("positions", True):
        model.pos_embed.requires_grad_(False).zero_()
    if lacks.pop("even_weights", False):
        for block in model.blocks:
            block.attn = EvenAttention(block.attn)
    if lacks:
        model.blocks = nn.ModuleList(PartialBlock(block, **lacks) for block in model.blocks)
    return model


one_epoch: Any = partial(
    training,
    columns="parameters validation_accuracy test_accuracy precision seconds",
    quick=(1_000, 500),
    validation=None,
    **vars(thread_recipe()),
)
run = one_epoch(ARMS, build)
