import torch

from vitedu.checks.kit import Checker, Mistake, also, families, shaped

EQUAL = "region[:, :, None] == region[:, None, :]"
ROWS, COLUMNS = ">= gh - shift", ">= gw - shift"

MISTAKES = (
    families.MASK_INVERTED,
    Mistake(
        "all_allowed",
        "nothing is forbidden",
        "no attention between tokens that the roll brought together",
        "The top of the image would exchange information with its bottom.",
        "Print how many entries are False.",
        {"return region": "region = torch.zeros_like(region)\nreturn region"},
    ),
    Mistake(
        "rows_only",
        "only rows that came round the edge are told apart",
        "rows and columns that came round",
        "The left edge of the image would look at the right one.",
        "The roll moves columns, too.",
        {"+ column_wraps.int()": "+ 0 * column_wraps.int()"},
    ),
    Mistake(
        "columns_only",
        "only columns that came round the edge are told apart",
        "rows and columns that came round",
        "The top of the image would look at its bottom.",
        "The roll moves rows, too.",
        {"2 * row_wraps": "0 * row_wraps"},
    ),
    Mistake(
        "three_regions",
        "two of the four regions share a number",
        "rows and columns are told apart separately",
        "In the last window the top right corner would look at the bottom left one.",
        "Count the numbers in the last window: there are four.",
        {"2 * row_wraps": "1 * row_wraps"},
    ),
    Mistake(
        "other_direction",
        "the mask belongs to a roll down and to the right",
        "the roll is by -shift: up and to the left",
        "What comes round the edge stands at the bottom and at the right.",
        "Roll a grid of numbers and look where the 0 goes.",
        {ROWS: "< shift", COLUMNS: "< shift"},
    ),
    Mistake(
        "rest_of_window",
        "the border lies w - shift from the edge",
        "shift rows and columns come round the edge",
        "It goes unnoticed where the shift is half a window.",
        "Count the rows that a roll by -1 brings round.",
        {
            ROWS: ">= gh - (window_size - shift) % window_size",
            COLUMNS: ">= gw - (window_size - shift) % window_size",
        },
    ),
    Mistake(
        "not_in_windows",
        "the regions are cut in the order of the grid, not into windows",
        "tokens in the order of window_partition",
        "Row i of the mask would belong to another token than row i of the window.",
        "Send the numbered grid through window_partition.",
        {
            "window_partition(region[None, :, :, None], window_size)[..., 0]": "region.reshape(-1, window_size**2)"
        },
    ),
    Mistake(
        "nothing_without_shift",
        "where nothing is shifted, all attention is forbidden",
        "all True for shift 0",
        "A window would see nothing, itself included.",
        "Without a roll no token came round an edge.",
        {f"return {EQUAL}": f"return ({EQUAL}) & (shift > 0)"},
        part="no shift",
    ),
    families.ADDED_TO_SCORES.by({f"return {EQUAL}": f"return torch.where({EQUAL}, 0.0, -100.0)"}),
    families.SIDES_SWAPPED,
)


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


CHECKER = Checker(
    "shifted_window_mask",
    cases=shaped(
        "grid_size = (a*w, b*w); window_size = w; shift = s",
        also("other sizes", "a square grid", b="a"),
        also("other sizes", "half a window", w=4, s=2, a=4, b=2),
        also("other sizes", "one row of windows", a=1),
        also("other sizes", "all but one token of a window", s="w - 1", a=2, b=4),
        also("no shift", "no shift", s=0),
        also("no shift", "one window", s=0, a=1, b=1),
        ranges={"s": (1, 2), "a": (2, 5), "b": (2, 5), "w": (6, 7)},
        name="{a*w} x {b*w} tokens, window_size {w}, shift {s}",
    ),
    proves={
        "values": "only neighbours of the image may look at each other",
        "other sizes": "also for squares and for larger shifts",
        "no shift": "without a shift nothing is forbidden",
    },
    equivalent={
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
    },
    special="shift == 0; grid_size[0] == window_size; grid_size[1] == window_size; "
    "grid_size[0] == grid_size[1]; shift == window_size - 1; 2 * shift == window_size",
)
