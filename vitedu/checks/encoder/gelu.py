"""Checker of gelu: its cases, its known mistakes, and what is said of them."""

import math

import torch

from vitedu import encoder as reference
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, normal
from vitedu.checks.probing import Case


def gelu_cases(g: torch.Generator) -> list[Case]:
    """Draw values of both signs, some large."""

    def case(*shape, dtype=torch.float32, spread=1.5, note="", **rest):
        shown = " x ".join(str(size) for size in shape) or "one number"
        return Case(f"x of {shown}{note}", {"x": spread * normal(g, *shape, dtype=dtype)}, **rest)

    B, T, D = distinct(g, 3, 3, 9)
    return [
        # rounded to 2e-6 or less in float32; the tanh form is off by up to 4.7e-4
        case(B, T, 8 * D, gradients=("x",), rtol=1e-5, atol=1e-5),
        case(D, part="other sizes"),
        case(part="other sizes"),
        case(B, T, D, dtype=torch.float64, part="other sizes", note=", float64"),
        case(B, D, spread=300.0, part="large values", note=", values of some hundreds"),
        case(B, T, D, part="any device", on_accelerator=True, note=", on an accelerator"),
    ]


def faulty_gelu(mistakes: frozenset[str]):
    """Bend with the named mistakes made."""

    def gelu(x):
        if "relu" in mistakes:
            return x.clamp(min=0)
        if "silu" in mistakes:
            return x * torch.sigmoid(x)
        if "sigmoid_approximation" in mistakes:
            return x * torch.sigmoid(1.702 * x)
        if "tanh_approximation" in mistakes:
            return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
        inside = x if "root_two_missing" in mistakes else x / math.sqrt(2)
        phi = 1 + torch.erf(inside)
        if "half_missing" not in mistakes:
            phi = phi / 2
        if "density" in mistakes:
            phi = torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        if "one_missing" in mistakes:
            phi = torch.erf(inside) / 2
        if "erf_alone" in mistakes:
            phi = torch.erf(inside)
        return phi if "x_missing" in mistakes else x * phi

    return gelu


GELU_BANK = (
    Misconception(
        "tanh_approximation", "the tanh approximation is used", "x * Phi(x), exactly",
        "It is within 5e-4 everywhere, which is close, and not equal; published ViT weights were trained with the exact form.",
        "torch.erf gives the normal distribution function exactly.",
    ),
    Misconception("sigmoid_approximation", "the sigmoid approximation is used", "x * Phi(x), exactly", "It is off by up to 0.02.", "torch.erf gives the normal distribution function exactly."),
    Misconception("relu", "this is ReLU", "a smooth gate that lets some negative values through", "GELU is negative just below 0.", "Multiply x by a probability, not by a step."),
    Misconception("silu", "this is SiLU, with the logistic function as its gate", "the gate Phi, of the normal distribution", "The two gates look alike and are not equal.", "Phi(x) comes from erf."),
    Misconception(
        "root_two_missing", "erf gets x itself", "Phi(x) from erf of x over the root of 2",
        "erf belongs to a normal distribution of variance 1/2.", "Scale x before erf.",
    ),
    Misconception("half_missing", "the gate runs from 0 to 2", "a probability between 0 and 1", "Large values would be doubled.", "1 + erf runs from 0 to 2."),
    Misconception("density", "the gate is the density of the normal distribution", "its distribution function", "The density falls again for large x.", "Look at the gate for x = 5."),
    Misconception("one_missing", "the gate runs from -1/2 to 1/2", "a probability between 0 and 1", "erf is odd: it lies between -1 and 1.", "Shift it before you halve it."),
    Misconception("erf_alone", "the gate is erf itself, which runs from -1 to 1", "a probability between 0 and 1", "For x = 0 it would be shut, for negative x it would turn the sign.", "Look at how Phi is made of erf."),
    Misconception("x_missing", "the gate is returned, without the value it lets pass", "x * Phi(x)", "A gate alone is a sigmoid.", "Multiply by x."),
)  # fmt: skip

CHECKER = Checker(
    "gelu",
    reference.gelu,
    gelu_cases,
    faulty_gelu,
    GELU_BANK,
    forbidden=frozenset(
        {
            "gelu",
            "gelu_",
            "aten.gelu",
            "aten.gelu_",
            "mkldnn._linear_pointwise",
            "mkldnn._convolution_pointwise",
            "mkldnn._convolution_transpose_pointwise",
        }
    ),  # a layer with GELU behind it
    proves={
        "other sizes": "also for one number and float64",
        "large values": "finite and right for large values",
    },
)
