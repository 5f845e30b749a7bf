"""1.5 unpatchify: put it back together."""

from vitedu.checks.patches import drawing
from vitedu.checks.writing.kit import EXACT, USUAL, also, shaped

cases = shaped(
    "patches: B gh*gw C*P*P; patch_size = P; image_size = (gh*P, gw*P)",
    also("other sizes", "square", gw="gh"),
    also("rare sizes", "patches of one pixel", P=1, C=1),
    # the root of N is no side of the grid
    also("other sizes", "four patches in a row", gh=1, gw=4),
    also("other sizes", "2 x 8 patches", gh=2, gw=8, P=3, B=17),
    also("other sizes", "one column of patches, one channel", gw=1, C=1),
    also("other sizes", "as many patches as images, more than 64", gh=9, gw=8, B=72, C=1, P=2),
    also("rare sizes", "one patch", gh=1, gw=1),
    *USUAL,
    # C is neither the 3 that somebody took for granted nor P*P, and P*P divides no N
    ranges={"P": (3, 5), "C": (4, 6)},
    name="{B} x {gh*gw} patches of {C:channel}, patch_size {P}, image {gh*P} x {gw*P}",
    **EXACT,
)

picture = drawing.draw_patch_places
