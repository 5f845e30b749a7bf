"""Figures of notebook 03: the right axes, the right numbers in them."""

import matplotlib
import pytest

from vitedu.plots import encoder as plots

matplotlib.use("Agg")


def texts(ax) -> list[str]:
    """All texts written into an axes."""
    return [text.get_text() for text in ax.texts]


def test_block_puts_the_norms_on_side_roads_or_across_the_main_road():
    """Pre-norm draws both norms above the main road, post-norm draws them on it."""
    for ax, height in zip(plots.draw_block().axes, (1.0, 0.0), strict=True):
        heights = {text.get_text(): text.get_position()[1] for text in ax.texts}
        assert (heights["norm1"], heights["norm2"]) == (height, height)


def test_shares_are_per_cent_of_each_row():
    """The bars of a row add to 100, whatever its unit; only shares of 4% and more are written."""
    ax = plots.show_shares(
        {"a": {"attention": 1, "MLP": 3}, "b": {"MLP": 98, "head": 2}}, xlabel="%"
    ).axes[0]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([25, 75, 98, 2])
    assert texts(ax) == ["25", "75", "98"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]
