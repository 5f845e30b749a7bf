"""6.8 shuffle_patches: the same patches in another order."""

import torch
from torch import Generator

from vitedu.checks.writing.kit import Case, Checker, distinct, normal, usual


def cases(g: Generator) -> list[Case]:
    """Draw images and permutations that differ from their inverse."""

    def case(B, C, gh, gw, P, part="other sizes", note="", dtype=torch.float32, **rest):
        N = gh * gw
        permutation = torch.randperm(N, generator=g)
        while N > 2 and torch.equal(permutation[permutation], torch.arange(N)):
            permutation = torch.randperm(N, generator=g)
        images = normal(g, B, C, gh * P, gw * P, dtype=dtype)
        args = {"images": images, "patch_size": P, "permutation": permutation}
        name = f"{B} image(s) of {C} channel(s), {gh * P} x {gw * P} px, patch_size {P}{note}"
        return Case(name, args, part, rtol=1e-6, atol=1e-6, **rest)

    (B, C), (gh, gw) = distinct(g, 2, 2, 4), distinct(g, 2, 2, 4)
    P, Q = distinct(g, 2, 2, 4)
    return [
        case(B, C, gh, gw, P, "values", gradients=("images",)),
        case(C, B, gw, gh, Q, "values"),
        case(9, C, 9, 9, P, note=", square, many patches"),
        case(B, 1, 2, 8, Q),
        case(B, C, 1, gw + 2, Q, note=", one row of patches"),
        case(gh + 2, C, gh + 2, 1, Q, note=", one column, as many patches as images"),
        case(1, C, gw, gh, P, "batch of one"),
        case(B, C, gh, gw, 1, "patches of one pixel"),
        *usual(case, B, C, gh, gw, P),
    ]


CHECKER = Checker()
