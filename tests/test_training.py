"""The values that notebook 04 names.

That its functions equal other roads to the same result is proved by the right answers of their
banks.
"""

import math

import pytest
import torch

from vitedu.training import (
    cross_entropy,
    last_batch_weight,
    orthogonalise,
    smoothing_floor,
    views_of_one_image,
)


def test_values_of_notebook_04_are_what_they_say():
    """The entropy of a smoothed target, the number of views, the weight of a short batch."""
    logits = torch.full((1, 10), math.log(0.01), dtype=torch.float64)
    logits[0, 0] = math.log(0.91)
    floor = cross_entropy(logits, torch.tensor([0]), 0.1).item()
    assert floor == pytest.approx(smoothing_floor, rel=1e-9)
    assert views_of_one_image == 2 * 9 * 9
    assert last_batch_weight == 128 / 16


@pytest.mark.parametrize("shape", [(6, 9), (9, 6)], ids=["wide", "tall"])
def test_orthogonalise_brings_strengths_near_1_and_keeps_directions(shape):
    """Strengths from 1 to 1/30 end between 0.5 and 1.5, each along its own direction."""
    u, _, v = torch.linalg.svd(torch.randn(shape, generator=torch.Generator().manual_seed(0)))
    u, v = u[:, :6], v[:6]
    matrix = 1e-3 * u @ torch.diag(torch.logspace(0, -1.5, 6)) @ v
    strengths = u.T @ orthogonalise(matrix) @ v.T
    assert (0.5 < strengths.diag()).all() and (strengths.diag() < 1.5).all()
    assert (strengths - strengths.diag().diag()).abs().max() < 1e-3  # float32 in five rounds
    torch.testing.assert_close(orthogonalise(matrix, steps=0), matrix / matrix.norm())
