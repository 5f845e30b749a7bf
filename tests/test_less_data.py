"""vitedu.less_data: what notebook 07 uses and does not ask for, and its experiments.

That the functions of its exercises equal other roads to the same result is proved by the right
answers of their banks.
"""

import math

import pytest
import torch
import torch.nn.functional as F

from vitedu.bench.experiments import teacher as with_teacher
from vitedu.bench.experiments import three_tasks
from vitedu.extras.fast import DroppingBlock
from vitedu.extras.options import VisionTransformerWithOptions, ViTConfigWithOptions
from vitedu.fitting.augmentation import random_mix, uniform
from vitedu.ground.hardware import Profile
from vitedu.less_data import (
    DistilledViT,
    MaskedAutoencoder,
    collapse_losses,
    cutmix,
    descend,
    dino_loss,
    distillation_loss,
    drop_path,
    mixup,
    random_resized_crop,
    smoothed_gap,
)
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


def test_descend_moves_against_the_gradient_of_this_step_alone():
    """The rate given replaces the optimizer's in every group; old gradients do not count."""
    weights = [torch.nn.Parameter(torch.ones(2)) for _ in range(2)]
    optimizer = torch.optim.SGD([{"params": [weight]} for weight in weights], lr=9.0)
    for expected in (0.5, 0.25):
        descend(optimizer, sum((weight**2).sum() for weight in weights), 0.25)
        assert all(torch.equal(weight, torch.full((2,), expected)) for weight in weights)


@pytest.mark.parametrize("arm", with_teacher.ARMS)
def test_second_head_learns_from_what_the_arm_says(arm):
    """A student's loss is called in every step, with labels or with what the teacher answers."""
    seen = []

    def loss_of(*parts):
        seen.append(parts)
        return distillation_loss(*parts)

    found = with_teacher.run(arm, 3, QUICK, loss_of)
    assert found.keys() == {"test_accuracy", "teacher, test_accuracy"}
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


def test_shares_of_variance_name_their_cause():
    """What a place, a colour or a photograph decides alone is all of it there."""
    images, places = random(40, 64, 3), random(1, 64, 3, seed=1).expand(40, 64, 3)
    of_photograph = random(40, 1, 3, seed=2).expand(40, 64, 3)
    colour = 2 * images[..., [1, 2, 0]] + 5
    for cause, values in {"place": places, "colour": colour, "photograph": of_photograph}.items():
        shares = three_tasks.explained(values, images)
        assert shares[cause] == pytest.approx(1)
        assert all(
            share < 0.4 for other, share in shares.items() if other not in (cause, "photograph")
        )
