"""Figures of notebook 05: one stated scale for all maps, the right map in the right place."""

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgba

from vitedu.inside import calibration
from vitedu.plots import ink
from vitedu.plots import inside as plots
from vitedu.plots.widgets import explore_inside

GRID = (2, 2)


@pytest.fixture
def weights():
    """Two layers of three heads over five tokens, no two values alike."""
    values = torch.arange(2 * 3 * 5 * 5, dtype=torch.float32).reshape(2, 3, 5, 5)
    return (values / values.sum(dim=-1, keepdim=True)).numpy()


def shown(fig):
    """The pictures of a figure that are maps, with their arrays."""
    return [image for ax in fig.axes for image in ax.images if image.get_array().ndim == 2]


def test_maps_of_all_layers_and_heads_share_one_scale_around_even(weights):
    """An even map has the value 1 everywhere, whichever model made it."""
    maps = {"trained": weights[:, :, 0, 1:].reshape(2, 3, 2, 2)}
    maps["untrained"] = np.full((2, 3, 2, 2), 0.2)
    fig = plots.show_layers_and_heads(torch.zeros(3, 8, 8), maps, uniform=0.2)
    images = shown(fig)
    assert len(images) == 12
    assert {image.get_clim() for image in images} == {(plots.LOWEST, plots.HIGHEST)}
    assert sum(bool(np.allclose(image.get_array(), 1)) for image in images) == 6


def test_whole_table_has_a_row_for_each_query(weights):
    """The table is drawn as it is, relative to even, with the class token named."""
    fig = plots.show_full_maps({"one": weights[0, 0], "two": weights[1, 0]}, GRID)
    first = shown(fig)[0]
    assert np.allclose(first.get_array()[1, 1:], 5 * weights[0, 0][1, 1:])
    assert fig.axes[0].get_yticklabels()[0].get_text() == "class"


def test_hottest_patch_is_marked_in_the_middle_of_its_pixels():
    """The cross of a 2 x 2 map over 8 px stands at the centre of the hottest patch."""
    maps = np.ones((1, 2, 2))
    maps[0, 1, 0] = 5.0
    mask = torch.zeros(1, 8, 8, dtype=torch.bool)
    mask[0, 5:, :3] = True
    fig = plots.show_pointing(torch.zeros(1, 3, 8, 8), mask, {"a": maps})
    (cross,) = [line for ax in fig.axes for line in ax.lines if line.get_marker() == "x"]
    assert (cross.get_xdata()[0], cross.get_ydata()[0]) == (1.5, 5.5)


def test_scores_stand_beside_chance():
    """A bar for each method and model, in percent, and a line at chance."""
    scores = {"a": {"trained": 0.9, "untrained": 0.4}, "b": {"trained": 0.5, "untrained": 0.5}}
    ax = plots.show_scores(scores, chance=0.3, ylabel="hits").axes[0]
    assert sorted(round(bar.get_height()) for bar in ax.patches) == [40, 50, 50, 90]
    assert [line.get_ydata()[0] for line in ax.lines] == [30.0]
    ax = plots.show_scores(scores, chance={"a": 0.3, "b": 0.1}, ylabel="hits").axes[0]
    assert [line.get_ydata()[0] for line in ax.lines] == [30.0, 10.0]


def test_distances_stand_layer_by_layer_beside_an_even_look():
    """Every head is a dot over its block."""
    spans = {"trained": np.array([[1.0, 2.0], [3.0, 4.0]])}
    ax = plots.show_distances(spans, uniform=4.1).axes[0]
    even, dots = ax.lines
    assert even.get_ydata()[0] == 4.1
    assert dots.get_ydata().tolist() == [1.0, 2.0, 3.0, 4.0]


def test_lines_carry_their_names_and_the_level():
    """What runs where is said in the legend."""
    fig = plots.show_lines({"a": [1, 2], "b": [3, 4]}, xlabel="x", ylabel="y", level=("none", 0.5))
    labels = [text.get_text() for text in fig.legends[0].get_texts()]
    assert labels == ["a", "b", "none: 0.5"]


def test_what_was_not_trained_is_grey_in_every_figure():
    """Bars, dots and lines of an untrained model have its colour, and nothing else has."""
    name = {"trained": np.ones((1, 2)), "untrained": np.ones((1, 2))}
    dots = plots.show_distances(name, uniform=1.0).axes[0].lines[1:]
    curves = {k: v[0] for k, v in name.items()}
    lines = plots.show_lines(curves, xlabel="x", ylabel="y").axes[0].lines
    bars = plots.show_scores({"a": {k: 0.5 for k in name}}, chance=0.1, ylabel="y").axes[0].patches
    for drawn, untrained in (dots, lines):
        assert (drawn.get_color() == ink.GREY, untrained.get_color()) == (False, ink.GREY)
    assert [bar.get_facecolor() == to_rgba(ink.GREY) for bar in bars] == [False, True]


def test_calibration_draws_no_point_for_an_empty_slice():
    """Two slices hold images, so two points are drawn."""
    reading = calibration(torch.tensor([0.95, 0.55]), torch.tensor([True, False]))
    fig = plots.show_calibration({"one": reading})
    measured = next(line for line in fig.axes[0].lines if line.get_label() == "measured")
    assert measured.get_xdata().tolist() == pytest.approx([55.0, 95.0])
    assert measured.get_ydata().tolist() == [0.0, 100.0]


def test_wrong_maps_stand_on_the_scale_of_the_right_one():
    """One scale for all panels."""
    fig = plots.show_wrong_maps({"right": np.full((2, 2), 0.2), "wrong": np.eye(2)}, uniform=0.2)
    assert {image.get_clim() for image in shown(fig)} == {(plots.LOWEST, plots.HIGHEST)}


def test_explorer_moves_every_map_and_answer_to_the_patch(weights):
    """Patch 2 shows row 2 of the patches' table, and what is answered there."""
    answers = {"trained": [[[f"{block}-{k}" for k in range(4)] for block in range(2)]]}
    models = {"trained": weights[None]}
    _, move = explore_inside(torch.zeros(1, 3, 8, 8), models, answers, GRID).draw(0)
    changed = move(2)
    maps = [artist for artist in changed if hasattr(artist, "get_array")]
    assert len(maps) == 2  # a row of heads for each block, with a column of paper after each head
    second = maps[1].get_array()[:, 3:5]
    relative = 5 * weights[1, 1, 3, 1:].reshape(2, 2)
    assert np.array_equal(second, maps[1].to_rgba(relative, bytes=True))
    texts = [artist.get_text() for artist in changed if hasattr(artist, "get_text")]
    assert texts == ["block 0: 0-2", "block 1: 1-2"]


def test_page_of_one_photograph_names_each_block_and_is_written(tmp_path):
    """Every block has its maps and its three answers; the falls stand in points around 0."""
    names, even = ("cat", "dog", "frog", "ship"), np.full((2, *GRID), 0.2)
    beliefs = np.array([[0.14, 0.6, 0.2, 0.06], [0.7, 0.2, 0.06, 0.04]])
    falls = np.array([[0.3, 0.0], [0.0, -0.1]])
    image = torch.zeros(3, 8, 8)
    maps = {"looks": even, "rollout": even}
    numbers = maps, even, beliefs, falls, names
    path = tmp_path / "page.png"
    fig = plots.show_every_layer(image, image, *numbers, uniform=0.2, path=path)
    words = fig.words()
    assert "cat 70%" in words and "dog 60%" in words and "ship" not in words
    assert "block 0" in words and "block 1" in words
    maps = {tuple(image.get_clim()): image.get_array() for image in shown(fig)}
    assert np.allclose(maps[-30.0, 30.0], 100 * falls)
    assert np.allclose(maps[plots.LOWEST, plots.HIGHEST], 1) and np.allclose(maps[0, 100], 20)
    assert path.read_bytes().startswith(b"\x89PNG")
