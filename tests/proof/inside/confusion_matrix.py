"""Right answers to 5.5 confusion_matrix, and what becomes of its mutants."""

import numpy as np
import torch
import torch.nn.functional as F


def by_loop(predictions, labels, num_classes):
    counts = torch.zeros(num_classes, num_classes, dtype=torch.int64, device=labels.device)
    for answer, truth in zip(predictions.tolist(), labels.tolist(), strict=True):
        counts[truth, answer] += 1
    return counts


def by_accumulating(predictions, labels, num_classes):
    counts = labels.new_zeros((num_classes, num_classes))
    return counts.index_put((labels, predictions), torch.ones_like(labels), accumulate=True)


def by_one_hot(predictions, labels, num_classes):
    truth, answer = F.one_hot(labels, num_classes), F.one_hot(predictions, num_classes)
    return (truth[:, :, None] * answer[:, None, :]).sum(dim=0)


def by_comparing(predictions, labels, num_classes):
    K = range(num_classes)
    rows = [[((labels == i) & (predictions == j)).sum() for j in K] for i in K]
    return torch.stack([torch.stack(row) for row in rows])


def by_numpy(predictions, labels, num_classes):
    counts = np.zeros((num_classes, num_classes), dtype=np.int64)
    np.add.at(counts, (labels.cpu().numpy(), predictions.cpu().numpy()), 1)
    return torch.from_numpy(counts).to(labels.device)


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(labels) == 1",
    "num_classes == 2",
    "len(labels) == num_classes",
)
