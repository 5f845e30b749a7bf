"""What do parts of newer blocks gain in the textbook model, after one epoch of all photographs?

One part an arm, then all four. Notebook 04 shows the rows. The parts: RMSNorm (Zhang and Sennrich
2019, arXiv 1910.07467), LayerScale from 0.1 (Touvron et al. 2021, arXiv 2103.17239), SwiGLU of as
many parameters (Shazeer 2020, arXiv 2002.05202), registers (Darcet et al. 2023, arXiv 2309.16588).
"""

from typing import Any

import torch
from torch import nn

from vitedu.bench.experiments import Arms, settings_of
from vitedu.bench.experiments.without_one_part import one_epoch
from vitedu.extras.options import build_model, preset

ARMS: Arms = {
    "textbook": {},
    "RMSNorm": {"rms_norm": True},
    "LayerScale": {"layer_scale": 0.1},
    "SwiGLU": {"mlp": "swiglu", "mlp_ratio": 8 / 3},
    "four registers": {"num_registers": 4},
}
ARMS["all four"] = {name: value for arm in ARMS.values() for name, value in arm.items()}


class LayerScale(nn.Module):
    """Multiply each column by a learned factor, at the end of a branch."""

    def __init__(self, embed_dim: int, start: float):
        super().__init__()
        self.gamma = nn.Parameter(torch.full((embed_dim,), start))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (..., D) to (..., D)."""
        return x * self.gamma


def build(arm: str, seed: int) -> nn.Module:
    """Make the model of an arm, a name of ``ARMS``, with the starting weights of a seed."""
    parts, _ = settings_of(arm, ARMS)
    rms_norm, start = parts.pop("rms_norm", False), parts.pop("layer_scale", None)
    torch.manual_seed(seed)
    model: Any = build_model(preset("vit_pico_patch4_32", **parts))
    D = model.config.embed_dim
    for block in model.blocks:
        if start is not None:
            block.attn.proj = nn.Sequential(block.attn.proj, LayerScale(D, start))
            block.mlp.fc2 = nn.Sequential(block.mlp.fc2, LayerScale(D, start))
        if rms_norm:
            block.norm1, block.norm2 = nn.RMSNorm(D, eps=1e-6), nn.RMSNorm(D, eps=1e-6)
    if rms_norm:
        model.norm = nn.RMSNorm(D, eps=1e-6)
    return model


run = one_epoch(ARMS, build)
