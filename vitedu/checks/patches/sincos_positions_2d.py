"""1.8 sincos_positions_2d: rows and columns."""

from vitedu.checks.writing.kit import also, refused, shaped

NO_FOURTH = "embed_dim {D} is not divisible by 4"

cases = shaped(
    "grid_size = (gh, gw); embed_dim = D",  # the wide one first
    also("other sizes", "", gh=5, gw=3),
    also("other sizes", "", gw="gh"),
    also("other sizes", "", gh=1),
    also("other sizes", "", gw=1),
    also("other sizes", "", gh=2, gw=8, D=128),
    also("other sizes", "more than 64 cells", gh=9, gw=8),
    also("rare sizes", "", D=4),
    # half of it, cut off, is even: the table of one direction has nothing to refuse
    refused(NO_FOURTH, D="8*d + 5"),
    refused(NO_FOURTH, D="8*d + 6"),
    letters={"D": "8*d + 4"},  # 12 or 20: 8 does not divide it
    ranges={"d": (1, 2), "gh": (2, 3), "gw": (4, 6)},
    name="grid {gh} x {gw}, embed_dim {D}",
    rtol=0,
    atol=2e-4,
)
