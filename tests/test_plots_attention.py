"""The figures of notebook 02 show what they are given, on scales that are stated."""

import numpy as np
import pytest
import torch
from matplotlib import pyplot as plt

from vitedu.plots import attention as plots


@pytest.fixture(autouse=True)
def no_open_figures():
    """Figures are detached: none may stay in pyplot's list."""
    yield
    assert plt.get_fignums() == []


def panels(fig):
    """The axes of a figure without its colour bars."""
    return [ax for ax in fig.axes if ax.get_label() != "<colorbar>"]


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_show_temperatures_has_a_panel_each_with_the_weights_as_bars():
    """The height of every bar is the weight it stands for."""
    weights = {0.5: torch.tensor([0.9, 0.1]), 2.0: torch.tensor([0.6, 0.4])}
    axes = panels(plots.show_temperatures(weights, torch.tensor([1.0, 0.0])))
    heights = [[bar.get_height() for bar in ax.patches] for ax in axes]
    np.testing.assert_allclose(heights, [[0.9, 0.1], [0.6, 0.4]], atol=1e-6)  # float32 to float64
    assert [ax.get_title() for ax in axes] == ["temperature 0.5", "temperature 2"]


def test_show_attention_steps_writes_every_number_and_fixes_the_scale_of_weights():
    """Weights are coloured from 0 to 1 whatever their extremes."""
    scores = torch.tensor([[1.0, -2.0, 0.0], [0.5, 0.5, 0.5]])
    weights = torch.full((2, 3), 1 / 3)
    output = torch.tensor([[3.0, 1.0], [0.0, -1.0]])
    axes = panels(plots.show_attention_steps(scores, weights, output))
    assert texts(axes[0]) == ["1.00", "-2.00", "0.00", "0.50", "0.50", "0.50"]
    assert texts(axes[2]) == ["3.00", "1.00", "0.00", "-1.00"]
    assert axes[1].images[0].get_clim() == (0.0, 1.0)
    assert axes[0].images[0].get_clim() == (-3.0, 3.0) == axes[2].images[0].get_clim()


def test_show_saturation_draws_each_measure_of_each_variant():
    """Three panels, a labelled line a variant, x at the widths, a band between two quantiles."""
    plain = {16: (4.0, 0.5, (0.1, 0.2, 0.3)), 64: (8.0, 0.8, (0.0, 0.1, 0.4))}
    axes = panels(plots.show_saturation({"plain": plain, "scaled": {16: (1, 0.1, (0, 0, 0.2))}}))
    assert [line.get_label() for line in axes[0].lines] == ["plain", "scaled"]
    drawn = [ax.lines[0].get_ydata().tolist() for ax in axes]
    assert drawn == [[4, 8], [0.5, 0.8], [0.2, 0.1]]
    assert axes[2].lines[0].get_xdata().tolist() == [16, 64]
    band = axes[2].collections[0].get_paths()[0].vertices.tolist()
    assert {(16, 0.1), (16, 0.3), (64, 0.0), (64, 0.4)} <= set(map(tuple, band))


def test_show_head_split_numbers_the_tokens_that_each_form_gives_a_head():
    """split_heads gives head 0 one value of each token, a bare reshape repeats a token."""
    x, split, bare = panels(plots.show_head_split(num_tokens=3, embed_dim=4, num_heads=2))
    digits = [[t for t in texts(ax) if t.isdigit()] for ax in (x, split, bare)]
    assert digits[0] == list("000011112222")
    assert digits[1][:6] == list("001122")
    assert digits[2][:6] == list("000011")
    assert "head 1" in texts(split)


def test_show_cost_draws_both_terms_and_the_marks():
    """Two curves on logarithmic axes, one dotted line a mark."""
    (ax,) = panels(plots.show_cost([2, 4], [8, 16], [2, 8], {"here": 3}))
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert [line.get_ydata().tolist() for line in ax.lines[:2]] == [[8, 16], [2, 8]]
    assert ax.lines[2].get_xdata() == [3, 3] and " here" in texts(ax)


@pytest.mark.parametrize("with_attention", [False, True])
def test_show_quadrant_images_titles_images_with_their_labels(with_attention):
    """The attention of an image stands under it, on a scale from 0 to 1."""
    attention = torch.rand(2, 4, 4) if with_attention else None
    images, labels = torch.rand(2, 1, 16, 16), torch.tensor([3, 1])
    axes = panels(plots.show_quadrant_images(images, labels, attention))
    assert [ax.get_title() for ax in axes[:2]] == ["label 3", "label 1"]
    assert len(axes) == (4 if with_attention else 2)
    if with_attention:
        np.testing.assert_array_equal(axes[3].images[0].get_array(), attention[1])
        assert axes[3].images[0].get_clim() == (0.0, 1.0)


def test_show_learning_is_in_percent_with_the_level_of_guessing():
    """A curve for each seed of a model, one label a model, and a line for chance."""
    runs = {"a": [[0.25, 1.0], [0.3, 0.9]], "b": [[0.2, 0.3]]}
    (ax,) = panels(plots.show_learning([0, 10], runs, chance=0.25))
    np.testing.assert_allclose(ax.lines[1].get_ydata(), [30, 90], atol=1e-9)  # but for rounding
    labels = [line.get_label() for line in ax.lines if not line.get_label().startswith("_")]
    assert labels == ["a (seeds: 2)", "b (seeds: 1)", "guessing"]
    assert ax.lines[-1].get_ydata() == [25, 25]


def test_show_clock_has_a_line_of_slope_two():
    """The quadratic line meets the last measurement and is four times lower at half the length."""
    (ax,) = panels(plots.show_clock({64: (1.0, 0.5), 128: (8.0, 3.0)}))
    np.testing.assert_allclose(ax.lines[2].get_ydata(), [2.0, 8.0])


def test_show_layer_names_every_stage_of_the_layer():
    """Eight boxes, from the input to the last projection, each beside its shape."""
    (ax,) = panels(plots.show_layer())
    words = [text.get_text() for text in ax.texts]
    assert len(ax.patches) == 8
    assert words[0] == "input x" and words.index("merge heads") > words.index("split heads")
    assert sum(word.startswith(("(B", "3 ×")) for word in words) == 8


def test_show_map_scales_draws_the_same_maps_on_two_scales():
    """The upper row spans the extremes of its map, the lower one always 0 to 3."""
    maps = torch.rand(2, 4, 4) * 0.01 + 1
    axes = panels(plots.show_map_scales(maps))
    for upper, lower in zip(axes[:2], axes[2:], strict=True):
        table = upper.images[0].get_array()
        np.testing.assert_array_equal(table, lower.images[0].get_array())
        np.testing.assert_allclose(table.mean(), 1, atol=1e-6)  # relative to uniform, float32
        assert upper.images[0].get_clim() == (table.min(), table.max())
        assert lower.images[0].get_clim() == (0, 3)


def test_show_score_maps_draws_each_head_with_weights_relative_to_uniform():
    """Scores and weights of every head, the scores symmetric about 0, the weights on one scale."""
    scores = torch.tensor([[0.0, 0.0], [-3.0, 1.0]])
    axes = panels(plots.show_score_maps({"a": (scores, scores.softmax(-1)), "b": (scores, scores)}))
    assert [ax.get_title() for ax in axes] == ["scores, a", "weights, a", "scores, b", "weights, b"]
    assert np.array_equal(axes[0].images[0].get_array(), scores)
    assert np.allclose(axes[1].images[0].get_array(), 2 * scores.softmax(-1))
    assert [axes[k].images[0].get_clim() for k in (0, 1)] == [(-3, 3), (0.1, 30)]


def test_show_spotlight_dims_what_gets_little_attention_and_nothing_else():
    """Full brightness from three times an even share, a third at one; the same in each row."""
    images = np.full((2, 3, 4, 4), 0.9)
    uneven = torch.tensor([[[0.2, 0.6], [1.8, 0.0]]]).expand(2, 2, 2)
    looks = {"trained": uneven, "untrained": torch.full((2, 2, 2), 0.2)}
    axes = panels(plots.show_spotlight(images, looks, uniform=0.2))
    pictures = [ax.images[0].get_array()[::2, ::2, 0] for ax in axes]
    assert np.allclose(pictures[0], 0.9) and np.allclose(pictures[-1], 0.3)
    assert np.allclose(pictures[2], [[0.3, 0.9], [0.9, 0]])
