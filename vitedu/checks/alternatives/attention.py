"""Right answers to the exercises of notebook 02, each by another road."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from vitedu import attention as reference

# --- softmax ------------------------------------------------------------------------------------


def softmax_by_logsumexp(x, dim=-1):
    """Subtract the logarithm of the sum."""
    return torch.exp(x - torch.logsumexp(x, dim=dim, keepdim=True))


def softmax_by_slices(x, dim=-1):
    """One slice along dim after the other, in plain Python."""
    slices = x.unbind(dim)
    top = slices[0]
    for piece in slices[1:]:
        top = torch.maximum(top, piece)
    powers = [math.e ** (piece - top) for piece in slices]
    total = sum(powers)
    return torch.stack([power / total for power in powers], dim=dim)


def softmax_by_pairs(x, dim=-1):
    """The weight of i is one over the sum of exp(s_j - s_i)."""
    scores = x.movedim(dim, -1)
    odds = (scores[..., None, :] - scores[..., :, None]).exp()
    return odds.sum(-1).reciprocal().movedim(-1, dim)


def softmax_by_logaddexp(x, dim=-1):
    """Add in the logarithm, pair by pair."""
    total = None
    for piece in x.split(1, dim):
        total = piece if total is None else torch.logaddexp(total, piece)
    return (x - total).exp()


def softmax_in_double(x, dim=-1):
    """Shift by a detached maximum, in float64, and cast back."""
    wide = x.double()
    exp = torch.exp(wide - wide.detach().max(dim, keepdim=True).values)
    return exp.div(exp.sum(dim, True)).to(x.dtype)


def softmax_by_matrix_product(x, dim=-1):
    """Sum with a vector of ones."""
    scores = torch.transpose(x, dim, -1)
    exp = torch.exp2((scores - scores.sort(-1).values[..., -1:]) * math.log2(math.e))
    ones = torch.ones(exp.shape[-1], 1, dtype=x.dtype, device=x.device)
    return (exp / (exp @ ones)).transpose(dim, -1)


def softmax_as_gradient(x, dim=-1):
    """The gradient of logsumexp."""
    leaf = x if x.requires_grad else x.detach().requires_grad_()
    (weights,) = torch.autograd.grad(leaf.logsumexp(dim).sum(), leaf, create_graph=True)
    return weights


# --- split_heads --------------------------------------------------------------------------------


def _divides(x, num_heads):
    if x.shape[-1] % num_heads != 0:
        raise ValueError("the heads do not divide the columns")


def split_by_chunks(x, num_heads):
    """Stack slices of columns."""
    _divides(x, num_heads)
    return torch.stack(torch.chunk(x, num_heads, dim=-1), dim=1)


def split_by_einops(x, num_heads):
    """One pattern."""
    from einops import rearrange

    _divides(x, num_heads)
    return rearrange(x, "b t (h d) -> b h t d", h=num_heads)


def split_by_unflatten(x, num_heads):
    """Unflatten and move an axis."""
    _divides(x, num_heads)
    return x.unflatten(2, (num_heads, -1)).movedim(2, 1)


def split_by_slices(x, num_heads):
    """Fill an empty tensor head by head."""
    B, T, D = x.shape
    width, rest = divmod(D, num_heads)
    if rest:
        raise ValueError(f"{D} = {num_heads} * {width} + {rest}")
    heads = x.new_empty(B, num_heads, T, width)
    for j in range(num_heads):
        heads[:, j] = x[..., j * width : (j + 1) * width]
    return heads


def split_by_windows(x, num_heads):
    """A sliding window over the columns."""
    _divides(x, num_heads)
    width = x.shape[2] // num_heads
    return x.unfold(2, width, width).permute(0, 2, 1, 3).contiguous()


def split_by_strides(x, num_heads):
    """Another look at the same memory."""
    B, T, D = x.shape
    if D / num_heads != D // num_heads:
        raise ValueError((D, num_heads))
    x = x.contiguous()
    return x.as_strided((B, num_heads, T, D // num_heads), (T * D, D // num_heads, D, 1))


# --- merge_heads --------------------------------------------------------------------------------


def merge_by_joining(x):
    """Set the heads side by side."""
    return torch.cat(x.unbind(1), dim=-1)


def merge_by_einops(x):
    """One pattern."""
    from einops import rearrange

    return rearrange(x, "b h t d -> b t (h d)")


def merge_by_permute(x):
    """Permute, copy, view."""
    B, heads, T, width = x.size()
    return x.permute(0, 2, 1, 3).contiguous().view(B, T, heads * width)


def merge_by_slices(x):
    """Fill an empty tensor head by head."""
    width = x.shape[3]
    out = torch.zeros(x.shape[0], x.shape[2], x.shape[1] * width, dtype=x.dtype, device=x.device)
    for j in range(x.shape[1]):
        out[:, :, j * width : j * width + width] += x[:, j]
    return out


def merge_by_einsum(x):
    """A sum with a table that sends every column home."""
    heads, width = x.shape[1], x.shape[3]
    home = torch.eye(heads * width, dtype=x.dtype, device=x.device).view(heads, width, -1)
    return torch.einsum("bhtd,hdc->btc", x, home)


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
    "softmax": [
        softmax_by_logsumexp,
        softmax_by_slices,
        softmax_by_pairs,
        softmax_by_logaddexp,
        softmax_in_double,
        softmax_by_matrix_product,
        softmax_as_gradient,
    ],
    "split_heads": [
        split_by_chunks,
        split_by_einops,
        split_by_unflatten,
        split_by_slices,
        split_by_windows,
        split_by_strides,
    ],
    "merge_heads": [
        merge_by_joining,
        merge_by_einops,
        merge_by_permute,
        merge_by_slices,
        merge_by_einsum,
    ],
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
