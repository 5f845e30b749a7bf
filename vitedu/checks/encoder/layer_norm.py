"""3.1 layer_norm: normalise each token."""

import torch

from vitedu.checks.writing.kit import USUAL, also, shaped

PARAMETERS = "; weight: D; bias: D"
START = {"weight": torch.ones_like, "bias": torch.zeros_like}
FAR = {"x": lambda x: x + 1e4}
MORE_AXES = "x: A B T D" + PARAMETERS
EPS = "x: B T D" + PARAMETERS + "; eps = "

# a large spread, so that eps is felt in its own part and nowhere else
cases = shaped(
    "x: B T D" + PARAMETERS,
    USUAL[0],
    also("other axes", "", shapes="x: D D" + PARAMETERS, D=72, name="a square x of {D} x {D}"),
    also("other axes", "a single token", shapes="x: D" + PARAMETERS, name="x of {D}"),
    also("other axes", "more axes", shapes=MORE_AXES, name="x of {A} x {B} x {T} x {D}"),
    also("rare values", "one feature", D=1, atol=0.1),
    also("eps", "features of zero", values={"x": torch.zeros_like}, gradients=("x",)),
    also("rare values", "features far from zero", values=FAR, atol=5e-3, gradients=()),
    also("at the start", "weight 1 and bias 0", values=START, gradients=tuple(START)),
    also("dtype", "float64", dtype=torch.float64, scale={"x": 1e4}),
    also("eps", "variance near 1e-6, the default eps", scale={"x": 1e-3}),
    also("rare values", "eps=0", shapes=EPS + "0.0", keywords=("eps",)),
    also("eps", "eps=0.3", shapes=EPS + "0.3", scale={}, keywords=("eps",)),
    *USUAL[2:],
    ranges={"D": (5, 9)},
    name="x of {B} x {T} x {D}",
    scale={"x": 10.0},
    values={"x": lambda x: x + 2 * x.std(), "weight": lambda weight: 1 + 0.5 * weight},
)

forbidden = frozenset("layer_norm native_layer_norm aten.native_layer_norm aten.layer_norm".split())
