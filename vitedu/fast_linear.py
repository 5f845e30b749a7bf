"""A linear layer over tokens in the form that this machine computes fastest.

Role: ``fast_linear``, which the fused forms of the layers call, and the MLP in that form. Not here: attention.

A linear layer that sees every token alone is a convolution with a kernel of one. On a CPU torch sends
the two to different libraries: float32 products to MKL, whose AVX-512 kernels serve Intel's processors
alone, convolutions to oneDNN, which asks the processor what it can do. On an AVX-512 processor of
another maker the convolution takes half the time, forward and backward.
"""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.encoder import Mlp
from vitedu.hardware import cpu_flags


def fast_linear(layer: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """Apply a linear layer to tokens (B, T, D) and give (B, T, D'), equal to ``layer(x)`` to rounding.

    Example:
        >>> fast_linear(nn.Linear(8, 12), torch.zeros(2, 5, 8)).shape
        torch.Size([2, 5, 12])
    """
    is_float32 = x.dtype is torch.float32 and not torch.is_autocast_enabled(x.device.type)
    if not (x.device.type == "cpu" and is_float32 and PREFERS_CONVOLUTION):
        return layer(x)
    pixels = x.transpose(1, 2).unsqueeze(2)  # (B, T, D) -> (B, D, 1, T), channels last, no copy
    pixels = F.conv2d(pixels, layer.weight[:, :, None, None], layer.bias)
    return pixels.squeeze(2).transpose(1, 2)  # (B, D', 1, T) -> (B, T, D'), no copy


def prefers_convolution() -> bool:
    """Whether this CPU has AVX-512 and another maker than Intel; False where Linux does not tell."""
    return "avx512f" in cpu_flags() and "GenuineIntel" not in Path("/proc/cpuinfo").read_text()


PREFERS_CONVOLUTION = prefers_convolution()  # once: torch.compile looks into what is called


class FusedMlp(Mlp):
    """An ``Mlp`` whose layers run in the fastest form; ``fused = False`` switches an instance back.

    Args:
        mlp: its layers are taken over, so that names, weights and random numbers stay as they were.

    Example:
        >>> FusedMlp(Mlp(embed_dim=12, hidden_dim=48))(torch.zeros(2, 5, 12)).shape
        torch.Size([2, 5, 12])
    """

    fused = True

    def __init__(self, mlp: Mlp):
        nn.Module.__init__(self)
        self.fc1, self.act, self.fc2 = mlp.fc1, mlp.act, mlp.fc2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map tokens (B, T, D) to (B, T, D)."""
        if not self.fused:
            return super().forward(x)
        return fast_linear(self.fc2, self.act(fast_linear(self.fc1, x)))
