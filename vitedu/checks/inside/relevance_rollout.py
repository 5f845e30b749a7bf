"""5.3 relevance_rollout: through all layers, what speaks for one answer."""

import torch
from torch import Generator

from vitedu.checks.writing.kit import Case, distinct, normal, plural, usual


def cases(g: Generator) -> list[Case]:
    """Draw weights of several layers, and gradients of both signs."""
    B, nh, T, L = distinct(g, 4, 2, 5)

    def case(note="", part="other sizes", B=B, heads=None, T=T, L=L, dtype=torch.float32, **rest):
        heads, sign = heads or [nh] * L, rest.pop("sign", 1)
        shapes = [(B, each, T, T) for each in heads]
        weights = [(2 * normal(g, *shape, dtype=dtype)).softmax(dim=-1) for shape in shapes]
        slopes = [2 * normal(g, *shape, dtype=dtype) for shape in shapes]
        slopes = [-each.abs() for each in slopes] if sign < 0 else slopes
        name = f"{plural(len(heads), 'layer')}, {plural(B, 'image')}, {T} tokens{note}"
        return Case(name, {"attentions": weights, "gradients": slopes}, part, **rest)

    return [
        case(f", {nh} heads", "values", gradients=("attentions",)),
        case(", another number of heads in each layer", heads=[3, 1, 4, 2]),
        case(", every gradient below 0", sign=-1),
        case(L=12, T=70),
        case(B=T, heads=[T, T]),
        case(", one head", heads=[1] * L),
        case(L=1),
        case(B=1, L=2, part="batch of one"),
        *usual(case, half=True),
    ]
