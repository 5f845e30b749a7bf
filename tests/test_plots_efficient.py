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
