"""The references of notebook 01, against other roads to the same result."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from vitedu.patches import (
    PatchEmbed,
    add_class_token_and_positions,
    linear_from_conv,
    patchify,
    seam_neighbours,
    sincos_positions,
    sincos_positions_2d,
    tokens_at_224,
    unpatchify,
)


@pytest.fixture
def images():
    """Images of which no two sizes are equal."""
    return torch.randn(2, 3, 8, 12, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("patch_size", [1, 2, 4])
def test_patchify_equals_unfold(images, patch_size):
    """The im2col of convolutions lists the same patches; nothing is computed, so to the bit."""
    expected = F.unfold(images, patch_size, stride=patch_size).transpose(1, 2)
    assert torch.equal(patchify(images, patch_size), expected)


def test_patchify_starts_at_the_top_left_and_goes_right(images):
    """Patch 1 is the square to the right of patch 0."""
    assert torch.equal(patchify(images, 4)[:, 1], images[:, :, :4, 4:8].flatten(1))


@pytest.mark.parametrize(("size", "numbers"), [((9, 8), "9"), ((8, 9), "9")])
def test_patchify_rejects_indivisible_size(size, numbers):
    """The error names the size and the patch size."""
    with pytest.raises(ValueError, match=rf"{numbers}.*patch_size=4"):
        patchify(torch.zeros(1, 3, *size), 4)


def test_unpatchify_inverts_patchify(images):
    """Nothing is lost in the cut."""
    assert torch.equal(unpatchify(patchify(images, 4), 4, (8, 12)), images)


def test_unpatchify_rejects_patches_that_do_not_fill_the_image(images):
    """The error says how many patches are needed."""
    with pytest.raises(ValueError, match="2 x 2 = 4"):
        unpatchify(patchify(images, 4), 4, (8, 8))


@pytest.mark.parametrize("bias", [True, False])
def test_linear_from_conv_equals_the_convolution(images, bias):
    """Both sum the same products; float32 rounds to about 1e-6."""
    conv = nn.Conv2d(3, 7, kernel_size=4, stride=4, bias=bias)
    linear = linear_from_conv(conv)
    expected = conv(images).flatten(2).transpose(1, 2)
    torch.testing.assert_close(linear(patchify(images, 4)), expected, rtol=0, atol=1e-5)
    assert (linear.bias is None) == (not bias)


def test_class_token_shares_memory_and_sums_gradients():
    """One vector serves the batch: its gradient is the sum over images."""
    cls = torch.zeros(1, 1, 4, requires_grad=True)
    tokens = add_class_token_and_positions(torch.randn(3, 5, 4), cls, torch.zeros(1, 6, 4))
    tokens.sum().backward()
    assert torch.equal(cls.grad, torch.full((1, 1, 4), 3.0))


def test_sincos_shift_is_a_rotation():
    """PE(p+k) is one and the same rotation of PE(p) for all p; float32 angles round to 1e-6."""
    codes, shift = sincos_positions(30, 8), 5
    pairs = codes.reshape(30, 4, 2)
    rate = 10000 ** (-torch.arange(4) / 4)
    sine, cosine = (shift * rate).sin(), (shift * rate).cos()
    turned = torch.stack(
        [
            pairs[..., 0] * cosine + pairs[..., 1] * sine,
            pairs[..., 1] * cosine - pairs[..., 0] * sine,
        ],
        dim=-1,
    )
    torch.testing.assert_close(turned[:-shift], pairs[shift:], rtol=0, atol=1e-5)


def test_sincos_2d_dot_product_depends_on_the_offset_alone():
    """Equal steps down and across give equal similarity, wherever they start."""
    table = sincos_positions_2d((4, 5), 16).double()
    similar = (table @ table.T).reshape(4, 5, 4, 5)
    assert similar[0, 0, 1, 2].item() == pytest.approx(similar[2, 1, 3, 3].item(), abs=1e-5)
    assert similar[0, 0, 1, 2].item() != pytest.approx(similar[0, 0, 1, 3].item(), abs=1e-3)


def test_seam_neighbours_are_the_measured_differences():
    """In the 1-D code patches 7 and 8 are alike, in the 2-D code patches 0 and 8."""
    for difference, codes in zip(
        seam_neighbours, (sincos_positions(64, 64), sincos_positions_2d((8, 8), 64)), strict=True
    ):
        unit = codes / codes.norm(dim=1, keepdim=True)
        assert (unit[8] @ (unit[7] - unit[0])).item() == pytest.approx(difference, abs=1e-4)


@pytest.mark.parametrize(
    "call", [lambda: sincos_positions(3, 5), lambda: sincos_positions_2d((2, 2), 6)]
)
def test_sincos_rejects_widths_that_do_not_split(call):
    """Sine and cosine come in pairs, rows and columns in halves."""
    with pytest.raises(ValueError, match="embed_dim"):
        call()


def test_patch_embed_gives_the_tokens_of_vit_b_16():
    """196 patches at 224 px; the class token makes 197."""
    embed = PatchEmbed(patch_size=16, in_channels=3, embed_dim=8)
    assert embed(torch.zeros(1, 3, 224, 224)).shape[1] + 1 == tokens_at_224 == 197
    with pytest.raises(ValueError, match="H=30"):
        embed(torch.zeros(1, 3, 30, 32))
