"""The figures of notebook 06 show the numbers they are given."""

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from vitedu.plots import vit_and_cnn as plots  # noqa: E402
from vitedu.plots.widgets import explore_reach  # noqa: E402


def test_flow_draws_every_layer_on_a_scale_from_zero():
    """Each network has a row that begins with the image; each map's scale begins at 0."""
    flows = {name: {"a": np.eye(2), "b": np.eye(2)} for name in ("CNN", "ViT")}
    flows["CNN"]["a"] = np.full((4, 4), 2.0)
    notes = {"CNN": ["4 × 4", "2 × 2"], "ViT": ["2 × 2", "2 × 2"]}
    axes = plots.show_flow(np.zeros((3, 8, 8)), flows, notes).axes
    assert [ax.get_title() for ax in axes] == ["image", "a", "b"] * 2
    assert axes[1].images[0].get_clim() == (0, 2) and axes[1].get_xlabel() == "4 × 4"


def test_fields_share_one_scale_and_frame_what_is_smaller_than_the_image():
    """A receptive field of 3 in an image of 7 is framed around its middle; one of 7 is not."""
    axes = plots.show_fields({"small": np.zeros((7, 7)), "all": np.ones((7, 7))}, [3, 7]).axes
    assert all(ax.images[0].get_clim() == (1e-3, 1) for ax in axes[:2])
    (square,) = axes[0].patches
    assert (square.get_xy(), square.get_width()) == ((1.5, 1.5), 3) and not axes[1].patches


def test_cue_task_frames_the_cue_and_every_cell_like_it():
    """The glyphs stand on the left; the cue is framed, and each cell that says yes."""
    answers = np.zeros((2, 2), bool)
    answers[0, 0] = answers[1, 0] = True
    glyphs = np.arange(4.0)[:, None, None] * np.ones((4, 4))
    four, left, right = plots.show_cue_task(np.zeros((1, 8, 8)), answers, glyphs).axes
    assert four.images[0].get_array()[::4, ::4].tolist() == [[0, 1], [2, 3]]
    assert [p.get_xy() for p in left.patches] == [(-0.5, -0.5)]
    assert [p.get_xy() for p in right.patches] == [(-0.5, -0.5), (-0.5, 3.5)]


def test_curves_run_through_means_and_show_every_seed():
    """Shares become percent; training accuracies are dotted; a mark stands where it should."""
    curves = {"CNN, test": [[0.2, 0.4], [0.5]], "CNN, training": [[1.0], [1.0]]}
    options = dict(baseline=(0.1, "guessing"), marks={"CNN, test": 3}, logx=True)
    ax = plots.show_curves(curves, [1, 10], xlabel="n", ylabel="%", **options).axes[0]
    joined = [line for line in ax.lines if line.get_label() in curves]
    assert joined[0].get_ydata() == pytest.approx([30, 50])
    assert [line.get_linestyle() for line in joined] == ["--", ":"]
    dots = [tuple(xy) for line in ax.lines if line.get_marker() == "." for xy in line.get_xydata()]
    assert np.allclose(sorted(dots)[:2], [(1, 20), (1, 40)])
    assert any(list(line.get_xdata()) == [3, 3] for line in ax.lines)
    (level,) = [line for line in ax.lines if line.get_label() == "guessing"]
    assert level.get_ydata() == pytest.approx([10, 10])


def test_disturbed_shows_mean_and_range_of_each_network():
    """Two networks stand at two heights of one row."""
    found = {"CNN": {"noise": [0.2, 0.6]}, "ViT": {"noise": [0.5]}}
    ax = plots.show_disturbed(found, guessing=0.1).axes[0]
    marks = [line.get_xydata()[0] for line in ax.lines if line.get_marker() in ("s", "o")]
    assert [xy[0] for xy in marks] == pytest.approx([40, 50]) and marks[0][1] != marks[1][1]
    assert [0.2 * 100, 0.6 * 100] == pytest.approx(list(ax.lines[0].get_xdata()))


def test_likeness_is_written_into_every_cell():
    """One scale from 0 to 1 for all tables; layers of the CNN run across."""
    table = np.array([[1.0, 0.25, 0.5]])
    axes = plots.show_likeness({"one": table}, ["stem", "1", "2"], ["class"]).axes
    assert [text.get_text() for text in axes[0].texts] == ["1.0", "0.2", "0.5"]
    assert axes[0].images[0].get_clim() == (0, 1)
    assert [label.get_text() for label in axes[0].get_xticklabels()] == ["stem", "1", "2"]


def test_card_marks_the_larger_number_and_is_written_to_a_file(tmp_path):
    """Shares stand in percent, other numbers whole; equal numbers have no mark."""
    rows = {
        "right": {"CNN": 0.9, "ViT": 0.84},
        "images a second": {"CNN": 250.0, "ViT": 1250.4},
        "equal": {"CNN": 0.5, "ViT": 0.5},
    }
    fig = plots.show_card(rows, ["my choice: ViT"], path=tmp_path / "card.png")
    texts = [text for text in fig.axes[0].texts if text.get_text().strip()]
    words = [text.get_text() for text in texts]
    assert {"90.0%", "84.0%", "250", "1,250", "1  right", "my choice: ViT"} <= set(words)
    bold = [text.get_text() for text in texts if text.get_weight() == "bold"]
    assert bold == ["CNN", "ViT", "90.0%", " ◀", "1,250", " ◀"]
    assert (tmp_path / "card.png").read_bytes().startswith(b"\x89PNG")


def test_reach_is_told_in_words():
    """The sentence counts the places that matter to the cell."""
    table = np.array([[0.5, 0.5, 0, 0]] * 4)
    explorer = explore_reach(np.zeros((3, 8, 8)), {"2 layers": table}, (2, 2))
    assert "place 0 depends on 2 of 4 places" in explorer.describe("2 layers", 0)
    assert explorer.start == "2 layers"
