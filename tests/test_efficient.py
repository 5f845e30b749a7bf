"""The references of notebook 08: what is refused, and the values that the text names.

That they equal loops, explicit kernels and published code is proved by the right answers of their
banks; that packed images attend as they do alone, by the facts of the notebook (facts.py).
"""

import pytest
import torch
import torch.nn.functional as F

from vitedu.efficient import (
    crossing_tokens,
    merge_tokens,
    shifted_window_mask,
    tokens_reached,
    window_merge,
    window_partition,
)


def windowed(x, w, shift):
    """Attend with the tokens as queries, keys and values, within shifted windows of a grid."""
    rolled = x.roll((-shift, -shift), dims=(1, 2))
    tokens = window_partition(rolled, w)
    mask = shifted_window_mask(x.shape[1:3], w, shift).repeat(len(x), 1, 1)
    out = F.scaled_dot_product_attention(tokens, tokens, tokens, attn_mask=mask)
    return window_merge(out, w, x.shape[1:3]).roll((shift, shift), dims=(1, 2))


@pytest.mark.parametrize(("place", "count"), [((0, 0), 0), ((5, 5), 1)])
def test_tokens_reached_is_what_gradients_say(place, count):
    """A window reaches w*w tokens; then a shifted one the union of the windows that it overlaps."""
    torch.manual_seed(0)
    x = torch.randn(1, 12, 12, 3, requires_grad=True)
    (one,) = torch.autograd.grad(windowed(x, 4, 0)[0][place].sum(), x)
    assert int((one[0] != 0).any(dim=-1).sum()) == 16
    (two,) = torch.autograd.grad(windowed(windowed(x, 4, 0), 4, 2)[0][place].sum(), x)
    assert int((two[0] != 0).any(dim=-1).sum()) == tokens_reached[count]


def test_crossing_tokens_is_where_the_counted_products_are_equal():
    """Softmax attention: 2 T T d; linear attention: 2 T d d."""
    T, d = crossing_tokens, 64
    assert 2 * T * T * d == 2 * T * d * d


@pytest.mark.parametrize("merge", [-1, 4])
def test_merge_tokens_refuses_what_cannot_be_merged(merge):
    """The error names the bound and the number."""
    with pytest.raises(ValueError, match=rf"between 0 and 3.*merge={merge}"):
        merge_tokens(torch.zeros(1, 6, 2), torch.zeros(1, 6, 2), torch.ones(1, 6), merge)
