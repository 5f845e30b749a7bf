"""What the prose of a notebook claims, as assertions over the variables that a full run leaves.

They stand here and not in the lesson. The notebook tests append them as a last cell.
Thresholds lie between the arms of strong effects; the numbers were measured over five seeds.
"""

FACTS = {
    "01_patches": """
from vitedu.plots.costs import letters

assert device in ("CPU", "MPS")
by_name = {cost.mistake: cost.accuracy for cost in mistakes}
assert by_name["reshape_only"] < 0.27 < by_name["class_token_last"] < 0.65 < by_name["square_only"]
assert by_name["square_only"] == mistakes[0].right
letter = dict(zip(by_name, letters(mistakes), strict=True))  # as the text lists them
names = "reshape_only class_token_last no_positions square_only"
assert "".join(letter[name] for name in names.split()) == "ABCD"
assert kept[0] == kept[1]  # without positions a shuffled photograph is the same
""",
    "01_patches_more": """
assert sum(p.numel() for p in patch_embed.parameters()) == 9_408
assert (tokens[:, 0] == tokens[0, 0]).all() and (patch_embed.proj.weight.grad == 0).all()
assert cls_token.grad[0, 0, 0] == 8 and (by_conv - by_matrix).abs().max() < 1e-4
assert moved.abs().max() < 1e-4  # a model without positions, on shuffled patches
assert torch.equal(unfolded.transpose(1, 2), patches) and torch.equal(photo_back, photo_floats)
assert lit == 11 and rounding < 1e-4 and residual < 1e-5 and parameters == [9_408, 9_408]
assert shapes["ViT-B/16"]["patches"] == shapes["ViT-B/16"]["patch_embed"] == (1, 196, 768)
assert shapes["ViT-B/16"]["tokens"] == shapes["ViT-B/16"]["norm"] == (1, 197, 768)
assert stem(torch.zeros(1, 3, 224, 224)).shape == (1, 64, 28, 28)
assert 0.02 / content < 0.1 and 1.0 / content > 1.2
assert 4.5 < total[2] / total[4] < 4.7 and pairs_2 / pairs_4 > 15
assert all(costs[i][0] + costs[i][1] > costs[i + 1][0] / 5 for i in range(3))
assert 2 * sum(period > 4 * 63 for period in periods) > 32
assert similar["untrained"].fill_diagonal_(0).abs().max() < 0.6
assert error > 1e-2  # with a ReLU, the last in the loop
assert dots.diagonal(5).max() - dots.diagonal(5).min() < 1e-4
""",
    "02_attention": """
assert literal[0].isnan()
assert w_small.sum(dim=0).argmin() == 1 and w_small.sum(dim=0).argmax() == 0
assert (w_small[0] - torch.tensor([0.2741, 0.2741, 0.4519])).abs().max() < 1e-4
for (d, scores), plain, scaled in zip(products.items(), *largest.values(), strict=True):
    assert abs(scores.std() / d**0.5 - 1) < 0.05 and plain > 3 * scaled
assert len(moved.moved) == 16 and moved.difference < 1e-4
assert maps["last block"].max() > 5 / 65 and maps["untrained"].max() < 1.3 / 65
assert costs[0].mistake == "not_shifted" and costs[0].accuracy == costs[0].right > 0.7
assert costs[-1].mistake == "causal" and costs[-1].accuracy < 0.2
assert 0.14 < count_macs(65)[1] / sum(count_macs(65)) < 0.15
is_projected_more = [a > b for a, b in map(count_macs, lengths)]  # the lines cross at T = 384
assert is_projected_more == 5 * [True] + 2 * [False]
assert (output - output_of_shuffled).abs().max() > 1e-2
assert (output_of_shuffled - output[:, permutation]).abs().max() < 1e-5
""",
    "02_attention_more": """
from vitedu.plots.costs import letters

by_name = {cost.mistake: cost.accuracy for cost in costs}
assert by_name["not_scaled"] > by_name["scaled_by_depth"] > by_name["causal"]
letter = dict(zip(by_name, letters(costs), strict=True))  # as the text lists them
names = "scaled_by_depth causal not_scaled not_shifted"
assert "".join(letter[name] for name in names.split()) == "ABCD"
for d, (std, top, (low, middle, _)) in spread["q·k"].items():
    scaled_std, scaled_top, (scaled_low, scaled_middle, _) = spread["q·k / √d"][d]
    assert abs(std / d**0.5 - 1) < 0.05 and abs(scaled_std - 1) < 0.05 and top > 3 * scaled_top
    assert d != 64 or (low < 0.003 and scaled_low > 0.15 and 0.8 < middle / scaled_middle < 1.25)
    assert d < 256 or middle < 0.25 * scaled_middle
assert alike > 5e-3 and means > 5e-3  # with positions, the last of the loop
assert two > 0.1 > 1e-4 > one
assert raw[0] > 0.8 and raw[1] > 2 * even[1] and on > 2 * off  # norms of the keys
assert min(spent["raw pixels", t][1] for t in (0.1, 0.003)) > 0.5
assert spent["mean subtracted", 0.1][0] > 0.8 and spent["mean subtracted", 0.1][1] < even[1]
assert spent["norm 1", 0.003][0] > 0.9 and spent["norm 1", 0.003][1] < 0.05
assert all(scores[0].abs().max() == 0 for scores, _ in by_hand.values())
assert {scores.shape for scores, _ in by_hand.values()} == {(197, 197)}
peaks = {name: weights.amax(dim=-1).mean() for name, (_, weights) in by_hand.items()}
assert peaks["W ~ N(0, 1)"] > 0.5 > 0.1 > peaks["W / √D"]
assert w_cls[:, :, 0].max() - w_cls[:, :, 0].min() < 1e-6
assert (before - after).abs().max() < 1e-5 and (before - after_half).abs().max() > 1e-2
assert attention_macs(2 * 768, 768) == 2 * 4 * (2 * 768) * 768**2  # the lines cross at T = 2D
ends = {kind: [curve[-1] for curve in curves[kind]] for kind in kinds}
assert max(ends["none"]) < 0.35 and min(ends["added"] + ends["concatenated"]) > 0.8
assert min(trained_share) > 2 * uniform and max(untrained_share) < 1.2 * uniform
assert relative_entropy(weights).mean() > 0.999 and trained_entropy < 0.95
""",
    "03_encoder": """
from vitedu.plots.costs import letters
assert not judge(somebodys_attention, "scaled_dot_product_attention").passed
assert abs(loss - math.log(10)) < 0.2
as_listed = [cost.mistake for _, cost in sorted(zip(letters(costs), costs, strict=True))]
assert as_listed == ["no_final_norm", "no_mlp", "post_norm", "tanh_approximation"]
cost_of = {cost.mistake: cost.right - cost.accuracy for cost in costs}
cheap = max(abs(cost_of.pop(name)) for name in ("tanh_approximation", "no_final_norm"))
assert cheap < 0.1 < 0.3 < min(cost_of.values()) and len(cost_of) == 2
""",
    "03_encoder_more": """
assert layer_moved == 0 and batch_moved > 0.1
assert 4.7e-4 < difference.max() < 4.8e-4 and abs(exact.min() + 0.16997) < 1e-5
assert alike["no residual"][3] > 0.98 > 0.95 > alike["whole block"][12]
others = "no norms", "post-norm"
assert all(alike["whole block"][k] > alike[name][k] for name in others for k in range(1, 4))
assert min(alike[name][12] for name in others) > alike["whole block"][12]
assert 2 < long["whole block"][12] / long["whole block"][0] < 12
assert long["no norms"][12] > 4 * long["whole block"][12]
assert max(abs(value - 96**0.5) for value in long["post-norm"][1:]) < 0.1
assert between_tokens["no residual"][2] > 0.99 > 0.9 > between_images["no residual"][2]
assert between_tokens["whole block"][12] < 0.4
assert between_tokens["no residual, MLP only"][2] < 0.9
assert max(ratios["pre-norm, Xavier"]) < min(ratios["post-norm, Xavier"])
assert all(0.5 < ratio < 2 for name in ratios if "0.02" in name for ratio in ratios[name])
assert abs((uncut.abs() > 0.04).float().mean() - 0.0455) < 2e-3 and abs(cut.std() - 0.0176) < 2e-4
assert count_parameters(course["tiny, D 384, 8 blocks"]) == 14_244_490
assert round(count_parameters(course["ViT-L/32"]) / 1e6) == 307
assert tuple(class_token_alone) == (1, 0.0) and max(of_base, key=of_base.get) == "MLP"
assert curves["whole blocks"][-1] < 0.1 and curves["no blocks"][-1] > floor - 0.05
assert curves["no residual"][-1] > curves["attention and additions"][-1]
""",
    "04_training": """
assert not judge(SomebodysBlock, "EncoderBlock").passed
assert known == 1
assert not broken_loss.isfinite()  # twenty steps at a rate that breaks a run
assert strong < 6 and along[:8].min() > 0.3 * along[:8].max()  # of Muon, the last of the updates
""",
    "04_training_more": """
assert 0.8 * math.log(10) < first_losses["as built"] < 1.2 * math.log(10) and shown == 2
assert len(idle) == 16 and not without_gradient(newborn)
assert 0.7 < (answer == photos.test.labels).float().mean() < 0.9
assert len(metrics.read_text().splitlines()) == 40
assert (of_single_images < of_all_pixels).all()
assert (photos.denormalize(normal) - pixels).abs().max() < 1e-6
assert misses["before"] < 1e-6 < 0.1 < misses["after"]
assert abs(norm.weight[0].item() - 0.951) < 1e-3 and different == views_of_one_image == 162
assert abs(row.train_loss - your_row[0]) < 1e-4
assert (strengths_left - strengths_of_muon).abs().max() < 0.05
assert {group["lr"] for group in optimizer_groups} == {settings.lr}
decays = [group["weight_decay"] for group in optimizer_groups]
assert decays == [settings.weight_decay, settings.weight_decay, 0.0]
assert {group.get("betas", settings.betas) for group in optimizer_groups} == {settings.betas}
assert len(run_metrics.read_text().splitlines()) == len(history.rows) == settings.epochs
overall = (said == own.test.labels).double().mean()
assert abs((by_class * totals).nansum() / totals.sum() - overall) < 1e-9
assert max(below) - min(below) < 1e-5
""",
    "05_inside": """
assert not judge(somebodys_epoch, "train_one_epoch").passed
assert maps["trained"].max() > 5 * uniform and maps["untrained"].max() < 1.3 * uniform
assert changed["relevance"][2] > changed["relevance, coldest"][2] + 20
assert min(ceiling["relevance"]) > 1.8 * max(max(ceiling[name]) for name in names[2:])
lens_reads = reading["logit lens, trained"]
assert reading["linear probe, trained"][0] > lens_reads[0] + 0.1
assert lens_reads[-1] > 0.7 > 0.5 > max(lens_reads[:-1])
assert max(max(found) for name, found in reading.items() if "untrained" in name) < 0.45
assert on_page[-1].argmax() == on_top and abs(on_page.sum() - config.depth) < 1e-4
""",
    "05_inside_more": """
assert min(both["trained"] for both in hits.values()) > 0.85
assert pointing_game(brightness, masks) > 0.95
assert max(hits["gradient"]["five untrained"]) < 0.5 * touched.mean()
spread = {who: (span.amax(dim=1) - span.amin(dim=1)).mean().item() for who, span in spans.items()}
assert spread["trained"] > 0.1 and spread["untrained"] < 0.05
weights = {who: layers[-1][:, :2] for who, (layers, _) in seen.items()}
apart_by = {
    who: (entropy(both.mean(dim=1)) - entropy(both).mean(dim=1)).mean()
    for who, both in weights.items()
}
assert apart_by["trained"] > 0.1 > 0.005 > apart_by["untrained"]
outlying = {who: layers[-1][:, 1:] / layers[-1][:, 1:].median() for who, layers in norms.items()}
assert all((each > 3).float().mean() < 0.005 for each in outlying.values())
pairs = torch.stack([similarity["trained"].flatten(1)[others], -apart[others], together[others]])
near, content = torch.corrcoef(pairs)[0, 1:]
assert content > 0.6 and content > near + 0.2
assert max(gaps.values()) < 0.15 and rows.max() > 1.05 and raw_accuracy < 0.5
like_content = [found["trained: like content, put back"] for found in by_arm[shuffle]]
assert min(like_content) > 0.4 > 0.2 > max(r["trained: like content"] for r in by_arm[shuffle])
assert 25 < max(means) - min(means) < 30
""",
    "06_vit_and_cnn": """
assert last_places == (16, 64) and sides[4] == 25 and sides[8] == 109 and first_block == 5
assert (reach["ViT, block 1"][36] > 0).all() and (reach["CNN, block 2"][36] > 0).sum() == 25
assert shift_sizes["one patch"] < 1e-5 and shift_sizes["one pixel"] > 0.5
assert shift_sizes["one patch, with positions"] > 1e-3
in_order, inverted = ("shuffled, patches of 4 px", "colours inverted")
assert disturbed["ViT"][in_order][0] > 0.4 > 0.3 > disturbed["CNN"][in_order][0]
assert disturbed["CNN"][inverted][0] > disturbed["ViT"][inverted][0]
assert half["ViT"] > half["CNN"] + 0.05
assert abs(far_share["CNN"] - far_share["ViT"]) < 0.1
untrained = [share for who, share in far_share.items() if "untrained" in who]
assert min(far_share["CNN"], far_share["ViT"]) > 0.3 > 0.25 > max(untrained)
by_move = [share_right(f"8 of 16 black, moved {k} px", "ViT") for k in range(5)]
assert max(by_move[1:4]) < 0.52 < min(by_move[0], by_move[4])
assert share_right("squares of 4 px exchanged, moved 2 px", "ViT") < 0.3
assert lead(black)[0] > 14 > lead(moved)[0] > lead(coloured)[0] + 4
large = lead("squares of 16 px exchanged, moved 0 px")
assert abs(large[0] - lead("as they are")[0]) < large[1]
assert min(leads) > 3
""",
    "06_vit_and_cnn_more": """
assert floors[20] > 0.5 > 0.2 > floors[500]
assert tables["trained"][-1, -1] > tables["untrained, seed 0"][-1, -1] + 0.1
assert all((field > 0).any(dim=0).sum() == 2 * L + 1 for L, field in fields.items())
assert all(0.7 < deviation(field) / L**0.5 < 0.95 for L, field in fields.items())
assert seen_share == 1 and own_patch > 0.5 > 0.2 > share_of_own_patch(bare_field)
assert min(min(v) for v in cue_curves["1 layer of attention"]) > 0.99
for arm, depth in {"2 convolutions": 2, "4 convolutions": 4}.items():
    within, beyond = sum(cue_curves[arm][:depth], []), sum(cue_curves[arm][depth:], [])
    assert min(within) > 0.58 > max(beyond), arm
sizes = {name: sum(p.numel() for p in net.parameters()) for name, net in networks.items()}
assert max(sizes.values()) / min(sizes.values()) < 1.02 and 140_000 < min(sizes.values()) < 160_000
convolutions = [stage[0] for stage in networks["CNN"].stages]
assert all(c.weight.numel() == 9 * c.in_channels * c.out_channels for c in convolutions)
assert conv_difference < 1e-5 and 13 < (products + looks) / products < 14
assert broken["wraps around"] < 1e-5
assert min(broken["border of zeros"], broken["wraps around, stride 2"]) > 0.05
assert not_followed["symmetric", "turned"] < 1e-5 and not_followed["random", "turned"] > 0.1
assert min(not_followed[kernel, "twice the size"] for kernel in ("symmetric", "random")) > 0.1
for how in ("noise 0.2", "blurred, 3 x 3", "8 of 16 patches black", "shuffled, patches of 8 px"):
    assert min(at_equal["ViT"][how]) > max(at_equal["CNN"][how]), how
by_large = {name: at_equal[name]["shuffled, patches of 16 px"] for name in networks}
assert min(by_large["CNN"]) > max(by_large["ViT"])
assert all(min(sum(by_shape[n][:2], [])) > 0.95 > 0.01 > max(by_shape[n][-1]) for n in networks)
assert min(by_shape["ViT"][at_02]) > max(by_shape["CNN"][at_02])
assert 4.2 < ratio[224] < 4.4 and ratio[640] > ratio[224] + 1
assert 4.05 < cost["ResNet-50"][224] < 4.15 and 17.5 < cost["ViT-B/16"][224] < 17.6
assert best_size == {"equal steps": 4, "equal time": 8}
""",
    "07_less_data": """
assert abs(blended_labels.max() - 0.6) < 1e-6
assert mask.shape == (len(tested), 64) and (mask.sum(dim=1) == 48).all()
assert {"both", "neither"} <= set(collapse)
assert all(len(values) == len(at) for values in collapse.values())
""",
    "07_less_data_more": """
assert abs(gap - smoothed_gap) < 0.02 and 0.905 < logits.softmax(dim=-1)[0, 3] < 0.915
assert abs(loss.item() - 0.5003) < 1e-4 and (pasted_labels.sum(dim=1) - 1).abs().max() < 1e-5
assert abs(means_of_branch.mean() - 1) < 0.05
assert collapse_losses[0] > 4 and collapse_losses[1] < 1e-3
assert mask.shape == (201, 64) and (mask.sum(dim=1) == 48).all()
""",
    "08_efficient": """
assert abs(one_block["T x T products"] / sum(one_block.values()) - 0.053) < 0.001
for plan in PLANS:
    merged, attended, chance = (of_arm_in_points[f"{way}, {plan}"] for way in fewer_tokens.WAYS)
    assert chance > attended - 0.5 and (merged > chance) == (plan != "32 at once"), plan
assert -2.5 < of_arm_in_points["merged, 8 in every block"] < 0
assert of_arm_in_points["most attended, 8 in every block"] < -10
assert of_arm_in_points["8 bits"] > -0.5 and of_arm_in_points["2 bits"] < -50
assert 0.25 < bytes_of_linears(quantised(model)) / before < 0.27
assert round(bytes_of_linears(quantised(model, 2), 2) / 1e6, 2) == 0.71
assert owners.unique().tolist()[0] == -1 and len(groups[-1].unique()) == 16
""",
    "08_efficient_more": """
assert windows_accuracy < accuracy_of(model) - 0.02
assert merged_accuracy > accuracy_of(model) - 0.1
assert mask.float().mean(dim=(1, 2)).tolist() == [1.0, 0.5, 0.5, 0.25]
assert {name: int(reached.sum()) for name, (_, reached) in maps.items()} == {
    "one block": 16, "two blocks": 64, "corner": 16, "no mask": 64}
assert (seen_after["windows of 4, shift 2"] <= 3)[[65, 0]].sum(dim=1).tolist() == [144, 64]
assert by_rows["like neighbours"][32] < 0.2 < 0.6 < by_rows["independent"][64]
assert row_sums.min() > 10  # the slip of published code
assert errors["averaged keys, n = 64"][64] < 1e-5 and min(errors["elu + 1"].values()) > 0.6
assert min(by_size[1.0]) > 1 and by_size[0.25][0] > 4 * by_size[0.25][-1]
assert grow[0] > 13 and grow[1] < 5  # bytes for the backward pass
assert torch.allclose(flexible, masked, atol=1e-5)
assert abs(swin / 4.51e9 - 1) < 0.01 and abs(four_macs - 1.567) < 0.001
means = {name: statistics.mean(values) for name, (_, values) in alike.items()}
cheaper = ("windows", "averaged keys", "linear attention", "random features")
assert all(abs(means[name] - base) < 0.015 for name in cheaper) and best == "MLP-Mixer"
assert means[best] > base + 0.03 and means["patches of 8 px"] < base - 0.07
assert 0 < statistics.mean(gains) < 2 and all(len(values) > 1 for _, values in alike.values())
assert len(set(winners.values())) == 1
assert (packed - alone).abs().max() < 1e-4 < 1 < (mixed - alone).abs().max()
assert round(padding, 2) == 0.45 and round(packing_mask(counts).float().mean().item(), 2) == 0.33
assert abs(sum(parts.values()) / peak - 1) < 0.08 and parts["activations"] > 0.8 * peak
assert run.returncode == 0 and "below 1e-5: True" in run.stdout
""",
    "09_transfer": """
assert fold_difference < 1e-4 and by_table["resized"][-1] > by_table["zeros"][-1]
assert ways["head only"][0] == 970 and ways["LoRA"][0] < 0.04 * ways["full"][0]
assert costs["LoRA"]["file"] < 0.06 * costs["full"]["file"]
assert 0.7 < costs["LoRA"]["activations"] / costs["full"]["activations"] < 0.9
assert costs["head only"]["activations"] < 30_000
assert len(CAPTIONS) == 40 and len(WORDS) == 14 and is_hidden(torch.arange(40)).sum() == 10
assert seen > 10 and any(any(row) for row in fits.values())
""",
    "09_transfer_more": """
assert logit_difference < 1e-4 and torch.equal(back, photo.float()) and at_384.shape[1] == 577
assert 0 < apart < 0.3 and same > 0.8 and stacked_difference < 1e-4
assert [len(weights_of_cells[True, size]) for size in (12, 5)] == [4, 7]
assert by_question["which class, resized"][-1] > by_question["which class, zeros"][-1]
assert max(by_question["which quarter, zeros"]) < 50  # guessing: 25
assert learning["LoRA"] < 0.04 * learning["full"] == 0.04 * size_after
assert merge_difference < 1e-4 and blind_losses[1] > 4 * blind_losses[2] > 2 * blind_losses[0]
assert frozen["class\\nprobe"]["with labels"] > 0.5 > frozen["class\\nprobe"]["untrained"]
assert len(captions.CAPTIONS) == 240 and len(captions.VOCABULARY) == 23
assert not written and set(lost) == {"class", "box", "mask", "depth"}
""",
}
