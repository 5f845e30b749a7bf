"""What notebook 04 takes from the next one: against loops and torch's own cosine."""

import torch

from vitedu.inside import class_attention, confusion_matrix, position_similarity


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
