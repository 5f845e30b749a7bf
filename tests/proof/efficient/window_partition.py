"""Right answers to 8.1 window_partition, and what becomes of its mutants."""

import torch
from einops import rearrange

from proof.reasons import SIDE_BY_SIDE


def by_loops(x, w):
    _, gh, gw, D = x.shape
    corners = [(top, left) for top in range(0, gh, w) for left in range(0, gw, w)]
    windows = [image[i : i + w, j : j + w] for image in x for i, j in corners]
    return torch.stack([window.reshape(-1, D) for window in windows])


def by_unfold(x, w):
    return x.unfold(1, w, w).unfold(2, w, w).permute(0, 1, 2, 4, 5, 3).flatten(3, 4).flatten(0, 2)


def by_einops(x, w):
    return rearrange(x, "b (i p) (j q) d -> (b i j) (p q) d", p=w, q=w)


def by_im2col(x, w):
    D = x.shape[-1]
    columns = torch.nn.functional.unfold(x.permute(0, 3, 1, 2), w, stride=w)  # (B, D*w*w, windows)
    return columns.unflatten(1, (D, -1)).permute(0, 3, 2, 1).flatten(0, 1)


def by_index(x, w):
    B, gh, gw, D = x.shape
    row, column = torch.arange(gh).repeat_interleave(gw), torch.arange(gw).repeat(gh)
    key = (row // w * (gw // w) + column // w) * w * w + row % w * w + column % w
    return x.flatten(1, 2)[:, key.argsort().to(x.device)].reshape(-1, w * w, D)


EQUIVALENT = {
    SIDE_BY_SIDE: ("w, B, w, gw", "gw // w, D, w"),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(x) == 1",
    "window_size == 1",
    "x.shape[1] == window_size",
    "x.shape[2] == window_size",
    "x.shape[1] == x.shape[2]",
)
