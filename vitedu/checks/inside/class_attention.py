"""5.1 class_attention: where the class token looks."""

from vitedu.checks.writing.kit import USUAL, also, shaped

cases = shaped(
    "weights: B nh T T; grid_size = (gh, gw)",
    also("other sizes", "a square grid of many patches", gh=9, gw=9),
    also("other sizes", "as many heads as images", nh="B", gh=2, gw=8),
    also("other sizes", "a single row of patches", gh=1),
    also("other sizes", "a single column of patches", gw=1),
    also("other sizes", "one head", nh=1),
    also("registers", "four registers behind the class token", T="gh*gw + 5"),
    *USUAL,
    letters={"T": "gh*gw + 1"},
    values={"weights": lambda x: x.softmax(dim=-1)},
    name="{B:image}, {nh:head}, {gh} x {gw} patches",
)
