"""Bars, curves and rows of images: what every figure made of them has."""

import numpy as np
import pytest

from vitedu.plots import ink
from vitedu.plots.charts import look_of, show_bars, show_curves, show_images

SEEDS = {"nothing": [0.2, 0.3], "mixup": 0.4}


def test_bars_reach_the_mean_and_every_seed_is_a_dot():
    """In percent, from zero, beside the level to compare with."""
    fig = show_bars(SEEDS, "accuracy (%)", level=("guessing", 0.1))
    (ax,) = fig.axes
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([25, 40])
    assert ax.lines[0].get_xdata() == pytest.approx([20, 30])
    assert [text.get_text() for text in ax.texts] == ["25.0", "40.0"]
    assert [text.get_text() for text in fig.legends[0].texts] == ["guessing: 10%"]
    assert ax.get_xlim() == (0, 100)


def test_bars_of_a_series_have_one_colour_and_dots_are_joined():
    """A series that a row lacks leaves its place empty."""
    rows = {"a": {"test": 1, "untrained": 2}, "b": {"untrained": 3}}
    bars = show_bars(rows, "ms", percent=False).axes[0].patches
    colours = [bar.get_facecolor()[:3] for bar in bars]
    assert colours[1] == colours[2] != colours[0] and look_of("untrained", 1)[0] == ink.GREY
    assert (look_of("CNN, test", 0)[2], look_of("CNN, training", 1)[2]) == ("--", ":")
    ax = show_bars(rows, "ms", percent=False, dots=True).axes[0]
    assert not ax.patches and list(ax.lines[0].get_xdata()) == [1, 2]


def test_curves_join_means_and_mark_the_seeds():
    """The level is named in the legend; a curve may end early."""
    fig = show_curves(
        {"CNN": [[0.1, 0.3], [0.5, 0.7]], "b": [0.2]},
        (200, 800),
        xlabel="images",
        ylabel="accuracy (%)",
        percent=True,
        log="x",
        level=("guessing", 0.1),
    )
    (ax,) = fig.axes
    assert ax.lines[0].get_ydata() == pytest.approx([20, 60]) and ax.get_xscale() == "log"
    assert sorted(ax.lines[1].get_ydata()) == pytest.approx([10, 30])
    names = [text.get_text() for text in fig.legends[0].texts]
    assert names == ["CNN", "b", "guessing: 10%"]


def test_panels_share_looks_and_one_legend():
    """A name has one colour in all panels; each panel has its own label."""
    panels = {"time": {"a": [1, 2], "b": [2, 3]}, "error": {"b": [0.1, 0.2]}}
    fig = show_curves(panels, xlabel="T", ylabel=("ms", "error"))
    left, right = fig.axes
    assert left.lines[1].get_color() == right.lines[0].get_color()
    assert (left.get_ylabel(), right.get_ylabel(), len(fig.legends)) == ("ms", "error", 1)


def test_images_and_maps_stand_in_rows_on_one_scale():
    """A short row leaves places empty; what is right is a sign and a frame."""
    image, low, high = np.zeros((3, 4, 4)), np.zeros((2, 2)), np.full((2, 2), 5.0)
    fig = show_images(
        {"seen": [image, image], "map": [low, high, low]},
        titles=["x", "y", "z"],
        words={"seen": ["cat", "dog"]},
        right={"seen": [True, False]},
        label="weight",
    )
    maps = [ax.images[0] for ax in fig.axes[3:6]]
    assert {drawn.get_clim() for drawn in maps} == {(0, 5)}
    assert [ax.get_xlabel() for ax in fig.axes[:2]] == ["✓ cat", "✗ dog"]
    assert fig.axes[-1].get_ylabel() == "weight" and not fig.axes[2].images
