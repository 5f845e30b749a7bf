"""Notebook 02: every patch looks at every other.

Role: softmax, attention, heads. Written out longhand: ``F.scaled_dot_product_attention`` is the
oracle of its tests. Faster and richer forms of the layer stand in ``vitedu.extras.fast``.

Legend: B batch, T tokens, D embed_dim, nh heads, hd = D/nh head_dim, Tq Tk queries and keys.

Reference: Vaswani et al. 2017, "Attention Is All You Need", section 3.2 (arXiv 1706.03762).
"""

import torch
from torch import nn

attention_megabytes = 32 * 12 * 197**2 * 4 / 1e6  # one layer of ViT-B/16: B, nh, T and T, 4 bytes

# (tokens_unchanged, tokens_permuted_alike) when the input tokens are permuted and no position is
# added
order_blindness = (False, True)

# mean entropy of a row over log(T), first layer of an untrained model like that of notebook 02:
# 0.9992 to 0.9997
untrained_entropy = 0.9995


def softmax(x: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """Turn scores into weights: not negative, and summing to 1 along ``dim``.

    Args:
        x: scores of any shape.
        dim: the axis that shall sum to 1.

    Returns:
        Weights of the same shape, finite for scores as large as 1e4 in size.

    Example:
        >>> softmax(torch.tensor([[0.0, 0.0], [1e4, 0.0]]))
        tensor([[0.5000, 0.5000],
                [1.0000, 0.0000]])
    """
    shifted = x - x.amax(dim=dim, keepdim=True)  # the largest score becomes 0: exp cannot overflow
    exp = shifted.exp()
    return exp / exp.sum(dim=dim, keepdim=True)


def scaled_dot_product_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Let each query collect the values whose keys it matches.

    Args:
        q: queries (..., Tq, d).
        k: keys (..., Tk, d).
        v: values (..., Tk, dv).

    Returns:
        output (..., Tq, dv) and weights (..., Tq, Tk); each row of the weights sums to 1.

    Example:
        >>> q, k, v = torch.zeros(2, 5, 4), torch.zeros(2, 7, 4), torch.zeros(2, 7, 3)
        >>> [x.shape for x in scaled_dot_product_attention(q, k, v)]
        [torch.Size([2, 5, 3]), torch.Size([2, 5, 7])]

    Reference: Vaswani et al. 2017, equation 1.
    """
    scores = q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5  # (..., Tq, d) @ (..., d, Tk)
    weights = softmax(scores, dim=-1)  # (..., Tq, Tk), over the keys
    return weights @ v, weights  # (..., Tq, Tk) @ (..., Tk, dv) -> (..., Tq, dv)


def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    """Give each head its own slice of the columns.

    Args:
        x: (B, T, D).
        num_heads: nh, a divisor of D.

    Returns:
        (B, nh, T, hd); head j holds columns ``j*hd : (j+1)*hd``.

    Raises:
        ValueError: D is not divisible by nh.

    Example:
        >>> split_heads(torch.zeros(2, 5, 12), num_heads=3).shape
        torch.Size([2, 3, 5, 4])
    """
    B, T, D = x.shape
    if D % num_heads:
        raise ValueError(
            f"embed_dim must be divisible by num_heads (got embed_dim={D}, num_heads={num_heads}, "
            f"remainder {D % num_heads}); use embed_dim={D - D % num_heads} or another number of "
            "heads."
        )
    return x.reshape(B, T, num_heads, D // num_heads).transpose(1, 2)  # -> (B, nh, T, hd)


def merge_heads(x: torch.Tensor) -> torch.Tensor:
    """Put the heads back side by side: the exact inverse of ``split_heads``.

    Args:
        x: (B, nh, T, hd).

    Returns:
        (B, T, nh*hd).

    Example:
        >>> merge_heads(torch.zeros(2, 3, 5, 4)).shape
        torch.Size([2, 5, 12])
    """
    return x.transpose(1, 2).flatten(2)  # (B, nh, T, hd) -> (B, T, nh, hd) -> (B, T, D)


class MultiHeadAttention(nn.Module):
    """Self-attention in several independent slices, mixed by one last projection.

    Several heads can look in several places at once, for the price of one.

    Args:
        embed_dim: D.
        num_heads: nh, a divisor of D.
        qkv_bias: whether the q, k, v projection has a bias.

    Example:
        >>> output, weights = MultiHeadAttention(embed_dim=12, num_heads=3)(torch.zeros(2, 5, 12))
        >>> output.shape, weights.shape
        (torch.Size([2, 5, 12]), torch.Size([2, 3, 5, 5]))

    Reference: Vaswani et al. 2017, section 3.2.2.
    """

    def __init__(self, embed_dim: int, num_heads: int, qkv_bias: bool = True):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(
                f"embed_dim must be divisible by num_heads "
                f"(got embed_dim={embed_dim}, num_heads={num_heads})."
            )
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=qkv_bias)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Map tokens (B, T, D) to output (B, T, D) and weights (B, nh, T, T)."""
        q, k, v = self.qkv(x).chunk(3, dim=-1)  # (B, T, 3D) -> three times (B, T, D)
        q, k, v = (split_heads(part, self.num_heads) for part in (q, k, v))  # (B, nh, T, hd)
        output, weights = scaled_dot_product_attention(q, k, v)
        return self.proj(merge_heads(output)), weights  # (B, nh, T, hd) -> (B, T, D)


def attention_macs(num_tokens: int, embed_dim: int) -> int:
    """Count the multiply-accumulates of one attention layer.

    Args:
        num_tokens: T.
        embed_dim: D.

    Returns:
        The count for the q, k, v and output projections and for both T x T products. The number of
        heads does not matter. One MAC is two FLOP.

    Example:
        >>> attention_macs(2, 3)
        96
    """
    T, D = num_tokens, embed_dim
    projections = 4 * T * D * D  # q, k, v, output
    products = 2 * T * T * D  # scores = q k^T, then weights times v
    return projections + products
