"""2.2 scaled_dot_product_attention: each query collects values."""

import torch

from vitedu.checks.attention import FUSED_NAMES, drawing
from vitedu.checks.writing.kit import USUAL, also, shaped

THREE_AXES = "q: 2 1 B Tq d; k: 2 1 B Tk d; v: 2 1 B Tk dv"
SQUARE: dict = {"Tq": "d", "Tk": "d", "dv": "d", "d": 72, "B": 9, "nh": 1}
SQUARE["values"] = {"k": lambda k: k.index_fill(-2, torch.tensor([0]), 0.0)}

cases = shaped(
    "q: B nh Tq d; k: B nh Tk d; v: B nh Tk dv",
    also("leading axes", "no leading axis", shapes="q: Tq d; k: Tk d; v: Tk dv"),
    also("leading axes", "one leading axis", shapes="q: B Tq d; k: B Tk d; v: B Tk dv"),
    also("rare sizes", "three leading axes", shapes=THREE_AXES),
    also("other sizes", "T equals d, more than 64, the first key zero", **SQUARE),
    also("batch of one", "a batch of one", B=1, nh=1),
    also("other sizes", "one query", Tq=1),
    also("rare sizes", "one key", Tk=1),
    also("rare sizes", "one column", d=1),
    also("rare sizes", "one column of values", dv=1),
    # so large that one key wins for every query, whatever the scale: what is judged is that
    # nothing overflows
    also("large scores", "large scores", scale={"q": 1e3, "k": 1e3}, rtol=1e-2, atol=1e-2),
    *USUAL[1:],
    outputs=("output", "weights"),
    ranges={"d": (5, 8)},  # no square: its root is told from a rounded one
)

forbidden = FUSED_NAMES
picture = drawing.draw_sums
