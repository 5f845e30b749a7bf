"""Right answers to 5.9 position_similarity, and what becomes of its mutants."""

import torch
import torch.nn.functional as F

from proof.reasons import DEFAULT


def by_torch(pos_embed, grid_size):
    rows = pos_embed[0, pos_embed.shape[1] - grid_size[0] * grid_size[1] :]
    return F.cosine_similarity(rows[:, None], rows[None], dim=-1).reshape(-1, *grid_size)


def by_lengths(pos_embed, grid_size):
    gh, gw = grid_size
    rows = pos_embed[0][-(gh * gw) :]
    lengths = rows.norm(dim=1)
    return (rows @ rows.T / (lengths[:, None] * lengths)).view(gh * gw, gh, gw)


def by_loops(pos_embed, grid_size):
    gh, gw = grid_size
    rows = list(pos_embed.squeeze(0).unbind(0))[-gh * gw :]
    units = [row / row.square().sum().sqrt() for row in rows]
    return torch.stack([torch.stack([(a * b).sum() for b in units]).reshape(gh, gw) for a in units])


def by_einsum(pos_embed, grid_size):
    grid = pos_embed.flip(1)[:, : grid_size[0] * grid_size[1]].flip(1).unflatten(1, grid_size)
    grid = grid * torch.einsum("bijd,bijd->bij", grid, grid)[..., None] ** -0.5
    return torch.einsum("bijd,bkld->ijkl", grid, grid).flatten(0, 1)


def in_double(pos_embed, grid_size):
    gh, gw = grid_size
    unit = F.normalize(pos_embed.double()[:, -gh * gw :], dim=2)
    return torch.bmm(unit, unit.mT)[0].reshape(gh * gw, gh, gw).to(pos_embed.dtype)


EQUIVALENT = {
    "there is one table of positions": ("[-1, -gh * gw:]",),
    DEFAULT: ("(pos_embed[0, -gh * gw:])",),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "grid_size[0] == grid_size[1]",
    "grid_size[0] == 1",
    "grid_size[1] == 1",
    "pos_embed.shape[1] == grid_size[0] * grid_size[1] + 1",
)
