import torch

from vitedu.checks import families
from vitedu.checks.kit import EXACT, USUAL, Checker, Mistake, also, rearrange, shaped

MISTAKES = (
    Mistake(
        "reshape_only",
        "the windows are reshaped without moving any axis",
        "each window is a square of the grid",
        "A reshape moves no number, so the tokens of one window would lie in a strip.",
        "Number the axes and bring each window axis in front of its own token axis.",
        {"x.permute(0, 1, 3, 2, 4, 5)": "x"},
    ),
    Mistake(
        "windows_by_column",
        "the windows are put down column by column",
        "window 1 stands to the right of window 0",
        "It inverts another order than that of window_partition.",
        "Look at the order of gh // w and gw // w.",
        {"gh // w, gw // w": "gw // w, gh // w", "0, 1, 3, 2, 4": "0, 2, 3, 1, 4"},
    ),
    Mistake(
        "tokens_by_column",
        "the tokens of a window are put down column by column",
        "inside a window the tokens run along the rows",
        "Each window comes out mirrored along its diagonal.",
        "Look at which token axis follows which window axis.",
        {"3, 2, 4, 5": "4, 2, 3, 5"},
    ),
    Mistake(
        "partition_again",
        "the same permutation is used as in a cut into gh / w strips",
        "a row of the grid runs through gw / w windows",
        "The token axis stands in front of its window axis.",
        "Each window axis comes before its own token axis.",
        {"0, 1, 3, 2, 4, 5": "0, 3, 1, 4, 2, 5"},
    ),
    Mistake(
        "windows_before_batch",
        "the windows of different images are taken to alternate",
        "all windows of an image stand together",
        "Pieces of different images meet in one grid.",
        "The batch axis is the first of the split.",
        {"-1, gh // w, gw // w": "gh // w, gw // w, -1", "0, 1, 3, 2, 4": "2, 0, 3, 1, 4"},
    ),
    families.SIDES_SWAPPED,
    Mistake(
        "one_image",
        "all windows are taken for those of one image",
        "(B, gh, gw, D): as many images as the windows fill",
        "It goes unnoticed with a batch of one.",
        "Let -1 stand for B, and write D out.",
        {
            "-1, gh // w, gw // w, w, w, D": "1, gh // w, gw // w, w, w, -1",
            "-1, gh, gw, D": "1, gh, gw, -1",
        },
    ),
    Mistake(
        "grid_stays_flat",
        "the tokens keep one axis",
        "(B, gh, gw, D)",
        "The next roll needs rows and columns.",
        "Give gh and gw an axis each at the end.",
        {"-1, gh, gw, D": "-1, gh * gw, D"},
    ),
    Mistake(
        "channels_in_front",
        "the columns of a token come before the grid",
        "(B, gh, gw, D)",
        "That is the order of images, not that of window_partition.",
        "Leave the last axis where it is.",
        {"return x.reshape(-1, gh, gw, D)": "return x.reshape(-1, gh, gw, D).permute(0, 3, 1, 2)"},
    ),
    Mistake(
        "batch_from_square",
        "the number of images is counted as if the grid were square",
        "gh / w times gw / w windows for each image",
        "It goes unnoticed where the grid is square.",
        "Look at what len(windows) is divided by.",
        {
            "-1, gh // w, gw // w, w, w, D": "max(1, len(windows) // (gh // w) ** 2), gh // w, -1, w, w, D",
            "return x.reshape(-1, gh, gw, D)": "return x.reshape(len(x), gh, -1, D)",
        },
    ),
    families.FIRST_OF_BATCH.by({"return x": "x = x[:1]\nreturn x"}),
)


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


CHECKER = Checker(
    "window_merge",
    cases=shaped(
        "windows: B*a*b w*w D; window_size = w; grid_size = (a*w, b*w)",
        also("other sizes", "a square grid", b="a"),
        also("other sizes", "one window", a=1, b=1),
        also("other sizes", "one row of windows", a=1),
        also("other sizes", "a wide grid", w=2),
        also("other sizes", "a tall grid of as many tokens", w=2, a=7, b=5),
        also("other sizes", "windows of one token", w=1),
        *USUAL,
        letters={"a": 5, "b": 7},  # a grid that is taken to be square fails alike with every seed
        ranges={"w": (2, 4)},
        name="{B:grid} of {a*w} x {b*w} tokens, window_size {w}",
        **EXACT,
    ),
    proves={
        "values": "every token is back in its place",
        "other sizes": "also for squares, a batch of one, one window, windows of one token and float64",
    },
    equivalent={
        families.SIDE_BY_SIDE: ("w, -1, gw // w", "w, w, D, w"),
    },
    special="window_size == 1; grid_size[0] == window_size; grid_size[1] == window_size; "
    "grid_size[0] == grid_size[1]",
)
