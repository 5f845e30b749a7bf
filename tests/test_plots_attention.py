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


def test_show_head_split_numbers_the_tokens_that_each_form_gives_a_head():
    """split_heads gives head 0 one value of each token, a bare reshape repeats a token."""
    x, split, bare = panels(plots.show_head_split(num_tokens=3, embed_dim=4, num_heads=2))
    digits = [[t for t in texts(ax) if t.isdigit()] for ax in (x, split, bare)]
    assert digits[0] == list("000011112222")
    assert digits[1][:6] == list("001122")
    assert digits[2][:6] == list("000011")
    assert "head 1" in texts(split)


def test_show_layer_names_every_stage_of_the_layer():
    """Eight boxes, from the input to the last projection, each beside its shape."""
    (ax,) = panels(plots.show_layer())
    words = [text.get_text() for text in ax.texts]
    assert len(ax.patches) == 8
    assert words[0] == "input x" and words.index("merge heads") > words.index("split heads")
    assert sum(word.startswith(("(B", "3 ×")) for word in words) == 8


def test_show_spotlight_colours_what_gets_attention_over_the_whole_photograph():
    """The photograph stays as bright as it is; the colour has one scale in each row."""
    images = np.full((2, 3, 4, 4), 0.9)
    uneven = torch.tensor([[[0.2, 0.6], [1.8, 0.0]]]).expand(2, 2, 2)
    looks = {"trained": uneven, "untrained": torch.full((2, 2, 2), 0.2)}
    axes = panels(plots.show_spotlight(images, looks, uniform=0.2))
    assert np.allclose(axes[2].images[0].get_array(), 0.9)
    over = [ax.images[1] for ax in (axes[2], axes[-1])]
    assert np.allclose(over[0].get_array(), [[1, 3], [9, 0]])
    opacity = [image.to_rgba(image.get_array())[..., 3] for image in over]
    assert np.allclose(opacity[0], [[0.8 / 3, 0.8], [0.8, 0]], atol=0.01)
    assert np.allclose(opacity[1], 0.8 / 3, atol=0.01)
