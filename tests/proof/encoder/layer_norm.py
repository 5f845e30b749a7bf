"""Right answers to 3.1 layer_norm, and what becomes of its mutants."""

import torch
import torch.nn.functional as F


def by_var_mean(x, weight, bias, eps=1e-6):
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return torch.addcmul(bias, (x - mean) * torch.rsqrt(variance + eps), weight)


def by_einsum(x, weight, bias, eps=1e-6):
    D = x.shape[-1]
    centred = x - torch.einsum("...d->...", x).unsqueeze(-1) / D
    variance = torch.einsum("...d,...d->...", centred, centred) / D
    return torch.einsum("...d,...->...d", centred, (variance + eps) ** -0.5) * weight + bias


def by_loops(x, weight, bias, eps=1e-6):
    rows = []
    for token in x.reshape(-1, x.shape[-1]):
        mean = sum(token.unbind()) / len(token)
        variance = sum((value - mean) ** 2 for value in token.unbind()) / len(token)
        rows.append((token - mean).div(torch.sqrt(variance + eps)).mul(weight).add(bias))
    return torch.stack(rows).view_as(x)


def in_double(x, weight, bias, eps=1e-6):
    y = x.double()
    y = y - y.mean(-1, keepdim=True)
    y = y / torch.sqrt(y.pow(2).mean(-1, keepdim=True) + eps)
    return (y * weight.double() + bias.double()).to(x.dtype)


def by_group_norm(x, weight, bias, eps=1e-6):
    return F.group_norm(x.reshape(-1, x.shape[-1]), 1, weight, bias, eps).reshape(x.shape)


EQUIVALENT = {
    "a square has no sign": ("variance = ((mean - x) ** 2).mean(dim=-1, keepdim=True)",),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "x.ndim == 1",
    "len(x) == 1",
    "x.ndim > 1 and x.shape[-1] == x.shape[-2]",
    "eps == 0",
    "x.shape[-1] > 64",
    "x.ndim == 2",
    "not x.any()",
)
