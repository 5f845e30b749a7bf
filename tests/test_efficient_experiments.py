"""The experiments of notebook 08: the models are those of the text, and short runs give results."""

import torch

from vitedu import efficient as models
from vitedu.encoder import EncoderBlock


def with_weights_of(block, other):
    """Give a block the weights of another, and the numbers that only it has stay."""
    block.load_state_dict(other.state_dict(), strict=False)
    return block.eval()


def test_block_on_a_grid_is_an_encoder_block_and_so_is_one_window():
    """Global attention on a 4 x 4 grid, or one window of it, equals the textbook block."""
    torch.manual_seed(0)
    plain, x = EncoderBlock(16, 2, 2.0).eval(), torch.randn(3, 4, 4, 16)
    wanted = plain(x.flatten(1, 2)).unflatten(1, (4, 4))
    for block in (models.GridBlock(16, 4), models.WindowBlock(16, 4, shift=2)):
        torch.testing.assert_close(with_weights_of(block, plain)(x), wanted, atol=1e-5, rtol=1e-5)


def test_offset_bias_decides_who_is_read():
    """A large number for the offset 0 makes every token read itself alone."""
    torch.manual_seed(0)
    block, x = models.WindowBlock(16, 8, shift=2, has_bias=True), torch.randn(2, 8, 8, 16)
    with torch.no_grad():
        block.bias_table.view(2, 49)[:, 24] = 1e4  # 7 x 7 offsets, no step in the middle
        values = block.attn.qkv(x).chunk(3, dim=-1)[2]
        torch.testing.assert_close(block.mix(x), block.attn.proj(values), atol=1e-5, rtol=1e-5)


def test_averaged_keys_lose_nothing_where_neighbours_are_alike():
    """Where 2 x 2 squares are constant, averaged keys give what global attention gives."""
    torch.manual_seed(0)
    x = torch.randn(2, 4, 4, 16).repeat_interleave(2, 1).repeat_interleave(2, 2)
    plain = models.GridBlock(16, 8).eval()
    found = with_weights_of(models.AveragedKeysBlock(16, 8), plain)(x)
    torch.testing.assert_close(found, plain(x), atol=1e-5, rtol=1e-5)


def test_random_features_come_near_softmax_attention():
    """With so many features that their mean is close to its limit, and less so with few."""
    torch.manual_seed(0)
    plain, x = models.GridBlock(16, 4).eval(), torch.randn(2, 4, 4, 16)
    block = with_weights_of(models.RandomFeaturesBlock(16, 4), plain)
    with torch.no_grad():
        found = {}
        for m in (32, 8192):
            block.directions = torch.randn(m, 8)
            found[m] = ((block.mix(x) - plain.mix(x)).norm() / plain.mix(x).norm()).item()
    assert found[8192] < 0.05 < 0.1 < found[32]
