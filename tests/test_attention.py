"""The references of notebook 02, against torch's own layers."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from vitedu.attention import (
    MultiHeadAttention,
    attention_macs,
    attention_megabytes,
    merge_heads,
    order_blindness,
    scaled_dot_product_attention,
    softmax,
    split_heads,
    untrained_entropy,
)


@pytest.fixture
def x():
    """Tokens (B=2, T=5, D=12)."""
    return torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax_equals_torch(x, dim):
    """To rounding, along any axis."""
    torch.testing.assert_close(softmax(x, dim), torch.softmax(x, dim), rtol=0, atol=1e-6)


def test_softmax_is_finite_for_huge_scores():
    """exp(1e4) overflows; the shifted form does not meet it."""
    assert softmax(torch.tensor([1e4, 0.0, -1e4])).tolist() == [1.0, 0.0, 0.0]


def test_attention_equals_torch():
    """With more keys than queries, and values of another width; float32 rounds to 1e-6."""
    q, k, v = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 7, 4), torch.randn(2, 3, 7, 6)
    output, weights = scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(output, F.scaled_dot_product_attention(q, k, v), rtol=0, atol=1e-5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 5), rtol=0, atol=1e-6)


def test_heads_split_and_merge(x):
    """merge_heads undoes split_heads; head j owns the columns from j*hd on."""
    heads = split_heads(x, 3)
    assert torch.equal(heads[:, 1], x[:, :, 4:8])
    assert torch.equal(merge_heads(heads), x)


def test_split_heads_rejects_a_remainder(x):
    """12 columns do not go into 5 heads."""
    with pytest.raises(ValueError, match="embed_dim=12, num_heads=5, remainder 2"):
        split_heads(x, 5)


@pytest.mark.parametrize("qkv_bias", [True, False])
def test_multi_head_attention_equals_torch(x, qkv_bias):
    """torch's layer with the same weights gives the same output and the same weights per head."""
    ours = MultiHeadAttention(12, 3, qkv_bias)
    theirs = nn.MultiheadAttention(12, 3, batch_first=True, bias=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(ours.qkv.weight)
        theirs.in_proj_bias.copy_(ours.qkv.bias if qkv_bias else torch.zeros(36))
        theirs.out_proj.weight.copy_(ours.proj.weight)
        theirs.out_proj.bias.copy_(ours.proj.bias)
    output, weights = ours(x)
    expected, expected_weights = theirs(x, x, x, average_attn_weights=False)
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(weights, expected_weights, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("T", "D"), [(5, 12), (65, 192), (197, 768)])
def test_attention_macs_equals_the_flop_counter(T, D):
    """torch counts two FLOP for each multiply-accumulate."""
    layer = MultiHeadAttention(D, 3)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        layer(torch.zeros(1, T, D))
    assert attention_macs(T, D) * 2 == counter.get_total_flops()


def test_order_blindness_is_measured(x):
    """Permuted tokens come out permuted alike (1e-6), and not unchanged."""
    layer, order = MultiHeadAttention(12, 3), torch.tensor([3, 1, 4, 0, 2])
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
