"""Notebook 03: the Transformer encoder.

Role: normalisation, non-linearity, the MLP, one block with its residual paths, and the parameter
count of a whole model. The model itself stands in ``vitedu.vit``.

Legend: B batch, T tokens, D embed_dim.

References: Dosovitskiy et al. 2020, equations 2 and 3 (arXiv 2010.11929); Ba et al. 2016, "Layer
Normalization" (arXiv 1607.06450); Hendrycks and Gimpel 2016, "Gaussian Error Linear Units" (arXiv
1606.08415).
"""

import math

import torch
from torch import nn

from vitedu.attention import MultiHeadAttention

# without a block: (different rows of logits among eight images, largest gradient of the patch
# embedding)
class_token_alone = (1, 0.0)
mlp_share = (8 * 768**2 + 5 * 768) / (12 * 768**2 + 13 * 768)  # fc1 and fc2, over a block of ViT-B


def layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-6
) -> torch.Tensor:
    """Give every token mean 0 and variance 1 over its features, then scale and shift.

    Each token is normalised alone: neither its neighbours nor the batch change it.

    Args:
        x: (..., D).
        weight: (D,), the learned scale.
        bias: (D,), the learned shift.
        eps: added to the variance, inside the root.

    Returns:
        (..., D).

    Example:
        >>> layer_norm(torch.tensor([[1.0, 3.0]]), torch.ones(2), torch.zeros(2))
        tensor([[-1.0000,  1.0000]])

    Reference: Ba et al. 2016, equation 4, over the features of one token.
    """
    mean = x.mean(dim=-1, keepdim=True)  # (..., D) -> (..., 1)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)  # biased: divided by D, not by D-1
    return (x - mean) / (variance + eps).sqrt() * weight + bias


def gelu(x: torch.Tensor) -> torch.Tensor:
    """Multiply a value by the probability that a standard normal variable lies below it.

    Args:
        x: any shape.

    Returns:
        ``x * Phi(x)``, exactly; the same shape.

    Example:
        >>> gelu(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.1587,  0.0000,  0.8413])

    Reference: Hendrycks and Gimpel 2016, section 2.
    """
    phi = 0.5 * (1 + torch.erf(x / math.sqrt(2)))
    return x * phi


class GELU(nn.Module):
    """``gelu`` as a module, so that it has a name inside the model."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply ``gelu`` to any shape."""
        return nn.functional.gelu(x)  # equal to gelu above, tested, and one kernel instead of five


class Mlp(nn.Module):
    """Widen each token (``fc1``), apply GELU, narrow it again (``fc2``); tokens do not meet.

    Args:
        embed_dim: D.
        hidden_dim: width between the two layers, 4*D in the paper.

    Example:
        >>> Mlp(embed_dim=12, hidden_dim=48)(torch.zeros(2, 5, 12)).shape
        torch.Size([2, 5, 12])
    """

    def __init__(self, embed_dim: int, hidden_dim: int):
        super().__init__()
        self.fc1 = nn.Linear(embed_dim, hidden_dim)
        self.act = GELU()
        self.fc2 = nn.Linear(hidden_dim, embed_dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map tokens (B, T, D) to (B, T, D)."""
        return self.fc2(self.act(self.fc1(x)))  # (B, T, D) -> (B, T, hidden) -> (B, T, D)


class EncoderBlock(nn.Module):
    """One encoder layer: attention, then MLP, each normalised first and added to what came in.

    Args:
        embed_dim: D.
        num_heads: number of attention heads, a divisor of D.
        mlp_ratio: width of the MLP over D; the hidden width is ``int(D * mlp_ratio)``.

    Example:
        >>> EncoderBlock(embed_dim=12, num_heads=3)(torch.zeros(2, 5, 12)).shape
        torch.Size([2, 5, 12])

    Reference: Dosovitskiy et al. 2020, equations 2 and 3 (pre-norm).
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        mlp_ratio: float = 4.0,
        *,
        attention=MultiHeadAttention,  # what builds the layer, called with embed_dim and num_heads
        mlp=Mlp,  # called with embed_dim and the hidden width
    ):
        super().__init__()
        self.norm1 = nn.LayerNorm(embed_dim, eps=1e-6)
        self.attn = attention(embed_dim, num_heads)
        self.norm2 = nn.LayerNorm(embed_dim, eps=1e-6)
        self.mlp = mlp(embed_dim, int(embed_dim * mlp_ratio))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map tokens (B, T, D) to (B, T, D)."""
        attended, weights = self.attn(self.norm1(x))
        x = x + attended
        return x + self.mlp(self.norm2(x))


def count_parameters(config) -> int:
    """Count the parameters of a ViT from its configuration alone.

    Whoever can count them by hand knows where everything is.

    Args:
        config: a ``ViTConfig``: image_size, patch_size, in_channels, num_classes, embed_dim, depth,
            num_heads, mlp_ratio, qkv_bias.

    Returns:
        The number of trainable values in ``VisionTransformer(config)``; no model is built.

    Example:
        >>> from vitedu.vit import PRESETS
        >>> count_parameters(PRESETS["vit_tiny_patch4_32"])
        2693578
    """
    D = config.embed_dim
    hidden = int(D * config.mlp_ratio)
    num_patches = (config.image_size // config.patch_size) ** 2
    num_prefix_tokens = getattr(config, "num_prefix_tokens", 1)

    patch_embed = config.in_channels * config.patch_size**2 * D + D
    prefix_and_positions = num_prefix_tokens * D + (num_patches + num_prefix_tokens) * D
    norm = 2 * D
    attention = D * 3 * D + (3 * D if config.qkv_bias else 0) + D * D + D
    mlp = D * hidden + hidden + hidden * D + D
    block = norm + attention + norm + mlp
    head = D * config.num_classes + config.num_classes
    return patch_embed + prefix_and_positions + config.depth * block + norm + head
