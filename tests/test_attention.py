"""The references of notebook 02: what is refused, and the values that the text names.

That they equal other roads to the same result is proved by the right answers of their banks.
"""

import math

import pytest
import torch
from torch import nn

from vitedu.attention import (
    MultiHeadAttention,
    attention_megabytes,
    order_blindness,
    split_heads,
    untrained_entropy,
)


def test_a_remainder_is_refused():
    """12 columns do not go into 5 heads."""
    with pytest.raises(ValueError, match="embed_dim=12, num_heads=5, remainder 2"):
        split_heads(torch.zeros(2, 5, 12), 5)
    with pytest.raises(ValueError, match="embed_dim=12, num_heads=5"):
        MultiHeadAttention(12, 5)


def test_order_blindness_is_measured():
    """Permuted tokens come out permuted alike (1e-6), and not unchanged."""
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(12, 3), torch.randn(2, 5, 12)
    order = torch.tensor([3, 1, 4, 0, 2])
    before, after = layer(x)[0], layer(x[:, order])[0]
    unchanged = torch.allclose(after, before, atol=1e-4)
    alike = torch.allclose(after, before[:, order], atol=1e-4)
    assert (unchanged, alike) == order_blindness


def test_values_of_notebook_02_are_what_they_say():
    """Bytes of a tensor; entropy of weights at the start."""
    weights = torch.empty(32, 12, 197, 197, device="meta")
    assert weights.numel() * weights.element_size() / 1e6 == pytest.approx(attention_megabytes)
    torch.manual_seed(0)
    layer = MultiHeadAttention(192, 3)
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.02)
    weights = layer(torch.randn(4, 65, 192))[1]
    entropy = -(weights * weights.log()).sum(-1).mean() / math.log(65)
    assert entropy.item() == pytest.approx(untrained_entropy, abs=1e-2)
