"""vitedu.less_data: what notebook 07 uses and does not ask for, and its experiments.

That the functions of its exercises equal other roads to the same result is proved by the right
answers of their banks.
"""

import math
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

from vitedu.bench.experiments import by_arm, label_counts, measured, three_tasks
from vitedu.bench.experiments import less_data as rows_of
from vitedu.bench.experiments import teacher as with_teacher
from vitedu.fast import DroppingBlock
from vitedu.fitting.augmentation import random_mix, uniform
from vitedu.hardware import Profile
from vitedu.less_data import (
    DistilledViT,
    MaskedAutoencoder,
    collapse_losses,
    cutmix,
    descend,
    dino_loss,
    distillation_loss,
    drop_path,
    entropy_and_spread,
    mixup,
    random_resized_crop,
    smoothed_gap,
)
from vitedu.options import VisionTransformerWithOptions, ViTConfigWithOptions
from vitedu.pretrained import load_pretrained
from vitedu.training import cross_entropy, smoothing_floor
from vitedu.vit import VisionTransformer, ViTConfig

QUICK = Profile("quick", "", "")


def random(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def test_training_mixes_as_the_textbook_does():
    """``fit`` mixes with a weight, and pastes a box, of each image's own."""
    images, labels = random(6, 3, 8, 8), torch.tensor([0, 1, 2, 0, 1, 2])

    def drawn():
        return torch.Generator().manual_seed(3)

    draws = drawn()
    partner, kept = torch.randperm(6, generator=draws), uniform(6, draws)
    mixed, soft = random_mix(images, labels, 3, mixup=1.0, cutmix=0.0, generator=drawn())
    for i in range(6):
        image, label = mixup(images, labels, 3, kept[i].item(), partner)
        torch.testing.assert_close(mixed[i], image[i])
        torch.testing.assert_close(soft[i], label[i])
    mixed, soft = random_mix(images, labels, 3, mixup=0.0, cutmix=1.0, generator=drawn())
    for i in range(6):
        changed = (mixed[i] != images[i]).any(dim=0).nonzero()
        ends = [0, 0, 0, 0]
        if len(changed) and partner[i] != i:
            ends = [*changed.amin(dim=0).tolist(), *(changed.amax(dim=0) + 1).tolist()]
        image, label = cutmix(images, labels, 3, tuple(ends), partner)
        torch.testing.assert_close(mixed[i], image[i])
        torch.testing.assert_close(soft[i], label[i])


def test_smoothed_gap_costs_least():
    """A larger gap costs more, and so does a smaller one."""

    def cost(gap):
        logits = gap * torch.eye(10, dtype=torch.float64)[3:4]
        return cross_entropy(logits, torch.tensor([3]), 0.1).item()

    assert cost(smoothed_gap) == pytest.approx(smoothing_floor)
    assert min(cost(smoothed_gap + 0.01), cost(smoothed_gap - 0.01)) > smoothing_floor


@pytest.mark.parametrize("bad", [-0.1, 1.0, math.nan])
def test_drop_path_refuses_the_impossible(bad):
    """A probability of 1 would leave nothing to divide; the error names the number."""
    for training in (True, False):
        with pytest.raises(ValueError, match=f"drop_prob={bad}"):
            drop_path(torch.ones(3, 4), bad, training)


def test_block_that_drops_is_the_textbook_one_with_drop_path():
    """The model's option draws and divides as the exercise does; the depth decides the rate."""
    sizes = dict(image_size=8, patch_size=4, embed_dim=12, depth=3, num_heads=3)
    config = ViTConfigWithOptions(**sizes, drop_path_rate=0.4)
    model, images = VisionTransformerWithOptions(config), random(50, 3, 8, 8)
    assert [block.drop_path_rate for block in model.blocks] == [0.0, 0.2, 0.4]
    block, x = model.blocks[2].train(), random(50, 5, 12)
    torch.manual_seed(7)
    found = block(x)
    torch.manual_seed(7)
    y = x + drop_path(block.attn(block.norm1(x))[0], 0.4, True)
    y = y + drop_path(block.mlp(block.norm2(y)), 0.4, True)
    torch.testing.assert_close(found, y)
    plain = VisionTransformer(ViTConfig(**sizes))
    plain.load_state_dict(model.state_dict())
    with torch.no_grad():
        assert torch.equal(plain.eval()(images), model.eval()(images))


def test_model_that_drops_numbers_drops_them_in_training_alone():
    """Dropout at the end of each branch; it has no parameters: a block of ViT-Ti keeps 444,864."""
    tiny = DroppingBlock(192, 3, drop_rate=0.1)
    assert sum(parameter.numel() for parameter in tiny.parameters()) == 444_864
    block = DroppingBlock(12, 3, drop_rate=0.5).train()
    branch = torch.ones(4, 5, 12)
    assert set(block.drop(branch).unique().tolist()) == {0.0, 2.0}
    assert torch.equal(block.eval().drop(branch), branch)


@pytest.mark.parametrize("field", ["drop_rate", "drop_path_rate"])
def test_config_refuses_an_impossible_rate(field):
    """The error names the field and the number."""
    with pytest.raises(ValueError, match=f"{field}=1.0"):
        ViTConfigWithOptions(**{field: 1.0})


def test_collapse_losses_are_those_of_the_loss():
    """An even answer costs log 64, a sure one nothing: the loss does not forbid collapse."""
    even = torch.zeros(4, 64)
    sure = F.pad(torch.full((4, 1), 100.0), (0, 63))
    for logits, expected in zip((even, sure), collapse_losses, strict=True):
        assert dino_loss(logits, logits, torch.zeros(64)).item() == pytest.approx(
            expected, abs=1e-6
        )


# --- what the notebook uses and does not ask for --------------------------------------------------


def test_random_resized_crop_of_the_whole_is_the_image():
    """A window of all the area changes nothing; smaller ones show a part, each image its own."""
    images, generator = torch.rand(6, 3, 8, 8), torch.Generator().manual_seed(0)
    torch.testing.assert_close(random_resized_crop(images, 1.0, generator), images)
    ramp = torch.arange(16.0).expand(6, 1, 16, 16)
    seen = random_resized_crop(ramp, 0.25, generator)
    widths = seen.amax(dim=(1, 2, 3)) - seen.amin(dim=(1, 2, 3))
    assert widths.max() < 15 and widths.min() > 6 and len(widths.unique()) == 6


def test_distilled_vit_reads_two_tokens():
    """The second head sees the second token; in eval mode both are averaged."""
    torch.manual_seed(0)
    model = DistilledViT(ViTConfigWithOptions(8, 4, 3, 10, 12, 1, 3, num_registers=1))
    images, seen = random(2, 3, 8, 8), {}
    model.norm.register_forward_hook(lambda module, inputs, output: seen.update(tokens=output))
    both = model.train()(images)
    torch.testing.assert_close(both[0], model.head(seen["tokens"][:, 0]))
    torch.testing.assert_close(both[1], model.head_dist(seen["tokens"][:, 1]))
    torch.testing.assert_close(model.eval()(images), (both[0] + both[1]) / 2)


def test_masked_autoencoder_never_looks_at_hidden_pixels():
    """Whatever stands in a hidden patch, the guess is the same; a visible one matters."""
    torch.manual_seed(0)
    encoder = VisionTransformer(ViTConfig(8, 4, embed_dim=12, depth=2, num_heads=3))
    model, noise = MaskedAutoencoder(encoder).eval(), torch.tensor([[0.4, 0.1, 0.3, 0.2]])
    images = random(1, 3, 8, 8)
    with torch.no_grad():
        first, mask = model(images, 0.75, noise)
        assert mask.tolist() == [[1, 0, 1, 1]]
        changed = images.clone()
        changed[:, :, :, :4] = 9.0  # patches 0 and 2
        changed[:, :, 4:, 4:] = 9.0  # patch 3
        assert torch.equal(model(changed, 0.75, noise)[0], first)
        changed[:, :, :4, 4:] += 1.0
        assert not torch.allclose(model(changed, 0.75, noise)[0], first)


def test_entropy_and_spread_tell_both_collapses_apart():
    """Even answers: entropy log K; one prototype: entropy 0; a spread needs answers that differ."""
    even, one = torch.full((6, 4), 0.25), torch.eye(4)[[1] * 6]
    assert entropy_and_spread(even) == pytest.approx((math.log(4), 0.0), abs=1e-6)
    assert entropy_and_spread(one) == pytest.approx((0.0, 0.0), abs=1e-6)
    assert entropy_and_spread(torch.eye(4)) == pytest.approx((0.0, math.log(4)), abs=1e-6)


def test_fixed_positions_are_those_of_the_table_and_do_not_learn():
    """As large as learned ones at the start."""
    model, plain = rows_of.build(0, fixed_positions=True), rows_of.build(0)
    assert not model.pos_embed.requires_grad and plain.pos_embed.requires_grad
    assert model.pos_embed.std().item() == pytest.approx(plain.pos_embed.std().item(), rel=1e-4)
    corner, neighbour, far = model.pos_embed[0, [0, 1, 15]]
    assert F.cosine_similarity(corner, neighbour, dim=0) > F.cosine_similarity(corner, far, dim=0)


def test_descend_moves_against_the_gradient_of_this_step_alone():
    """The rate given replaces the optimizer's in every group; old gradients do not count."""
    weights = [torch.nn.Parameter(torch.ones(2)) for _ in range(2)]
    optimizer = torch.optim.SGD([{"params": [weight]} for weight in weights], lr=9.0)
    for expected in (0.5, 0.25):
        descend(optimizer, sum((weight**2).sum() for weight in weights), 0.25)
        assert all(torch.equal(weight, torch.full((2,), expected)) for weight in weights)


@pytest.mark.slow
@pytest.mark.parametrize("arm", rows_of.ARMS)
def test_arms_of_the_experiment_train_and_are_measured(arm):
    """A short run of each gives both accuracies."""
    found = rows_of.run(arm, 0, QUICK)
    assert 0 <= found["train_accuracy"] <= 1 and 0 <= found["test_accuracy"] <= 1


def test_every_seed_draws_its_own_photographs_as_many_of_each_class():
    """The first ten, and any multiple, hold each class as often; another seed takes others."""
    split = rows_of.photographs(QUICK).train
    one, same, other = (rows_of.draw(split, 40, seed) for seed in (0, 0, 1))
    assert torch.equal(one.images, same.images) and not torch.equal(one.images, other.images)
    for count in (10, 40):
        assert one.labels[:count].bincount().tolist() == [count // 10] * 10
    place = (split.images == one.images[0]).flatten(1).all(dim=1).nonzero()[0]
    assert split.labels[place] == one.labels[0]


def test_windows_are_cut_from_the_image_that_the_label_names():
    """Copies stand in the order of the split, again and again."""
    few = rows_of.draw(rows_of.photographs(QUICK).train, 20, 0)
    cut = rows_of.windows(few, 1.0, 0)
    assert len(cut) == 20 * rows_of.COPIES
    assert (cut.images[20:40].int() - few.images.int()).abs().max() <= 1
    assert torch.equal(cut.labels[20:40], few.labels)


@pytest.mark.parametrize("arm", with_teacher.ARMS)
def test_second_head_learns_from_what_the_arm_says(arm):
    """A student's loss is called in every step, with labels or with what the teacher answers."""
    seen = []

    def loss_of(*parts):
        seen.append(parts)
        return distillation_loss(*parts)

    found = with_teacher.run(arm, 3, QUICK, loss_of)
    assert found.keys() == {"test_accuracy", "teacher, test_accuracy", "teacher against label"}
    assert len(seen) == (0 if "soft" in arm else 2)
    assert all(part.shape == (32, 10) for parts in seen for part in parts[:3])
    certain = [((a == 0) | (a == 1)).all() and (a.sum(dim=1) == 1).all() for _, _, a, _ in seen]
    if seen:
        assert all(certain) == (arm == "labels") and not any(a.requires_grad for _, _, a, _ in seen)


def test_soft_answers_cost_nothing_more_where_the_student_gives_them():
    """Equal doubts leave the label's half; a sharper student pays for its certainty."""
    logits, labels = random(6, 10), torch.arange(6)
    half = 0.5 * F.cross_entropy(logits, labels)
    found = with_teacher.soft_distillation_loss(logits, logits, logits, labels, 3.0)
    torch.testing.assert_close(found, half)
    assert with_teacher.soft_distillation_loss(logits, 2 * logits, logits, labels, 3.0) > half


def test_encoders_of_the_last_figure_give_the_features_that_a_head_would_read():
    """Frozen ones do not depend on the seed, the untrained one does; pixels stay as they are."""
    images = rows_of.photographs(QUICK).test.images[:4]
    data = rows_of.photographs(QUICK)
    for arm in label_counts.ARMS:
        one, other = (
            label_counts.features_of(label_counts.encoder(arm, seed), images, data)
            for seed in (0, 1)
        )
        assert one.shape == (4, 3072 if arm == "pixels" else 96)
        assert torch.equal(one, other) == (arm != "untrained")
    head = load_pretrained(label_counts.SUPERVISED)
    assert torch.equal(head.head(one), head(data.normalize(images)))


def test_frozen_features_are_measured_for_each_number_of_labels():
    """As rows they come back by arm and count, in percent."""
    results = label_counts.run("pixels", 0, QUICK)
    found = label_counts.by_count([SimpleNamespace(arm="pixels", results=results)])
    assert list(found) == ["pixels"] and list(found["pixels"]) == list(label_counts.COUNTS)
    assert found["pixels"][10] == [100 * results["10 labels"]]


def test_shares_of_variance_name_their_cause():
    """What a place, a colour, a photograph or a class decides alone is all of it there."""
    images, places = random(40, 64, 3), random(1, 64, 3, seed=1).expand(40, 64, 3)
    labels = torch.arange(40) % 10
    of_photograph = random(40, 1, 3, seed=2).expand(40, 64, 3)
    of_class = of_photograph[:10].repeat(4, 1, 1)
    colour = 2 * images[..., [1, 2, 0]] + 5
    for cause, values in {
        "place": places,
        "colour": colour,
        "photograph": of_photograph,
        "class": of_class,
    }.items():
        shares = three_tasks.explained(values, images, labels)
        assert shares[cause] == pytest.approx(1)
        assert all(
            share < 0.4 for other, share in shares.items() if other not in (cause, "photograph")
        )


def test_colours_of_shifted_cuts_stand_where_their_pixels_are():
    """What a patch shows is painted at its own place in all cuts: a bright half stays a half."""
    model, data = three_tasks.encoder("untrained", 0), rows_of.photographs(QUICK)
    image = torch.zeros(1, 3, 32, 32, dtype=torch.uint8)
    image[..., 16:] = 255
    looks, colours = three_tasks.pictures(model, image, data)
    assert looks.shape == (1, 8, 8) and colours.shape == (1, 3, 32, 32)
    columns = colours.mean(dim=2)[0]  # (3, 32)
    change = columns.diff(dim=1).abs().sum(dim=0)
    assert 12 <= change.argmax() <= 19 and change[:12].max() < 0.2 * change.max()


def test_rows_of_three_tasks_say_what_the_notebook_says():
    """Masked patches teach places, an untrained network shows colours, and depth parts tasks."""
    rows = measured("three_tasks")
    reach, probes = three_tasks.in_panels(rows)
    by_seed = {(row.arm, row.seed): row.results for row in rows}
    for seed in range(3):
        of = {arm: by_seed[arm, seed] for arm in three_tasks.ARMS}
        place, colour = (
            {arm: each[f"components, block 3: {cause}"] for arm, each in of.items()}
            for cause in ("place", "colour")
        )
        assert place["masked"] > 0.9 > 0.7 > place["supervised"] > place["dino"] > 0.3
        assert colour["untrained"] > 0.8 > 0.5 > colour["dino"] and place["untrained"] < 0.1
    assert min(sum(reach["masked"], [])) < 2 < 2.8 < min(sum(reach["dino"], []))
    token = {arm: each["class token"] for arm, each in probes.items()}
    assert max(token[arm][0] for arm in token if arm != "untrained") < 45
    assert token["supervised"][3] > 75 > 65 > token["dino"][3] > 57 > token["masked"][3] > 50
    assert max(token["untrained"]) < 36


def test_rows_say_what_the_notebook_says():
    """Shifts help, mixup helps more, and features without labels save nine labels of ten."""
    found = {(row.arm, row.seed): row.results for row in measured("less_data")}
    known = {(row.arm, row.seed): row.results for row in measured("label_counts")}
    from_scratch = max(found["4,000 photographs", seed]["test_accuracy"] for seed in range(5))
    cnn = by_arm(measured("data_hunger"), "test_accuracy")["CNN, 3200 images"]
    for seed in range(5):
        ways = [found[way, seed] for way in ("nothing", "shifts and mirrors")]
        ways.append(found["shifts and mixup", seed])
        nothing, shifts, mixed = (way["test_accuracy"] for way in ways)
        assert nothing + 0.04 < shifts < mixed - 0.02
        assert ways[0]["train_accuracy"] > 0.98 > 0.9 > ways[1]["train_accuracy"]
        dino, masked, *others = (
            known[arm, seed] for arm in ("dino", "masked", "pixels", "untrained")
        )
        assert dino["400 labels"] > from_scratch
        assert dino["400 labels"] < min(cnn) < max(cnn) < dino["4,000 labels"]
        assert all(dino[count] > masked[count] for count in ("40 labels", "400 labels"))
        for other in others:
            assert dino["40 labels"] > max(other["40 labels"] + 0.1, other["4,000 labels"] - 0.02)
