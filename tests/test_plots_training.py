"""The figures of notebook 04 show the numbers they are given."""

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from vitedu.plots import training as plots  # noqa: E402
from vitedu.plots.ink import BAD, GOOD  # noqa: E402


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_curves_count_epochs_from_one_and_accuracy_in_percent():
    """Epoch 1 is the first point; accuracies are drawn from 0 to 100%."""
    columns = {"train_loss": [2.0, 1.0], "validation_loss": [1.9, 1.2]}
    columns |= {"train_accuracy": [0.2, 0.6], "validation_accuracy": [0.3, 0.5]}
    left, right = plots.show_curves(columns.__getitem__, chance=0.1).axes
    assert left.lines[0].get_xydata().tolist() == [[1, 2.0], [2, 1.0]]
    assert np.allclose(right.lines[1].get_ydata(), [30, 50], atol=1e-9)
    assert right.get_ylim() == (0, 100)
    star = next(line for line in right.lines if line.get_marker() == "*")
    assert star.get_xydata().tolist() == [[2, 50]]  # where validation is highest, counted alike
    (legend,) = left.figure.legends
    assert [text.get_text() for text in legend.texts] == ["training", "validation"]
    assert right.get_title() == "★ best validation: epoch 2"
    assert [text.get_text() for text in right.texts] == ["guessing 10%"]


LEVELS = [{"a": 0.39, "b": 0.575}, {"a": 0.56, "b": 0.561, "c": 0.57}, {"a": 0.99, "b": 1.0}, {}]


@pytest.mark.parametrize("levels", LEVELS, ids=["far", "near", "top", "none"])
def test_horizons_stand_at_their_accuracy_and_their_words_apart(levels):
    """A line at each accuracy; words beside it, in its order, that neither meet nor leave."""
    ax = plots.show_curves(lambda name: [0.3], chance=0.02, horizons=levels).axes[1]
    wanted = [2.0, *(100 * value for value in levels.values())]
    lines = [line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == ":"]
    assert ("dotted: others" in ax.get_title()) == bool(levels)
    assert lines == pytest.approx(wanted, abs=1e-9)
    assert [text.get_text().split()[0] for text in ax.texts] == ["guessing", *levels]
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert all(a.y1 < b.y0 for a, b in zip(boxes, boxes[1:], strict=False))
    assert boxes[-1].y1 < ax.figure.bbox.y1 and boxes[0].y0 > 0
    assert max(box.x1 for box in boxes) <= ax.figure.bbox.x1


def test_moment_says_what_each_image_is_called_and_is(rng):
    """A sign for right and wrong, the truth where it is wrong; no verdict on one's own image."""
    images = rng.random((3, 3, 8, 8))
    truth, answers = ["cat", "dog", None], ["cat", "truck", "ship 63%"]
    wall = plots.show_moment([2.0] * 30, [(20, 1.5)], 40, images, truth, answers).axes[1]
    words = [text.get_text() for text in wall.texts]
    assert words == ["✓ cat", "", "✗ truck", "is dog", "ship 63%", "yours"]
    colours = [matplotlib.colors.to_hex(patch.get_edgecolor()).upper() for patch in wall.patches]
    assert colours[:2] == [GOOD, BAD] and colours[2] not in (GOOD, BAD)
    assert len(wall.images) == 3


def test_confusion_shows_shares_of_the_true_class():
    """Rows are shares in percent; a class without images gives a row of zeros, no nan."""
    ax = plots.show_confusion([[3, 1], [0, 0]], ["a", "b"]).axes[0]
    assert ax.images[0].get_array().tolist() == [[75, 25], [0, 0]]
    assert ax.get_xlabel() == "answer" and ax.get_ylabel() == "truth"
