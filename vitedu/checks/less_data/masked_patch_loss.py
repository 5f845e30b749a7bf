"""7.3 masked_patch_loss: the error where it was hidden."""

import torch
from torch import Generator

from vitedu.checks.writing.kit import Case, distinct, draw, normal, plural, usual


def cases(g: Generator) -> list[Case]:
    """Draw patches, and masks that hide another number of them in every image."""
    B, N, P = distinct(g, 3, 4, 9)
    many = draw(g, 65, 80)

    def case(note="", part="other sizes", B=B, N=N, P=P, mask=None, dtype=torch.float32, **rest):
        if mask is None:
            hidden = torch.randint(1, N, (B, 1), generator=g)
            hidden[0] = 1 if B > 1 else hidden[0]
            hidden[-1] = N - 1  # no two averages of averages agree with the mean over all
            mask = torch.rand(B, N, generator=g).argsort(dim=1) < hidden
        prediction = normal(g, B, N, P, dtype=dtype)
        target = 2 * normal(g, B, N, P, dtype=dtype) + 1
        if rest.pop("exact", False):
            prediction[0, 0] = target[0, 0]
        mask = mask.to(rest.pop("kind", dtype))
        args = {"prediction": prediction, "target": target, "mask": mask}
        name = f"{plural(B, 'image')}, {N} patches of {P} values{note}"
        return Case(name, args, part, **rest)

    one = torch.zeros(B, N)
    one[1, 2] = 1
    none_in_first = torch.ones(B, N)
    none_in_first[0] = 0
    return [
        # the second call has other values: a mask of numbers would be one no more
        case(", a boolean mask", "values", gradients=("prediction",), kind=torch.bool),
        case(part="values", gradients=("prediction",)),
        case(", all hidden", mask=torch.ones(B, N)),
        case(", all hidden, one predicted exactly", mask=torch.ones(B, N), exact=True),
        case(", one patch hidden", mask=one),
        case(", nothing hidden in the first image", mask=none_in_first),
        case(B=N, P=N),
        case(N=many),
        case(part="batch of one", B=1),
        case(", one value each", "patches of one value", P=1),
        *usual(case),
    ]
