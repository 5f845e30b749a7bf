"""Right answers to 1.7 sincos_positions, and what becomes of its mutants."""

import math

import torch

from proof.reasons import NEGATIVE_DIVISOR


def by_slices(num_positions, embed_dim):
    if embed_dim % 2 == 1:
        raise ValueError("odd")
    table = torch.zeros(num_positions, embed_dim)
    position = torch.arange(num_positions).float().unsqueeze(1)
    rate = torch.exp(torch.arange(0, embed_dim, 2).float() * (-math.log(10000.0) / embed_dim))
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate)
    return table


def by_loops(num_positions, embed_dim):
    if embed_dim & 1:
        raise ValueError(f"embed_dim={embed_dim}")
    rows = []
    for p in range(num_positions):
        angles = [p / 10000 ** (2 * (j // 2) / embed_dim) for j in range(embed_dim)]
        rows.append([math.cos(a) if j % 2 else math.sin(a) for j, a in enumerate(angles)])
    return torch.tensor(rows)


def by_phase(num_positions, embed_dim):
    if embed_dim % 2:
        raise ValueError("embed_dim must be even")
    column = torch.arange(embed_dim, dtype=torch.float64)
    rate = torch.pow(torch.tensor(10000.0, dtype=torch.float64), -2 * (column // 2) / embed_dim)
    turn = (column % 2) * math.pi / 2
    position = torch.arange(num_positions, dtype=torch.float64)
    return torch.sin(torch.outer(position, rate) + turn).to(torch.float32)


def by_complex_powers(num_positions, embed_dim):
    if embed_dim % 2:
        raise ValueError("embed_dim must be even")
    rate = 10000 ** (-torch.arange(0, embed_dim, 2, dtype=torch.float64) / embed_dim)
    circle = torch.polar(torch.ones_like(rate), rate)
    turned = circle[None] ** torch.arange(num_positions, dtype=torch.float64)[:, None]
    return torch.view_as_real(turned)[..., [1, 0]].flatten(1).float()


EQUIVALENT = {
    NEGATIVE_DIVISOR: ("if embed_dim % -2:",),
    "whole numbers divided by float64 are float64": (
        "position = torch.arange(num_positions).unsqueeze(1)",
    ),
}


LEFT_OPEN = {
    "exponents rounded to float32 are right to the tolerance of a float32 table": (
        "(0, embed_dim, 2)",
    ),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "num_positions == 1",
    "embed_dim == 2",
    "num_positions == embed_dim",
    "num_positions > 128",
    "embed_dim == 128",
)
