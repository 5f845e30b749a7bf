"""6.8 shuffle_patches: the same patches in another order."""

import torch

from vitedu.checks.writing.kit import EXACT, USUAL, also, shaped


def _permute(x: torch.Tensor) -> torch.Tensor:
    """Make a permutation in one ring, which differs from its inverse."""
    order, permutation = x.argsort(), torch.empty(len(x), dtype=torch.int64)
    permutation[order] = order.roll(-1)
    return permutation


cases = shaped(
    "images: B C gh*P gw*P; patch_size = P; permutation: gh*gw",
    also("values", ""),
    also("other sizes", "square, many patches", B=9, gh=9, gw=9),
    also("other sizes", "one channel", C=1, gh=2, gw=8),
    also("other sizes", "one row of patches", gh=1),
    also("other sizes", "one column, as many patches as images", gw=1, B="gh"),
    *USUAL,
    also("patches of one pixel", "patches of one pixel", P=1),
    values={"permutation": _permute},
    name="{B:image} of {C:channel}, {gh*P} x {gw*P} px, patch_size {P}",
    **EXACT,
)
