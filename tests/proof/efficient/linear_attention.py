"""Right answers to 8.7 linear_attention, and what becomes of its mutants."""

import torch
import torch.nn.functional as F


def by_einsum(q, k, v):
    q, k = F.elu(q) + 1.0, F.elu(k) + 1.0
    above = torch.einsum("...id,...dc->...ic", q, torch.einsum("...jd,...jc->...dc", k, v))
    return above / torch.einsum("...id,...d->...i", q, k.sum(-2)).unsqueeze(-1)


def by_column_of_ones(q, k, v):
    q, k = (torch.where(x > 0, x + 1, x.clamp(max=0).exp()) for x in (q, k))
    together = q @ (k.mT @ torch.cat([v, torch.ones_like(v[..., :1])], dim=-1))
    return together[..., :-1] / together[..., -1:]


def by_tokens(q, k, v):
    collected, total = 0, 0
    for key, value in zip(k.unbind(-2), v.unbind(-2), strict=True):
        feature = F.elu(key) + 1
        collected = collected + feature[..., :, None] * value[..., None, :]
        total = total + feature
    q = F.elu(q) + 1
    return torch.matmul(q, collected) / (q * total.unsqueeze(-2)).sum(-1, keepdim=True)


def with_epsilon(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    rest = 1 / (q @ k.sum(dim=-2, keepdim=True).transpose(-2, -1) + 1e-6)
    return q @ (k.transpose(-2, -1) @ v) * rest


def with_mean_keys(q, k, v):
    q, k = torch.nn.ELU()(q) + 1, torch.nn.ELU()(k) + 1
    k = k / k.sum(dim=-2, keepdim=True).sum(dim=-1, keepdim=True)
    return (q @ (k.mT @ v)) / (q * k.sum(dim=-2, keepdim=True)).sum(dim=-1, keepdim=True)


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "q.shape[-2] == k.shape[-2]",
    "q.shape[-2] == 1",
    "k.shape[-2] == 1",
    "q.shape[-1] == v.shape[-1]",
    "len(q) == 1",
)
