"""Right answers to 8.6 relative_position_index, and what becomes of its mutants."""

import torch

from proof.reasons import NEW_AXIS


def by_loops(grid_size):
    gh, gw = grid_size
    places = [divmod(i, gw) for i in range(gh * gw)]
    offsets = [[(r - s + gh - 1, c - d + gw - 1) for s, d in places] for r, c in places]
    return torch.tensor([[down * (2 * gw - 1) + across for down, across in row] for row in offsets])


def as_swin(grid_size):
    gh, gw = grid_size
    coords = torch.meshgrid(torch.arange(gh), torch.arange(gw), indexing="ij")
    coords = torch.stack(coords).flatten(1)
    relative = (coords[:, :, None] - coords[:, None, :]).permute(1, 2, 0).contiguous()
    relative[:, :, 0] += gh - 1
    relative[:, :, 1] += gw - 1
    relative[:, :, 0] *= 2 * gw - 1
    return relative.sum(-1)


def by_one_number(grid_size):
    gh, gw = grid_size
    number = (torch.arange(gh)[:, None] * (2 * gw - 1) + torch.arange(gw)).flatten()
    return number[:, None] - number + number[-1]


def by_windows_of_a_table(grid_size):
    gh, gw = grid_size
    table = torch.arange((2 * gh - 1) * (2 * gw - 1)).reshape(2 * gh - 1, 2 * gw - 1)
    places = [(i, j) for i in range(gh) for j in range(gw)]
    return torch.stack([table[i : i + gh, j : j + gw].flip(0, 1).flatten() for i, j in places])


def in_short_integers(grid_size):
    gh, gw = grid_size
    place = torch.arange(gh * gw, dtype=torch.int32)
    row, column = place // gw, place % gw
    down, across = (torch.sub(x[:, None], x) + n - 1 for x, n in ((row, gh), (column, gw)))
    return down * (2 * gw - 1) + across


EQUIVALENT = {
    NEW_AXIS: (
        "[None,] + gh",
        "[None,] + gw",
        "columns + gw",
        "[:,] + gh - 1",
        "[:,] + gw - 1",
        "rows + gh - 1",
    ),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "grid_size[0] == 1",
    "grid_size[1] == 1",
    "grid_size[0] == grid_size[1]",
)
