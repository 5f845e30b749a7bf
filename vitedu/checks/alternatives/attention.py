"""Right answers to the exercises of notebook 02, each by another road."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from vitedu import attention as reference

# --- MultiHeadAttention -------------------------------------------------------------------------


class Given(nn.Module):
    """The constructor of the exercise."""

    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=qkv_bias)
        self.proj = nn.Linear(embed_dim, embed_dim)


class LayerAsInTimm(Given):
    """One reshape to five axes."""

    def forward(self, x):
        """Attend."""
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        attn = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
        attn = attn.softmax(dim=-1)
        return self.proj((attn @ v).transpose(1, 2).reshape(B, N, C)), attn


class LayerByHeads(Given):
    """One head after the other, with slices of the weights; the projections are added up."""

    def forward(self, x):
        """Attend."""
        D = x.shape[-1]
        width = D // self.num_heads
        output, weights = self.proj.bias, []
        for j in range(self.num_heads):
            rows = [slice(third * D + j * width, third * D + (j + 1) * width) for third in range(3)]
            q, k, v = (
                F.linear(x, self.qkv.weight[r], None if self.qkv.bias is None else self.qkv.bias[r])
                for r in rows
            )
            weights.append(torch.softmax(q @ k.mT / math.sqrt(width), dim=2))
            output = output + weights[-1] @ v @ self.proj.weight[:, rows[0]].T
        return output, torch.stack(weights, dim=1)


class LayerByEinsum(Given):
    """Named axes only."""

    def forward(self, x):
        """Attend."""
        qkv = torch.einsum("btc,ec->bte", x, self.qkv.weight)
        if self.qkv.bias is not None:
            qkv = qkv + self.qkv.bias
        q, k, v = qkv.unflatten(-1, (3, self.num_heads, -1)).unbind(2)
        scores = torch.einsum("bihd,bjhd->bhij", q, k).div(q.size(-1) ** 0.5)
        weights = scores.sub(scores.logsumexp(-1, keepdim=True)).exp()
        merged = torch.einsum("bhij,bjhd->bihd", weights, v)
        home = self.proj.weight.unflatten(1, (self.num_heads, -1))
        return torch.einsum("bihd,ohd->bio", merged, home) + self.proj.bias, weights


class LayerByEinops(Given):
    """Patterns, and heads folded into the batch."""

    def forward(self, x):
        """Attend."""
        from einops import rearrange

        q, k, v = rearrange(self.qkv(x), "b t (s h d) -> s (b h) t d", s=3, h=self.num_heads)
        weights = F.softmax(torch.bmm(q, k.mT) / q.shape[-1] ** 0.5, -1)
        output = rearrange(torch.bmm(weights, v), "(b h) t d -> b t (h d)", h=self.num_heads)
        return self.proj(output), rearrange(weights, "(b h) i j -> b h i j", h=self.num_heads)


class LayerOfParts(Given):
    """The parts of the earlier exercises, with slices for the thirds."""

    def forward(self, x):
        """Attend."""
        D = x.size(2)
        qkv = self.qkv(x)
        parts = [reference.split_heads(qkv[:, :, i * D : i * D + D], self.num_heads) for i in range(3)]  # fmt: skip
        output, weights = reference.scaled_dot_product_attention(*parts)
        return self.proj(reference.merge_heads(output)), weights


# --- attention_macs -----------------------------------------------------------------------------


def macs_by_products(num_tokens, embed_dim):
    """The rule a*b*c over a list of products."""
    T, D = num_tokens, embed_dim
    products = [(T, D, 3 * D), (T, D, T), (T, T, D), (T, D, D)]
    return sum(math.prod(sizes) for sizes in products)


def macs_factored(num_tokens, embed_dim):
    """One product of sums, as a float."""
    return 2.0 * num_tokens * embed_dim * (2 * embed_dim + num_tokens)


def macs_by_tokens(num_tokens, embed_dim):
    """What each token costs, added up, as a NumPy integer."""
    each = np.full(num_tokens, 4 * embed_dim**2 + 2 * num_tokens * embed_dim, dtype=np.int64)
    return each.sum()


def macs_by_tensor(num_tokens, embed_dim):
    """A dot product of coefficients, as a 0-d tensor."""
    T, D = torch.tensor(num_tokens), torch.tensor(embed_dim)
    return torch.stack([T * D**2, T**2 * D]) @ torch.tensor([4, 2])


def macs_measured(num_tokens, embed_dim):
    """Let torch count a layer of one head, without memory for its numbers."""
    from torch.utils.flop_counter import FlopCounterMode

    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
        reference.MultiHeadAttention(embed_dim, 1)(torch.zeros(1, num_tokens, embed_dim))
    return counter.get_total_flops() // 2


ALTERNATIVES = {
    "MultiHeadAttention": [
        LayerAsInTimm,
        LayerByHeads,
        LayerByEinsum,
        LayerByEinops,
        LayerOfParts,
    ],
    "attention_macs": [
        macs_by_products,
        macs_factored,
        macs_by_tokens,
        macs_by_tensor,
        macs_measured,
    ],
}
