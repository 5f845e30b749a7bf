"""1.2 PatchEmbed: the step from patches to tokens, as a layer."""

from vitedu.checks.patches.patchify import NO_SIDE, NO_WIDTH
from vitedu.checks.writing.kit import USUAL, also, refused, shaped
from vitedu.patches import PatchEmbed

cases = shaped(
    "images: B C H W",
    also("other sizes", "9 images of more than 64 wide tokens", B=9, gh=9, gw=9, P=2, D=130),
    also("other sizes", "grey images", C=1),
    also("other sizes", "one patch an image", gh=1, gw=1),
    also("patches of one pixel", "patches of one pixel", P=1),
    also("other sizes", "as many columns as patches", D="gh*gw"),
    refused("H={H} is not divisible by patch_size {P}", "H P", H="gh*P + 1"),
    refused(NO_WIDTH, "W P", H="P*P", W="gw*P + 1"),
    *USUAL,
    refused(NO_SIDE, "P", H="gh*P + 1", W="gw*P + P - 1"),
    layer=PatchEmbed,
    init="patch_size = P; in_channels = C; embed_dim = D",
    letters={"H": "gh*P", "W": "gw*P"},
    ranges={"C": (4, 8)},  # never the 3 of a photograph
    name="{B:image} of {C:channel}, {H} x {W} px, patch_size {P}, embed_dim {D}",
)
