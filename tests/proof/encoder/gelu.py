"""Right answers to 3.2 gelu, and what becomes of its mutants."""

import torch


def by_normal(x):
    return torch.distributions.Normal(0, 1, validate_args=False).cdf(x).to(x.dtype) * x


def by_ndtr(x):
    return torch.special.ndtr(x).mul(x)


def by_erfc(x):
    return 0.5 * x * torch.erfc(-x * 2**-0.5)


def in_double(x):
    wide = x.to(torch.float64)
    return ((torch.erf(wide * 0.5**0.5) + 1) / 2 * wide).type_as(x)


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "x.ndim == 0",
    "x.ndim == 1",
    "x.numel() == 1",
    "bool((x == 0).any())",
)
