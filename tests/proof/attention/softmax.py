"""Right answers to 2.1 softmax, and what becomes of its mutants."""

import math

import torch


def by_logsumexp(x, dim=-1):
    return torch.exp(x - torch.logsumexp(x, dim=dim, keepdim=True))


def by_slices(x, dim=-1):
    slices = x.unbind(dim)
    top = slices[0]
    for piece in slices[1:]:
        top = torch.maximum(top, piece)
    powers = [math.e ** (piece - top) for piece in slices]
    total = sum(powers)
    return torch.stack([power / total for power in powers], dim=dim)


def by_pairs(x, dim=-1):
    scores = x.movedim(dim, -1)
    odds = scores[..., None, :] - scores[..., :, None]
    odds = odds.clamp(max=80).exp()  # an infinite one would have a gradient of NaN
    return odds.sum(-1).reciprocal().movedim(-1, dim)


def by_logaddexp(x, dim=-1):
    total = None
    for piece in x.split(1, dim):
        total = piece if total is None else torch.logaddexp(total, piece)
    return (x - total).exp()


def in_double(x, dim=-1):
    wide = x.double()
    exp = torch.exp(wide - wide.detach().max(dim, keepdim=True).values)
    return exp.div(exp.sum(dim, True)).to(x.dtype)


def by_matrix_product(x, dim=-1):
    scores = torch.transpose(x, dim, -1)
    exp = torch.exp2((scores - scores.sort(-1).values[..., -1:]) * math.log2(math.e))
    ones = torch.ones(exp.shape[-1], 1, dtype=x.dtype, device=x.device)
    return (exp / (exp @ ones)).transpose(dim, -1)


def as_gradient(x, dim=-1):
    leaf = x if x.requires_grad else x.detach().requires_grad_()
    (weights,) = torch.autograd.grad(leaf.logsumexp(dim).sum(), leaf, create_graph=True)
    return weights


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "x.ndim == 1",
    "x.shape[dim] == 1",
    "dim == 0",
    "dim == 1",
    "len(x) == 1",
    "len(set(x.shape)) < x.ndim",
    "x.numel() > 4096",
)
