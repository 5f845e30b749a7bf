"""vitedu.fitting.augmentation: one draw an image, labels in proportion, values in range."""

import pytest
import torch
import torch.nn.functional as F

from vitedu.fitting.augmentation import (
    OPERATIONS,
    random_boxes,
    random_erasing,
    random_mix,
    random_policy,
)


def seeded(seed=0):
    """A generator of its own."""
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def images():
    """A smooth picture and its like, (26, 3, 16, 20), values 0 to 255."""
    noise = torch.rand(26, 3, 4, 5, generator=seeded())
    return F.interpolate(noise, size=(16, 20), mode="bilinear") * 255


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda f: f.__name__)
def test_operation_changes_each_image_by_its_own_amount(operation, images):
    """Amount 0 is the identity; a larger amount changes more; the batch does not matter."""
    same = images[:1].expand(3, -1, -1, -1)
    amount = torch.tensor([0.0, 0.4, 1.0]).view(3, 1, 1, 1)
    changed = operation(same, amount).clamp(0, 255)
    # of 255: floor and resampling
    torch.testing.assert_close(changed[0], same[0], rtol=0, atol=1.0)
    distance = (changed - same).abs().mean(dim=(1, 2, 3))
    assert distance[0] < distance[1] < distance[2]
    torch.testing.assert_close(operation(same[1:2], amount[1:2]).clamp(0, 255), changed[1:2])


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_policy_changes_the_share_asked_for(images, share):
    """The others are left to the last bit, each in its place."""
    changed = random_policy(images, share, 1.0, seeded())
    touched = (changed != images).flatten(1).any(dim=1).sum()
    assert touched <= round(share * 26)
    assert touched >= 0.8 * round(share * 26)  # a small amount may leave a posterised image alone
    assert changed.min() >= 0 and changed.max() <= 255


def test_policy_draws_again_for_every_batch(images):
    """One seed, one result; another seed, another."""
    first, again, other = (random_policy(images, 1.0, 1.0, seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)


@pytest.mark.parametrize(("mixup", "cutmix"), [(1.0, 0.0), (0.0, 1.0), (0.3, 0.5)])
def test_mixed_labels_follow_the_pixels(mixup, cutmix):
    """Images of one colour a class: the mean colour of the result is the weight of its label."""
    labels = torch.arange(40) % 4
    images = F.one_hot(labels, 4).float()[:, :, None, None].expand(-1, -1, 10, 12)
    mixed, targets = random_mix(images, labels, 4, mixup=mixup, cutmix=cutmix, generator=seeded())
    torch.testing.assert_close(mixed.mean(dim=(2, 3)), targets, rtol=0, atol=1e-5)
    torch.testing.assert_close(targets.sum(dim=1), torch.ones(40), rtol=0, atol=1e-5)
    flat = (mixed == mixed[:, :, :1, :1]).flatten(1).all(dim=1)
    assert flat.any() if mixup else not flat.all()  # blending is even, pasting is not


def test_mixing_draws_for_each_image():
    """Proportions differ within a batch and fill the range; shares of 0 leave all as it is."""
    labels = torch.arange(2).repeat(500)
    images = labels[:, None, None, None].float().expand(-1, 1, 8, 8)
    _, targets = random_mix(images, labels, 2, mixup=1.0, cutmix=0.0, generator=seeded())
    own = targets[torch.arange(1000), labels]
    assert (own == 1).float().mean() == pytest.approx(0.5, abs=0.06)  # a partner of the same class
    mixed = own[own < 1]
    assert mixed.mean() == pytest.approx(0.5, abs=0.05) and mixed.std() > 0.25
    same, targets = random_mix(images, labels, 2, mixup=0.0, cutmix=0.0, generator=seeded())
    assert torch.equal(same, images) and torch.equal(targets, F.one_hot(labels, 2).float())


def test_boxes_cover_the_area_where_no_edge_cuts_them():
    """A box has the sides that its area asks for, and its centre is uniform."""
    area = torch.full((4000,), 0.25)
    boxes = random_boxes(area, 16, 16, seeded())
    covered = boxes.float().mean(dim=(1, 2))
    assert covered.max() == 0.25
    assert covered.mean() == pytest.approx(0.25 * 0.875**2, abs=0.005)  # what the edges leave


def test_erasing_hits_its_share(images):
    """A rectangle of noise in about a quarter; the others to the last bit."""
    many = images[:1].expand(800, -1, -1, -1) / 255
    erased = random_erasing(many, 0.25, seeded())
    changed = (erased != many).any(dim=1)  # (B, H, W)
    assert changed.flatten(1).any(dim=1).float().mean() == pytest.approx(0.25, abs=0.05)
    assert changed.float().mean(dim=(1, 2)).max() <= 0.39  # 33 %, rounded up to whole pixels
