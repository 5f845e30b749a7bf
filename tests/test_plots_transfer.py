"""Figures of notebook 09: every number where it belongs, and diagrams without loose ends."""

import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg

from vitedu.plots import transfer as plots
from vitedu.plots.ink import GREEN, RED
from vitedu.plots.widgets import explore_similarity


def test_every_way_has_a_mark_a_seed_and_a_mean():
    """Points stand at the number of trained parameters; the label names it."""
    fig = plots.show_adapted({"head": (650, [0.2, 0.4]), "full": (148_170, [0.5])}, chance=0.1)
    lines = fig.axes[0].lines
    assert lines[0].get_ydata()[0] == pytest.approx(30)
    assert list(lines[1].get_ydata()) == [20, 40] and list(lines[1].get_xdata()) == [650, 650]
    labels = [text.get_text() for text in fig.axes[0].get_legend().get_texts()]
    assert labels == ["head: 650", "full: 148,170", "by chance: 10%"]


def test_pairs_stand_on_the_diagonal():
    """The table is drawn with its numbers, those of pairs in bold."""
    table = np.array([[0.9, -0.2], [0.1, 0.7]])
    fig = plots.show_pairs(table, torch.rand(2, 3, 8, 8), ["a red disk", "a blue ring"])
    texts = {t.get_text(): t.get_fontweight() for t in fig.axes[1].texts}
    assert texts == {"0.90": "bold", "-0.20": "normal", "0.10": "normal", "0.70": "bold"}


def test_retrieved_pictures_say_whether_they_fit():
    """By a sign and a colour."""
    fig = plots.show_retrieved({"a": (torch.rand(2, 3, 8, 8), [True, False])})
    marks = [(ax.get_xlabel(), ax.spines["left"].get_edgecolor()) for ax in fig.axes]
    assert [mark for mark, _ in marks] == ["✓", "✗"]
    assert plots.show_retrieved.__doc__ and marks[0][1] != marks[1][1] and GREEN != RED


def test_boxes_are_drawn_at_their_pixels():
    """Shares of the side become pixels; truth is dashed."""
    n, S = 2, 8
    boxes = {"truth": [[0.25, 0.5, 0.75, 1.0]] * n, "found": [[0, 0, 1, 1.0]] * n}
    boxes = {who: np.array(rows) for who, rows in boxes.items()}
    maps = {who: np.random.default_rng(0).random((n, S, S)) for who in boxes}
    fig = plots.show_four_heads(torch.rand(n, 3, S, S), ["disk", "ring"], boxes, maps, maps)
    truth, found = fig.axes[0].patches
    assert truth.get_xy() == (1.5, 3.5) and (truth.get_width(), truth.get_height()) == (4, 4)
    assert truth.get_linestyle() == "--" and found.get_xy() == (-0.5, -0.5)


@pytest.mark.parametrize("name", plots.FAMILIES)
def test_diagrams_name_every_box_and_connect_it(name):
    """Each box stands once and hangs on an arrow; words stay inside their box."""
    boxes, rows = plots.FAMILIES[name]
    assert {key for row in rows.split(", ") for key in row.split(" > ")} == boxes.keys()
    fig = plots.draw_family(name)
    ax = fig.axes[0]
    assert [text.get_text() for text in ax.texts] == [words for _, _, words, _ in boxes.values()]
    canvas = FigureCanvasAgg(fig)
    canvas.draw()
    renderer = canvas.get_renderer()
    for text, box in zip(ax.texts, ax.patches, strict=False):
        inner, outer = text.get_window_extent(renderer), box.get_window_extent(renderer)
        assert outer.x0 <= inner.x0 and inner.x1 <= outer.x1, text.get_text()
    with pytest.raises(ValueError, match="no diagram named 'x'. Choices: DETR"):
        plots.draw_family("x")


def test_explorer_of_features_follows_the_patch():
    """The map of a patch is its row of the table, for each model; the sentence counts."""
    table = np.eye(4)
    table[1, 2] = table[2, 1] = 0.8
    tables = [{"trained": table, "untrained": np.eye(4)}]
    explorer = explore_similarity(torch.rand(1, 3, 8, 8), tables, (2, 2))
    assert "patch 1 (row 0, column 1)" in explorer.describe(0, 1)
    assert "1 (trained), 0 (untrained)" in explorer.describe(0, 1)
    _, move = explorer.draw(0)
    changed = move(1)
    assert np.array_equal(changed[1].get_array(), table[1].reshape(2, 2))
    assert explorer.frame(0, 0) != explorer.frame(0, 3)
