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
