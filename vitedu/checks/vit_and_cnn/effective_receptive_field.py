"""6.5 effective_receptive_field: what a cell does depend on."""

import torch
from torch import Generator

from vitedu.checks.vit_and_cnn.effective_receptive_field_driver import FeatureMap
from vitedu.checks.writing.kit import Case, distinct, draw, normal, usual


def cases(g: Generator) -> list[Case]:
    """Draw feature maps and images. Grids are wide enough for the middle to differ from the rim."""

    def case(B, C, gh, gw, part="other sizes", dtype=torch.float32, note="", **rest):
        (M, P), D = distinct(g, 2, 2, 4), rest.pop("features", draw(g, 6, 9))
        first = normal(g, M, C, 3, 3, dtype=dtype) / (9 * C) ** 0.5
        second = normal(g, D, M, P, P, dtype=dtype)
        images = 2 * normal(g, B, C, gh * P, gw * P, dtype=dtype)
        args = {"feature_map": FeatureMap(first, second), "images": images}
        size = f"{gh * P} x {gw * P} px"
        name = f"a grid of {gh} x {gw} cells, {B} image(s) of {C} channel(s), {size}{note}"
        return Case(name, args, part, **rest)

    # the middle of either side is a place of the other, too: exchanged, they raise no error
    gh, gw = (2 * side + 1 for side in distinct(g, 2, 2, 4))
    B, C = draw(g, 3, 5), draw(g, 2, 4)
    return [
        case(B, C, gh, gw, "values"),
        case(C + 1, B, gw, gh, "values"),
        case(C, C, gh, gh, note=", square"),
        case(B, 1, gw, gh),
        case(1, C, 5, 5, "batch of one", features=30),
        case(B, C, 1, 3, "rare grids", note=", one row of cells"),
        case(B, C, 1, 1, "rare grids", note=", one cell that every pixel reaches"),
        *usual(case, B, C, gh, gw),
    ]
