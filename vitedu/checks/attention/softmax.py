"""Checker of softmax: its cases, its known mistakes, and what is said of them."""

import torch

from vitedu import attention as reference
from vitedu.checks.attention.evidence import draw_sums, sums_along_dim
from vitedu.checks.attention.scaled_dot_product_attention import FUSED_NAMES
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, normal
from vitedu.checks.probing import Case


def softmax_cases(g: torch.Generator) -> list[Case]:
    """Draw scores whose sizes all differ, along several axes."""

    def case(*sizes, dim=None, scale=2.0, dtype=torch.float32, note="", **rest):
        args = {"x": scale * normal(g, *sizes, dtype=dtype)}
        if dim is not None:
            args["dim"] = dim
        told = "" if dim is None else f", dim={dim}"
        return Case(f"scores {sizes}{told}{note}", args, **rest)

    a, b, c, d = distinct(g, 4, 3, 7)
    # rows around +1e4, around -1e4, of both signs, and 120 apart: float32 exp ends at 88
    far = torch.tensor([1e4, -1e4, 0.0, 0.0])[:, None] + torch.zeros(1, b)
    far[2], far[3] = 1e4, 60.0
    far[2:, ::2] *= -1
    return [
        case(a, b, gradients=("x",)),
        case(a, b, c, dim=1, part="other axes", keywords=("dim",)),
        case(c, a, d, dim=0, part="other axes"),
        case(a, b, c, d, dim=-2, part="other axes"),
        case(b, b, part="other sizes", note=", square"),
        case(b, b, dim=0, part="other sizes", note=", square"),
        case(1, c, part="other sizes", note=", one row"),
        case(d, part="other sizes", note=", no other axis"),
        case(a, 1, part="other sizes", note=", one score a row"),
        case(b, a, dtype=torch.float64, part="other sizes", note=", float64"),
        Case(
            f"scores of size 1e4, shape (4, {b})", {"x": far + normal(g, 4, b)},
            part="large scores", rtol=5e-3, atol=2e-3,  # the spacing of float32 at 1e4 is 1e-3
        ),
        Case(
            f"scores of size 1e4, shape ({b}, 4), dim=0", {"x": (far + normal(g, 4, b)).T.contiguous(), "dim": 0},
            part="large scores", rtol=5e-3, atol=2e-3,
        ),
        case(a, b, part="any device", on_accelerator=True, note=" on an accelerator"),
    ]  # fmt: skip


def faulty_softmax(mistakes: frozenset[str]):
    """Make weights with the named mistakes made."""

    def softmax(x, dim=-1):
        if "always_last_axis" in mistakes:
            dim = -1
        if "always_first_axis" in mistakes:
            dim = 0
        if "dim_not_handed_on" in mistakes:  # amax and sum over everything
            dim = tuple(range(x.ndim))
        if "opposite_sign" in mistakes:
            x = -x
        if "clipped" in mistakes:
            x = x.clamp(-80, 80)
        if mistakes & {"not_shifted", "nan_painted_over"}:
            shift = torch.zeros_like(x)
        elif "one_maximum_for_all" in mistakes:
            shift = x.max()
        elif "minimum_subtracted" in mistakes:
            shift = x.amin(dim=dim, keepdim=True)
        elif "mean_subtracted" in mistakes:
            shift = x.mean(dim=dim, keepdim=True)
        elif "maximum_without_keepdim" in mistakes:
            shift = x.amax(dim=dim)
        else:
            shift = x.amax(dim=dim, keepdim=True)
        if "divided_by_maximum" in mistakes:
            x, shift = x / x.amax(dim=dim, keepdim=True), 0.0
        weights = x - shift
        if "base_two" in mistakes:
            weights = 2**weights
        elif "no_exp" in mistakes:
            weights = x
        else:
            weights = weights.exp()
        if "divided_by_mean" in mistakes:
            weights = weights / weights.mean(dim=dim, keepdim=True)
        elif "one_sum_for_all" in mistakes:
            weights = weights / weights.sum()
        elif "sum_without_keepdim" in mistakes:
            weights = weights / weights.sum(dim=dim)
        elif "sum_axis_put_last" in mistakes:
            weights = weights / weights.sum(dim=dim).unsqueeze(-1)
        elif "divided_by_length" in mistakes:
            weights = weights / weights.pow(2).sum(dim=dim, keepdim=True).sqrt()
        elif "not_normalised" not in mistakes:
            weights = weights / weights.sum(dim=dim, keepdim=True)
        if "nan_painted_over" in mistakes:
            weights = weights.nan_to_num(0.0)
        return weights.log() if "logarithm" in mistakes else weights

    return softmax


SOFTMAX_BANK = (
    Misconception(
        "not_shifted", "large scores overflow", "finite weights for scores as large as 1e4",
        "exp(89) is infinite in float32, exp(-104) is 0, and infinity over infinity or 0 over 0 is NaN.",
        "Subtract a constant along dim before exp, one that keeps every exp at 1 or below.",
    ),
    Misconception(
        "one_maximum_for_all", "one maximum is taken for the whole tensor", "a maximum for each row",
        "A row far below the largest score becomes exp(-20000) = 0 everywhere, and then 0 over 0.",
        "Take the maximum along dim, with keepdim=True.",
    ),
    Misconception(
        "minimum_subtracted", "the smallest score is subtracted, not the largest", "exp of numbers that are 0 or below",
        "exp can not underflow any more, but it overflows all the sooner.", "Try it on the scores 0 and 200.",
    ),
    Misconception(
        "mean_subtracted", "the mean is subtracted, not the largest score", "exp of numbers that are 0 or below",
        "Scores far above the mean still overflow.", "Try it on the scores 10000 and -10000.",
    ),
    Misconception(
        "divided_by_maximum", "the scores are divided by the largest, not shifted by it", "the same weights after any shift of the scores",
        "A factor changes the weights (it is a temperature); only a shift leaves them alone.", "Look at the sign between x and its maximum.",
    ),
    Misconception(
        "clipped", "large scores are clipped", "weights that follow the differences of scores, however large these are",
        "Two clipped scores look alike, though one may be thousands above the other.", "Shift the scores; do not cut them off.",
    ),
    Misconception(
        "nan_painted_over", "NaN is replaced after the fact", "weights of large scores that sum to 1",
        "The rows that overflow lose their weights altogether.", "Keep exp from overflowing: subtract before exp.",
    ),
    Misconception(
        "always_last_axis", "dim is ignored: the last axis is always taken", "sums of 1 along dim",
        "Who asks for dim=0 gets other weights.", "Hand dim on to the maximum and to the sum.", evidence=sums_along_dim,
    ),
    Misconception(
        "always_first_axis", "dim is ignored: the first axis is always taken", "sums of 1 along dim",
        "Weights then sum to 1 down the columns instead of along dim.", "Hand dim on to the maximum and to the sum.",
        evidence=sums_along_dim,
    ),
    Misconception(
        "one_sum_for_all", "one sum is taken over the whole tensor", "sums of 1 along dim",
        "The weights of all rows together sum to 1, so each row gets only a part.", "Sum along dim, with keepdim=True.",
        evidence=sums_along_dim,
    ),
    Misconception(
        "dim_not_handed_on", "maximum and sum are taken over the whole tensor", "sums of 1 along dim",
        "The weights of all rows together sum to 1, and rows far below the largest score vanish.",
        "Hand dim on to both, with keepdim=True.", evidence=sums_along_dim,
    ),
    Misconception(
        "maximum_without_keepdim", "the maximum loses its axis", "each row's own maximum taken away from it",
        "Without the axis the subtraction pairs the maxima with the columns: an error, or for square scores wrong weights.",
        "Give amax keepdim=True.",
    ),
    Misconception(
        "sum_without_keepdim", "the sum loses its axis", "each row divided by its own sum",
        "Without the axis the division pairs the sums with the columns: an error, or for square scores wrong weights.",
        "Give sum keepdim=True.",
    ),
    Misconception(
        "sum_axis_put_last", "the sum's axis is put back at the end, wherever it was", "sums of 1 along dim",
        "It is right for the last axis only; elsewhere the division pairs the sums with other numbers.",
        "Leave the axis where it is: keepdim=True.", evidence=sums_along_dim,
    ),
    Misconception(
        "not_normalised", "the weights are not divided by their sum", "sums of 1 along dim",
        "Positive is only half of it.", "Divide by the sum along dim.", evidence=sums_along_dim,
    ),
    Misconception(
        "divided_by_mean", "the weights are divided by their mean", "sums of 1 along dim",
        "They then sum to the number of scores.", "Divide by the sum.", evidence=sums_along_dim,
    ),
    Misconception(
        "divided_by_length", "the weights are divided by their Euclidean length", "sums of 1 along dim",
        "Their squares sum to 1, they do not.", "Divide by the plain sum.", evidence=sums_along_dim,
    ),
    Misconception(
        "no_exp", "the scores are divided by their sum, without exp", "weights that are all positive",
        "Negative scores give negative weights, and a sum near 0 blows up.", "Take exp first.", evidence=sums_along_dim,
    ),
    Misconception(
        "base_two", "powers of 2 are taken instead of exp", "twice the odds for a score that is ln 2 larger",
        "The weights sum to 1, but are flatter than they should be.", "Use x.exp().",
    ),
    Misconception(
        "opposite_sign", "the smallest score gets the largest weight", "a larger weight for a larger score",
        "The sign in front of the scores is turned.", "Look for -x or for max - x.",
    ),
    Misconception(
        "logarithm", "the logarithm of the weights comes back", "sums of 1 along dim",
        "Log-weights are negative and sum to nothing in particular.", "Return the weights themselves.", evidence=sums_along_dim,
    ),
)  # fmt: skip

SOFTMAX_NAMES = frozenset(
    "softmax log_softmax softmin _softmax _log_softmax _safe_softmax "
    "aten.softmax aten.log_softmax aten._softmax aten._log_softmax aten._safe_softmax "
    "aten._sparse_softmax aten._sparse_log_softmax aten._masked_softmax".split()
)

CHECKER = Checker(
    "softmax",
    reference.softmax,
    softmax_cases,
    faulty_softmax,
    SOFTMAX_BANK,
    forbidden=SOFTMAX_NAMES | FUSED_NAMES,  # attention to the unit matrix is softmax
    forbidden_words="log_softmax, softmax, softmin",
    picture=draw_sums,
    proves={
        "allowed operations": "made from exp and sums",
        "values": "positive weights that sum to 1 along the last axis",
        "other axes": "also along any other dim",
        "other sizes": "also for squares, one row, one score, no other axis, and float64",
        "large scores": "finite and right for scores of size 1e4",
    },
)
