"""9.1 interpolate_positions: positions for another image size."""

from vitedu.checks.writing.kit import USUAL, also, refused, shaped

PREFIX = "pos_embed: 1 side*side+{0} D; new_grid_size = (gh, gw); num_prefix_tokens = {0}"
KEYWORD: dict = {"keywords": ("num_prefix_tokens",)}
NO_SQUARE = "pos_embed: 1 side*side+2 D; new_grid_size = (gh, gw)"

cases = shaped(
    "pos_embed: 1 side*side+1 D; new_grid_size = (gh, gw)",
    also("prefix rows", "no row before the patches", shapes=PREFIX.format(0)),
    also("prefix rows", "five rows, by keyword", shapes=PREFIX.format(5), side=2, **KEYWORD),
    also("other sizes", "a square new grid", gw="gh"),
    also("other sizes", "smaller one way, larger the other", gh="side-1", gw="side+2"),
    also("other sizes", "a smaller grid", gh="side-1", gw="side-2"),
    also("other sizes", "as many patches in another shape", side=4, gh=2, gw=8),
    also("other sizes", "the same grid", gh="side", gw="side"),
    also("other sizes", "sizes whose ratio is rounded", side=11, gh=15, gw=13),
    also("other sizes", "to one row", gh=1),
    also("a single patch", "a grid of one patch", side=1),
    also("a single patch", "to a single patch", gh=1, gw=1),
    refused("{side*side + 2} rows, no square beside one prefix row", shapes=NO_SQUARE),
    *USUAL[1:],
    ranges={"side": (4, 5), "gh": (6, 9), "gw": (6, 9), "D": (2, 3)},
    name="{side} x {side} patches to {gh} x {gw}, {D} features",
)
