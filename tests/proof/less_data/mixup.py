"""Right answers to 7.1 mixup, and what becomes of its mutants."""

import torch
import torch.nn.functional as F


def by_loop(images, labels, num_classes, lam, permutation):
    mixed, soft = [], []
    for i, j in enumerate(permutation.tolist()):
        row = torch.zeros(num_classes, dtype=images.dtype, device=images.device)
        row[labels[i]] += lam
        row[labels[j]] += 1 - lam
        soft.append(row)
        mixed.append(images[i] * lam + images[j] * (1 - lam))
    return torch.stack(mixed), torch.stack(soft)


def by_lerp(images, labels, num_classes, lam, permutation):
    own = torch.eye(num_classes, dtype=images.dtype, device=images.device)[labels]
    return torch.lerp(images[permutation], images, lam), torch.lerp(own[permutation], own, lam)


def by_scatter(images, labels, num_classes, lam, permutation):
    soft = images.new_zeros(len(images), num_classes)
    soft.scatter_add_(1, labels[:, None], torch.full_like(soft[:, :1], lam))
    soft.scatter_add_(1, labels[permutation][:, None], torch.full_like(soft[:, :1], 1 - lam))
    return lam * images + (1.0 - lam) * images.index_select(0, permutation), soft


def by_matrix(images, labels, num_classes, lam, permutation):
    B = len(images)
    table = F.one_hot(permutation, B).to(images.dtype) * (1 - lam)
    table = table + lam * torch.eye(B, dtype=images.dtype, device=images.device)
    one_hot = (labels[:, None] == torch.arange(num_classes, device=labels.device)).to(images.dtype)
    return torch.einsum("ij,jchw->ichw", table, images), table @ one_hot


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "lam == 0",
    "lam == 1",
    "len(images) == 1",
    "len(images) == num_classes",
)
