"""3.1 layer_norm: normalise each token."""

import torch

from vitedu.checks.kit import BATCH_OF_ONE, ON_ACCELERATOR, Checker, also, shaped

PARAMETERS = "; weight: D; bias: D"

CHECKER = Checker(
    "layer_norm",
    # a large spread, so that eps is felt in its own part and nowhere else
    cases=shaped(
        "x: B T D" + PARAMETERS,
        BATCH_OF_ONE,
        also("other sizes", "as many tokens as features", T="D"),
        also("other sizes", "a single token", shapes="x: D" + PARAMETERS, name="x of {D}"),
        also(
            "other sizes",
            "more axes",
            shapes="x: A B T D" + PARAMETERS,
            name="x of {A} x {B} x {T} x {D}",
        ),
        also("other sizes", "one feature", D=1, atol=0.1),
        also("other sizes", "features of zero", values={"x": torch.zeros_like}, gradients=("x",)),
        also(
            "other sizes",
            "features far from zero",
            values={"x": lambda x: x + 1e4},
            atol=5e-3,
            gradients=(),
        ),
        also(
            "other sizes",
            "weight 1 and bias 0",
            values={"weight": torch.ones_like, "bias": torch.zeros_like},
            gradients=("weight", "bias"),
        ),
        also("other sizes", "float64", dtype=torch.float64, scale={"x": 1e4}),
        also("eps", "variance near 1e-6, the default eps", scale={"x": 1e-3}),
        also("eps", "eps=0", shapes="x: B T D" + PARAMETERS + "; eps = 0.0", keywords=("eps",)),
        also(
            "eps",
            "eps=0.3",
            shapes="x: B T D" + PARAMETERS + "; eps = 0.3",
            scale={},
            keywords=("eps",),
        ),
        ON_ACCELERATOR,
        ranges={"D": (5, 9)},
        name="x of {B} x {T} x {D}",
        scale={"x": 10.0},
        values={"x": lambda x: x + 2 * x.std(), "weight": lambda weight: 1 + 0.5 * weight},
    ),
    forbidden=frozenset(
        "layer_norm native_layer_norm aten.native_layer_norm aten.layer_norm".split()
    ),
    idea={
        "values": "each token with mean 0 and variance 1, then times weight, plus bias",
        "other sizes": "also for one token, more axes, as many tokens as features, and float64",
        "eps": "eps as given, inside the root",
    },
)
