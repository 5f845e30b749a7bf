"""3.2 gelu: a soft gate."""

import torch

from vitedu.checks.writing.kit import ON_ACCELERATOR, TURNED, also, shaped


def _near_2_6(x: torch.Tensor) -> torch.Tensor:
    return 2.6 + 0.2 * x.tanh()


cases = shaped(
    "x: B T 8*D",
    also("other axes", "", shapes="x: D", name="x of {D}"),
    # a number where the tanh form is off by 4e-4
    also("no axis", "", shapes="x:", name="x of one number", values={"x": _near_2_6}),
    # a constant rounded to float32 is off by 1e-8; a table of erf by 1e-7
    also("dtype", "float64", dtype=torch.float64, rtol=1e-7, atol=3e-8),
    # so large that the gate is open or shut, whatever is drawn
    also("large values", "values in the millions", scale=1e6),
    TURNED,
    ON_ACCELERATOR,
    # where x is 0 some right formulas have no gradient
    also("other axes", "zeros among them", values={"x": torch.relu}, B=9, learns=False),
    # in float32 rounding costs at most 2e-6; the tanh form is off by up to 4.7e-4
    rtol=1e-5,
    atol=1e-5,
    name="x of {B} x {T} x {8*D}",
    scale=1.5,
)

forbidden = frozenset(
    "gelu gelu_ aten.gelu aten.gelu_ aten.gelu_backward "
    # layers with GELU behind them
    "mkldnn._linear_pointwise mkldnn._convolution_pointwise "
    "mkldnn._convolution_transpose_pointwise".split()
)
