"""Figures of notebook 08."""

import pytest
import torch

from vitedu.plots import efficient


def test_patches_that_share_a_token_have_their_mean_colour():
    """Those alone keep their pixels, those without a token are grey, lines part the tokens."""
    photograph = torch.zeros(3, 8, 8, dtype=torch.uint8)
    photograph[0, :4], photograph[0, 4:] = 255, 51  # red above, dark red below
    owners = torch.tensor([[0, -1], [0, 1]])
    figure = efficient.show_tokens(photograph, {"shared": owners})
    (picture,) = (image.get_array() for image in figure.axes[0].images)
    assert picture[1, 1].tolist() == picture[6, 1].tolist() == pytest.approx([0.6, 0, 0], abs=1e-6)
    assert picture[1, 6].tolist() == pytest.approx([0.85] * 3)
    assert picture[6, 6].tolist() == pytest.approx([0.2, 0, 0])
    assert picture[:, 4].tolist() == [[1.0] * 3] * 8 and picture[4, 6].tolist() == [1.0] * 3
    assert figure.axes[0].get_title() == "shared"


def test_photographs_that_patches_do_not_fill_are_refused():
    """The line names both sizes."""
    with pytest.raises(ValueError, match="8 x 6 pixels cannot be cut into 2 x 4 patches"):
        efficient.show_tokens(torch.zeros(3, 8, 6), {"": torch.zeros(2, 4)})


def test_trade_marks_the_mean_of_all_seeds():
    """A dash for each seed, a mark for each idea at its cost, a level where there is one."""
    points = {"a": (650, [0.2, 0.4]), "b": (148_170, [0.5])}
    ax = efficient.show_trade(points, "parameters", level=("guessing", 0.1), log=True).axes[0]
    seeds, mean, *_ = ax.lines
    assert list(seeds.get_xdata()) == [650, 650] and seeds.get_ydata() == pytest.approx([20, 40])
    assert (mean.get_xdata(), mean.get_ydata()) == ([650], pytest.approx([30]))
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["a, 2 seeds", "b", "guessing: 10%"] and ax.get_ylim()[0] == 0
    with pytest.raises(ValueError, match="99 ideas need as many marks"):
        efficient.show_trade(dict.fromkeys(range(99), (1, [0.5])))
