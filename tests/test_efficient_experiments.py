"""The experiments of notebook 08: the models are those of the text, and short runs give results."""

import pytest
import torch

from vitedu import efficient as models
from vitedu.bench.experiments import efficient, faster, measured
from vitedu.encoder import EncoderBlock
from vitedu.hardware import Profile

QUICK = Profile("quick", "", "")
SIZE = sum(p.numel() for p in efficient.build("global attention", 0).parameters())


def with_weights_of(block, other):
    """Give a block the weights of another, and the numbers that only it has stay."""
    block.load_state_dict(other.state_dict(), strict=False)
    return block.eval()


@pytest.mark.parametrize("arm", efficient.ARMS)
def test_every_arm_has_about_as_many_parameters_and_gives_logits(arm):
    """Within seven percent of plain attention, finite, and every parameter gets a gradient."""
    model = efficient.build(arm, 0)
    assert abs(sum(p.numel() for p in model.parameters()) / SIZE - 1) < 0.07
    logits = model(torch.randn(2, 3, 32, 32))
    logits.square().sum().backward()
    assert logits.shape == (2, 10) and logits.isfinite().all()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_arms_of_four_stages_start_from_the_same_weights():
    """With one seed they differ in their positions alone: runs can be compared in pairs."""
    kinds = ("no positions", "offset bias")
    plain, biased = (efficient.build(f"four stages, {kind}", 3).state_dict() for kind in kinds)
    assert all(torch.equal(value, biased[key]) for key, value in plain.items())
    assert all(not value.any() for key, value in biased.items() if key.endswith(".bias_table"))


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


def test_macs_are_counted_and_four_stages_need_a_quarter():
    """The patch embedding of 64 patches alone needs 48 x 48 products each."""
    arms = ("global attention", "four stages, no positions")
    plain, small = (models.macs(efficient.build(arm, 0)) for arm in arms)
    blocks = 4 * (8 * 64 * 48**2 + 2 * 64**2 * 48)
    assert abs(plain - (64 * 48 * 48 + blocks + 48 * 10) / 1e6) < 1e-3
    assert 0.2 < small / plain < 0.3


def test_rows_are_those_that_the_notebook_speaks_of():
    """Every model has three seeds; cheaper attention is near, larger patches are far behind."""
    rows = measured("efficient")
    runs = [(row.arm, row.seed) for row in rows]
    found = {(row.arm, row.seed): row.results["test_accuracy"] for row in rows}
    assert sorted(runs) == sorted((arm, seed) for arm in efficient.ARMS for seed in range(3))
    for seed in range(3):
        share = {arm: found[arm, seed] for arm in efficient.ARMS}
        plain = share["global attention"]
        assert max(share, key=share.get) == "MLP-Mixer" and share["MLP-Mixer"] > plain + 0.02
        assert share["patches of 8 px"] < plain - 0.06 < plain - 0.02 < share["linear attention"]


def test_kernels_and_two_bytes_save_the_time_that_fewer_bytes_alone_do_not():
    """Every form is measured; the model against itself says what a ratio is worth."""
    rows = {row.arm: row.results for row in measured("faster")}
    assert list(rows) == list(faster.ARMS) and {row["images"] for row in rows.values()} == {1_000}
    speed = {arm: row["times_as_fast"] for arm, row in rows.items()}
    noise = abs(speed["longhand"] - 1) + 0.02
    assert noise < 0.1 and abs(speed["own int8"] / speed["fused"] - 1) < 2 * noise
    assert speed["fused"] + 2 * noise < speed["int8 kernel"] < speed["bfloat16"] - 2 * noise
    points = {arm: 100 * (row["test_accuracy"] - 0.859) for arm, row in rows.items()}
    assert abs(points["bfloat16"]) < 0.5 and points["pruned"] < points["merged"] - 3 < -5
    found = faster.run("bfloat16, merged", 0, QUICK)
    assert found.keys() == rows["longhand"].keys() and found["times_as_fast"] > 0
