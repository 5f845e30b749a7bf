"""What a model has learned: measurements that no exercise asks for, on cases known beforehand.

That the exercises' functions equal other roads to the same result is proved by the right answers of
their banks.
"""

import math

import pytest
import torch
from torch import nn

from vitedu import inside
from vitedu.inside import (
    answers_changed,
    attention_distance,
    attention_gradients,
    attention_rollout,
    blank_patches,
    falls_by_patch,
    grid_distances,
    input_gradient,
    nearest_accuracy,
    probe_accuracy,
)


def test_uniform_values_are_what_the_measurements_give():
    """The constants are closed forms; the functions measure the same on uniform attention."""
    even = torch.full((1, 1, 65, 65), 1 / 65)
    assert attention_distance(even, (8, 8)).item() == pytest.approx(
        inside.uniform_distance, rel=1e-4
    )
    shares = attention_rollout([even] * 4)[0, 0]
    assert shares[0].item() == pytest.approx(inside.rollout_self_share, rel=1e-4)


def test_attention_distance_of_a_step_to_the_right():
    """Every patch looks to the right, the last of a row at itself: 2 of 3 steps of length 1."""
    weights = torch.zeros(1, 1, 7, 7)
    for i in range(6):
        weights[0, 0, i + 1, i + 1 + (i % 3 < 2)] = (
            0.5  # half of it; the rest goes to the class token
        )
    weights[..., 0] = 0.5
    assert attention_distance(weights, (2, 3)).item() == pytest.approx(2 / 3)
    assert grid_distances((2, 3))[0, 5].item() == pytest.approx(math.sqrt(5))


def test_input_gradient_finds_the_patch_that_a_model_reads():
    """A linear model that reads one patch has its gradient there, in full."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(32, 1, bias=False))
    kernel = torch.zeros(1, 2, 4, 4)
    kernel[:, :, 2:, :2] = -0.5
    model[1].weight.data = kernel.flatten(1)
    images = torch.randn(3, 2, 4, 4)
    expected = torch.tensor([[0.0, 0.0], [4.0, 0.0]]).expand(3, 2, 2)
    torch.testing.assert_close(input_gradient(model, images, (2, 2)), expected)
    assert images.grad is None and not images.requires_grad


class WeighedTokens(nn.Module):
    """An attention layer whose weights are known: they add up tokens, twice as much in head 1."""

    def __init__(self):
        super().__init__()
        self.weights = torch.rand(1, 2, 3, 3)

    def forward(self, x):
        """Map tokens (B, T, D) to (B, T, D) and the weights."""
        weights = self.weights * (1 + 0 * x.sum())
        return (weights[:, 0] + 2 * weights[:, 1]) @ x, weights


def test_attention_gradients_are_those_of_each_image_own_answer():
    """The logit of the class token's place is a sum of weighted tokens, so the slopes are known."""
    model, layer = nn.Module(), WeighedTokens()
    model.blocks = nn.ModuleList([nn.ModuleDict({"attn": layer})])
    model.forward = lambda images: layer(images)[0][:, 0]  # (B, T, K) -> (B, K)
    images = torch.tensor([[[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]]])  # feature 1 is the answer
    (weights,), (slopes,) = attention_gradients(model, images)
    expected = torch.zeros(1, 2, 3, 3)
    expected[0, 0, 0], expected[0, 1, 0] = torch.tensor([[5.0, 6, 7], [10, 12, 14]])
    assert torch.equal(weights, layer.weights) and torch.equal(slopes, expected)
    assert not weights.requires_grad and images.grad is None


def test_answers_change_where_the_patch_that_counts_is_blanked():
    """A model that hangs on one patch: only a rule that finds it changes the answer."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2, bias=False))
    model[1].weight.data = torch.tensor([[0.0, 0, 0, 0], [9.0, 1, 1, 1]])
    images = torch.tensor([[[[1.0, 0.0], [0.0, 0.0]]]]).expand(3, 1, 2, 2) * 4 - 1
    scores = torch.tensor([[[3.0, 2], [1, 0]], [[0.0, 1], [2, 3]], [[2.0, 3], [1, 0]]])
    assert answers_changed(model, images, scores, (1, 2)) == pytest.approx([1 / 3, 2 / 3])


def test_blanked_patches_have_the_mean_colour_of_their_own_image():
    """Two patches of one image, the same twice of the other; nothing else changes."""
    images = torch.arange(96.0).reshape(2, 3, 4, 4).square()
    kept = images.clone()
    blanked = blank_patches(images, torch.tensor([[0, 3], [2, 2]]), (2, 2))
    means = images.mean(dim=(2, 3), keepdim=True)
    expected = images.clone()
    expected[0, :, :2, :2] = expected[0, :, 2:, 2:] = means[0]
    expected[1, :, 2:, :2] = means[1]
    assert torch.equal(blanked, expected) and torch.equal(images, kept)


def test_falls_by_patch_find_the_patch_that_the_answer_stands_on():
    """A model that adds up one patch: its answer falls there, and nowhere else."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 2, bias=False))
    kernel = torch.zeros(2, 4, 4)
    kernel[1, :2, 2:] = 1.0
    model[1].weight.data = kernel.flatten(1)
    image = torch.zeros(1, 4, 4)
    image[0, :2, 2:] = 1.0  # the mean colour is 1/4, so the logit falls from 4 to 1
    falls = falls_by_patch(model, image, (2, 2))
    expected = 1 / (1 + math.exp(-4)) - 1 / (1 + math.exp(-1))
    torch.testing.assert_close(falls, torch.tensor([[0.0, expected], [0.0, 0.0]]))


def test_features_that_tell_the_class_are_read_and_noise_is_not():
    """Both readings: perfect on classes that lie apart, near chance on noise."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(300) % 3
    noise = torch.randn(300, 6, generator=generator)
    apart = torch.nn.functional.pad(5 * torch.eye(3)[labels], (0, 3)) + 0.3 * noise
    for read in (nearest_accuracy, probe_accuracy):
        assert read(apart[:200], labels[:200], apart[200:], labels[200:]) == 1.0
        assert read(noise[:200], labels[:200], noise[200:], labels[200:]) < 0.5
