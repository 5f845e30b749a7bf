"""Right answers to 7.7 drop_path, and what becomes of its mutants."""

import torch
import torch.nn.functional as F


def _refused(p):
    if p < 0 or p >= 1:
        raise ValueError(f"{p} is no probability of dropping")


def by_bernoulli(x, drop_prob, training, generator=None):
    _refused(drop_prob)
    if training and drop_prob > 0:
        where = x.device if generator is None else generator.device
        chance = torch.full((x.shape[0],) + (1,) * (x.ndim - 1), 1 - drop_prob, device=where)
        x = x.div(1 - drop_prob) * torch.bernoulli(chance, generator=generator).to(x)
    return x


def by_where(x, drop_prob, training, generator=None):
    if not 0.0 <= drop_prob < 1.0:
        raise ValueError(f"got {drop_prob}")
    if not training:
        return x
    draws = torch.empty(len(x), device=generator.device if generator else x.device)
    gone = draws.uniform_(generator=generator).to(x.device) < drop_prob
    gone = gone[(slice(None), *(None,) * (x.ndim - 1))]
    return torch.where(gone, torch.zeros_like(x), x / (1 - drop_prob))


def by_floor(x, drop_prob, training, generator=None):
    _refused(drop_prob)
    if drop_prob == 0.0 or not training:
        return x
    keep = 1 - drop_prob
    device = generator.device if generator is not None else x.device
    one_each = (len(x), *[1] * (x.dim() - 1))
    mask = (keep + torch.rand(one_each, generator=generator, device=device)).floor()
    return x / keep * mask.to(device=x.device, dtype=x.dtype)


def by_loop(x, drop_prob, training, generator=None):
    _refused(drop_prob)
    if not training or not drop_prob:
        return x.clone()
    device = x.device if generator is None else generator.device
    rows = []
    for row in x:
        stays = torch.rand(1, generator=generator, device=device) >= drop_prob
        rows.append(row / (1 - drop_prob) if stays else torch.zeros_like(row))
    return torch.stack(rows)


def by_index(x, drop_prob, training, generator=None):
    _refused(drop_prob)
    if not training:
        return x
    device = x.device if generator is None else generator.device
    draws = torch.rand(x.size(0), device=device, generator=generator)
    scale = F.threshold(draws, drop_prob, 0.0).sign() / (1 - drop_prob)
    return torch.einsum("b...,b->b...", x, scale.to(x.device, x.dtype)) if drop_prob else x


EQUIVALENT = {
    "drop_prob is never below 0": ("or drop_prob <= 0",),
    "no draw is likely to be drop_prob itself": ("device=device) > drop_prob",),
}


LEFT_OPEN = {
    "at 0 every sample stays and is divided by 1; whether it draws is open": (
        "if not training:",
        "or drop_prob < 0",
        "or generator == 0",
        "or training == 0",
        "or drop_prob == -2",
        "or drop_prob == -1",
        "or drop_prob == 1",
        "or drop_prob == 2",
    ),
    "exercises.md asks for generators on the CPU only": ("generator=generator) >= drop_prob",),
    "a factor may be float32": ("stays.to(x.device) / (1 - drop_prob)",),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "drop_prob == 0",
    "not training",
    "len(x) == 1",
    "x.ndim == 2",
    "generator is None",
)
