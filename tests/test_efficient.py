"""The references of notebook 08: what is refused, and the values that the text names.

That they equal loops, explicit kernels and published code is proved by the right answers of their
banks; that packed images attend as they do alone, by the facts of the notebook (facts.py).
"""

import pytest
import torch
import torch.nn.functional as F

from vitedu.efficient import (
    Int8Linear,
    bytes_of_linears,
    crossing_tokens,
    forward_with,
    merge_tokens,
    quantised,
    shifted_window_mask,
    tokens_reached,
    window_merge,
    window_partition,
    with_int8_kernel,
)
from vitedu.vit import VisionTransformer, ViTConfig


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


def small_model(**changes):
    """A model of 16 patches, two blocks and three heads, in eval mode."""
    torch.manual_seed(0)
    config = ViTConfig(image_size=16, embed_dim=24, depth=2, mlp_ratio=2, **changes)
    return VisionTransformer(config).eval()


def merging(i, x, looks, keys, sizes):
    """Let six tokens merge in every block."""
    return merge_tokens(x, keys, sizes, 6 if i == 0 else 4)


def test_forward_with_nothing_taken_away_is_the_model():
    """Also with masks that allow all; one that keeps the patches to themselves changes logits."""
    model, images = small_model(), torch.randn(3, 3, 16, 16)
    allowed = torch.ones(17, 17, dtype=torch.bool)
    alone = torch.eye(17, dtype=torch.bool)
    with torch.no_grad():
        expected = model(images)
        for masks in (None, [None, None], [allowed, allowed]):
            found = forward_with(model, images, masks=masks)
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
        assert (forward_with(model, images, masks=[alone, alone]) - expected).abs().max() > 1e-3


def test_forward_with_hands_out_what_the_layers_compute():
    """Weights of the class token and keys, means over heads, are those of the attention layer."""
    model, images, handed = small_model(), torch.randn(2, 3, 16, 16), []

    def look(i, x, looks, keys, sizes):
        handed.append((i, looks, keys))
        return x, sizes

    with torch.no_grad():
        forward_with(model, images, look)
        x = model.patch_embed(images)
        x = torch.cat([model.cls_token.expand(2, -1, -1), x], dim=1) + model.pos_embed
        normed = model.blocks[0].norm1(x)
        weights = model.blocks[0].attn(normed)[1]
        keys = model.blocks[0].attn.qkv(normed).chunk(3, dim=-1)[1]
    assert [i for i, *_ in handed] == [0, 1]
    torch.testing.assert_close(handed[0][1], weights[:, :, 0, 1:].mean(dim=1), atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(
        handed[0][2], keys.unflatten(-1, (3, 8)).mean(2), atol=1e-6, rtol=1e-5
    )


def test_merging_equal_tokens_changes_nothing_if_sizes_count():
    """One colour and no positions: proportional attention is exact, forgetting sizes is not."""
    model, images = small_model(), torch.ones(2, 3, 16, 16)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)  # so that the class token differs from the patches
        model.pos_embed.zero_()
        whole = model(images)

        def forgetful(i, x, looks, keys, sizes):
            x, sizes = merging(i, x, looks, keys, sizes)
            return x, torch.ones_like(sizes)

        merged, forgot = (forward_with(model, images, step) for step in (merging, forgetful))
        everywhere = [torch.ones(1, 1, dtype=torch.bool)] * 2
        masked = forward_with(model, images, merging, everywhere)
    torch.testing.assert_close(merged, whole, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(masked, merged)
    assert (forgot - whole).abs().max() > 1e-3


def test_int8_weights_are_near_and_a_quarter_of_the_bytes():
    """At most 255 values in a row, none moved by more than half a step; the model stays."""
    torch.manual_seed(0)
    layer = torch.nn.Linear(2_000, 3)
    small = Int8Linear(layer)
    step = layer.weight.detach().abs().amax(dim=1, keepdim=True) / 127
    assert (
        small.weight.dtype == torch.int8 and max(len(row.unique()) for row in small.weight) <= 255
    )
    assert ((small.weight * small.scale - layer.weight).abs() <= 0.501 * step).all()
    model = small_model()
    before = model.blocks[0].mlp.fc1
    assert 0.25 < bytes_of_linears(quantised(model)) / bytes_of_linears(model) < 0.35
    assert model.blocks[0].mlp.fc1 is before
    assert Int8Linear(layer, bits=2).weight.unique().tolist() == [-1, 0, 1]
    assert bytes_of_linears(Int8Linear(layer, bits=2), bits=2) == 2_000 * 3 // 4 + 3 * 4  # + scales


def test_int8_kernel_gives_nearly_the_same_answers_and_leaves_the_model():
    """Every linear layer is another one, the logits move a little."""
    model, images = small_model(), torch.randn(4, 3, 16, 16)
    fast = with_int8_kernel(model)
    assert not any(type(module) is torch.nn.Linear for module in fast.modules())
    with torch.no_grad():
        apart = (fast(images) - model(images)).abs().max()
    assert 0 < apart < 0.1 and type(model.head) is torch.nn.Linear
