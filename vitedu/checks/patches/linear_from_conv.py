"""1.3 linear_from_conv: a convolution that is a matrix."""

import torch

from vitedu import patches as reference
from vitedu.checks.kit import Case, Checker, draw, normal
from vitedu.checks.patches.linear_from_conv_driver import Conv, layer_from_layer


def cases(g: torch.Generator) -> list[Case]:
    """Draw convolutions with and without bias."""

    def case(C, P, D, bias=True, dtype=torch.float32, note="", **rest):
        conv = Conv(
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
        case(C, P, D, bias=0.0, part="other sizes", note=", a bias of zeros"),
        case(1, P, D, dtype=torch.float64, part="other sizes", note=", float64"),
        case(C, 1, D, part="other sizes", note=", patches of one pixel"),
        case(C, P, 1, part="other sizes", note=", one output"),
        case(C, P, D, part="any device", on_accelerator=True, note=", on an accelerator"),
    ]


def own_device(conv):
    """Return the right layer, always on the CPU."""
    return reference.linear_from_conv(conv).cpu()


CHECKER = Checker(
    "linear_from_conv",
    idea={
        "values": "every weight and bias stands where it should, and conv is unchanged",
        "without bias": "no bias where conv has none",
        "other sizes": "also for grey images, patches of one pixel and float64",
    },
)
