"""extras.fast: each option against what it claims, and no option against the textbook form."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from vitedu.attention import MultiHeadAttention
from vitedu.extras.fast import AttentionWithOptions, ConvStem, MatrixConv2d, rotary_table, rotate
from vitedu.vit_and_cnn import receptive_field

GRID = (2, 3)  # gh, gw; with a class token 7 tokens


@pytest.fixture
def x():
    """Tokens (B, T, D) = (2, 7, 24)."""
    return torch.randn(2, 7, 24, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_without_options_it_is_the_textbook_layer(x, fused, dtype):
    """The same outputs and gradients, to rounding; the fused form keeps no weights."""
    textbook, layer = MultiHeadAttention(24, 3), AttentionWithOptions(24, 3, fused=fused)
    layer.load_state_dict(textbook.state_dict())
    options = AttentionWithOptions(24, 3, fused=fused, qk_norm=True, rotary=(GRID, 1))
    assert options.state_dict().keys() == textbook.state_dict().keys()  # none adds a parameter
    textbook, layer, x = textbook.to(dtype), layer.to(dtype), x.to(dtype)
    expected, expected_weights = textbook(x)
    output, weights = layer(x)
    assert (weights is None) == fused
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-6)
    if not fused:
        torch.testing.assert_close(weights, expected_weights, rtol=0, atol=1e-6)
    for ours, theirs in zip(layer.parameters(), textbook.parameters(), strict=True):
        (ours_grad,) = torch.autograd.grad(output.square().sum(), ours, retain_graph=True)
        (theirs_grad,) = torch.autograd.grad(expected.square().sum(), theirs, retain_graph=True)
        torch.testing.assert_close(ours_grad, theirs_grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"rotary": (GRID, 1)}, {"qk_norm": True}])
def test_half_precision_takes_another_way_to_the_same_result(x, options):
    """On a CPU under bfloat16 the fused form multiplies one by one: the same to its digits."""
    layer = AttentionWithOptions(24, 3, fused=True, **options)
    with torch.no_grad():
        expected, _ = layer(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output, weights = layer(x)
    assert weights is None and output.dtype == torch.bfloat16
    torch.testing.assert_close(output.float(), expected, rtol=0.05, atol=0.02)


@pytest.mark.parametrize(
    ("length", "dtype", "takes"), [(128, None, 0), (129, None, 1), (129, "bfloat16", 0)]
)
def test_torch_kernel_serves_long_float32_on_a_cpu(length, dtype, takes, monkeypatch):
    """Shorter ones and bfloat16 are written out, with the same outputs."""
    kernel, calls = F.scaled_dot_product_attention, []
    monkeypatch.setattr(
        F, "scaled_dot_product_attention", lambda *qkv: calls.append(1) or kernel(*qkv)
    )
    layer = AttentionWithOptions(24, 3, fused=True)
    tokens = torch.randn(1, length, 24, generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype is not None):
        output, _ = layer(tokens)
    assert len(calls) == takes
    layer.fused = False
    limit = 0.02 if dtype else 1e-5
    torch.testing.assert_close(output.float(), layer(tokens)[0], rtol=0, atol=limit)


def test_rotation_makes_scores_depend_on_the_distance_alone():
    """One query and one key put everywhere: equal offsets give equal scores, others do not."""
    generator = torch.Generator().manual_seed(1)
    q, k = torch.randn(2, 1, 8, generator=generator, dtype=torch.float64)
    table = rotary_table((4, 5), head_dim=8).double()
    q, k = (rotate(part.expand(20, 8), table) for part in (q, k))  # (N, hd)
    scores = (q @ k.T).view(4, 5, 4, 5)  # query row, query column, key row, key column
    torch.testing.assert_close(scores[0, 0, 1, 2], scores[2, 1, 3, 3], rtol=0, atol=1e-5)
    torch.testing.assert_close(scores[3, 4, 1, 0], scores[2, 4, 0, 0], rtol=0, atol=1e-5)
    assert abs(scores[0, 0, 1, 2] - scores[0, 0, 2, 1]) > 1e-2  # rows and columns are told apart
    assert abs(scores[0, 0, 1, 2] - scores[1, 2, 0, 0]) > 1e-2  # there and back again too


def test_rotation_equals_two_by_two_matrices():
    """Pairs (2j, 2j+1) are multiplied by a rotation matrix, the first half by the row's angle."""
    x = torch.randn(6, 8, generator=torch.Generator().manual_seed(2))
    turned = rotate(x, rotary_table(GRID, head_dim=8))
    for token in range(6):
        row, column = divmod(token, 3)
        for pair, angle in enumerate((row, row / 10, column, column / 10)):  # 100 ** -(0, 1/2)
            angle = torch.tensor(float(angle))
            matrix = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()]).view(2, 2)
            at = slice(2 * pair, 2 * pair + 2)
            expected = matrix @ x[token, at]
            torch.testing.assert_close(turned[token, at], expected, rtol=0, atol=1e-5)


def test_prefix_tokens_do_not_turn():
    """A class token has no place in the grid."""
    x = torch.randn(1, 2, 7, 8, generator=torch.Generator().manual_seed(3))
    turned = rotate(x, rotary_table(GRID, head_dim=8, num_prefix_tokens=1))
    assert torch.equal(turned[..., 0, :], x[..., 0, :])
    assert not torch.allclose(turned[..., 2:, :], x[..., 2:, :])


def test_qk_norm_bounds_the_scores(x):
    """However large the weights grow, no score passes the root of the head's width."""
    layer = AttentionWithOptions(24, 3, qk_norm=True)
    nn.init.normal_(layer.qkv.weight, std=100.0)
    _, weights = layer(x)
    bound = 8**0.5
    assert weights.max() / weights.min() <= torch.tensor(2 * bound).exp() * 1.01
    qk = F.layer_norm(layer.qkv(x)[..., :48].unflatten(-1, (6, 8)), (8,)).transpose(1, 2)
    expected = (qk[:, :3] @ qk[:, 3:].transpose(-2, -1) / bound).softmax(dim=-1)
    torch.testing.assert_close(weights, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("kernel_size", "stride"), [(3, 1), (3, 2), (1, 1)])
def test_a_matrix_convolves_as_four_axes_do(kernel_size, stride):
    """The same numbers in another order give the same images; torch's layer starts as far off."""
    torch.manual_seed(0)
    layer = MatrixConv2d(5, 64, kernel_size, stride)
    twin = nn.Conv2d(5, 64, kernel_size, stride, padding=kernel_size // 2, bias=False)
    torch.testing.assert_close(layer.weight.std(), twin.weight.std(), rtol=0.1, atol=0)
    with torch.no_grad():
        twin.weight.copy_(layer.weight.view(64, kernel_size, kernel_size, 5).permute(0, 3, 1, 2))
    images = torch.randn(2, 5, 8, 8)
    torch.testing.assert_close(layer(images), twin(images))


@pytest.mark.parametrize(("patch_size", "depth"), [(2, 1), (4, 1), (8, 1), (2, 0), (4, 2)])
def test_a_conv_stem_looks_around_its_patch(patch_size, depth):
    """A token depends on as many pixels around its patch as the layers' arithmetic says."""
    stem = ConvStem(patch_size, in_channels=1, embed_dim=16, depth=depth).eval()
    images = torch.randn(1, 1, 12 * patch_size, 12 * patch_size, requires_grad=True)
    tokens = stem(images)
    assert tokens.shape == (1, 144, 16)
    tokens[0, 12 * 6 + 6].sum().backward()  # in row 6 and column 6
    rows, columns = images.grad[0, 0].nonzero().unbind(1)
    halvings = patch_size.bit_length() - 1
    side = receptive_field([3] * ((1 + depth) * halvings + 1), [1] + [2, *[1] * depth] * halvings)
    for seen in (rows, columns):
        assert seen.min() <= 6 * patch_size and seen.max() - seen.min() + 1 == side
    assert side > patch_size


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ConvStem(6, 3, 24), "patch_size=6, embed_dim=24"),
        (lambda: ConvStem(8, 3, 12), "patch_size=8, embed_dim=12"),
        (lambda: rotary_table(GRID, head_dim=6), "head_dim=6"),
    ],
)
def test_numbers_that_do_not_fit_are_named(make, words):
    """Halving ends at a power of 2, doubling begins at a whole number, pairs have two axes."""
    with pytest.raises(ValueError, match=words):
        make()
