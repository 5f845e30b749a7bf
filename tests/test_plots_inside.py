"""Figures of notebook 05: one stated scale for all maps, the right map in the right place."""

import numpy as np
import torch

from vitedu.plots import inside as plots

GRID = (2, 2)


def shown(fig):
    """The pictures of a figure that are maps, with their arrays."""
    return [image for ax in fig.axes for image in ax.images if image.get_array().ndim == 2]


def test_maps_share_one_scale_around_even():
    """An even map has the value 1 everywhere, and a weight of zero has a colour, too."""
    rows = {"one": [torch.zeros(3, 8, 8), torch.eye(2)], "two": [np.full((2, 2), 0.2)]}
    fig = plots.show_relative(rows, uniform=0.2)
    zeros_and_ones, even = shown(fig)[:2]
    assert zeros_and_ones.get_clim() == even.get_clim() == (plots.LOWEST, plots.HIGHEST)
    assert np.allclose(even.get_array(), 1) and zeros_and_ones.get_array().max() == 5
    colours = zeros_and_ones.to_rgba(zeros_and_ones.get_array())
    assert np.all(colours[..., 3] == 1) and np.any(colours[0, 0] != colours[0, 1])
    bar = fig.axes[-1]
    assert [tick.get_text() for tick in bar.get_yticklabels()] == ["≤ 0.1", "1", "≥ 10"]


def test_hottest_patch_is_marked_in_the_middle_of_its_pixels():
    """The cross of a 2 x 2 map over 8 px stands at the centre of the hottest patch."""
    maps = np.ones((1, 2, 2))
    maps[0, 1, 0] = 5.0
    mask = torch.zeros(1, 8, 8, dtype=torch.bool)
    mask[0, 5:, :3] = True
    fig = plots.show_pointing(torch.zeros(1, 3, 8, 8), mask, {"a": maps})
    (cross,) = [line for ax in fig.axes for line in ax.lines if line.get_marker() == "x"]
    assert (cross.get_xdata()[0], cross.get_ydata()[0]) == (1.5, 5.5)


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
