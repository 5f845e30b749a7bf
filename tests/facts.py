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
assert all(scores[0].abs().max() == 0 and scores.shape == (197, 197) for scores, _ in by_hand.values())
assert by_hand["W ~ N(0, 1)"][1].amax(dim=-1).mean() > 0.5 > 0.1 > by_hand["W / √D"][1].amax(dim=-1).mean()
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
    "03_encoder": """
assert moved.abs().max() < 1e-4 and layer_moved == 0 and batch_moved > 0.1
assert abs(outside.std(unbiased=False) - 0.999) < 2e-3
assert between_tokens["no skips"][2] > 0.99 > 0.9 > between_images["no skips"][1]
assert between_tokens["whole block"][12] < 0.4 and between_tokens["no skips, MLP only"][2] < 0.9
assert growth["pre-norm"] > 1.5 and abs(length["post-norm"][-1] - 8) < 0.1
assert max(ratios["pre-norm, Xavier"]) < min(ratios["post-norm, Xavier"])
assert all(0.5 < ratio < 2 for name in ratios if "0.02" in name for ratio in ratios[name])
assert abs((uncut.abs() > 0.04).float().mean() - 0.0455) < 2e-3 and abs(cut.std() - 0.0176) < 2e-4
assert careful / content < 0.2 and careless / content > 1.2
assert tuple(class_token_alone) == (1, 0.0) and rows_with_gradient == [0]
assert 4.5 < million[2] / million[4] < 4.7 and 15 < in_bytes[2] / in_bytes[4] < 16
assert right_claims == ["f"] and round(count_parameters(large_32) / 1e6) == 307
assert curves["whole blocks"][-1] < 0.1 and curves["no blocks"][-1] > floor - 0.05
assert curves["no skips"][-1] > curves["attention and skips"][-1]
assert min(known["with norms"]) > max(known["without norms"])
""",
    "04_training": """
assert 0.8 * math.log(data.num_classes) < at_start < 1.2 * math.log(data.num_classes)
assert (of_single_images < of_all_pixels).all()
assert misses["before"] < 1e-6 < 0.1 < misses["after"]
assert abs(norm.weight[0].item() - 0.951) < 1e-3 and different == views_of_one_image == 162
assert known == 1 and abs(row.train_loss - your_row[0]) < 1e-4
assert {group["lr"] for group in optimizer_groups} == {settings.lr}
assert [group["weight_decay"] for group in optimizer_groups] == [settings.weight_decay, 0.0]
assert {group["betas"] for group in optimizer_groups} == {settings.betas}
assert len(metrics.read_text().splitlines()) == len(history.rows) == settings.epochs
assert max(below) - min(below) < 1e-5
""",
}
