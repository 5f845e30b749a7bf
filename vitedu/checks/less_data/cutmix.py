"""7.5 cutmix: paste a piece of another image."""

import torch
from torch import Generator

from vitedu.checks.less_data import pairs
from vitedu.checks.writing.kit import Case, distinct, draw, plural, usual


def cases(g: Generator) -> list[Case]:
    """Draw batches and boxes: inside, across an edge, outside, empty, all of the image."""
    B, K, C = draw(g, 6, 8), draw(g, 4, 5), draw(g, 4, 5)
    H, W = distinct(g, 2, 9, 12)
    (top, left), (h, w) = distinct(g, 2, 1, 3), distinct(g, 2, 3, 5)
    inside = (top, left, top + h, left + w)

    def case(box, note, part="other sizes", B=B, H=H, W=W, dtype=torch.float32, **rest):
        is_alike = rest.pop("is_alike", False)
        args = pairs.draw_labelled_pairs(g, (B, C, H, W), K, dtype, is_alike, box=box)
        name = f"{plural(B, 'image')} of {H} x {W} px, box {box}{note}"
        return Case(name, args, part, outputs=("images", "labels"), **rest)

    clipped, turned, other = "clipped boxes", "turned boxes", "uint8"
    return [
        case(inside, "", "values", gradients=("images",)),
        case((top, top + 2, top + w, top + w + 1), "", "values"),  # a box in any order
        case((-2, -3, h, w), ", across the top left", clipped),
        case((H - h, W - w, H + 2, W + 1), ", across the bottom right", clipped),
        case((-1, -1, H + 1, W + 1), ", more than the image", clipped),
        case((0, 0, H, W), ", all of the image", clipped),
        case((top, left, top, left + w), ", without rows", clipped),
        case((top, left, top + h, left), ", without columns", clipped),
        case((-4, left, -1, left + w), ", above the image", clipped),
        case((top, W + 1, top + h, W + 4), ", right of the image", clipped),
        case((top, -4, top + h, -1), ", left of the image", clipped),
        case((H + 1, left, H + 4, left + w), ", below the image", clipped),
        case((top + h, left, top, left + w), ", with bottom above top", turned),
        case((top, left + w, top + h, left), ", with right before left", turned),
        case((top + h, left + w, top, left), ", with both turned round", turned),
        case(inside, ", square", W=H),
        case(inside, ", all of one class", B=draw(g, 17, 19), is_alike=True),
        case(inside, "", "batch of one", B=1),
        case(inside, ", uint8", other, dtype=torch.uint8),
        *usual(case, inside, half=True),
    ]
