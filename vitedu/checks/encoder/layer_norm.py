"""Checker of layer_norm: its cases, its known mistakes, and what is said of them."""

import torch

from vitedu import encoder as reference
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, draw, normal
from vitedu.checks.probing import Case


def layer_norm_cases(g: torch.Generator) -> list[Case]:
    """Draw tokens whose sizes all differ, spread widely and hardly at all."""

    def case(*shape, dtype=torch.float32, spread=10.0, eps=None, note="", **rest):
        D = shape[-1]
        args = {
            "x": spread * normal(g, *shape, dtype=dtype) + spread * draw(g, 1, 3),
            "weight": 1 + 0.5 * normal(g, D, dtype=dtype),
            "bias": normal(g, D, dtype=dtype),
        }
        if eps is not None:
            args["eps"], rest["keywords"] = eps, ("eps",)
        shown = " x ".join(str(size) for size in shape)
        return Case(f"x of {shown}{note}", args, **rest)

    B, T, D = distinct(g, 3, 3, 9)
    # a large spread, so that eps is felt in its own part and nowhere else
    return [
        case(B, T, D, gradients=("x", "weight", "bias")),
        case(1, T, D, part="other sizes"),
        case(B, D, D, part="other sizes", note=", as many tokens as features"),
        case(D, part="other sizes", note=", a single token"),
        case(2, B, T, D, part="other sizes"),
        case(B, T, D, dtype=torch.float64, part="other sizes", note=", float64"),
        case(B, T, D, spread=1e-3, part="eps", note=", variance near 1e-6, the default eps"),
        case(B, T, D, spread=1.0, eps=0.3, part="eps", note=", eps=0.3"),
        case(B, T, D, part="any device", on_accelerator=True, note=", on an accelerator"),
    ]


def faulty_layer_norm(mistakes: frozenset[str]):
    """Normalise with the named mistakes made."""

    def layer_norm(x, weight, bias, eps=1e-6):
        if "default_eps_of_torch" in mistakes and eps == 1e-6:
            eps = 1e-5
        if "eps_ignored" in mistakes:
            eps = 1e-6
        if "no_eps" in mistakes:
            eps = 0.0
        dims = [-1]
        if x.ndim > 1:
            for id_, over in (
                ("over_tokens", [-2]),
                ("over_the_batch", [0]),
                ("over_tokens_and_features", [-2, -1]),
            ):
                dims = over if id_ in mistakes else dims
        if "over_axis_one" in mistakes:
            dims = [1]
        kept = "axis_lost" not in mistakes
        mean = x.mean(dim=dims, keepdim=kept)
        unbiased = "unbiased_variance" in mistakes
        variance = x.var(dim=dims, keepdim=kept, unbiased=unbiased)
        if "not_centred" in mistakes:
            mean = torch.zeros_like(mean)
            variance = (x * x).mean(dim=dims, keepdim=kept)
        root = (variance + eps).sqrt()
        if "eps_outside" in mistakes:
            root = variance.sqrt() + eps
        if "divided_by_variance" in mistakes:
            root = variance + eps
        out = (x - mean) / root
        if "weight_and_bias_swapped" in mistakes:
            weight, bias = bias, weight
        if "no_weight" in mistakes:
            weight = torch.ones_like(weight)
        if "no_bias" in mistakes:
            bias = torch.zeros_like(bias)
        return (out + bias) * weight if "bias_before_weight" in mistakes else out * weight + bias

    return layer_norm


LAYER_NORM_BANK = (
    Misconception(
        "over_tokens", "the mean runs over the tokens, not over the features of each", "every token normalised by itself",
        "A token would depend on its neighbours.", "Look at the dim of mean and variance: it is the last one.",
    ),
    Misconception(
        "over_the_batch", "the mean runs over the batch, as in batch norm", "every token normalised by itself",
        "The answer for one image would depend on which others came with it.", "Look at the dim of mean and variance: it is the last one.",
    ),
    Misconception(
        "over_tokens_and_features", "one mean is taken over all tokens of an image", "every token normalised by itself",
        "Tokens of an image would share a mean, as in group norm with one group.", "Average over the last axis alone.",
    ),
    Misconception(
        "over_axis_one", "the mean runs over axis 1, whatever stands there", "every token normalised over its own features, the last axis",
        "(B, T, D), (T, D) and (D,) have their features in different places, counted from the front.", "Count the axis from the back.",
    ),
    Misconception(
        "axis_lost", "mean and variance lose their axis", "one mean for each token, of shape (..., 1)",
        "Without that axis the subtraction lines tokens up with features, and fails or mixes them.", "Give mean and variance keepdim=True.",
    ),
    Misconception(
        "unbiased_variance", "the variance is divided by D-1", "the biased variance, divided by D",
        "torch's var divides by D-1 unless told otherwise; norms divide by D.", "Give var unbiased=False, or average the squares yourself.",
    ),
    Misconception(
        "eps_outside", "eps is added outside the root", "the root of variance plus eps",
        "A thousandth inside a root is not a thousandth outside: for nearly equal features the two part.", "Add eps to the variance, then take the root.",
    ),
    Misconception(
        "no_eps", "eps is left out", "variance plus eps under the root", "A token of equal features would divide by 0.", "Add eps to the variance.",
    ),
    Misconception(
        "default_eps_of_torch", "the default eps is 1e-5", "1e-6, the default in the signature",
        "Published ViTs use 1e-6; nn.LayerNorm's own default is another.", "Use the argument eps.",
    ),
    Misconception(
        "eps_ignored", "the argument eps is ignored", "eps as the caller gave it", "Another eps has to change the result.", "Use the argument, not a number.",
    ),
    Misconception(
        "not_centred", "the mean is not subtracted", "mean 0 for every token, before weight and bias",
        "That is RMSNorm, a good norm, but another one.", "Subtract the mean before you divide.",
    ),
    Misconception(
        "divided_by_variance", "it divides by the variance, not by its root", "variance 1 for every token, before weight and bias",
        "The unit of the variance is the square of that of x.", "Look for a missing square root.",
    ),
    Misconception("no_weight", "the learned scale is not applied", "result times weight", "Without it the layer can not undo its own scaling.", "Multiply by weight."),
    Misconception("no_bias", "the learned shift is not applied", "result plus bias", "Without it the layer can not undo its own centring.", "Add bias."),
    Misconception(
        "bias_before_weight", "the shift is added before the scale", "scale first, then shift", "The bias would be scaled too.", "Look at the order of * and +.",
    ),
    Misconception(
        "weight_and_bias_swapped", "weight and bias have changed places", "weight scales, bias shifts", "Both have D entries, so no shape objects.", "Look at which of the two multiplies.",
    ),
)  # fmt: skip

CHECKER = Checker(
    "layer_norm",
    reference.layer_norm,
    layer_norm_cases,
    faulty_layer_norm,
    LAYER_NORM_BANK,
    forbidden=frozenset(
        {"layer_norm", "native_layer_norm", "aten.native_layer_norm", "aten.layer_norm"}
    ),
    proves={
        "other sizes": "also for one token, more axes, as many tokens as features, and float64",
        "eps": "eps as given, inside the root",
    },
)
