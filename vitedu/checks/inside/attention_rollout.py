"""5.2 attention_rollout: through all layers at once."""

import torch
from torch import Generator

from vitedu.checks.writing.kit import Case, distinct, normal, plural, usual


def cases(g: Generator) -> list[Case]:
    """Draw weights of several layers: rows that sum to 1, and rows that do not."""
    B, nh, T, L = distinct(g, 4, 2, 5)

    def case(note="", part="other sizes", B=B, nh=nh, T=T, L=L, dtype=torch.float32, **rest):
        layers = [(2 * normal(g, B, nh, T, T, dtype=dtype)).softmax(dim=-1) for _ in range(L)]
        if rest.pop("leak", False):  # every row keeps a share of its own
            layers = [w * (0.3 + torch.rand(B, nh, T, 1, generator=g)).to(dtype) for w in layers]
        name = f"{plural(L, 'layer')}, {plural(B, 'image')}, {plural(nh, 'head')}, {T} tokens{note}"
        return Case(name, {"layers": layers}, part, **rest)

    return [
        case(", rows of any sum", "values", leak=True, gradients=("layers",)),
        case(", rows of sum 1", "softmax's rows"),
        case(L=12, T=70),
        case(B=T, nh=T, L=2),
        case(nh=1),
        case(L=1),
        case(B=1, L=2, part="batch of one"),
        *usual(case, half=True),
    ]
