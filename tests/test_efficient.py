"""The references of notebook 08, against loops, explicit kernels and masks, and torch's own layers."""

import pytest
import torch
import torch.nn.functional as F

from vitedu.efficient import (
    crossing_tokens,
    linear_attention,
    merge_tokens,
    packing_mask,
    prune_tokens,
    relative_position_index,
    shifted_window_mask,
    tokens_reached,
    window_merge,
    window_partition,
)


def random(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_window_partition_lists_the_windows_row_by_row():
    """Each window is a slice of the grid, to the bit."""
    x = random(2, 6, 9, 5)
    windows = window_partition(x, 3)
    expected = [
        image[top : top + 3, left : left + 3].reshape(9, 5)
        for image in x
        for top in (0, 3)
        for left in (0, 3, 6)
    ]
    assert torch.equal(windows, torch.stack(expected))


@pytest.mark.parametrize(("grid", "w"), [((6, 9), 3), ((4, 4), 4), ((2, 3), 1)])
def test_window_merge_inverts_window_partition(grid, w):
    """Nothing is lost in the cut."""
    x = random(2, *grid, 5)
    assert torch.equal(window_merge(window_partition(x, w), w, grid), x)


@pytest.mark.parametrize(("grid", "w", "shift"), [((6, 9), 3, 1), ((4, 8), 4, 2), ((4, 4), 4, 3)])
def test_shifted_window_mask_allows_what_the_image_has_side_by_side(grid, w, shift):
    """Two tokens of a window may meet if they are less than a window apart before the roll."""
    gh, gw = grid
    rows = torch.arange(gh)[:, None].expand(grid)
    columns = torch.arange(gw).expand(grid)
    place = torch.stack([rows, columns], dim=-1)[None].roll((-shift, -shift), dims=(1, 2))
    place = window_partition(place, w)
    apart = (place[:, :, None] - place[:, None, :]).abs()
    near = (apart < w).all(dim=-1)
    if w < min(grid):  # in a grid of one window no two tokens are a window apart
        assert torch.equal(shifted_window_mask(grid, w, shift), near)
    wraps = [(p < shift).int() for p in place.unbind(-1)]
    region = 2 * wraps[0] + wraps[1]
    assert torch.equal(
        shifted_window_mask(grid, w, shift), region[:, :, None] == region[:, None, :]
    )


def test_shifted_window_mask_of_shift_0_forbids_nothing():
    """Without a roll nothing comes round the edge."""
    mask = shifted_window_mask((6, 9), 3, 0)
    assert mask.dtype is torch.bool and mask.shape == (6, 9, 9) and mask.all()


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
    x = random(1, 12, 12, 3).requires_grad_()
    (one,) = torch.autograd.grad(windowed(x, 4, 0)[0][place].sum(), x)
    assert int((one[0] != 0).any(dim=-1).sum()) == 16
    (two,) = torch.autograd.grad(windowed(windowed(x, 4, 0), 4, 2)[0][place].sum(), x)
    assert int((two[0] != 0).any(dim=-1).sum()) == tokens_reached[count]


def test_relative_position_index_numbers_every_offset_once():
    """Equal offsets share a number, others do not, and the numbers fill the table."""
    gh, gw = 3, 4
    index = relative_position_index((gh, gw))
    seen = {}
    for i in range(gh * gw):
        for j in range(gh * gw):
            offset = i // gw - j // gw, i % gw - j % gw
            assert seen.setdefault(offset, int(index[i, j])) == int(index[i, j])
    assert sorted(seen.values()) == list(range((2 * gh - 1) * (2 * gw - 1)))
    assert index[0, -1] == 0 and index.dtype is torch.int64


@pytest.mark.slow  # loads torchvision
def test_relative_position_index_is_that_of_torchvision():
    """Whose Swin loads the weights of the paper's authors."""
    swin = pytest.importorskip("torchvision.models.swin_transformer")
    layer = swin.ShiftedWindowAttention(8, window_size=[3, 3], shift_size=[0, 0], num_heads=2)
    assert torch.equal(relative_position_index((3, 3)).flatten(), layer.relative_position_index)


def test_linear_attention_equals_its_explicit_kernel():
    """The weights that are never formed: products of features, rows that sum to 1."""
    q, k, v = random(2, 3, 5, 4), random(2, 3, 7, 4, seed=1), random(2, 3, 7, 6, seed=2)
    kernel = (F.elu(q) + 1) @ (F.elu(k) + 1).mT
    expected = kernel / kernel.sum(dim=-1, keepdim=True) @ v
    # the order of the sums differs: rounding of float32
    torch.testing.assert_close(linear_attention(q, k, v), expected, rtol=1e-5, atol=1e-6)


def test_crossing_tokens_is_where_the_counted_products_are_equal():
    """Softmax attention: 2 T T d; linear attention: 2 T d d."""
    T, d = crossing_tokens, 64
    assert 2 * T * T * d == 2 * T * d * d


def test_prune_tokens_keeps_class_token_and_order():
    """The most attended patches, in the order of the image, to the bit."""
    tokens, attention = random(3, 8, 5), random(3, 7, seed=1).softmax(dim=-1)
    for keep in (1, 4, 7):
        pruned = prune_tokens(tokens, attention, keep)
        for image, row, kept in zip(tokens, attention, pruned, strict=True):
            best = sorted(sorted(range(7), key=lambda i, row=row: -row[i])[:keep])
            assert torch.equal(kept, torch.stack([image[0], *(image[i + 1] for i in best)]))


def merged_by_hand(tokens, keys, sizes, merge):
    """Merge the tokens of one image with lists and loops."""
    groups = {place: [place] for place in range(len(tokens))}
    pairs = []
    for even in range(1, len(tokens), 2):
        found = [
            (float(F.cosine_similarity(keys[even], keys[odd], dim=0)), odd)
            for odd in range(2, len(tokens), 2)
        ]
        pairs.append((*max(found), even))
    for _, odd, even in sorted(pairs, reverse=True)[:merge]:
        groups[odd] += groups.pop(even)
    rows = [
        sum(tokens[i] * sizes[i] for i in group) / sum(sizes[i] for i in group)
        for group in groups.values()
    ]
    return torch.stack(rows), torch.stack(
        [sum(sizes[i] for i in group) for group in groups.values()]
    )


@pytest.mark.parametrize("num_patches", [2, 6, 7])
def test_merge_tokens_equals_loops(num_patches):
    """Every allowed number of merges, with tokens that already stand for several patches."""
    tokens, keys = random(3, num_patches + 1, 5), random(3, num_patches + 1, 4, seed=1)
    sizes = torch.randint(1, 5, (3, num_patches + 1)).float()
    for merge in range((num_patches + 1) // 2 + 1):
        merged, new_sizes = merge_tokens(tokens, keys, sizes, merge)
        for b in range(3):
            rows, counts = merged_by_hand(tokens[b], keys[b], sizes[b], merge)
            torch.testing.assert_close(merged[b], rows, rtol=1e-5, atol=1e-6)
            assert torch.equal(new_sizes[b], counts)
        assert torch.equal(new_sizes.sum(dim=1), sizes.sum(dim=1))


def test_merge_tokens_counts_in_whole_numbers_too():
    """Sizes keep their type."""
    tokens, keys = random(2, 7, 5), random(2, 7, 4, seed=1)
    merged, sizes = merge_tokens(tokens, keys, torch.ones(2, 7, dtype=torch.int64), 2)
    assert merged.dtype is torch.float32 and sizes.dtype is torch.int64


@pytest.mark.parametrize("merge", [-1, 4])
def test_merge_tokens_refuses_what_cannot_be_merged(merge):
    """The error names the bound and the number."""
    with pytest.raises(ValueError, match=rf"between 0 and 3.*merge={merge}"):
        merge_tokens(torch.zeros(1, 6, 2), torch.zeros(1, 6, 2), torch.ones(1, 6), merge)


def test_packing_mask_is_a_diagonal_of_blocks():
    """One block of ones for each image."""
    expected = torch.block_diag(*(torch.ones(n, n) for n in (3, 1, 4))).bool()
    assert torch.equal(packing_mask([3, 1, 4]), expected)


def test_packed_images_attend_as_they_do_alone():
    """With the mask, a sequence of several images gives what each gives by itself."""
    q, k, v = random(1, 8, 4), random(1, 8, 4, seed=1), random(1, 8, 4, seed=2)
    packed = F.scaled_dot_product_attention(q, k, v, attn_mask=packing_mask([3, 1, 4]))
    alone = [
        F.scaled_dot_product_attention(q[:, part], k[:, part], v[:, part])
        for part in (slice(0, 3), slice(3, 4), slice(4, 8))
    ]
    torch.testing.assert_close(packed, torch.cat(alone, dim=1), rtol=1e-5, atol=1e-6)
