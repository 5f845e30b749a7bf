"""Right answers to 5.3 relevance_rollout, and what becomes of its mutants."""

from functools import reduce

import torch


def gradient_clamped_alone(attentions, gradients):
    B, _, T, _ = attentions[0].shape
    out = torch.eye(T).to(attentions[0]).repeat(B, 1, 1)
    for a, g in zip(attentions, gradients, strict=True):
        out = out + torch.bmm((a * g.clamp(min=0)).mean(1), out)
    return out


def by_einsum(attentions, gradients):
    out = torch.diag_embed(torch.ones_like(attentions[0][:, 0, 0]))
    for a, g in zip(attentions, gradients, strict=True):
        support = torch.where(g > 0, g, torch.zeros_like(g))
        out = out + torch.einsum("bhij,bhij,bjk->bik", support, a, out) / a.shape[1]
    return out


def from_the_left(attentions, gradients):
    product = None
    for i in reversed(range(len(attentions))):
        cam = torch.relu(attentions[i] * gradients[i])
        step = cam.sum(dim=1) / cam.size(1)
        step.diagonal(dim1=-2, dim2=-1).add_(1)
        product = step if product is None else product @ step
    return product


def by_reduce(attentions, gradients):
    identity = torch.eye(attentions[0].size(2)).to(attentions[0])
    both = map(torch.mul, attentions, gradients)
    means = (torch.maximum(each, each.new_zeros(())).mean(-3) for each in both)
    return reduce(lambda total, step: (identity + step).matmul(total), means, identity)


def by_images_and_heads(attentions, gradients):
    maps = []
    for b in range(len(attentions[0])):
        total = torch.eye(attentions[0].shape[-1]).to(attentions[0])
        for a, g in zip(attentions, gradients, strict=True):
            heads = [(x * y) * (x * y > 0) for x, y in zip(a[b], g[b], strict=True)]
            total = torch.addmm(total, sum(heads) / len(heads), total)
        maps.append(total)
    return torch.stack(maps)


def by_recursion(attentions, gradients):
    if len(attentions) == 0:
        return 1.0
    below = by_recursion(attentions[:-1], gradients[:-1])
    step = torch.nn.functional.relu(gradients[-1] * attentions[-1]).mean(1)
    identity = torch.eye(step.shape[-1], dtype=step.dtype, device=step.device)
    return identity + step if isinstance(below, float) else below + step @ below


def in_double(attentions, gradients):
    out = torch.eye(attentions[0].shape[-1], dtype=torch.float64, device=attentions[0].device)
    for a, g in zip(attentions, gradients, strict=True):
        both = a.double() * g.double()
        out = out + ((both + both.abs()) / 2).mean(1) @ out
    return out.to(attentions[0].dtype)


EQUIVALENT = {
    "weights are square": ("[-2], dtype", "[2], dtype"),
    "all layers have one T and one dtype, as their gradients have": (
        "first = gradients[0]",
        "first = attentions[-1]",
    ),
    "a product does not depend on the order": (
        "for slopes, weights in",
        "zip(gradients, attentions",
    ),
    "both lists have one length": ("zip(attentions, gradients):", "strict=False"),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(attentions) == 1",
    "len(attentions[0]) == 1",
    "attentions[0].shape[1] == 1",
    "len({len(each[0]) for each in attentions}) > 1",
)
