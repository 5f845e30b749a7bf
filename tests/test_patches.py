"""The references of notebook 01: what they refuse, and the values that the text names.

That they equal other roads to the same result is proved by the right answers of their banks.
"""

import pytest
import torch

from vitedu.patches import (
    PatchEmbed,
    patchify,
    seam_neighbours,
    sincos_positions,
    sincos_positions_2d,
    tokens_at_224,
    unpatchify,
)

IMAGES = torch.zeros(1, 3, 8, 12)
REFUSED = {
    "height": (lambda: patchify(torch.zeros(1, 3, 9, 8), 4), "9.*patch_size=4"),
    "width": (lambda: patchify(torch.zeros(1, 3, 8, 9), 4), "9.*patch_size=4"),
    "too many patches": (lambda: unpatchify(patchify(IMAGES, 4), 4, (8, 8)), "2 x 2 = 4"),
    "odd width": (lambda: sincos_positions(3, 5), "embed_dim"),
    "width of two halves": (lambda: sincos_positions_2d((2, 2), 6), "embed_dim"),
    "embedded": (lambda: PatchEmbed(16, 3, 8)(torch.zeros(1, 3, 30, 32)), "H=30"),
}


@pytest.mark.parametrize(("call", "words"), REFUSED.values(), ids=REFUSED)
def test_sizes_that_do_not_fit_are_refused_by_name(call, words):
    """The error names the size, and what it has to fit."""
    with pytest.raises(ValueError, match=words):
        call()


def test_seam_neighbours_are_the_measured_differences():
    """In the 1-D code patches 7 and 8 are alike, in the 2-D code patches 0 and 8."""
    for difference, codes in zip(
        seam_neighbours, (sincos_positions(64, 64), sincos_positions_2d((8, 8), 64)), strict=True
    ):
        unit = codes / codes.norm(dim=1, keepdim=True)
        assert (unit[8] @ (unit[7] - unit[0])).item() == pytest.approx(difference, abs=1e-4)


def test_patch_embed_gives_the_tokens_of_vit_b_16():
    """196 patches at 224 px; the class token makes 197."""
    embed = PatchEmbed(patch_size=16, in_channels=3, embed_dim=8)
    assert embed(torch.zeros(1, 3, 224, 224)).shape[1] + 1 == tokens_at_224 == 197
