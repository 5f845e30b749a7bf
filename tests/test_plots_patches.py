"""The figures of notebook 01 show what they say."""

import numpy as np
import pytest
import torch

from vitedu.patches import patchify
from vitedu.plots import patches as plots
from vitedu.plots.widgets import explore_patches


@pytest.fixture
def image():
    """A 3 x 32 x 32 image in which every value is another."""
    return torch.arange(3 * 32 * 32).reshape(3, 32, 32) / (3 * 32 * 32)


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_cut_agrees_with_patchify_and_paste_undoes_it(image):
    """The pictures use the same order as the exercise."""
    assert torch.equal(plots.cut(image, 8).reshape(16, -1), patchify(image[None], 8)[0])
    assert torch.equal(plots.paste(plots.cut(image, 8)), image)


def test_a_photograph_that_cannot_be_cut_is_refused(image):
    """The message names the sides: they hold no whole patches, or are not equal."""
    with pytest.raises(ValueError, match="patch_size=8, H=30, W=32"):
        plots.show_patches(image[:, :30], 8)
    with pytest.raises(ValueError, match=r"square \(got H=16, W=32\)"):
        plots.show_wrong_orders(image[:, :16], 8)


def test_show_patches_numbers_in_reading_order(image):
    """Number k stands in grid cell (k // 4, k % 4); of 256 patches none is large enough to read."""
    fig = plots.show_patches(image, 8)
    before, after = fig.axes
    assert texts(after) == [str(k) for k in range(16)]
    for k, text in enumerate(after.texts):
        x, y = text.get_position()
        assert (int(y // 8), int(x // 8)) == divmod(k, 4)
    assert "192 values" in after.get_title()
    assert texts(plots.show_patches(image, 2).axes[1]) == []


def test_show_wrong_orders_loses_no_value_and_shows_four_different_mistakes(image):
    """Every wrong picture holds the image's values, each once, in an order of its own."""
    fig = plots.show_wrong_orders(image, 8)
    shown = [np.asarray(ax.images[0].get_array()) for ax in fig.axes]
    assert len(shown) == 5
    for picture in shown[1:]:
        np.testing.assert_array_equal(np.sort(picture.ravel()), np.sort(shown[0].ravel()))
    assert len({picture.tobytes() for picture in shown}) == 5


def test_show_pipeline_has_a_token_for_every_patch_and_the_class(image):
    """Sixteen patches are drawn and seventeen tokens numbered, the class token 0."""
    fig = plots.show_pipeline(image, 8, "arrow")
    (ax,) = fig.axes
    assert len(ax.images) == 1 + 16
    numbers = [int(text) for text in texts(ax) if text.isdigit()]
    assert numbers == list(range(17))
    assert '"arrow"' in texts(ax)


def test_show_tiny_cut_numbers_agree_with_patchify():
    """The right panel is what patchify makes of the left one."""
    before, after = plots.show_tiny_cut().axes
    assert texts(before) == [str(k) for k in range(16)]
    wanted = patchify(torch.arange(16).reshape(1, 1, 4, 4), 2)[0]
    assert texts(after)[:16] == [str(k) for k in wanted.flatten().tolist()]


def test_explorer_of_patches_moves_to_the_patch(image):
    """Frame, enlarged patch, mark and curve belong to patch k."""
    fig = explore_patches(image, (16, 8)).figure(8, 6)
    _, close, matrix, values = fig.axes
    assert fig.picture.patches[0].get_xy() == (0.5, 0.5)
    assert np.allclose(close.images[0].get_array(), image[:, 8:16, 16:24].permute(1, 2, 0))
    assert list(matrix.lines[0].get_ydata()) == [6, 6]
    assert np.allclose(values.lines[0].get_ydata(), patchify(image[None], 8)[0, 6])
