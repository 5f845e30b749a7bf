"""Checker of scaled_dot_product_attention: its cases, its known mistakes, and what is said of them."""

from collections.abc import Callable

import torch

from vitedu import attention as reference
from vitedu.checks.attention.evidence import draw_sums, row_sums, shapes
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, normal
from vitedu.checks.probing import Case


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


def faulty_weights(scores: torch.Tensor, mistakes: frozenset[str]) -> torch.Tensor:
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
        weights = faulty_weights(scores, mistakes)
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


# mistakes of the layer (2.5) too
UNSTABLE = Misconception(
    "unstable", "large scores overflow", "finite weights for large scores",
    "exp(89) is infinite in float32; trained networks reach such scores.", "Use your softmax of 2.1, which shifts the scores first.",
)  # fmt: skip
SCORES_RETURNED = Misconception(
    "scores_returned", "the scores come back in the place of the weights", "weights.sum(dim=-1) == 1",
    "The scores may be negative and sum to anything.", "Return what softmax gave.", evidence=row_sums,
)  # fmt: skip
RESULTS_SWAPPED = Misconception(
    "results_swapped", "the two results are swapped", "output first, then weights",
    "Who unpacks output, weights = ... gets each under the other's name.", "Look at the order in the return.", evidence=shapes,
)  # fmt: skip
WEIGHTS_NOT_RETURNED = Misconception(
    "weights_not_returned", "only the output comes back", "two results: output, weights",
    "Without the weights there is nothing to look at.", "Return a pair.",
)  # fmt: skip

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
    UNSTABLE,
    SCORES_RETURNED,
    Misconception(
        "output_from_scores", "the values are mixed by the scores, not by the weights", "output = a weighted mean of the values",
        "Scores do not sum to 1, so the output leaves the range of the values.", "Multiply v by what softmax gave.",
    ),
    Misconception(
        "weights_transposed", "the weights come back transposed", "weights (..., Tq, Tk): a row for each query",
        "A row of weights belongs to one query.", "Return them as they multiply v.", evidence=shapes,
    ),
    RESULTS_SWAPPED,
    WEIGHTS_NOT_RETURNED,
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

CHECKER = Checker(
    "scaled_dot_product_attention",
    reference.scaled_dot_product_attention,
    attention_cases,
    faulty_attention,
    ATTENTION_BANK,
    forbidden=FUSED_NAMES,
    picture=draw_sums,
    proves={
        "allowed operations": "made from products and a softmax",
        "values": "output and weights are those of softmax(q k^T / sqrt(d)) v",
        "leading axes": "with none, one, two or three leading axes",
        "other sizes": "also when T equals d, for a batch of one, one query, one key, and float64",
        "large scores": "finite and right for large scores",
    },
)
