"""Right answers to 2.3 split_heads, and what becomes of its mutants."""

import torch
from einops import rearrange


def _divides(x, num_heads):
    if x.shape[-1] % num_heads != 0:
        raise ValueError("the heads do not divide the columns")


def by_chunks(x, num_heads):
    _divides(x, num_heads)
    return torch.stack(torch.chunk(x, num_heads, dim=-1), dim=1)


def by_einops(x, num_heads):
    _divides(x, num_heads)
    return rearrange(x, "b t (h d) -> b h t d", h=num_heads)


def by_unflatten(x, num_heads):
    _divides(x, num_heads)
    return x.unflatten(2, (num_heads, -1)).movedim(2, 1)


def by_slices(x, num_heads):
    B, T, D = x.shape
    width, rest = divmod(D, num_heads)
    if rest:
        raise ValueError(f"{D} = {num_heads} * {width} + {rest}")
    heads = x.new_empty(B, num_heads, T, width)
    for j in range(num_heads):
        heads[:, j] = x[..., j * width : (j + 1) * width]
    return heads


def by_windows(x, num_heads):
    _divides(x, num_heads)
    width = x.shape[2] // num_heads
    return x.unfold(2, width, width).permute(0, 2, 1, 3).contiguous()


def by_strides(x, num_heads):
    B, T, D = x.shape
    if D / num_heads != D // num_heads:
        raise ValueError((D, num_heads))
    x = x.contiguous()
    return x.as_strided((B, num_heads, T, D // num_heads), (T * D, D // num_heads, D, 1))


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "num_heads == 1",
    "num_heads == x.shape[2]",
    "num_heads == x.shape[1]",
    "x.shape[1] == 1",
    "len(x) == 1",
    "x.shape[1] > 64",
    "len(x) == 17",
    "x.shape[2] == 128",
)
