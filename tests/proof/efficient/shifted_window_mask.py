"""Right answers to 8.4 shifted_window_mask, and what becomes of its mutants."""

import torch


def _places(grid_size, window_size, shift):
    """Give the row and the column in the image of every token of every shifted window."""
    gh, gw = grid_size
    numbers = torch.arange(gh * gw).reshape(gh, gw).roll((-shift, -shift), (0, 1))
    w = window_size
    numbers = numbers.reshape(gh // w, w, gw // w, w).transpose(1, 2).reshape(-1, w * w)
    return numbers // gw, numbers % gw


def by_origin(grid_size, window_size, shift):
    inside = [place < shift for place in _places(grid_size, window_size, shift)]
    same = [wraps.unsqueeze(2) == wraps.unsqueeze(1) for wraps in inside]
    return same[0] & same[1]


def by_slices(grid_size, window_size, shift):
    w, (gh, gw) = window_size, grid_size
    image = torch.zeros(gh, gw)
    parts = [slice(0, -w), slice(-w, -shift or None), slice(-shift, None) if shift else slice(0, 0)]
    for number, (rows, columns) in enumerate((r, c) for r in parts for c in parts):
        image[rows, columns] = number
    windows = image.unfold(0, w, w).unfold(1, w, w).reshape(-1, w * w)
    return (windows.unsqueeze(1) - windows.unsqueeze(2)) == 0


def by_loops(grid_size, window_size, shift):
    rows, columns = (place.tolist() for place in _places(grid_size, window_size, shift))
    tables = []
    for row, column in zip(rows, columns, strict=True):
        kind = [(r < shift, c < shift) for r, c in zip(row, column, strict=True)]
        tables.append([[a == b for a in kind] for b in kind])
    return torch.tensor(tables)


def by_products(grid_size, window_size, shift):
    places = _places(grid_size, window_size, shift)
    one_hot = torch.stack([(r < shift).float() * 2 - 1 for r in places])
    return ((one_hot[..., None] * one_hot[..., None, :]) > 0).all(0)


EQUIVALENT = {
    "an axis of one number ends where it begins": ("[..., -1]",),
    "the table is symmetric": ("[:, :, None] == region[:, None]",),
    "the regions only need four different numbers": (
        "region = -2",
        "region = 3",
        "region = 4",
        "arange(gh) < gh",
        "arange(gw) < gw",
        "() - column_wraps",
    ),
    "a boolean counts as 0 or 1": (
        "[:, None] + column_wraps",
        "region = 2 * row_wraps[:, None].int() + column_wraps",
    ),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "shift == 0",
    "grid_size[0] == window_size",
    "grid_size[1] == window_size",
    "grid_size[0] == grid_size[1]",
    "shift == window_size - 1",
    "2 * shift == window_size",
)
