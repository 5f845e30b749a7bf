"""8.1 window_partition: cut a grid into windows."""

from vitedu.checks.writing.kit import EXACT, USUAL, also, shaped

GRIDS = (
    also("other sizes", "a square grid", b="a"),
    also("other sizes", "one window", a=1, b=1),
    also("other sizes", "one row of four windows, as many tokens as a square", a=1, b=4),
    also("other sizes", "a wide grid", w=2),
    also("other sizes", "a tall grid of as many tokens", w=2, a=7, b=5),
    also("other sizes", "one column of windows", b=1),
    also("windows of one token", "windows of one token", w=1),
    *USUAL,
)
SIZES: dict = EXACT | {
    "letters": {"a": 5, "b": 7},  # a grid that is taken to be square fails alike with every seed
    "ranges": {"w": (2, 4)},
    "name": "{B:grid} of {a*w} x {b*w} tokens, window_size {w}",
}

cases = shaped("x: B a*w b*w D; window_size = w", *GRIDS, **SIZES)
