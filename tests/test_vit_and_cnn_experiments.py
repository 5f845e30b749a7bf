"""The experiments of notebook 06: the tasks are what the text says, and short runs give results."""

import pytest
import torch

from vitedu import vit_and_cnn
from vitedu.bench.experiments import (
    robustness,
)
from vitedu.data import textures
from vitedu.ground.hardware import Profile

QUICK = Profile("quick", "", "")


def test_cue_accuracy_is_balanced_and_sorted_by_distance_from_the_corner():
    """Who always says no is right in half; a wrong row 2 lowers distances 2 and more alone."""
    answers = torch.zeros(2, 8, 8)
    answers[0] = 1  # one image of cells that say yes, and one of cells that say no
    assert vit_and_cnn.accuracy_by_distance(-torch.ones(2, 64), answers.flatten(1)) == [0.5] * 7
    logits = 2 * answers - 1
    logits[0, 2] = -1
    found = vit_and_cnn.accuracy_by_distance(logits.flatten(1), answers.flatten(1))
    wanted = [1, (1 + 2 / 5) / 2, (1 + 14 / 15) / 2]
    assert [found[k] for k in (0, 1, 6)] == pytest.approx(wanted, abs=1e-6)


def test_disturbances_do_what_they_say():
    """Black patches are counted, noise has its strength, and the same draws meet every network."""
    images = torch.full((50, 3, 32, 32), 128, dtype=torch.uint8)
    dark = vit_and_cnn.occlude(images, 4)
    assert ((dark == 0).float().mean(dim=(1, 2, 3)) == 4 / 16).all()
    assert (dark[0] != dark[1]).any() and torch.equal(dark, vit_and_cnn.occlude(images, 4))
    noisy = vit_and_cnn.add_noise(images, 0.1).float() / 255
    assert abs(noisy.std().item() - 0.1) < 0.003
    assert all(each(images).shape == images.shape for each in robustness.DISTURBANCES.values())
    assert torch.equal(vit_and_cnn.blur(images), images)  # of one grey
    images[0, 0, 5, 5] = 255
    assert vit_and_cnn.blur(images)[0, 0, 4:7, 4:7].unique().tolist() == [
        round((8 * 128 + 255) / 9)
    ]


def test_controls_move_the_cut_fill_with_the_mean_and_give_each_image_its_own_order():
    """Moved squares are the same squares; four squares come in each of the 23 other orders."""
    images = torch.randint(256, (46, 3, 32, 32), generator=torch.Generator().manual_seed(0)).byte()
    grey = torch.full_like(images, 99)
    hidden, moved = (robustness.disturb(grey, hidden=8, moved=k) == 0 for k in (0, 3))
    assert torch.equal(hidden.roll((3, 3), dims=(-2, -1)), moved)
    mean = images.float().mean(dim=(-2, -1), keepdim=True).round().byte()
    covered = vit_and_cnn.occlude(images, 8, mean_colour=True)
    assert torch.equal(covered, torch.where(hidden, mean, images))
    corners = torch.arange(4).reshape(1, 1, 2, 2).repeat_interleave(16, 2).repeat_interleave(16, 3)
    orders = robustness.exchange(corners.expand(46, 1, 32, 32), 16)[:, 0, ::16, ::16].flatten(1)
    assert len({tuple(each) for each in orders.tolist()}) == 23
    assert not (orders == torch.arange(4)).all(dim=1).any()


def test_texture_fills_the_object_alone_and_torn_images_keep_their_shapes():
    """Outside the mask nothing changes, inside the texture names another class, all of them."""
    data = textures.textured_shapes(0.4, 200)
    images, shape, other = textures.cue_conflict(data, 0.4)
    mask = data.test.masks[:, None].expand_as(images)
    assert torch.equal(images[~mask], data.test.images[~mask])
    assert torch.equal(shape, data.test.labels) and (other != shape).all()
    assert set(other.tolist()) == {0, 1, 2, 3} and (images[mask] != data.test.images[mask]).any()
    for kind in range(4):  # two images of one texture agree wherever both have their object
        first, second = (other == kind).nonzero().flatten()[:2].tolist()
        both = mask[first] & mask[second]
        apart = images[first].float() - images[second].float()
        assert apart[both].abs().mean() < 30 < 0.4 * 255  # grain alone
    data = textures.textured_shapes(0.0, 200)  # without contrast all textures are the same picture
    assert torch.equal(textures.cue_conflict(data, 0.0)[0], data.test.images)
