"""5.4 logit_lens: the answer after every block."""

import torch
from torch import Generator

from vitedu.checks.observing import arguments
from vitedu.checks.writing.kit import Case, Layer, distinct, normal, plural, usual


def cases(g: Generator) -> list[Case]:
    """Draw tokens of several blocks, a norm that scales and shifts, and a head."""
    B, T, D, K, L = distinct(g, 5, 3, 8)

    def case(note="", part="other sizes", B=B, T=T, L=L, dtype=torch.float32, kind=Layer, **rest):
        spread, bias = rest.pop("spread", 30.0), rest.pop("bias", True)
        layers = [spread * (1 + i) * normal(g, B, T, D, dtype=dtype) for i in range(L)]
        shift, vector = normal(g, 2, D, dtype=dtype), normal(g, K, dtype=dtype) if bias else None
        norm = kind(1 + 0.5 * shift[0], shift[1])
        head = kind(normal(g, K, D, dtype=dtype) / D**0.5, vector)
        name = f"{plural(L, 'block')}, {plural(B, 'image')}, {plural(T, 'token')} of {D}{note}"
        args = {"layers": layers, "norm": norm, "head": head}
        return Case(name, args, part, rtol=1e-4, atol=1e-5, **rest)

    return [
        case(part="values", gradients=("layers",)),
        case(L=B),
        case(L=12, T=70),
        case(L=1),
        case(", the class token alone", T=1),
        case(B=1, part="batch of one"),
        case(", a head without bias", "rare layers", bias=False),
        case(", tokens that hardly vary", "rare layers", spread=1e-3),
        case(", a norm and a head of another class", "rare layers", kind=arguments.Wrapped),
        *usual(case),
    ]
