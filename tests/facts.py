"""What the prose of a notebook claims, as assertions over the variables that a full run leaves.

They stand here and not in the lesson. The notebook tests append them to both variants as a last cell.
Thresholds lie between the arms of strong effects; the numbers were measured over five seeds.
"""

FACTS = {
    "01_patches": """
assert torch.equal(unfolded.transpose(1, 2), patches.float()) and torch.equal(photo_back, photo)
assert difference < 1e-4 and residual < 1e-5
assert (tokens[:, 0] == tokens[0, 0]).all() and (patch_embed.proj.weight.grad == 0).all()
assert 0.02 / content < 0.1 and 1.0 / content > 1.2
assert 4.5 < total[2] / total[4] < 4.7 and pairs_2 / pairs_4 > 15
assert all(costs[i][0] + costs[i][1] > costs[i + 1][0] / 5 for i in range(3))
assert 2 * sum(period > 4 * 63 for period in periods) > 32
assert similar["untrained"].fill_diagonal_(0).abs().max() < 0.6
assert error > 1e-2  # with a ReLU, the last in the loop
assert dots.diagonal(5).max() - dots.diagonal(5).min() < 1e-4
""",
    "02_attention": """
assert literal[0].isnan() and two > 0.1 > 1e-4 > one
assert w_small.sum(dim=0).argmin() == 1 and w_small.sum(dim=0).argmax() == 0
assert raw[0] > 0.8 and raw[1] > 2 * even[1]
assert on > 2 * off  # norms of the keys
by_t = {name: dict(zip(temperatures, row)) for name, row in sweep.items()}
assert by_t["mean subtracted"][0.1][0] > 0.8 and by_t["mean subtracted"][0.1][1] < even[1]
assert by_t["norm 1"][0.003][0] > 0.9 and by_t["norm 1"][0.003][1] < 0.05
assert abs(by_t["norm 1"][1.0][0] - even[0]) < 0.02
faces = {divmod(int(i), 14) for i in table[105].topk(4).indices}
assert all(3 < row < 9 and 4 < column < 10 for row, column in faces)
for d in widths:
    assert abs(unscaled[d][0] / d**0.5 - 1) < 0.05 and abs(scaled[d][0] - 1) < 0.05
    assert unscaled[d][1] > 3 * scaled[d][1] and scaled[d][2] == 0
assert unscaled[64][3] > 0.5 * scaled[64][3] and unscaled[256][3] < 0.25 * scaled[256][3]
assert w_cls[:, :, 0].max() - w_cls[:, :, 0].min() < 1e-6
assert (before - after).abs().max() < 1e-5 and (before - after_half).abs().max() > 1e-2
assert 2 * (2 * 768) ** 2 * 768 == 4 * (2 * 768) * 768**2  # the lines cross at T = 2D
without, with_positions = differences(output, output_of_shuffled), differences(placed, placed_shuffled)
assert without[0] > 1e-2 and max(without[1:]) < 1e-5 and min(with_positions) > 5e-3
ends = {kind: [curve[-1] for curve in curves[kind]] for kind in kinds}
assert max(ends["none"]) < 0.35 and min(ends["added"] + ends["concatenated"]) > 0.8
assert min(trained_share) > 2 * uniform and max(untrained_share) < 1.2 * uniform
assert left["keys"][0] > 0.6 > left["values"][0] and max(left["keys and values"]) < 0.4
assert relative_entropy(weights).mean() > 0.999 and trained_rows.mean() < 0.95
""",
    "08_efficient": """
assert window_macs(112**2, 96, 7) == 4 * window_macs(56**2, 96, 7)
assert abs(attention_macs(112**2, 96) / attention_macs(56**2, 96) - 15.3) < 0.1
assert mask.float().mean(dim=(1, 2)).tolist() == [1.0, 0.5, 0.5, 0.25]
assert {name: int(reached.sum()) for name, (_, reached) in maps.items()} == {
    "one block": 16, "two blocks": 64, "corner": 16, "no mask": 64}
assert row_sums.min() > 10  # the slip of published code
assert errors["averaged keys, n = 64"][64] < 1e-5 and min(errors["elu + 1"].values()) > 0.6
assert min(by_size[1.0]) > 1 and by_size[0.25][0] > 4 * by_size[0.25][-1]
assert grow[0] > 13 and grow[1] < 5  # bytes for the backward pass
assert whole_accuracy > 0.98
assert fewer["most attended"][8][0] - 0.1 > max(fewer["at random"][8]) > 0.4 > fewer["least attended"][8][0]
assert fewer["most attended"][8][0] - 0.1 > fewer["merged"][8][0]
assert share_kept > share_all + 0.15 and kept.sum() == 64
assert (packed - alone).abs().max() < 1e-4 < 1 < (mixed - alone).abs().max()
assert round(padding, 2) == 0.43 and round(packing_mask(counts).float().mean().item(), 2) == 0.31
assert by_bits[8] > whole_accuracy - 0.01 and by_bits[2] < 0.6 and 0.25 < byte_factor < 0.27
assert abs(sum(parts.values()) / peak - 1) < 0.05 and parts["activations"] > 0.8 * peak
assert run.returncode == 0 and "below 1e-5: True" in run.stdout
""",
}
