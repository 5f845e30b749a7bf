"""8.4 shifted_window_mask: keep strangers apart."""

from vitedu.checks.writing.kit import also, shaped

cases = shaped(
    "grid_size = (a*w, b*w); window_size = w; shift = s",
    also("other sizes", "a square grid", b="a"),
    also("other sizes", "half a window", w=4, s=2, a=4, b=2),
    also("other sizes", "one row of four windows", a=1, b=4),
    also("other sizes", "one column of windows", b=1),
    also("other sizes", "all but one token of a window", s="w - 1", a=2, b=4),
    also("no shift", "no shift", s=0),
    also("no shift", "one window", s=0, a=1, b=1),
    ranges={"s": (1, 2), "a": (2, 5), "b": (2, 5), "w": (6, 7)},
    name="{a*w} x {b*w} tokens, window_size {w}, shift {s}",
)
