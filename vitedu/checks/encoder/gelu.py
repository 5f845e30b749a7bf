import torch

from vitedu.checks.kit import ON_ACCELERATOR, Checker, Mistake, also, shaped

MISTAKES = (
    Mistake(
        "tanh_approximation",
        "the tanh approximation is used",
        "x * Phi(x), exactly",
        "It is within 5e-4 everywhere, which is close, and not equal; published ViT weights were trained with the exact form.",
        "torch.erf gives the normal distribution function exactly.",
        {
            "torch.erf(x / math.sqrt(2))": "torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))"
        },
    ),
    Mistake(
        "sigmoid_approximation",
        "the sigmoid approximation is used",
        "x * Phi(x), exactly",
        "It is off by up to 0.02.",
        "torch.erf gives the normal distribution function exactly.",
        {"0.5 * (1 + torch.erf(x / math.sqrt(2)))": "torch.sigmoid(1.702 * x)"},
    ),
    Mistake(
        "relu",
        "this is ReLU",
        "a smooth gate that lets some negative values through",
        "GELU is negative just below 0.",
        "Multiply x by a probability, not by a step.",
        {"0.5 * (1 + torch.erf(x / math.sqrt(2)))": "(x > 0).to(x.dtype)"},
    ),
    Mistake(
        "silu",
        "this is SiLU, with the logistic function as its gate",
        "the gate Phi, of the normal distribution",
        "The two gates look alike and are not equal.",
        "Phi(x) comes from erf.",
        {"0.5 * (1 + torch.erf(x / math.sqrt(2)))": "torch.sigmoid(x)"},
    ),
    Mistake(
        "root_two_missing",
        "erf gets x itself",
        "Phi(x) from erf of x over the root of 2",
        "erf belongs to a normal distribution of variance 1/2.",
        "Scale x before erf.",
        {" / math.sqrt(2)": ""},
    ),
    Mistake(
        "half_missing",
        "the gate runs from 0 to 2",
        "a probability between 0 and 1",
        "Large values would be doubled.",
        "1 + erf runs from 0 to 2.",
        {"0.5 * ": ""},
    ),
    Mistake(
        "density",
        "the gate is the density of the normal distribution",
        "its distribution function",
        "The density falls again for large x.",
        "Look at the gate for x = 5.",
        {
            "0.5 * (1 + torch.erf(x / math.sqrt(2)))": "torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)"
        },
    ),
    Mistake(
        "one_missing",
        "the gate runs from -1/2 to 1/2",
        "a probability between 0 and 1",
        "erf is odd: it lies between -1 and 1.",
        "Shift it before you halve it.",
        {"1 + ": ""},
    ),
    Mistake(
        "erf_alone",
        "the gate is erf itself, which runs from -1 to 1",
        "a probability between 0 and 1",
        "For x = 0 it would be shut, for negative x it would turn the sign.",
        "Look at how Phi is made of erf.",
        {"0.5 * (1 + ": "("},
    ),
    Mistake(
        "upper_tail",
        "the gate is the probability above x",
        "the probability below x",
        "Large values would be stopped, and very negative ones would pass.",
        "Look at the gate for x = 5.",
        {"1 + ": "1 - "},
    ),
    Mistake(
        "x_missing",
        "the gate is returned, without the value it lets pass",
        "x * Phi(x)",
        "A gate alone is a sigmoid.",
        "Multiply by x.",
        {"x * phi": "phi"},
    ),
)


def by_normal(x):
    return torch.distributions.Normal(0, 1, validate_args=False).cdf(x).to(x.dtype) * x


def by_ndtr(x):
    return torch.special.ndtr(x).mul(x)


def by_erfc(x):
    return 0.5 * x * torch.erfc(-x * 2**-0.5)


def in_double(x):
    wide = x.to(torch.float64)
    return ((torch.erf(wide * 0.5**0.5) + 1) / 2 * wide).type_as(x)


CHECKER = Checker(
    "gelu",
    cases=shaped(
        "x: B T 8*D",
        also("other sizes", "", shapes="x: D", name="x of {D}"),
        also("other sizes", "", shapes="x:", name="x of one number"),
        # a constant rounded to float32 is off by 1e-8; a table of erf by 1e-7
        also("other sizes", "float64", dtype=torch.float64, rtol=1e-7, atol=3e-8),
        # so large that the gate is open or shut, whatever is drawn
        also("large values", "values in the millions", scale=1e6),
        ON_ACCELERATOR,
        also("other sizes", "zeros among them", values={"x": torch.relu}),
        # in float32 rounding costs at most 2e-6; the tanh form is off by up to 4.7e-4
        rtol=1e-5,
        atol=1e-5,
        name="x of {B} x {T} x {8*D}",
        scale=1.5,
    ),
    forbidden=frozenset(
        "gelu gelu_ aten.gelu aten.gelu_ aten.gelu_backward "
        # layers with GELU behind them
        "mkldnn._linear_pointwise mkldnn._convolution_pointwise mkldnn._convolution_transpose_pointwise".split()
    ),
    proves={
        "values": "each x times the share of a normal distribution below x",
        "other sizes": "also for one number and float64",
        "large values": "finite and right for large values",
    },
    special="x.ndim == 0; x.ndim == 1; x.numel() == 1; bool((x == 0).any())",
)
