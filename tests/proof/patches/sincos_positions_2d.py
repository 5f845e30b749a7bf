"""Right answers to 1.8 sincos_positions_2d, and what becomes of its mutants."""

import torch

from proof.patches.sincos_positions import by_loops, by_phase, by_slices
from proof.reasons import NEGATIVE_DIVISOR


def _four_divides(D):
    if D % 4:
        raise ValueError(f"{D} is not divisible by 4")


def by_broadcast(grid_size, embed_dim):
    _four_divides(embed_dim)
    gh, gw = grid_size
    rows = by_slices(gh, embed_dim // 2)[:, None].expand(gh, gw, -1)
    columns = by_slices(gw, embed_dim // 2)[None].expand(gh, gw, -1)
    return torch.cat([rows, columns], dim=-1).reshape(gh * gw, embed_dim)


def by_index(grid_size, embed_dim):
    _four_divides(embed_dim)
    gh, gw = grid_size
    cell = torch.arange(gh * gw)
    half = by_phase(max(gh, gw), embed_dim // 2)
    return torch.hstack([half[cell // gw], half[cell % gw]])


def by_meshgrid(grid_size, embed_dim):
    _four_divides(embed_dim)
    y, x = torch.meshgrid(torch.arange(grid_size[0]), torch.arange(grid_size[1]), indexing="ij")
    rate = 10000.0 ** (-torch.arange(0, embed_dim // 2, 2).double() / (embed_dim // 2))
    angle = torch.stack([y.flatten(), x.flatten()], dim=1).double()[:, :, None] * rate
    return torch.stack([torch.sin(angle), torch.cos(angle)], dim=-1).reshape(-1, embed_dim).float()


def by_pairs(grid_size, embed_dim):
    _four_divides(embed_dim)
    rows, columns = (by_loops(size, embed_dim // 2) for size in grid_size)
    return torch.stack([torch.cat([r, c]) for r in rows for c in columns])


EQUIVALENT = {
    NEGATIVE_DIVISOR: ("if embed_dim % -4:",),
    "an even number halved is whole, as a float too": ("embed_dim / 2",),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "grid_size[0] == 1",
    "grid_size[1] == 1",
    "grid_size[0] == grid_size[1]",
    "embed_dim == 4",
    "grid_size[0] * grid_size[1] > 64",
    "embed_dim == 128",
)
