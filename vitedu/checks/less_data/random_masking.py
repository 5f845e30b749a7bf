"""7.2 random_masking: hide most of an image."""

from functools import partial

import torch
from torch import Generator

from vitedu.checks.writing.kit import Case, distinct, draw, normal, plural, usual


def cases(g: Generator) -> list[Case]:
    """Draw tokens and noise; half a token is rounded as Python does."""
    N, D = draw(g, 10, 13), draw(g, 3, 5)
    B, M = distinct(g, 2, 2, 4)

    def case(note="", part="other sizes", B=B, N=N, M=M, off=0.2, dtype=torch.float32, **rest):
        ratio = rest.pop("ratio", round(1 - (M + off) / N, 3))
        noise = rest.pop("most", 1.0) * torch.rand(B, N, generator=g)
        args = {"tokens": normal(g, B, N, D, dtype=dtype), "mask_ratio": ratio, "noise": noise}
        name = f"{plural(B, 'image')}, {N} tokens of {D}, mask_ratio {ratio}{note}"
        return Case(name, args, part, outputs=("kept", "mask", "restore"), **rest)

    return [
        case(part="values", gradients=("tokens",)),
        case(part="values", M=N - 3),
        case(", rounded up", "how many", off=-0.3),
        case(", rounded down", "how many", off=0.3),
        case(", half a token, rounded to an even number", "rare numbers", N=45, ratio=0.5),
        case(", nothing is hidden", "how many", ratio=0.0),
        case(", one token stays", "how many", ratio=round(1 - 0.9 / N, 3)),
        case(", all is hidden", "rare numbers", ratio=1.0),
        case(", 147 of 196", "how many", N=196, ratio=0.75),
        case(part="batch of one", B=1, N=N + 30, M=N + 9, most=0.4),  # so many: no chance hits
        case(B=N),
        *usual(partial(case, N=N + 30, M=N + 9), half=True),
    ]
