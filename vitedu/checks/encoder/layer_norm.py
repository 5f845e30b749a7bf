import torch
import torch.nn.functional as F

from vitedu.checks.kit import BATCH_OF_ONE, ON_ACCELERATOR, Checker, Edits, Mistake, also, shaped


def _over(dim: str) -> Edits:
    return {
        "x.mean(dim=-1": f"x.mean(dim={dim}",
        "(dim=-1, keepdim=True)\nreturn": f"(dim={dim}, keepdim=True)\nreturn",
    }


MISTAKES = (
    Mistake(
        "over_tokens",
        "the mean runs over the tokens, not over the features of each",
        "every token normalised by itself",
        "A token would depend on its neighbours.",
        "Look at the dim of mean and variance: it is the last one.",
        _over("-2"),
    ),
    Mistake(
        "over_the_batch",
        "the mean runs over the batch, as in batch norm",
        "every token normalised by itself",
        "The answer for one image would depend on which others came with it.",
        "Look at the dim of mean and variance: it is the last one.",
        _over("0"),
    ),
    Mistake(
        "over_tokens_and_features",
        "one mean is taken over all tokens of an image",
        "every token normalised by itself",
        "Tokens of an image would share a mean, as in group norm with one group.",
        "Average over the last axis alone.",
        _over("(-2, -1)"),
        also=(_over("tuple(range(1, x.ndim)) or (0,)"),),
    ),
    Mistake(
        "over_axis_one",
        "the mean runs over axis 1, whatever stands there",
        "every token normalised over its own features, the last axis",
        "(B, T, D), (T, D) and (D,) have their features in different places, counted from the front.",
        "Count the axis from the back.",
        _over("1"),
    ),
    Mistake(
        "axis_lost",
        "mean and variance lose their axis",
        "one mean for each token, of shape (..., 1)",
        "Without that axis the subtraction lines tokens up with features, and fails or mixes them.",
        "Give mean and variance keepdim=True.",
        {"True)\nvariance": "False)\nvariance", "True)\nreturn": "False)\nreturn"},
    ),
    Mistake(
        "unbiased_variance",
        "the variance is divided by D-1",
        "the biased variance, divided by D",
        "torch's var divides by D-1 unless told otherwise; norms divide by D.",
        "Give var unbiased=False, or average the squares yourself.",
        {"((x - mean) ** 2).mean": "x.var"},
    ),
    Mistake(
        "eps_outside",
        "eps is added outside the root",
        "the root of variance plus eps",
        "For tokens whose features are nearly equal the two results differ.",
        "Add eps to the variance, then take the root.",
        {"(variance + eps).sqrt()": "(variance.sqrt() + eps)"},
    ),
    Mistake(
        "no_eps",
        "eps is left out",
        "variance plus eps under the root",
        "A token of equal features would divide by 0.",
        "Add eps to the variance.",
        {" + eps": ""},
    ),
    Mistake(
        "default_eps_of_torch",
        "the default eps is 1e-5",
        "1e-6, the default in the signature",
        "Published ViTs use 1e-6; nn.LayerNorm's own default is another.",
        "Use the argument eps.",
        {"1e-6": "1e-5"},
    ),
    Mistake(
        "eps_ignored",
        "the argument eps is ignored",
        "eps as the caller gave it",
        "Another eps has to change the result.",
        "Use the argument, not a number.",
        {"+ eps": "+ 1e-6"},
        also=({"+ eps": "+ 1e-5"}, {"+ eps": "+ 1e-8"}),
    ),
    Mistake(
        "not_centred",
        "the mean is not subtracted",
        "mean 0 for every token, before weight and bias",
        "That is RMSNorm, a good norm, but another one.",
        "Subtract the mean before you divide.",
        {"mean = ": "mean = 0 * "},
        also=({"return (x - mean)": "return x"},),
    ),
    Mistake(
        "around_zero",
        "the variance is the mean of the squares of x itself",
        "squared distances from the mean",
        "A token far from 0 would come out too small.",
        "Subtract the mean before you square.",
        {"((x - mean) ** 2)": "(x**2)"},
    ),
    Mistake(
        "divided_by_variance",
        "it divides by the variance, not by its root",
        "variance 1 for every token, before weight and bias",
        "The unit of the variance is the square of that of x.",
        "Look for a missing square root.",
        {".sqrt()": ""},
    ),
    Mistake(
        "no_weight",
        "the learned scale is not applied",
        "result times weight",
        "Without it the layer cannot undo its own scaling.",
        "Multiply by weight.",
        {" * weight": ""},
    ),
    Mistake(
        "no_bias",
        "the learned shift is not applied",
        "result plus bias",
        "Without it the layer cannot undo its own centring.",
        "Add bias.",
        {" + bias": ""},
    ),
    Mistake(
        "bias_before_weight",
        "the shift is added before the scale",
        "scale first, then shift",
        "The bias would be scaled too.",
        "Look at the order of * and +.",
        {"return (": "return ((", "* weight + bias": "+ bias) * weight"},
    ),
    Mistake(
        "weight_and_bias_swapped",
        "weight and bias have changed places",
        "weight scales, bias shifts",
        "Both have D entries, so no shape objects.",
        "Look at which of the two multiplies.",
        {"* weight + bias": "* bias + weight"},
    ),
)


def by_var_mean(x, weight, bias, eps=1e-6):
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return torch.addcmul(bias, (x - mean) * torch.rsqrt(variance + eps), weight)


def by_einsum(x, weight, bias, eps=1e-6):
    D = x.shape[-1]
    centred = x - torch.einsum("...d->...", x).unsqueeze(-1) / D
    variance = torch.einsum("...d,...d->...", centred, centred) / D
    return torch.einsum("...d,...->...d", centred, (variance + eps) ** -0.5) * weight + bias


def by_loops(x, weight, bias, eps=1e-6):
    rows = []
    for token in x.reshape(-1, x.shape[-1]):
        mean = sum(token.unbind()) / len(token)
        variance = sum((value - mean) ** 2 for value in token.unbind()) / len(token)
        rows.append((token - mean).div(torch.sqrt(variance + eps)).mul(weight).add(bias))
    return torch.stack(rows).view_as(x)


def in_double(x, weight, bias, eps=1e-6):
    y = x.double()
    y = y - y.mean(-1, keepdim=True)
    y = y / torch.sqrt(y.pow(2).mean(-1, keepdim=True) + eps)
    return (y * weight.double() + bias.double()).to(x.dtype)


def by_group_norm(x, weight, bias, eps=1e-6):
    return F.group_norm(x.reshape(-1, x.shape[-1]), 1, weight, bias, eps).reshape(x.shape)


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
    proves={
        "values": "each token with mean 0 and variance 1, then times weight, plus bias",
        "other sizes": "also for one token, more axes, as many tokens as features, and float64",
        "eps": "eps as given, inside the root",
    },
    special="x.ndim == 1; len(x) == 1; x.ndim > 1 and x.shape[-1] == x.shape[-2]; eps == 0",
    equivalent={
        "a square has no sign": ("variance = ((mean - x) ** 2).mean(dim=-1, keepdim=True)",),
    },
)
