"""Checkers of notebook 02: softmax, attention, heads, cost."""

import math
from collections.abc import Callable

import torch
from torch import nn

from vitedu import attention as reference
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.drawing import Drawing, draw_row_sums
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, draw, normal, plural
from vitedu.checks.probing import Case, Observation
from vitedu.checks.values import ValueChecker, ValueMistake

# --- what an answer's own numbers say -----------------------------------------------------------


def sums_of(weights: torch.Tensor, dim: int) -> str:
    """Say what weights sum to along an axis: "0.61 to 1.48" or "all 1.000"."""
    sums = weights.double().sum(dim)
    low, high = float(sums.min()), float(sums.max())
    return f"all {low:.3f}" if high - low < 1e-3 else f"{low:.2f} to {high:.2f}"


def row_sums(case: Case, seen: Observation) -> str:
    """Say what the answer's weights sum to along rows and columns."""
    weights = seen.arrays.get("weights")
    if weights is None or weights.ndim < 2 or not weights.isfinite().all():
        return ""
    return f"row sums {sums_of(weights, -1)}; column sums {sums_of(weights, -2)}"


def sums_along_dim(case: Case, seen: Observation) -> str:
    """Say what the answer's weights sum to along the axis that was asked for."""
    output, dim = seen.arrays.get("output"), case.args.get("dim", -1)
    if output is None or output.shape != case.args["x"].shape or not output.isfinite().all():
        return ""
    return f"sums along dim={dim}: {sums_of(output, dim)}"


def draw_sums(case: Case, seen: Observation, ids: list[str]) -> Drawing | None:
    """Draw what each row sums to, where the weights have the shape of weights."""
    if "x" in case.args and not case.init:  # softmax
        weights, wanted = seen.arrays.get("output"), case.args["x"].shape
    elif "q" in case.args:
        weights, (q, k) = seen.arrays.get("weights"), (case.args["q"], case.args["k"])
        wanted = (*q.shape[:-1], k.shape[-2])
    else:
        weights, (B, T, _) = seen.arrays.get("weights"), case.args["x"].shape
        wanted = (B, case.init["num_heads"], T, T)
    if weights is None or weights.shape != wanted:
        return None
    return draw_row_sums(case, seen, ids)


def shapes(case: Case, seen: Observation) -> str:
    """Say which shapes came back."""
    return ", ".join(
        f"{name} {tuple(value.shape)}"
        for name, value in seen.arrays.items()
        if not name.startswith("grad:")
    )


# --- softmax ------------------------------------------------------------------------------------


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

# --- scaled_dot_product_attention ---------------------------------------------------------------


def attention_cases(g: torch.Generator) -> list[Case]:
    """Draw queries, keys and values whose sizes all differ."""

    def case(leading, Tq, Tk, d, dv, scale=1.0, dtype=torch.float32, note="", **rest):
        args = {
            "q": scale * normal(g, *leading, Tq, d, dtype=dtype),
            "k": scale * normal(g, *leading, Tk, d, dtype=dtype),
            "v": normal(g, *leading, Tk, dv, dtype=dtype),
        }
        name = f"q {tuple(args['q'].shape)}, k {tuple(args['k'].shape)}, v {tuple(args['v'].shape)}{note}"
        return Case(name, args, outputs=("output", "weights"), **rest)

    B, nh, Tq, Tk, d, dv = distinct(g, 6, 2, 8)
    return [
        case((B, nh), Tq, Tk, d, dv, gradients=("q", "k", "v")),
        case((), Tq, d, Tk, dv, part="leading axes", note=", no leading axis"),
        case((B,), Tk, Tq, dv, d, part="leading axes", note=", one leading axis"),
        case((2, 1, B), d, Tq, Tk, nh, part="leading axes", note=", three leading axes"),
        case((B, nh), d, d, d, d, part="other sizes", note=", T equals d"),
        case((1, 1), Tk, d, dv, Tq, part="other sizes", note=", a batch of one"),
        case((nh,), 1, Tq, d, dv, part="other sizes", note=", one query"),
        case((nh,), Tq, 1, d, dv, part="other sizes", note=", one key"),
        case((B, nh), Tq, Tk, d, dv, dtype=torch.float64, part="other sizes", note=", float64"),
        case((B,), Tq, Tk, d, dv, scale=30.0, part="large scores", note=", large scores", rtol=1e-2, atol=1e-2),
        case((B, nh), Tq, Tk, d, dv, part="any device", on_accelerator=True, note=", on an accelerator"),
    ]  # fmt: skip


def _plain_softmax(scores: torch.Tensor, dim: int) -> torch.Tensor:
    exp = scores.exp()
    return exp / exp.sum(dim=dim, keepdim=True)


def _weights(scores: torch.Tensor, mistakes: frozenset[str]) -> torch.Tensor:
    """Turn scores (..., Tq, Tk) into weights with the named mistakes made."""
    if "causal" in mistakes:
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~allowed, -1e9)
    soft = _plain_softmax if "unstable" in mistakes else reference.softmax
    if "softmax_over_everything" in mistakes:
        return soft(scores.flatten(-2), dim=-1).view_as(scores)
    dim = -2 if "softmax_over_queries" in mistakes else -1
    if "softmax_over_axis_1" in mistakes:
        dim = 1
    return soft(scores, dim)


def faulty_attention(mistakes: frozenset[str]):
    """Attend with the named mistakes made."""
    scales: dict[str, Callable] = {
        "not_scaled": lambda q, k, v: 1.0,
        "scaled_by_depth": lambda q, k, v: k.shape[-1],
        "scaled_by_keys": lambda q, k, v: k.shape[-2] ** 0.5,
        "scaled_by_queries": lambda q, k, v: q.shape[-2] ** 0.5,
        "scaled_by_value_depth": lambda q, k, v: v.shape[-1] ** 0.5,
        "scaled_up": lambda q, k, v: k.shape[-1] ** -0.5,
        "scaled_twice": lambda q, k, v: k.shape[-1] ** 0.25,
        "scale_of_64": lambda q, k, v: 8.0,
        "depth_from_axis_1": lambda q, k, v: k.shape[1] ** 0.5,
        "scaled_after_softmax": lambda q, k, v: 1.0,
    }

    def scaled_dot_product_attention(q, k, v):
        keys = k.transpose(-2, -1)
        if "keys_reshaped" in mistakes:
            keys = k.reshape(keys.shape)
        if "keys_not_transposed" in mistakes:
            keys = k
        if "matrices_only" in mistakes:
            keys = k.permute(*reversed(range(k.ndim)))
        if "three_axes_only" in mistakes:
            keys = k.transpose(1, 2)
        scale = next((scales[name](q, k, v) for name in scales if name in mistakes), None)
        scores = q @ keys / (k.shape[-1] ** 0.5 if scale is None else scale)
        if "scores_transposed" in mistakes:  # keys by queries
            scores = scores.transpose(-2, -1)
        weights = _weights(scores, mistakes)
        if "scaled_after_softmax" in mistakes:
            weights = weights / k.shape[-1] ** 0.5
        mixture = scores if "output_from_scores" in mistakes else weights
        output = (mixture.transpose(-2, -1) if "mixed_by_columns" in mistakes else mixture) @ v
        if "scores_returned" in mistakes:
            weights = scores
        if "weights_transposed" in mistakes:
            weights = weights.transpose(-2, -1)
        if "weights_not_returned" in mistakes:
            return output
        return (weights, output) if "results_swapped" in mistakes else (output, weights)

    return scaled_dot_product_attention


ATTENTION_BANK = (
    Misconception(
        "softmax_over_queries", "softmax runs over queries, not keys", "weights.sum(dim=-1) == 1",
        "Each query spreads one unit of attention over the keys.", "Compare softmax(dim=-1) with dim=-2 on a 2 x 3 example.",
        evidence=row_sums,
    ),
    Misconception(
        "softmax_over_axis_1", "softmax runs over axis 1, counted from the front", "weights.sum(dim=-1) == 1",
        "With leading axes, axis 1 is something else: queries, or heads.", "Count from the back: the keys are the last axis of the scores.",
        evidence=row_sums,
    ),
    Misconception(
        "softmax_over_everything", "one softmax runs over queries and keys together", "weights.sum(dim=-1) == 1",
        "Then the queries share one unit of attention; each should have one of its own.", "Look at the dim of softmax and at what you flatten before it.",
        evidence=row_sums,
    ),
    Misconception(
        "not_scaled", "the scores are not scaled", "scores divided by the square root of the key depth",
        "The weights are too sharp, and the more so the wider the keys.", "Divide before the softmax.",
    ),
    Misconception(
        "scaled_by_depth", "the scores are divided by the depth, not by its root", "scores divided by the square root of the key depth",
        "A sum of d random products has a standard deviation of the root of d; the weights become too flat.", "Mind the exponent of d.",
    ),
    Misconception(
        "scaled_by_keys", "the scale comes from the number of keys", "the square root of the key depth",
        "The spread of the scores depends on how many products each one adds up, not on how many keys there are.",
        "k is (..., Tk, d): see which axis q k^T sums over.",
    ),
    Misconception(
        "scaled_by_queries", "the scale comes from the number of queries", "the square root of the key depth",
        "The spread of the scores depends on how many products each one adds up, not on who asks.",
        "q is (..., Tq, d): see which axis q k^T sums over.",
    ),
    Misconception(
        "scaled_by_value_depth", "the scale comes from the depth of the values", "the square root of the key depth",
        "The values take no part in the scores.", "Take the depth from k or q; v may have another.",
    ),
    Misconception(
        "depth_from_axis_1", "the depth is read from axis 1, counted from the front", "the depth is the last axis of k",
        "It is right for matrices only; with leading axes, axis 1 is something else.", "Count axes from the back: shape[-1].",
    ),
    Misconception(
        "scaled_up", "the scores are multiplied by the root of the depth", "scores divided by the square root of the key depth",
        "That makes the weights sharper still.", "Look for * where / belongs, or for an exponent of the wrong sign.",
    ),
    Misconception(
        "scaled_twice", "the root is taken twice", "scores divided by the square root of the key depth",
        "The fourth root belongs to both q and k; on the scores it is half the scale.", "Take the root of d once.",
    ),
    Misconception(
        "scale_of_64", "the scale is always 8", "the square root of the key depth",
        "8 is right for heads of 64 columns only.", "Compute it from the shape of k.",
    ),
    Misconception(
        "scaled_after_softmax", "the scale is applied after the softmax", "weights.sum(dim=-1) == 1",
        "There it makes all weights smaller and changes no ratio between them.", "Divide the scores, before softmax.", evidence=row_sums,
    ),
    Misconception(
        "unstable", "large scores overflow", "finite weights for large scores",
        "exp(89) is infinite in float32; trained networks reach such scores.", "Use your softmax of 2.1, which shifts the scores first.",
    ),
    Misconception(
        "scores_returned", "the scores come back in the place of the weights", "weights.sum(dim=-1) == 1",
        "The scores may be negative and sum to anything.", "Return what softmax gave.", evidence=row_sums,
    ),
    Misconception(
        "output_from_scores", "the values are mixed by the scores, not by the weights", "output = a weighted mean of the values",
        "Scores do not sum to 1, so the output leaves the range of the values.", "Multiply v by what softmax gave.",
    ),
    Misconception(
        "weights_transposed", "the weights come back transposed", "weights (..., Tq, Tk): a row for each query",
        "A row of weights belongs to one query.", "Return them as they multiply v.", evidence=shapes,
    ),
    Misconception(
        "results_swapped", "the two results are swapped", "output first, then weights",
        "Who unpacks output, weights = ... gets each under the other's name.", "Look at the order in the return.", evidence=shapes,
    ),
    Misconception(
        "weights_not_returned", "only the output comes back", "two results: output, weights",
        "Without the weights there is nothing to look at.", "Return a pair.",
    ),
    Misconception(
        "scores_transposed", "the scores have a row for each key", "scores (..., Tq, Tk): a row for each query",
        "The softmax over the last axis then runs over queries, and the product with v fits only when there are as many queries as keys.",
        "Look at which of q and k is transposed, and which comes first.", evidence=shapes,
    ),
    Misconception(
        "mixed_by_columns", "the values are mixed by the columns of the weights", "output[..., i, :] mixes the values by row i of the weights",
        "A column holds what one key gets from all queries; it does not sum to 1.", "Multiply by the weights as they are.",
    ),
    Misconception(
        "keys_not_transposed", "the keys are not transposed", "scores (..., Tq, Tk)",
        "Queries meet keys along the depth; without the transpose it runs only when T equals d, and is wrong there.",
        "Exchange the last two axes of k.",
    ),
    Misconception(
        "keys_reshaped", "the keys are reshaped where they should be transposed", "scores[..., i, j] = q[..., i, :] . k[..., j, :] / scale",
        "A reshape keeps the order of the numbers, so the columns are no longer keys.", "Exchange the last two axes of k with transpose.",
    ),
    Misconception(
        "matrices_only", "only matrices are handled: leading axes break it", "any number of leading axes",
        "Batch and heads stand in front, and each pair of matrices meets only its own.",
        "If you use k.T or transpose(0, 1): they move leading axes too; name the last two axes instead.",
    ),
    Misconception(
        "three_axes_only", "the axes of k are counted from the front", "any number of leading axes",
        "transpose(1, 2) is right with one leading axis only.", "Count the axes from the back.",
    ),
    Misconception(
        "causal", "a query may not look at later keys", "every query sees every key",
        "That mask belongs to language models; an image has no future.", "Leave the mask out.",
    ),
)  # fmt: skip

FUSED_NAMES = frozenset(
    "scaled_dot_product_attention _scaled_dot_product_attention_math aten.scaled_dot_product_attention "
    "aten._scaled_dot_product_attention_math aten._scaled_dot_product_attention_math_for_mps "
    "aten._scaled_dot_product_flash_attention aten._scaled_dot_product_flash_attention_for_cpu "
    "aten._scaled_dot_product_efficient_attention aten._scaled_dot_product_cudnn_attention "
    "aten._scaled_dot_product_fused_attention_overrideable aten._flash_attention_forward "
    "aten._efficient_attention_forward aten._cudnn_attention_forward".split()
)

# --- split_heads --------------------------------------------------------------------------------


def split_cases(g: torch.Generator) -> list[Case]:
    """Draw tokens whose sizes, heads and columns a head all differ."""

    def case(B, T, nh, hd, dtype=torch.float32, note="", **rest):
        name = f"x ({B}, {T}, {nh * hd}), num_heads {nh}{note}"
        args = {"x": normal(g, B, T, nh * hd, dtype=dtype), "num_heads": nh}
        return Case(name, args, rtol=1e-6, atol=1e-6, **rest)

    B, T, nh, hd = distinct(g, 4, 2, 7)
    uneven = nh * hd + draw(g, 1, nh - 1)
    return [
        case(B, T, nh, hd, gradients=("x",)),
        case(1, T, nh, hd, part="other sizes", note=", a batch of one"),
        case(B, nh, nh, hd, part="other sizes", note=", as many tokens as heads"),
        case(B, nh * hd, nh, hd, part="other sizes", note=", as many tokens as columns"),
        case(hd, T, 1, nh, part="other sizes", note=", one head"),
        case(B, T, nh, 1, part="other sizes", note=", one column a head"),
        case(B, 1, hd, nh, part="other sizes", note=", one token"),
        case(B, T, nh, hd, dtype=torch.float64, part="other sizes", note=", float64"),
        Case(
            f"D={uneven} is not divisible by num_heads {nh}",
            {"x": normal(g, B, T, uneven), "num_heads": nh}, part="errors", raises="ValueError",
        ),
        Case(
            f"D={nh} is smaller than num_heads {nh + hd}",
            {"x": normal(g, B, nh + hd, nh), "num_heads": nh + hd}, part="errors", raises="ValueError",
        ),
        case(B, T, nh, hd, part="any device", on_accelerator=True, note=", on an accelerator"),
    ]  # fmt: skip


def faulty_split(mistakes: frozenset[str]):
    """Split with the named mistakes made."""

    def split_heads(x, num_heads):
        B, T, D = x.shape
        if D % num_heads:
            return reference.split_heads(x, num_heads)
        nh, hd = num_heads, D // num_heads
        if "first_image_only" in mistakes:
            x, B = x[:1], 1
        if "counts_exchanged" in mistakes:
            nh, hd = hd, nh
        if "reshape_only" in mistakes:
            heads = x.reshape(B, nh, T, hd)
        elif "interleaved" in mistakes:
            heads = x.reshape(B, T, hd, nh).permute(0, 3, 1, 2)
        else:
            heads = x.reshape(B, T, nh, hd).transpose(1, 2)
        if "heads_backwards" in mistakes:
            heads = heads.flip(1)
        if "heads_behind_tokens" in mistakes:
            return heads.transpose(1, 2)
        if "columns_before_tokens" in mistakes:
            return heads.transpose(2, 3)
        if "heads_before_batch" in mistakes:
            return heads.transpose(0, 1)
        if "joined_with_batch" in mistakes:
            return heads.reshape(B * nh, T, hd)
        if "list_of_heads" in mistakes:
            return list(heads.unbind(1))
        return heads

    return split_heads


SPLIT_BANK = (
    Misconception(
        "reshape_only", "the heads are made by a reshape alone", "head j holds columns j*hd : (j+1)*hd of every token",
        "A reshape moves no number: the head that comes out holds slices of a few tokens, not of all.",
        "Cut the last axis first, then exchange two axes.",
    ),
    Misconception(
        "interleaved", "the heads take turns, column by column", "head j owns consecutive columns: j*hd : (j+1)*hd",
        "Published weights expect each head's columns side by side.", "Look at the order of nh and hd when you cut the last axis.",
    ),
    Misconception(
        "heads_behind_tokens", "the heads stay behind the tokens", "(B, nh, T, hd)",
        "Attention works on the last two axes: they have to be tokens and columns.", "Exchange axes 1 and 2 at the end.", evidence=shapes,
    ),
    Misconception(
        "columns_before_tokens", "columns and tokens are exchanged", "(B, nh, T, hd)",
        "Attention works on the last two axes, tokens before columns.", "Look at the order in permute.", evidence=shapes,
    ),
    Misconception(
        "heads_before_batch", "the heads stand before the batch", "(B, nh, T, hd)",
        "The first axis is the image's, everywhere in this course.", "Look at the order in permute.", evidence=shapes,
    ),
    Misconception(
        "joined_with_batch", "heads and batch are joined into one axis", "(B, nh, T, hd)",
        "Some code does that for bmm; here the head has an axis of its own.", "Leave out the last reshape.", evidence=shapes,
    ),
    Misconception(
        "counts_exchanged", "num_heads is taken for the columns of a head", "nh = num_heads, hd = D / num_heads",
        "It goes unnoticed when the two are equal.", "Look at the order of num_heads and D // num_heads.", evidence=shapes,
    ),
    Misconception(
        "heads_backwards", "the heads come in reverse order", "head 0 owns the first columns",
        "merge_heads would put them together the wrong way round.", "Look for a flip, or for a loop that counts down.",
    ),
    Misconception(
        "first_image_only", "only the first image is split", "all images of the batch",
        "It works for a batch of one.", "Look for an index 0 or for a 1 where B belongs.", evidence=shapes,
    ),
    Misconception(
        "list_of_heads", "a list of heads comes back", "one tensor (B, nh, T, hd)",
        "With an axis for the heads, one product serves them all.", "Stack them along a new axis 1.",
    ),
)  # fmt: skip

# --- merge_heads --------------------------------------------------------------------------------


def merge_cases(g: torch.Generator) -> list[Case]:
    """Draw heads whose sizes all differ."""

    def case(B, nh, T, hd, dtype=torch.float32, note="", **rest):
        name = f"x ({B}, {nh}, {T}, {hd}){note}"
        return Case(name, {"x": normal(g, B, nh, T, hd, dtype=dtype)}, rtol=1e-6, atol=1e-6, **rest)

    B, nh, T, hd = distinct(g, 4, 2, 7)
    return [
        case(B, nh, T, hd, gradients=("x",)),
        case(1, nh, T, hd, part="other sizes", note=", a batch of one"),
        case(B, nh, nh, hd, part="other sizes", note=", as many tokens as heads"),
        case(B, nh, T, T, part="other sizes", note=", as many tokens as columns"),
        case(B, 1, T, hd, part="other sizes", note=", one head"),
        case(B, nh, 1, hd, part="other sizes", note=", one token"),
        case(B, nh, T, 1, part="other sizes", note=", one column a head"),
        case(B, nh, T, hd, dtype=torch.float64, part="other sizes", note=", float64"),
        case(B, nh, T, hd, part="any device", on_accelerator=True, note=", on an accelerator"),
    ]


def faulty_merge(mistakes: frozenset[str]):
    """Merge with the named mistakes made."""

    def merge_heads(x):
        B, nh, T, hd = x.shape
        if "heads_backwards" in mistakes:
            x = x.flip(1)
        if "first_image_only" in mistakes:
            x, B = x[:1], 1
        if "reshape_only" in mistakes:
            return x.reshape(B, T, nh * hd)
        if "columns_transposed" in mistakes:
            return x.transpose(2, 3).reshape(B, T, nh * hd)
        if "batch_and_tokens_exchanged" in mistakes:
            return x.permute(2, 0, 1, 3).reshape(T, B, nh * hd)
        if "sizes_confused" in mistakes:
            return x.transpose(1, 2).reshape(B, nh, T * hd)
        if "interleaved" in mistakes:
            return x.permute(0, 2, 3, 1).reshape(B, T, nh * hd)
        if "heads_as_tokens" in mistakes:
            return x.reshape(B, nh * T, hd)
        if "mean_over_heads" in mistakes:
            return x.mean(dim=1)
        if "sum_over_heads" in mistakes:
            return x.sum(dim=1)
        if "not_joined" in mistakes:
            return x.transpose(1, 2)
        if "columns_before_tokens" in mistakes:
            return x.transpose(2, 3).flatten(1, 2)
        if "view" in mistakes:
            return x.transpose(1, 2).view(B, T, nh * hd)
        return x.transpose(1, 2).reshape(B, T, nh * hd)

    return merge_heads


MERGE_BANK = (
    Misconception(
        "reshape_only", "the heads are joined by a reshape alone", "merge_heads(split_heads(x, nh)) == x",
        "In memory each head's tokens stand together; a reshape then mixes tokens.", "Exchange heads and tokens first, then join.",
    ),
    Misconception(
        "interleaved", "the heads take turns, column by column", "head j fills columns j*hd : (j+1)*hd",
        "split_heads gave each head consecutive columns.", "Before the last reshape the axes must read (B, T, nh, hd).",
    ),
    Misconception(
        "columns_transposed", "tokens and columns are exchanged instead of heads and tokens", "merge_heads(split_heads(x, nh)) == x",
        "nh and hd must lie side by side to melt into one axis.", "Look at the two axes in transpose.",
    ),
    Misconception(
        "batch_and_tokens_exchanged", "tokens come before the batch", "(B, T, D)",
        "The first axis is the image's, everywhere in this course.", "Look at the order in permute.", evidence=shapes,
    ),
    Misconception(
        "sizes_confused", "the result has a row for each head, not for each token", "(B, T, nh*hd)",
        "After the transpose axis 1 counts tokens, but the sizes still come from x, where it counts heads.",
        "Look up which axis of x counts the tokens.", evidence=shapes,
    ),
    Misconception(
        "heads_as_tokens", "the heads are joined with the tokens, not with the columns", "(B, T, nh*hd)",
        "Each token gets its D columns back; there are no more tokens than before.", "Exchange heads and tokens, then join the last two axes.",
        evidence=shapes,
    ),
    Misconception(
        "columns_before_tokens", "heads and columns are joined, but before the tokens", "(B, T, nh*hd)",
        "The columns are the last axis.", "Exchange heads and tokens, not tokens and columns.", evidence=shapes,
    ),
    Misconception(
        "not_joined", "heads and columns are not joined", "(B, T, nh*hd), three axes",
        "self.proj expects D columns.", "Flatten the last two axes.", evidence=shapes,
    ),
    Misconception(
        "mean_over_heads", "the heads are averaged", "side by side, nothing lost",
        "What a head found would be mixed with the others before the projection can weigh it.", "Set them side by side.", evidence=shapes,
    ),
    Misconception(
        "sum_over_heads", "the heads are added up", "side by side, nothing lost",
        "What a head found would be mixed with the others before the projection can weigh it.", "Set them side by side.", evidence=shapes,
    ),
    Misconception(
        "view", "view can not join what a transpose has taken apart", "a result for any number of heads and tokens",
        "After a transpose the numbers of a token no longer stand together in memory, and view never moves them.",
        "Use reshape or flatten, which copy where they must.",
    ),
    Misconception(
        "heads_backwards", "the heads come in reverse order", "head 0 fills the first columns",
        "It must be the order of split_heads.", "Look for a flip, or for a loop that counts down.",
    ),
    Misconception(
        "first_image_only", "only the first image is merged", "all images of the batch",
        "It works for a batch of one.", "Look for an index 0 or for a 1 where B belongs.", evidence=shapes,
    ),
)  # fmt: skip

# --- MultiHeadAttention -------------------------------------------------------------------------


def layer_cases(g: torch.Generator) -> list[Case]:
    """Draw layers and tokens whose sizes all differ."""

    def case(B, T, nh, hd, bias=True, scale=1.0, dtype=torch.float32, note="", **rest):
        D = nh * hd
        state = {"qkv.weight": normal(g, 3 * D, D, dtype=dtype) / D**0.5}
        if bias:
            state["qkv.bias"] = normal(g, 3 * D, dtype=dtype) / 2
        state["proj.weight"] = normal(g, D, D, dtype=dtype) / D**0.5
        state["proj.bias"] = normal(g, D, dtype=dtype) / 2
        init = {"embed_dim": D, "num_heads": nh} | ({} if bias else {"qkv_bias": False})
        name = f"MultiHeadAttention({', '.join(str(v) for v in init.values())}) on x ({B}, {T}, {D}){note}"
        args = {"x": scale * normal(g, B, T, D, dtype=dtype)}
        outputs = ("output", "weights")
        return Case(name, args, driver="module", init=init, state=state, outputs=outputs, **rest)

    B, T, nh, hd = distinct(g, 4, 2, 6)
    return [
        case(B, T, nh, hd, gradients=("x",)),
        case(B, hd, nh, T, bias=False, part="without bias", note=", no bias in qkv"),
        case(1, T, hd, nh, part="other sizes", note=", a batch of one"),
        case(B, nh, nh, hd, part="other sizes", note=", as many tokens as heads"),
        case(B, nh * hd, nh, hd, part="other sizes", note=", T equals D"),
        case(T, B, 1, nh * hd, part="other sizes", note=", one head"),
        case(nh, 1, B, T, part="other sizes", note=", one token"),
        case(B, T, hd, 1, part="other sizes", note=", one column a head"),
        case(B, T, nh, hd, dtype=torch.float64, part="other sizes", note=", float64"),
        case(B, T, nh, hd, scale=30.0, part="large scores", note=", large scores", rtol=1e-2, atol=2e-2),
        case(B, T, nh, hd, part="any device", on_accelerator=True, note=", on an accelerator"),
    ]  # fmt: skip


def faulty_layer(mistakes: frozenset[str]):
    """Build the layer with the named mistakes made."""
    scales: dict[str, Callable] = {
        "not_scaled": lambda D, nh, T: 1.0,
        "scaled_by_embed_dim": lambda D, nh, T: D**0.5,
        "scaled_by_head_dim": lambda D, nh, T: D // nh,
        "scaled_by_heads": lambda D, nh, T: nh**0.5,
        "scaled_by_tokens": lambda D, nh, T: T**0.5,
    }

    class MultiHeadAttention(reference.MultiHeadAttention):
        def __init__(self, embed_dim, num_heads, qkv_bias=True):
            super().__init__(embed_dim, num_heads, qkv_bias or "bias_always" in mistakes)

        def thirds(self, x):
            B, T, D = x.shape
            nh, hd = self.num_heads, D // self.num_heads
            bias = None if "bias_ignored" in mistakes else self.qkv.bias
            qkv = nn.functional.linear(x, self.qkv.weight, bias)
            if "thirds_inside_heads" in mistakes:
                q, k, v = (
                    part.reshape(B, T, D) for part in qkv.view(B, T, nh, 3 * hd).chunk(3, -1)
                )
            elif "every_third_column" in mistakes:
                q, k, v = qkv.view(B, T, D, 3).unbind(-1)
            else:
                q, k, v = qkv.chunk(3, dim=-1)
            if "queries_and_keys_swapped" in mistakes:
                q, k = k, q
            if "keys_and_values_swapped" in mistakes:
                k, v = v, k
            if "queries_and_values_swapped" in mistakes:
                q, v = v, q
            if "keys_are_queries" in mistakes:
                k = q
            return q, k, x if "values_are_tokens" in mistakes else v

        def split(self, x):
            B, T, D = x.shape
            nh, hd = self.num_heads, D // self.num_heads
            if "split_by_reshape" in mistakes:
                return x.reshape(B, nh, T, hd)
            if "interleaved" in mistakes:
                return x.reshape(B, T, hd, nh).permute(0, 3, 1, 2)
            if "attends_over_heads" in mistakes:
                return x.reshape(B, T, nh, hd)
            return x.reshape(B, T, nh, hd).transpose(1, 2)

        def merge(self, x, shape):
            if "merged_by_reshape" in mistakes or "attends_over_heads" in mistakes:
                return x.reshape(shape)
            if "interleaved" in mistakes:
                return x.permute(0, 2, 3, 1).reshape(shape)
            return x.transpose(1, 2).reshape(shape)

        def forward(self, x):
            if "one_head" in mistakes:
                self.num_heads = 1
            D, nh = x.shape[-1], self.num_heads
            q, k, v = (self.split(part) for part in self.thirds(x))
            scale = next((f(D, nh, x.shape[1]) for name, f in scales.items() if name in mistakes), None)  # fmt: skip
            scores = q @ k.transpose(-2, -1) / ((D // nh) ** 0.5 if scale is None else scale)
            weights = _weights(scores, mistakes)
            output = self.merge(weights @ v, x.shape)
            if "not_projected" not in mistakes:
                output = self.proj(output)
            if "residual" in mistakes:
                output = x + output
            if "scores_returned" in mistakes:
                weights = scores
            if "weights_averaged" in mistakes:
                weights = weights.mean(dim=1)
            if "weights_not_returned" in mistakes:
                return output
            return (weights, output) if "results_swapped" in mistakes else (output, weights)

    return MultiHeadAttention


LAYER_BANK = (
    Misconception(
        "softmax_over_queries", "softmax runs over queries, not keys", "weights.sum(dim=-1) == 1",
        "Each query spreads one unit of attention over the keys.", "Use your function of 2.2, or look at the dim of softmax.",
        evidence=row_sums,
    ),
    Misconception(
        "not_scaled", "the scores are not scaled", "scores divided by the square root of the head's depth",
        "The weights are too sharp.", "Use your function of 2.2, or divide before the softmax.",
    ),
    Misconception(
        "scaled_by_embed_dim", "the scale comes from embed_dim, not from the head", "the square root of hd = D / nh",
        "Each score adds up hd products, not D; it goes unnoticed with one head.", "Take the depth from q after the split.",
    ),
    Misconception(
        "scaled_by_head_dim", "the scores are divided by the head's depth, not by its root", "the square root of hd",
        "The weights become too flat.", "Mind the exponent.",
    ),
    Misconception(
        "scaled_by_heads", "the scale comes from the number of heads", "the square root of hd = D / nh",
        "Each score adds up hd products, however many heads there are.", "Take the depth from q after the split.",
    ),
    Misconception(
        "scaled_by_tokens", "the scale comes from the number of tokens", "the square root of hd = D / nh",
        "Each score adds up hd products, however many tokens there are.", "After the split q is (B, nh, T, hd): the depth is its last axis.",
    ),
    Misconception(
        "split_by_reshape", "the heads are split by a reshape alone", "head j sees columns j*hd : (j+1)*hd of every token",
        "Each head then holds a few whole tokens instead of its slice of all.", "Use split_heads.",
    ),
    Misconception(
        "merged_by_reshape", "the heads are merged by a reshape alone", "token i gets what its own queries collected",
        "In memory each head's tokens stand together, so a reshape mixes tokens.", "Use merge_heads.",
    ),
    Misconception(
        "interleaved", "the heads take turns, column by column", "head j owns consecutive columns: j*hd : (j+1)*hd",
        "The layer would learn as well, but published weights would not fit it.", "Look at the order of nh and hd in your reshape.",
    ),
    Misconception(
        "attends_over_heads", "the heads of one token attend to each other", "weights (B, nh, T, T): tokens attend to tokens",
        "Attention runs over the last axis but one; after the cut that is still the heads' axis.", "Exchange heads and tokens before attending.",
        evidence=shapes,
    ),
    Misconception(
        "one_head", "one head attends with all columns", "weights (B, nh, T, T): each head attends on its own",
        "num_heads is given, but nothing is split.", "Split q, k and v into heads.", evidence=shapes,
    ),
    Misconception(
        "thirds_inside_heads", "q, k and v are cut inside each head", "the first D columns of qkv(x) are q, the next k, the last v",
        "Some libraries store them so; timm, torch and this course store three thirds.", "Cut into three first, then into heads.",
    ),
    Misconception(
        "every_third_column", "q, k and v take turns, column by column", "the first D columns of qkv(x) are q, the next k, the last v",
        "Published weights hold three consecutive thirds.", "Use chunk(3, dim=-1), or reshape to (B, T, 3, D).",
    ),
    Misconception(
        "queries_and_keys_swapped", "queries and keys are swapped", "the first third of qkv(x) is q, the second k",
        "Row i then holds how much others look for token i, and it is the wrong row that sums to 1.", "Look at the order when you unpack.",
    ),
    Misconception(
        "keys_and_values_swapped", "keys and values are swapped", "the second third of qkv(x) is k, the last v",
        "Published weights would be read as something else.", "Look at the order when you unpack, or in the call of 2.2.",
    ),
    Misconception(
        "queries_and_values_swapped", "queries and values are swapped", "the first third of qkv(x) is q, the last v",
        "Published weights would be read as something else.", "Look at the order when you unpack, or in the call of 2.2.",
    ),
    Misconception(
        "keys_are_queries", "the queries serve as keys, too", "scores of queries with keys",
        "Then i looks for j as much as j for i, and a token matches itself well.", "The second third of qkv(x) is not used yet.",
    ),
    Misconception(
        "values_are_tokens", "the tokens themselves are collected, not the values", "output from v, the last third of qkv(x)",
        "What a token hands over is learned.", "The last third of qkv(x) is not used yet.",
    ),
    Misconception(
        "bias_ignored", "the bias of qkv is not added", "q, k, v = the thirds of self.qkv(x)",
        "It goes unnoticed in layers that have none.", "Call self.qkv instead of multiplying by its weight.",
    ),
    Misconception(
        "bias_always", "qkv has a bias even with qkv_bias=False", "a bias if and only if qkv_bias",
        "Models without one would have a parameter too many.", "Hand qkv_bias on to nn.Linear, as the given __init__ does.",
    ),
    Misconception(
        "not_projected", "the output is not projected", "self.proj applied to the merged heads",
        "The heads would never meet.", "The last step on the output is self.proj.",
    ),
    Misconception(
        "residual", "x is added to the output", "the output of self.proj, alone",
        "The residual belongs to the block around this layer (notebook 03); there it would be added twice.", "Leave out the x + ....",
    ),
    Misconception(
        "weights_averaged", "the weights are averaged over the heads", "weights (B, nh, T, T)",
        "Each head looks elsewhere; the mean hides it.", "Return them as attention gave them.", evidence=shapes,
    ),
    Misconception(
        "weights_not_returned", "only the output comes back", "two results: output, weights",
        "Without the weights there is nothing to look at.", "Return a pair.",
    ),
    Misconception(
        "results_swapped", "the two results are swapped", "output first, then weights",
        "Who unpacks output, weights = ... gets each under the other's name.", "Look at the order in the return.", evidence=shapes,
    ),
    Misconception(
        "scores_returned", "the scores come back in the place of the weights", "weights.sum(dim=-1) == 1",
        "The scores may be negative and sum to anything.", "Return what softmax gave.", evidence=row_sums,
    ),
    Misconception(
        "unstable", "large scores overflow", "finite weights for large scores",
        "exp(89) is infinite in float32; trained networks reach such scores.", "Use your softmax of 2.1, which shifts the scores first.",
    ),
    Misconception(
        "causal", "a token may not look at later tokens", "every token sees every token",
        "That mask belongs to language models; an image has no future.", "Leave the mask out.",
    ),
)  # fmt: skip

# --- attention_macs -----------------------------------------------------------------------------


def macs_cases(g: torch.Generator) -> list[Case]:
    """Draw short, long, narrow and wide sequences."""

    def case(T, D, **rest):
        args = {"num_tokens": T, "embed_dim": D}
        return Case(f"{plural(T, 'token')}, embed_dim {D}", args, number=True, rtol=2e-7, **rest)

    T, D = distinct(g, 2, 5, 40)
    return [
        case(T, D),
        case(D, T + 41),
        case(draw(g, 90, 130), draw(g, 3, 9), part="other sizes"),
        case(1, draw(g, 50, 90), part="other sizes"),
        case(draw(g, 50, 90), 1, part="other sizes"),
        case(draw(g, 8, 32) ** 2 + 1, 64 * draw(g, 3, 12), part="other sizes"),
        case(draw(g, 56, 64) ** 2 + 1, 64 * draw(g, 12, 20), part="other sizes"),  # above 2**31
    ]


def faulty_macs(mistakes: frozenset[str]):
    """Count with the named mistakes made."""

    def attention_macs(num_tokens, embed_dim):
        T, D = num_tokens, embed_dim
        if "arguments_swapped" in mistakes:
            T, D = D, T
        projections, products = 4, 2
        if "no_output_projection" in mistakes:
            projections -= 1
        if "qkv_counted_once" in mistakes:
            projections -= 2
        if "no_projections" in mistakes:
            projections = 0
        if "one_product" in mistakes:
            products = 1
        if "no_products" in mistakes:
            products = 0
        projection, product = T * D * D, T * T * D
        if "products_without_width" in mistakes:
            product = T * T
        if "products_too_wide" in mistakes:
            product = T * T * D * D
        if "one_token" in mistakes:
            projection = D * D
        if "projections_too_narrow" in mistakes:
            projection = T * D
        total = projections * projection + products * product
        if "biases_counted" in mistakes:
            total += 4 * T * D
        if "softmax_counted" in mistakes:
            total += T * T
        if "mlp_counted" in mistakes:
            total += 8 * T * D * D
        return 2 * total if "flop" in mistakes else total

    return attention_macs


MACS_BANK = (
    Misconception(
        "flop", "FLOP are counted, not MACs", "one multiplication with its addition counts once",
        "A multiply-accumulate is two FLOP.", "Divide by 2, or leave the 2 out.",
    ),
    Misconception(
        "no_output_projection", "the output projection is not counted", "q, k, v and output: four projections",
        "It costs as much as any of the other three.", "List the linear maps of the drawing in section 7.",
    ),
    Misconception(
        "qkv_counted_once", "q, k and v are counted as one projection", "q, k, v and output: four projections",
        "One Linear(D, 3D) is three products of (T, D) with (D, D), side by side.", "Count the columns of qkv(x).",
    ),
    Misconception(
        "no_projections", "the projections are not counted", "four projections and two products between tokens",
        "At 197 tokens they are most of the cost.", "Add the linear maps.",
    ),
    Misconception(
        "one_product", "one of the products between tokens is not counted", "scores, and the weighted sum",
        "q k^T costs T*T*D, and so does weights times v.", "Count the products in which something of shape T x T takes part.",
    ),
    Misconception(
        "no_products", "the products between tokens are not counted", "four projections and two products between tokens",
        "They are what makes attention quadratic.", "Add q k^T and weights times v.",
    ),
    Misconception(
        "products_without_width", "a score is counted as one multiplication", "one score adds up hd products, over all heads D",
        "(T, hd) @ (hd, T) costs T*hd*T for each head.", "Use the rule a*b*c for (a, b) @ (b, c).",
    ),
    Misconception(
        "products_too_wide", "the products between tokens are counted with the square of the width", "(a, b) @ (b, c) costs a*b*c",
        "q k^T sums over the columns once.", "Write down the shapes of both factors.",
    ),
    Misconception(
        "one_token", "the projections are counted for one token only", "(T, D) @ (D, D) costs T*D*D",
        "D*D is the number of weights; each token passes through all of them.", "Use the rule a*b*c for (a, b) @ (b, c).",
    ),
    Misconception(
        "projections_too_narrow", "a projection is counted as one multiplication a column", "(T, D) @ (D, D) costs T*D*D",
        "Each column that comes out adds up D products.", "Use the rule a*b*c for (a, b) @ (b, c).",
    ),
    Misconception(
        "arguments_swapped", "tokens and width are swapped", "attention_macs(num_tokens, embed_dim)",
        "The projections are linear in T and quadratic in D, the products the other way round.", "Look at which letter is squared where.",
    ),
    Misconception(
        "biases_counted", "the biases are counted", "products of matrices, no biases",
        "A bias is an addition without a multiplication; by convention it is left out.", "Leave out what is added after a product.",
    ),
    Misconception(
        "softmax_counted", "the softmax is counted", "products of matrices, no softmax",
        "By convention only products of matrices count.", "Leave out what works number by number.",
    ),
    Misconception(
        "mlp_counted", "the MLP of the block is counted, too", "one attention layer",
        "The MLP is a layer of its own (notebook 03).", "Count the products of attention alone.",
    ),
)  # fmt: skip

# --- values -------------------------------------------------------------------------------------

_MEGABYTES = reference.attention_megabytes

MEGABYTES_BANK = (
    ValueMistake("no_class_token", 32 * 12 * 196**2 * 4 / 1e6, "the class token is not counted",
                 "It attends and is attended to like any patch.", "T is one more than the number of patches."),
    ValueMistake("mebibytes", _MEGABYTES * 1e6 / 2**20, "the unit is 2**20 bytes", "A megabyte here is 10**6 bytes.", "Divide by 1e6."),
    ValueMistake("one_image", _MEGABYTES / 32, "one image is counted", "Each image of the batch has weights of its own.", "Multiply by the batch."),
    ValueMistake("one_head", _MEGABYTES / 12, "one head is counted", "Each head has weights of its own.", "Multiply by the heads."),
    ValueMistake("all_layers", _MEGABYTES * 12, "all twelve layers are counted", "The question is about one.",
                 "12 occurs twice in ViT-B: heads, and layers."),
    ValueMistake("half_precision", _MEGABYTES / 2, "two bytes a number are counted", "float32 has four.", "Multiply by 4 bytes."),
    ValueMistake("numbers_not_bytes", _MEGABYTES / 4, "numbers are counted, not bytes", "A float32 takes four bytes.", "Multiply by 4 bytes."),
    ValueMistake("bits", _MEGABYTES * 8, "bits are counted", "A byte is eight bits.", "4 bytes a number."),
    ValueMistake("bytes", _MEGABYTES * 1e6, "the number of bytes is given", "A megabyte is 10**6 bytes.", "Divide by 1e6."),
    ValueMistake("kilobytes", _MEGABYTES * 1e3, "kilobytes are given", "A megabyte is 10**6 bytes.", "Divide by 1e6."),
    ValueMistake("gigabytes", _MEGABYTES / 1e3, "gigabytes are given", "A megabyte is 10**6 bytes.", "Divide by 1e6, not by 1e9."),
    ValueMistake("one_row", _MEGABYTES / 197, "one query is counted", "The weights are T x T: a row for each query.", "T occurs twice."),
)  # fmt: skip

BLINDNESS_BANK = (
    ValueMistake("invariant", (True, False), "the outputs are said to stay where they were",
                 "Invariant and equivariant are easily mixed up; the measurement tells them apart.",
                 "Compare output_of_shuffled with output, and with output[:, permutation]."),
    ValueMistake("both", (True, True), "the outputs are said to stay and to move",
                 "Both can hold only if all outputs are alike.", "Print the largest difference to output itself."),
    ValueMistake("neither", (False, False), "the outputs are said to have nothing to do with each other",
                 "Rounding makes equal things differ in the seventh digit, and == counts that; or the inverse permutation was taken.",
                 "Use torch.allclose with atol=1e-5, on output[:, permutation]."),
)  # fmt: skip

ENTROPY_BANK = (
    ValueMistake("not_divided", math.log(65), "the entropy is not divided by ln(T)", "In nats it grows with the number of tokens.", "Divide by math.log(T)."),
    ValueMistake("bits", 1 / math.log(2), "bits are divided by nats", "log2 above and ln below do not cancel.", "Use the same logarithm in both."),
    ValueMistake("in_bits", math.log2(65), "the entropy is in bits and not divided", "It grows with the number of tokens.", "Use ln, and divide by ln(T)."),
    ValueMistake("divided_by_tokens", math.log(65) / 65, "the entropy is divided by T", "The largest entropy of T weights is ln(T).", "Divide by math.log(T)."),
    ValueMistake("patches_only", math.log(65) / math.log(64), "it is divided by the logarithm of the number of patches",
                 "A row has a weight for the class token, too; no share can exceed 1.", "T is weights.shape[-1]."),
    ValueMistake("mean_of_terms", 1 / 65, "the terms of a row are averaged, not added", "The entropy of a row is a sum over its weights.", "Sum over dim=-1 first, then take the mean."),
    ValueMistake("sign", -1.0, "the minus sign is missing", "ln of a weight is negative, so the sum is.", "Entropy has a minus in front."),
    ValueMistake("sum_of_rows", 8 * 3 * 65, "the rows are added up", "The question is about the mean row.", "Take the mean over images, heads and queries."),
    ValueMistake("percent", 100.0, "a percentage is given", "The scale runs from 0 to 1.", "Do not multiply by 100."),
    ValueMistake("certain", 0.0, "the map is said to be a single choice", "0 is the entropy of a row that puts everything on one token.", "Measure a row of weights."),
)  # fmt: skip

# --- the checkers -------------------------------------------------------------------------------

CHECKERS = {
    "softmax": Checker(
        "softmax", reference.softmax, softmax_cases, faulty_softmax, SOFTMAX_BANK,
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
    ),
    "scaled_dot_product_attention": Checker(
        "scaled_dot_product_attention", reference.scaled_dot_product_attention, attention_cases,
        faulty_attention, ATTENTION_BANK,
        forbidden=FUSED_NAMES,
        picture=draw_sums,
        proves={
            "allowed operations": "made from products and a softmax",
            "values": "output and weights are those of softmax(q k^T / sqrt(d)) v",
            "leading axes": "with none, one, two or three leading axes",
            "other sizes": "also when T equals d, for a batch of one, one query, one key, and float64",
            "large scores": "finite and right for large scores",
        },
    ),
    "split_heads": Checker(
        "split_heads", reference.split_heads, split_cases, faulty_split, SPLIT_BANK,
        proves={
            "values": "head j holds columns j*hd : (j+1)*hd of every token, compared to the bit",
            "other sizes": "also for a batch of one, one head, one token, one column a head, and float64",
            "errors": "a D that num_heads does not divide is refused",
        },
    ),
    "merge_heads": Checker(
        "merge_heads", reference.merge_heads, merge_cases, faulty_merge, MERGE_BANK,
        proves={
            "values": "every head is back in its columns, compared to the bit",
            "other sizes": "also for a batch of one, one head, one token, one column a head, and float64",
        },
    ),
    "MultiHeadAttention": Checker(
        "MultiHeadAttention", reference.MultiHeadAttention, layer_cases, faulty_layer, LAYER_BANK,
        forbidden=FUSED_NAMES
        | {
            "MultiheadAttention", "multi_head_attention_forward", "_native_multi_head_attention",
            "aten._native_multi_head_attention", "aten._transformer_encoder_layer_fwd",
        },
        picture=draw_sums,
        proves={
            "allowed operations": "made from your own parts",
            "values": "output and weights, with given parameters",
            "gradients": "gradients of x and of every parameter, through output and weights",
            "without bias": "also with qkv_bias=False",
            "other sizes": "also for one head, one token, a batch of one, T equals D, and float64",
            "large scores": "finite and right for large scores",
        },
    ),
    "attention_macs": Checker(
        "attention_macs", reference.attention_macs, macs_cases, faulty_macs, MACS_BANK,
        proves={
            "values": "four projections and two products between tokens",
            "other sizes": "also for long, short, wide and narrow sequences",
        },
    ),
    "attention_megabytes": ValueChecker(
        "attention_megabytes", reference.attention_megabytes, MEGABYTES_BANK,
        rtol=0.0066,  # 60 is a fair rounding; without the class token it is 1 % less
        proves="batch, heads, T x T weights, four bytes each",
    ),
    "order_blindness": ValueChecker(
        "order_blindness", reference.order_blindness, BLINDNESS_BANK,
        proves="the outputs move with their tokens and change in nothing else",
    ),
    "untrained_entropy": ValueChecker(
        "untrained_entropy", reference.untrained_entropy, ENTROPY_BANK,
        rtol=0.002,
        proves="an untrained map is uniform but for a trace",
    ),
}  # fmt: skip
