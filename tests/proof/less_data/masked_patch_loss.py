"""Right answers to 7.3 masked_patch_loss, and what becomes of its mutants."""

import torch
import torch.nn.functional as F


def by_indexing(prediction, target, mask):
    hidden = mask.bool()
    return F.mse_loss(prediction[hidden], target[hidden])


def by_loop(prediction, target, mask):
    hidden = [(b, n) for b in range(len(mask)) for n in range(mask.shape[1]) if mask[b, n]]
    return torch.stack([(prediction[i] - target[i]).pow(2).mean() for i in hidden]).mean()


def by_weights(prediction, target, mask):
    weights = mask.to(prediction.dtype) / mask.sum()
    return torch.einsum("bnp,bn->", (target - prediction).square(), weights) / target.shape[-1]


def by_where(prediction, target, mask):
    gap = torch.where(mask.unsqueeze(-1) > 0, prediction - target, torch.zeros_like(target))
    return (gap * gap).sum() / (mask.sum() * prediction.size(-1))


EQUIVALENT = {
    "a square has no sign": ("error = (target - prediction) ** 2",),
    "a mask of either kind takes the dtype of what it multiplies": (
        "hidden = mask",
        "hidden = mask.to()",
    ),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(mask) == 1",
    "mask.all()",
    "mask.dtype == torch.bool",
)
