"""What a model has learned: every measurement against loops, torch's own functions, or a case known beforehand."""

import math

import pytest
import torch
from torch import nn

from vitedu import inside
from vitedu.inside import (
    attention_distance,
    attention_rollout,
    calibration,
    class_attention,
    confusion_matrix,
    grid_distances,
    input_gradient,
    logit_lens,
    nearest_accuracy,
    pointing_game,
    position_similarity,
    probe_accuracy,
)
from vitedu.vit import VisionTransformer, ViTConfig, capture


def test_class_attention_is_the_first_row_without_the_class_token():
    """Each cell of the grid is the weight of its patch, row by row."""
    weights = torch.rand(2, 3, 7, 7)
    found = class_attention(weights, (2, 3))
    assert found.shape == (2, 3, 2, 3)
    for i in range(6):
        assert torch.equal(found[:, :, i // 3, i % 3], weights[:, :, 0, i + 1])


def test_position_similarity_equals_torch_cosine_and_drops_the_prefix():
    """Patch i against patch j, at row j // gw and column j % gw."""
    positions = torch.randn(1, 7, 8)
    found = position_similarity(positions, (2, 3))
    for i in range(6):
        for j in range(6):
            expected = torch.cosine_similarity(positions[0, i + 1], positions[0, j + 1], dim=0)
            torch.testing.assert_close(found[i, j // 3, j % 3], expected, rtol=0, atol=1e-5)


def test_confusion_matrix_counts_truth_down_and_answers_across():
    """Every image is counted once, absent classes have rows of zeros."""
    predictions, labels = torch.tensor([2, 0, 2, 2]), torch.tensor([2, 0, 0, 0])
    assert confusion_matrix(predictions, labels, 3).tolist() == [[1, 0, 2], [0, 0, 0], [0, 0, 1]]


def test_rollout_of_residual_matrices_follows_tokens_from_layer_to_layer():
    """Where rows are stochastic it equals the map of a linear network with the same paths."""
    layers = [torch.randn(2, 3, 5, 5).softmax(dim=-1) for _ in range(3)]
    tokens = torch.eye(5).expand(2, 5, 5)
    for weights in layers:  # what a network without values and MLPs would compute
        tokens = tokens / 2 + torch.einsum("bhij,bjd->bid", weights, tokens) / 6
    torch.testing.assert_close(attention_rollout(layers), tokens, rtol=0, atol=1e-6)


def test_rollout_normalises_rows_that_lost_weight():
    """A layer of zeros leaves every token as it was."""
    layers = [torch.rand(1, 2, 4, 4), torch.zeros(1, 2, 4, 4)]
    assert torch.allclose(attention_rollout(layers), attention_rollout(layers[:1]))
    assert torch.allclose(attention_rollout(layers).sum(dim=-1), torch.ones(1, 4))


def test_uniform_values_are_what_the_measurements_give():
    """The constants are closed forms; the functions measure the same on uniform attention."""
    even = torch.full((1, 1, 65, 65), 1 / 65)
    assert attention_distance(even, (8, 8)).item() == pytest.approx(
        inside.uniform_distance, rel=1e-4
    )
    shares = attention_rollout([even] * 4)[0, 0]
    assert shares[0].item() == pytest.approx(inside.rollout_self_share, rel=1e-4)


def test_pointing_game_hits_misses_and_ties():
    """A hit in one of two images is a half; of equally hot patches the first counts."""
    masks = torch.zeros(2, 4, 6, dtype=torch.bool)
    masks[:, 3, 5] = True  # the last of 2 x 3 patches, by one pixel
    maps = torch.zeros(2, 2, 3)
    maps[0, 1, 2] = 1.0  # points there; the other map is even
    assert pointing_game(maps, masks) == 0.5
    masks[1, 0, 0] = True
    assert pointing_game(maps, masks) == 1.0


def test_logit_lens_ends_with_the_models_own_logits():
    """Behind the last block the lens shows what the model answers."""
    config = ViTConfig(image_size=8, patch_size=4, embed_dim=12, depth=3, num_heads=3)
    model, images = VisionTransformer(config), torch.randn(2, 3, 8, 8)
    found = capture(model, images)
    layers = [found[f"blocks.{i}"] for i in range(3)]
    with torch.no_grad():
        answers = logit_lens(layers, model.norm, model.head)
    assert answers.shape == (3, 2, 10)
    torch.testing.assert_close(answers[-1], found["logits"])
    assert not torch.allclose(answers[0], answers[-1])


def test_attention_distance_of_a_step_to_the_right():
    """Every patch looks at its right neighbour, the last of a row at itself: 2 of 3 steps of length 1."""
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


def test_features_that_tell_the_class_are_read_and_noise_is_not():
    """Both readings: perfect on classes that lie apart, near chance on noise."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(300) % 3
    noise = torch.randn(300, 6, generator=generator)
    apart = torch.nn.functional.pad(5 * torch.eye(3)[labels], (0, 3)) + 0.3 * noise
    for read in (nearest_accuracy, probe_accuracy):
        assert read(apart[:200], labels[:200], apart[200:], labels[200:]) == 1.0
        assert read(noise[:200], labels[:200], noise[200:], labels[200:]) < 0.5


def test_calibration_gap_is_weighted_by_images():
    """Three sure images of which two are right, one unsure image that is right."""
    confidence = torch.tensor([1.0, 0.95, 0.96, 0.55])
    sure, right, counts, gap = calibration(confidence, torch.tensor([True, True, False, True]))
    assert counts.tolist() == [0, 0, 0, 0, 0, 1, 0, 0, 0, 3]
    assert sure[9].item() == pytest.approx(0.97) and right[9].item() == pytest.approx(2 / 3)
    assert sure[0].isnan()
    assert gap == pytest.approx((3 * (0.97 - 2 / 3) + 0.45) / 4)
