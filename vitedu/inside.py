"""Notebook 05: what a model has learned.

Role: what to look at inside a trained model. Notebook 04 uses it for its pictures. Not here: running a
model and keeping what passes through it (``vitedu.vit.capture``), figures (``vitedu.plots``).

Legend: B batch, T tokens, N patches, D embed_dim, nh heads, gh gw patch grid, K classes.

Reference: Dosovitskiy et al. 2020, figures 6 and 7 (arXiv 2010.11929).
"""

import torch


def class_attention(weights: torch.Tensor, grid_size: tuple[int, int]) -> torch.Tensor:
    """Pick out how much the class token attends to every patch.

    Args:
        weights: (B, nh, T, T) of one layer; the class token is token 0, the last N tokens are patches.
        grid_size: (gh, gw).

    Returns:
        (B, nh, gh, gw). The rows are not normalised again, so what is missing to 1 stays with the
        class token itself.

    Example:
        >>> class_attention(torch.full((2, 3, 5, 5), 0.2), (2, 2)).shape
        torch.Size([2, 3, 2, 2])
    """
    gh, gw = grid_size
    return weights[:, :, 0, -gh * gw :].unflatten(-1, (gh, gw))


def position_similarity(pos_embed: torch.Tensor, grid_size: tuple[int, int]) -> torch.Tensor:
    """Compare the position of every patch with that of every other.

    Args:
        pos_embed: (1, T, D); rows before the last N belong to other tokens and are dropped.
        grid_size: (gh, gw).

    Returns:
        (N, gh, gw), cosine similarities.

    Example:
        >>> position_similarity(torch.ones(1, 5, 8), (2, 2)).shape
        torch.Size([4, 2, 2])
    """
    gh, gw = grid_size
    unit = torch.nn.functional.normalize(pos_embed[0, -gh * gw :], dim=-1)  # (N, D)
    return (unit @ unit.T).unflatten(-1, (gh, gw))


def confusion_matrix(
    predictions: torch.Tensor, labels: torch.Tensor, num_classes: int
) -> torch.Tensor:
    """Count which class was taken for which.

    Args:
        predictions: (n,) classes that a model named.
        labels: (n,) true classes.
        num_classes: K.

    Returns:
        (K, K) int64; rows are true classes, columns are answers.

    Example:
        >>> confusion_matrix(torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1]), 2).tolist()
        [[1, 1], [0, 1]]
    """
    pairs = labels.long() * num_classes + predictions.long()
    return torch.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)
