"""Right answers to 5.1 class_attention, and what becomes of its mutants."""

import math

import torch


def by_reshape(weights, grid_size):
    return weights[:, :, 0, -math.prod(grid_size) :].reshape(*weights.shape[:2], *grid_size)


def by_loops(weights, grid_size):
    gh, gw = grid_size
    first = weights[..., 0, -gh * gw :].unbind(-1)
    return torch.stack([torch.stack(first[i * gw : i * gw + gw], -1) for i in range(gh)], -2)


def by_selecting(weights, grid_size):
    (B, nh, T, _), (gh, gw) = weights.shape, grid_size
    return weights.select(2, 0).narrow(-1, T - gh * gw, gh * gw).view(B, nh, gh, gw)


def by_a_query(weights, grid_size):
    query = torch.zeros_like(weights[:, :, :, 0])
    query[..., 0] = 1
    found = torch.einsum("bht,bhts->bhs", query, weights)
    return found[..., -math.prod(grid_size) :].unflatten(-1, grid_size)


def by_splitting(weights, grid_size):
    N = math.prod(grid_size)
    _, patches = weights.unbind(dim=-2)[0].split([weights.shape[-1] - N, N], dim=-1)
    return torch.stack(patches.chunk(grid_size[0], dim=-1), dim=-2)


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "len(weights) == 1",
    "weights.shape[1] == 1",
    "grid_size[0] == 1",
    "grid_size[1] == 1",
    "grid_size[0] == grid_size[1]",
)
