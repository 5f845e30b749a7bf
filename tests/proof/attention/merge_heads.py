"""Right answers to 2.4 merge_heads, and what becomes of its mutants."""

import torch
from einops import rearrange


def by_joining(x):
    return torch.cat(x.unbind(1), dim=-1)


def by_einops(x):
    return rearrange(x, "b h t d -> b t (h d)")


def by_permute(x):
    B, heads, T, width = x.size()
    return x.permute(0, 2, 1, 3).contiguous().view(B, T, heads * width)


def by_slices(x):
    width = x.shape[3]
    out = torch.zeros(x.shape[0], x.shape[2], x.shape[1] * width, dtype=x.dtype, device=x.device)
    for j in range(x.shape[1]):
        out[:, :, j * width : j * width + width] += x[:, j]
    return out


def by_einsum(x):
    heads, width = x.shape[1], x.shape[3]
    home = torch.eye(heads * width, dtype=x.dtype, device=x.device).view(heads, width, -1)
    return torch.einsum("bhtd,hdc->btc", x, home)


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "x.shape[1] == 1",
    "x.shape[2] == 1",
    "x.shape[3] == 1",
    "len(x) == 1",
    "x.shape[1] == x.shape[2]",
    "x.shape[2] > 64",
    "len(x) == 17",
)
