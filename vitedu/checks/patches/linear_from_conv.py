"""1.6 linear_from_conv: a convolution that is a matrix."""

import torch
from torch import Generator

from vitedu.checks.patches.linear_from_conv_driver import layer_from_layer
from vitedu.checks.writing.kit import Case, Layer, draw, normal, usual


def cases(g: Generator) -> list[Case]:
    """Draw convolutions with and without bias."""

    def case(C, P, D, bias=True, note="", dtype=torch.float32, **rest):
        conv = Layer(
            normal(g, D, C, P, P, dtype=dtype),
            None if bias is False else bias * normal(g, D, dtype=dtype),
        )
        name = f"Conv2d({C}, {D}, kernel_size={P}, stride={P}, bias={bias is not False}){note}"
        rest.setdefault("driver", layer_from_layer.__name__)
        return Case(name, {"conv": conv}, outputs=("weight",), rtol=1e-6, atol=1e-6, **rest)

    P, C, D = draw(g, 2, 3), draw(g, 4, 5), draw(g, 6, 9)  # C is never the 3 of a photograph
    return [
        case(C, P, D),
        case(C, P, D, bias=False, part="without bias"),
        case(C, P, D, bias=0.0, part="without bias", note=", a bias of zeros"),
        case(1, P, 128, part="one channel"),
        case(C, 1, D, part="rare sizes", note=", patches of one pixel"),
        case(C, P, 1, part="rare sizes", note=", one output"),
        *usual(case, C, P, D)[::2],  # the one between turns tensors round; there are none
    ]
