"""Bars, curves and rows of images: what every figure made of them has."""

import numpy as np
import pytest

from vitedu.plots import ink
from vitedu.plots.charts import look_of, show_bars, show_curves, show_images
from vitedu.plots.efficient import show_trade
from vitedu.plots.patches import show_pipeline
from vitedu.plots.widgets import explore_maps, explore_patches

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


def test_bars_of_the_student_are_bold_and_of_another_colour():
    """By the names of their rows; rows without a measurement keep their places."""
    ax = show_bars({"a": 0.2, "mine": 0.4, "none": {}}, "%", yours=["mine"]).axes[0]
    weights = [label.get_fontweight() for label in ax.get_yticklabels()]
    assert weights == ["normal", "bold", "normal"] and len(ax.patches) == 2
    assert ax.patches[0].get_facecolor() != ax.patches[1].get_facecolor()
    tall = show_bars({"a": {}, "b": {}}, "%").get_figheight()
    assert tall == show_bars({"a": 1, "b": 1}, "%").get_figheight()


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


def test_nan_is_left_out():
    """The line goes on where a curve has a measurement again."""
    panels = {name: {"a": [1, np.nan, 3]} for name in "xyz"} | {"w": {"b": [np.nan]}}
    fig = show_curves(panels, xlabel="x", ylabel="y")
    assert fig.axes[0].lines[0].get_xydata().tolist() == [[0, 1], [2, 3]]
    assert not len(fig.axes[3].lines[0].get_xdata())


def test_long_rows_go_on_in_the_next_line():
    """With their words and signs; a name stands before each of its lines."""
    row = {"seen": [np.zeros((3, 4, 4))] * 3}
    right = {"seen": [True, False, True]}
    axes = show_images(row, words={"seen": "abc"}, right=right, across=2).axes
    assert [ax.get_xlabel() for ax in axes] == ["✓ a", "✗ b", "✓ c", ""]
    assert [ax.get_ylabel() for ax in axes] == ["seen", "", "seen", ""]


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


def test_curves_of_places_draw_every_seed_and_join_the_means():
    """The line of an arm runs through the means, and each seed is a dot at its rate."""
    runs = {"with": {0.01: [1.0, 3.0], 0.001: [0.5, 0.7]}, "without": {0.01: [4.0]}}
    more = {"level": ("chance", 2.3), "log": "x", "marks": {"here": 0.005}}
    ax = show_curves(runs, xlabel="rate", ylabel="loss", **more).axes[0]
    lines = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
    assert lines["with"] == [[0.001, pytest.approx(0.6)], [0.01, 2.0]]
    assert lines["without"] == [[0.01, 4.0]]  # a rate that it lacks is left out
    assert [[0.01, 1.0], [0.01, 3.0]] in lines.values()
    assert "chance: 2.3" in lines and ax.get_xscale() == "log"
    assert ax.lines[-1].get_xdata() == [0.005, 0.005] and ax.texts[0].get_text() == " here"


WIDE = np.zeros((3, 16, 32))


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: show_bars({"a": [0.5], "b": []}, "share"), "'b' has no seed .got 0 .*leave it"),
        (lambda: show_bars({"a": {"x": []}}, "share"), "'x' has no seed"),
        (lambda: show_curves({"a": [[1], []]}, xlabel="", ylabel=""), "'a' has no seed"),
        (lambda: show_trade({"a": (1, [])}), "'a' has no seed"),
        (lambda: show_pipeline(WIDE, 8, "cat"), "square .got H=16, W=32.*square_photograph"),
        (lambda: explore_patches(WIDE, (8,)), "square .got H=16, W=32"),
        (lambda: explore_maps(WIDE, {"a": np.eye(4)}, (2, 2), "x"), "square .got H=16, W=32"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_a_line(draw, message):
    """What it is, its numbers, and what to give instead."""
    with pytest.raises(ValueError, match=message) as refusal:
        draw()
    assert "\n" not in str(refusal.value)
