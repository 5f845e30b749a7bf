"""Right answers to 5.2 attention_rollout, and what becomes of its mutants."""

from functools import reduce

import torch


def by_reduce(layers):
    matrices = []
    for weights in layers:
        mixed = torch.einsum("bhij->bij", weights) / weights.size(1)
        mixed = mixed + torch.diag(torch.ones_like(mixed[0, 0]))
        matrices.append(torch.nn.functional.normalize(mixed, p=1, dim=-1))
    return reduce(torch.matmul, reversed(matrices))


def from_the_left(layers):
    product = None
    for weights in reversed(list(layers)):
        step = 0.5 * weights.mean(1)
        step = step + 0.5 * torch.eye(step.shape[-1]).to(step)
        step = step / step.sum(2)[:, :, None]
        product = step if product is None else product.bmm(step)
    return product


def by_images(layers):
    maps = []
    for image in zip(*layers, strict=True):
        rollout = None
        for weights in image:
            step = sum(weights.unbind(0)) / len(weights)
            step = step + torch.diag(torch.ones_like(step[0]))
            step = torch.stack([row / row.sum() for row in step])
            rollout = step if rollout is None else torch.mm(step, rollout)
        maps.append(rollout)
    return torch.stack(maps)


def in_double(layers):
    stacked = torch.stack(list(layers)).double().mean(dim=2)  # (L, B, T, T)
    stacked = stacked + torch.eye(stacked.shape[-1], device=stacked.device).double()
    stacked = stacked / stacked.sum(dim=-1, keepdim=True)
    result = stacked[0]
    for step in stacked[1:]:
        result = step.matmul(result)
    return result.to(layers[0].dtype)


def by_recursion(layers):
    *earlier, last = layers
    step = last.mean(dim=1).clone()
    step.diagonal(dim1=-2, dim2=-1).add_(1)
    step = step / torch.linalg.vecdot(step, torch.ones_like(step))[..., None]
    return step @ by_recursion(earlier) if earlier else step


EQUIVALENT = {
    "weights are square": ("[-2], dtype", "[2], dtype"),
    "all layers have one shape": ("first = layers[-1]",),
    "rows are divided by their sum afterwards": (
        "step = weights.mean(dim=1) + identity",
        "step = (weights.mean(dim=1) + identity) * 2",
        *(f"step = (weights.mean(dim=1) + identity) / {n}" for n in (-2, -1, 1, 3, 4)),
    ),
    "no entry reaches 2": ("step = (weights.mean(dim=1) + identity) % 2",),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(layers) == 1",
    "len(layers[0]) == 1",
)
