import torch

from vitedu.checks import families
from vitedu.checks.kit import EXACT, USUAL, Checker, Mistake, also, rearrange, shaped

MISTAKES = (
    Mistake(
        "reshape_only",
        "the grid is reshaped without moving any axis",
        "window 0 is the top left square of the grid",
        "The memory of a grid runs along its rows: a bare reshape cuts strips out of rows, not squares.",
        "Split both grid axes first, then permute, then join.",
        {"x.permute(0, 1, 3, 2, 4, 5)": "x"},
    ),
    Mistake(
        "windows_by_column",
        "windows run down the columns instead of along the rows",
        "window 1 stands to the right of window 0",
        "A mask made for one order would hide the wrong tokens of the other.",
        "Look at the order of the two window axes after permute.",
        {"0, 1, 3, 2": "0, 3, 1, 2"},
    ),
    Mistake(
        "tokens_by_column",
        "inside a window the tokens run down the columns",
        "inside a window the tokens run along the rows",
        "A bias for each offset inside the window would meet the wrong pairs.",
        "Look at the order of the last two token axes after permute.",
        {"2, 4, 5": "4, 2, 5"},
    ),
    Mistake(
        "windows_before_batch",
        "the windows of different images alternate",
        "all windows of an image stand together",
        "window_merge would put pieces of different images into one.",
        "Keep the batch axis in front.",
        {"0, 1, 3, 2": "1, 3, 0, 2"},
    ),
    Mistake(
        "count_for_size",
        "window_size is taken for the number of windows along a side",
        "windows of w x w tokens",
        "The cost of attention would grow with the image again.",
        "Divide gh by w for the number of windows.",
        {
            "gh // w, w, gw // w, w": "w, gh // w, w, gw // w",
            "w * w, D)": "(gh // w) * (gw // w), D)",
        },
    ),
    Mistake(
        "every_other_token",
        "a window gathers tokens that lie far apart",
        "a window is a square of neighbours",
        "That is dilated (grid) attention, another method.",
        "Split gh into (gh // w, w) in this order.",
        {"gh // w, w, gw // w, w": "w, gh // w, w, gw // w", "0, 1, 3, 2, 4": "0, 2, 4, 1, 3"},
    ),
    families.SQUARE_ONLY.by({"gw // w": "gh // w"}, also=({"gw // w, w": "gh // w, -1"},)),
    families.GRID_EXCHANGED.by({"gh // w, w, gw // w, w": "gw // w, w, gh // w, w"}),
    families.FIRST_OF_BATCH.by({"return x": "x = x[: gh // w * (gw // w)]\nreturn x"}),
    Mistake(
        "windows_stay_square",
        "the tokens of a window keep two axes",
        "(B*num_windows, w*w, D)",
        "Attention takes a sequence: one axis of tokens.",
        "Join the two token axes at the end.",
        {"w * w, D": "w, w, D"},
    ),
    Mistake(
        "windows_keep_an_axis",
        "batch and windows keep an axis each",
        "(B*num_windows, w*w, D)",
        "Joined, the windows are a larger batch, and attention needs no change.",
        "Join the first axes at the end.",
        {"-1, w * w": "B, -1, w * w"},
    ),
)


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


CHECKER = Checker(
    "window_partition",
    cases=shaped(
        "x: B a*w b*w D; window_size = w",
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
        "values": "every token stands in its window, in its place",
        "other sizes": "also for squares, a batch of one, one window, windows of one token and float64",
    },
    equivalent={
        families.SIDE_BY_SIDE: ("w, B, w, gw", "gw // w, D, w"),
    },
    special="len(x) == 1; window_size == 1; x.shape[1] == window_size; "
    "x.shape[2] == window_size; x.shape[1] == x.shape[2]",
)
