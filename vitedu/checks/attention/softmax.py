import math

import torch

from vitedu.checks import evidence, families, probing
from vitedu.checks.kit import FLOAT64, ON_ACCELERATOR, Checker, Mistake, Options, also, shaped


def _sums_along_dim(case: probing.Case, seen: probing.Observation) -> str:
    output, dim = seen.arrays.get("output"), case.args.get("dim", -1)
    if output is None or output.shape != case.args["x"].shape or not output.isfinite().all():
        return ""
    return f"sums along dim={dim}: {evidence.sums_of(output, dim)}"


MAXIMUM, SUM = "x.amax(dim=dim, keepdim=True)", "exp.sum(dim=dim, keepdim=True)"
ALONG_DIM: Options = {"evidence": _sums_along_dim}

MISTAKES = (
    Mistake(
        "not_shifted",
        "large scores overflow",
        "finite weights for scores as large as 1e4",
        "exp(89) is infinite in float32, exp(-104) is 0, and infinity over infinity or 0 over 0 is NaN.",
        "Subtract a constant along dim before exp, one that keeps every exp at 1 or below.",
        {f" - {MAXIMUM}": ""},
    ),
    Mistake(
        "one_maximum_for_all",
        "one maximum is taken for the whole tensor",
        "a maximum for each row",
        "A row far below the largest score becomes exp(-20000) = 0 everywhere, and then 0 over 0.",
        "Take the maximum along dim, with keepdim=True.",
        {MAXIMUM: "x.max()"},
    ),
    Mistake(
        "minimum_subtracted",
        "the smallest score is subtracted, not the largest",
        "exp of numbers that are 0 or below",
        "exp cannot underflow any more, but it overflows all the sooner.",
        "Try it on the scores 0 and 200.",
        {"amax": "amin"},
    ),
    Mistake(
        "mean_subtracted",
        "the mean is subtracted, not the largest score",
        "exp of numbers that are 0 or below",
        "Scores far above the mean still overflow.",
        "Try it on the scores 10000 and -10000.",
        {"amax": "mean"},
    ),
    Mistake(
        "maximum_added",
        "the largest score is added, not subtracted",
        "exp of numbers that are 0 or below",
        "exp overflows all the sooner.",
        "Look at the sign between x and its maximum.",
        {"- x.amax": "+ x.amax"},
    ),
    Mistake(
        "divided_by_maximum",
        "the scores are divided by the largest, not shifted by it",
        "the same weights after any shift of the scores",
        "A factor changes the weights (it is a temperature); only a shift leaves them alone.",
        "Look at the sign between x and its maximum.",
        {"- x.amax": "/ x.amax"},
        also=({"- x.amax": "/ x.abs().amax"},),
    ),
    Mistake(
        "clipped",
        "large scores are clipped",
        "weights that follow the differences of scores, however large these are",
        "Two clipped scores look alike, though one may be thousands above the other.",
        "Shift the scores; do not cut them off.",
        {"shifted = x": "x = x.clamp(-80, 80)\nshifted = x"},
        also=(
            {"x - x.amax(dim=dim, keepdim=True)": "x.clamp(max=80)"},
            {"shifted = x": "x = x.clamp(-50, 50)\nshifted = x"},
        ),
    ),
    Mistake(
        "nan_painted_over",
        "NaN is replaced after the fact",
        "weights of large scores that sum to 1",
        "The rows that overflow lose their weights altogether.",
        "Keep exp from overflowing: subtract before exp.",
        {f" - {MAXIMUM}": "", "return ": "return (", SUM: f"{SUM}).nan_to_num(0.0)"},
    ),
    Mistake(
        "always_last_axis",
        "dim is ignored: the last axis is always taken",
        "sums of 1 along dim",
        "Who asks for dim=0 gets other weights.",
        "Hand dim on to the maximum and to the sum.",
        {"shifted = x": "dim = -1\nshifted = x"},
        **ALONG_DIM,
    ),
    Mistake(
        "always_first_axis",
        "dim is ignored: the first axis is always taken",
        "sums of 1 along dim",
        "Weights then sum to 1 down the columns instead of along dim.",
        "Hand dim on to the maximum and to the sum.",
        {"shifted = x": "dim = 0\nshifted = x"},
        **ALONG_DIM,
    ),
    Mistake(
        "one_sum_for_all",
        "one sum is taken over the whole tensor",
        "sums of 1 along dim",
        "The weights of all rows together sum to 1, so each row gets only a part.",
        "Sum along dim, with keepdim=True.",
        {SUM: "exp.sum()"},
        **ALONG_DIM,
    ),
    Mistake(
        "dim_not_handed_on",
        "maximum and sum are taken over the whole tensor",
        "sums of 1 along dim",
        "The weights of all rows together sum to 1, and rows far below the largest score vanish.",
        "Hand dim on to both, with keepdim=True.",
        {"shifted = x": "dim = tuple(range(x.ndim))\nshifted = x"},
        **ALONG_DIM,
    ),
    Mistake(
        "maximum_without_keepdim",
        "the maximum loses its axis",
        "each row's own maximum taken away from it",
        "Without the axis the subtraction pairs the maxima with the columns: an error, or for square scores wrong weights.",
        "Give amax keepdim=True.",
        {MAXIMUM: "x.amax(dim=dim)"},
    ),
    Mistake(
        "sum_without_keepdim",
        "the sum loses its axis",
        "each row divided by its own sum",
        "Without the axis the division pairs the sums with the columns: an error, or for square scores wrong weights.",
        "Give sum keepdim=True.",
        {SUM: "exp.sum(dim=dim)"},
    ),
    Mistake(
        "sum_axis_put_last",
        "the sum's axis is put back at the end, wherever it was",
        "sums of 1 along dim",
        "It is right for the last axis only; elsewhere the division pairs the sums with other numbers.",
        "Leave the axis where it is: keepdim=True.",
        {SUM: "exp.sum(dim=dim).unsqueeze(-1)"},
        **ALONG_DIM,
    ),
    Mistake(
        "not_normalised",
        "the weights are not divided by their sum",
        "sums of 1 along dim",
        "Positive is only half of it.",
        "Divide by the sum along dim.",
        {f" / {SUM}": ""},
        **ALONG_DIM,
    ),
    Mistake(
        "divided_by_mean",
        "the weights are divided by their mean",
        "sums of 1 along dim",
        "They then sum to the number of scores.",
        "Divide by the sum.",
        {"exp.sum": "exp.mean"},
        **ALONG_DIM,
    ),
    Mistake(
        "divided_by_length",
        "the weights are divided by their Euclidean length",
        "sums of 1 along dim",
        "Their squares sum to 1, they do not.",
        "Divide by the plain sum.",
        {"exp.sum": "exp.norm"},
        **ALONG_DIM,
    ),
    Mistake(
        "no_exp",
        "the scores are divided by their sum, without exp",
        "weights that are all positive",
        "Negative scores give negative weights, and a sum near 0 blows up.",
        "Take exp first.",
        {"shifted.exp()": "x"},
        **ALONG_DIM,
    ),
    Mistake(
        "base_two",
        "powers of 2 are taken instead of exp",
        "twice the odds for a score that is ln 2 larger",
        "The weights sum to 1, but are flatter than they should be.",
        "Use x.exp().",
        {"shifted.exp": "shifted.exp2"},
    ),
    Mistake(
        "opposite_sign",
        "the smallest score gets the largest weight",
        "a larger weight for a larger score",
        "The sign in front of the scores is turned.",
        "Look for -x or for max - x.",
        {"shifted = x": "x = -x\nshifted = x"},
    ),
    Mistake(
        "logarithm",
        "the logarithm of the weights comes back",
        "sums of 1 along dim",
        "Log-weights are negative and sum to nothing in particular.",
        "Return the weights themselves.",
        {"return ": "return (", SUM: f"{SUM}).log()"},
        **ALONG_DIM,
    ),
)

SOFTMAX_NAMES = frozenset(
    "softmax log_softmax softmin _softmax _log_softmax _safe_softmax "
    "aten.softmax aten.log_softmax aten._softmax aten._log_softmax aten._safe_softmax "
    "aten._sparse_softmax aten._sparse_log_softmax aten._masked_softmax".split()
)


def _far(x):
    """Move four rows around +1e4, around -1e4, around both, and 120 apart: float32 exp ends at 88."""
    middle = torch.tensor([1e4, -1e4, 1e4, 60.0])[:, None].repeat(1, x.shape[1])
    middle[2:, ::2] *= -1
    return middle + x


def _far_columns(x):
    return _far(x.T).T.contiguous()


def by_logsumexp(x, dim=-1):
    return torch.exp(x - torch.logsumexp(x, dim=dim, keepdim=True))


def by_slices(x, dim=-1):
    slices = x.unbind(dim)
    top = slices[0]
    for piece in slices[1:]:
        top = torch.maximum(top, piece)
    powers = [math.e ** (piece - top) for piece in slices]
    total = sum(powers)
    return torch.stack([power / total for power in powers], dim=dim)


def by_pairs(x, dim=-1):
    scores = x.movedim(dim, -1)
    odds = (scores[..., None, :] - scores[..., :, None]).exp()
    return odds.sum(-1).reciprocal().movedim(-1, dim)


def by_logaddexp(x, dim=-1):
    total = None
    for piece in x.split(1, dim):
        total = piece if total is None else torch.logaddexp(total, piece)
    return (x - total).exp()


def in_double(x, dim=-1):
    wide = x.double()
    exp = torch.exp(wide - wide.detach().max(dim, keepdim=True).values)
    return exp.div(exp.sum(dim, True)).to(x.dtype)


def by_matrix_product(x, dim=-1):
    scores = torch.transpose(x, dim, -1)
    exp = torch.exp2((scores - scores.sort(-1).values[..., -1:]) * math.log2(math.e))
    ones = torch.ones(exp.shape[-1], 1, dtype=x.dtype, device=x.device)
    return (exp / (exp @ ones)).transpose(dim, -1)


def as_gradient(x, dim=-1):
    leaf = x if x.requires_grad else x.detach().requires_grad_()
    (weights,) = torch.autograd.grad(leaf.logsumexp(dim).sum(), leaf, create_graph=True)
    return weights


LARGE = {"scale": 1.0, "rtol": 5e-3, "atol": 2e-3}  # the spacing of float32 at 1e4 is 1e-3

CHECKER = Checker(
    "softmax",
    cases=shaped(
        "x: a b",
        also("other axes", "", shapes="x: a b c; dim = 1", keywords=("dim",)),
        also("other axes", "", shapes="x: a b c; dim = 0"),
        also("other axes", "", shapes="x: a b c d; dim = -2"),
        also("other sizes", "square", a="b"),
        also("other sizes", "square", shapes="x: b b; dim = 0"),
        also("other sizes", "one row", a=1),
        also("other sizes", "no other axis", shapes="x: b"),
        also("other sizes", "one score a row", b=1),
        FLOAT64,
        also("large scores", "scores of size 1e4", shapes="x: 4 e", values={"x": _far}, **LARGE),
        also(
            "large scores",
            "scores of size 1e4",
            shapes="x: e 4; dim = 0",
            values={"x": _far_columns},
            **LARGE,
        ),
        also(
            "large scores",
            "scores of size 1e4, no other axis",
            shapes="x: e",
            **LARGE | {"scale": 1e4},
        ),
        ON_ACCELERATOR,
        ranges=dict.fromkeys("abcd", (3, 7)) | {"e": (5, 8)},
        scale=2.0,
    ),
    forbidden=SOFTMAX_NAMES | families.FUSED_NAMES,  # attention to the unit matrix is softmax
    forbidden_words="log_softmax, softmax, softmin",
    proves={
        "allowed operations": "made from exp and sums",
        "values": "positive weights that sum to 1 along the last axis",
        "other axes": "also along any other dim",
        "other sizes": "also for squares, one row, one score, no other axis, and float64",
        "large scores": "finite and right for scores of size 1e4",
    },
    picture=evidence.draw_sums,
    special="x.ndim == 1; x.shape[dim] == 1; dim == 0; dim == 1; len(x) == 1; "
    "len(set(x.shape)) < x.ndim",
)
