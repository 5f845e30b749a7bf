"""Right answers to 2.5 MultiHeadAttention, and what becomes of its mutants."""

import math

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import nn

from vitedu.attention import MultiHeadAttention as Given  # of answers that differ in forward
from vitedu.attention import merge_heads, scaled_dot_product_attention, split_heads


class AsInTimm(nn.Module):
    def __init__(self, dim, num_heads=8, qkv_bias=True):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, dim // num_heads
        self.scale = self.head_dim**-0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, self.head_dim)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        attn = (q * self.scale) @ k.transpose(-2, -1)
        attn = attn.softmax(dim=-1)
        return self.proj((attn @ v).transpose(1, 2).reshape(B, N, C)), attn


class ByHeads(Given):
    def forward(self, x):
        D = x.shape[-1]
        width = D // self.num_heads
        output, weights = self.proj.bias, []
        for j in range(self.num_heads):
            rows = [slice(third * D + j * width, third * D + (j + 1) * width) for third in range(3)]
            q, k, v = (x @ self.qkv.weight[r].T for r in rows)
            if self.qkv.bias is not None:
                q, k, v = (part + self.qkv.bias[r] for part, r in zip((q, k, v), rows, strict=True))
            weights.append(torch.softmax(q @ k.mT / math.sqrt(width), dim=2))
            output = output + weights[-1] @ v @ self.proj.weight[:, rows[0]].T
        return output, torch.stack(weights, dim=1)


class ByEinsum(Given):
    def forward(self, x):
        qkv = torch.einsum("btc,ec->bte", x, self.qkv.weight)
        if self.qkv.bias is not None:
            qkv = qkv + self.qkv.bias
        q, k, v = qkv.unflatten(-1, (3, self.num_heads, -1)).unbind(2)
        scores = torch.einsum("bihd,bjhd->bhij", q, k).div(q.size(-1) ** 0.5)
        weights = scores.sub(scores.logsumexp(-1, keepdim=True)).exp()
        merged = torch.einsum("bhij,bjhd->bihd", weights, v)
        home = self.proj.weight.unflatten(1, (self.num_heads, -1))
        return torch.einsum("bihd,ohd->bio", merged, home) + self.proj.bias, weights


class ByEinops(Given):
    def forward(self, x):
        q, k, v = rearrange(self.qkv(x), "b t (s h d) -> s (b h) t d", s=3, h=self.num_heads)
        weights = F.softmax(torch.bmm(q, k.mT) / q.shape[-1] ** 0.5, -1)
        output = rearrange(torch.bmm(weights, v), "(b h) t d -> b t (h d)", h=self.num_heads)
        return self.proj(output), rearrange(weights, "(b h) i j -> b h i j", h=self.num_heads)


class OfParts(nn.Module):
    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        nn.Module.__init__(self)
        self.proj, self.num_heads = nn.Linear(embed_dim, embed_dim), num_heads
        self.qkv = nn.Linear(embed_dim, embed_dim + 2 * embed_dim)
        if not qkv_bias:
            self.qkv.bias = None

    def forward(self, x):
        D = x.size(2)
        qkv = self.qkv(x)
        parts = [split_heads(qkv[:, :, i * D : i * D + D], self.num_heads) for i in range(3)]
        output, weights = scaled_dot_product_attention(*parts)
        return self.proj(merge_heads(output)), weights


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "self.num_heads == 1",
    "x.shape[1] == 1",
    "len(x) == 1",
    "x.shape[2] == self.num_heads",
    "self.qkv.bias is None",
    "x.shape[1] == self.num_heads",
    "x.shape[1] > 64",
)

LEFT_OPEN = {
    "the text asks for no error of __init__; split_heads raises one": (
        "without: if embed_dim % num_heads:; raise ValueError(...)",
        "if num_heads % num_heads:",
        "if embed_dim % embed_dim:",
        "without: raise ValueError(...)",
        "raise TypeError(...)",
    ),
}
