"""1.1 patchify: cut an image into patches."""

from vitedu.checks.patches import drawing
from vitedu.checks.writing.kit import EXACT, USUAL, also, refused, shaped

NO_WIDTH = "W={W} is not divisible by patch_size {P}, but H * W is by its square"
NO_SIDE = "neither H={H} nor W={W} is divisible by patch_size {P}, but H + W is"

cases = shaped(
    "images: B C H W; patch_size = P",
    # one after the other, with as many patches: a table that is kept fits one of them only
    also("other sizes", "as many channels as rows of patches", gh=4, gw=4, C=4, P=3, B=5),
    also("other sizes", "a wide grid", gh=2, gw=8, C=4, P=3, B=5),
    also("patches of one pixel", "patches of one pixel", P=1),
    refused("H={H} is not divisible by patch_size {P}", "H P", H="gh*P + 1"),
    refused(NO_WIDTH, "W P", H="P*P", W="gw*P + 1"),
    *USUAL,
    refused(NO_SIDE, "P", H="gh*P + 1", W="gw*P + P - 1"),
    also("other sizes", "one row of patches", gh=1),
    also("other sizes", "one column of patches", gw=1),
    also("other sizes", "as many patches as images, more than 64", gh=9, gw=9, B=81, C=1, P=2),
    letters={"H": "gh*P", "W": "gw*P"},
    name="{B:image} of {C:channel}, {H} x {W} px, patch_size {P}",
    **EXACT,
)

picture = drawing.draw_patch_order
