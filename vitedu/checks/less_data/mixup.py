"""7.1 mixup: blend two images and their labels."""

import torch
from torch import Generator

from vitedu.checks.less_data import pairs
from vitedu.checks.writing.kit import Case, distinct, draw, plural, usual


def cases(g: Generator) -> list[Case]:
    """Draw batches whose partners are no pairs, so that a permutation and its inverse differ."""
    C, H, W = distinct(g, 3, 2, 6)
    B, K, tenths = draw(g, 7, 9), draw(g, 4, 6), draw(g, 6, 7)

    def case(note, part="other sizes", B=B, H=H, lam=tenths / 10, dtype=torch.float32, **rest):
        is_alike = rest.pop("is_alike", False)
        args = pairs.draw_labelled_pairs(g, (B, C, H, W), K, dtype, is_alike, lam=lam)
        name = f"{plural(B, 'image')} of {H} x {W} px, {K} classes, lam {lam}{note}"
        return Case(name, args, part, outputs=("images", "labels"), **rest)

    return [
        case("", "values", gradients=("images",)),
        case("", "values", lam=round(1 - tenths / 10, 1)),
        case(", all of it", lam=1.0),
        case(", nothing of it", lam=0.0),
        case("", H=W),
        case("", B=K),
        case(", all of one class", B=draw(g, 17, 19), is_alike=True),
        case("", "batch of one", B=1),
        *usual(case, half=True),
    ]
