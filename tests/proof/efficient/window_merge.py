"""Right answers to 8.3 window_merge, and what becomes of its mutants."""

import torch
from einops import rearrange

from proof.reasons import SIDE_BY_SIDE


def by_slices(windows, w, grid_size):
    gh, gw = grid_size
    across, each = gw // w, (gh // w) * (gw // w)
    grid = windows.new_empty(len(windows) // each, gh, gw, windows.shape[-1])
    for number, window in enumerate(windows.unflatten(1, (w, w))):
        image, place = divmod(number, each)
        i, j = divmod(place, across)
        grid[image, i * w : (i + 1) * w, j * w : (j + 1) * w] = window
    return grid


def by_einops(windows, w, grid_size):
    sizes = {"i": grid_size[0] // w, "j": grid_size[1] // w, "p": w}
    return rearrange(windows, "(b i j) (p q) d -> b (i p) (j q) d", **sizes)


def by_cat(windows, w, grid_size):
    gh, gw = grid_size
    squares = [window.reshape(w, w, -1) for window in windows]
    rows = [torch.cat(squares[i : i + gw // w], dim=1) for i in range(0, len(squares), gw // w)]
    images = [torch.cat(rows[i : i + gh // w], dim=0) for i in range(0, len(rows), gh // w)]
    return torch.stack(images)


def by_fold(windows, w, grid_size):
    each = (grid_size[0] // w) * (grid_size[1] // w)
    columns = windows.unflatten(0, (-1, each)).permute(0, 3, 2, 1).flatten(1, 2)
    return torch.nn.functional.fold(columns, grid_size, w, stride=w).permute(0, 2, 3, 1)


def by_index(windows, w, grid_size):
    gh, gw = grid_size
    row, column = torch.arange(gh)[:, None], torch.arange(gw)
    place = (row // w * (gw // w) + column // w) * w * w + row % w * w + column % w
    return windows.reshape(-1, gh * gw, windows.shape[-1])[:, place.to(windows.device)]


EQUIVALENT = {
    SIDE_BY_SIDE: ("w, -1, gw // w", "w, w, D, w"),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "window_size == 1",
    "grid_size[0] == window_size",
    "grid_size[1] == window_size",
    "grid_size[0] == grid_size[1]",
)
