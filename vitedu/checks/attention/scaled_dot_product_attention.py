import math

import torch
import torch.nn.functional as F

from vitedu.checks import evidence, families
from vitedu.checks.kit import FLOAT64, ON_ACCELERATOR, Checker, Mistake, also, shaped

MISTAKES = (
    families.OVER_QUERIES.by({"dim=-1": "dim=-2"}),
    Mistake(
        "softmax_over_axis_1",
        "the axis of softmax is counted from the front",
        "weights.sum(dim=-1) == 1",
        "With other leading axes, that axis is something else: queries, or heads.",
        "Count from the back: the keys are the last axis of the scores.",
        {"dim=-1": "dim=1"},
        evidence=evidence.row_sums,
        also=({"dim=-1": "dim=2"},),
    ),
    Mistake(
        "softmax_over_everything",
        "one softmax runs over queries and keys together",
        "weights.sum(dim=-1) == 1",
        "Then the queries share one unit of attention; each should have one of its own.",
        "Look at the dim of softmax and at what you flatten before it.",
        {"softmax(scores, dim=-1)": "softmax(scores.flatten(-2), dim=-1).view_as(scores)"},
        evidence=evidence.row_sums,
    ),
    Mistake(
        "not_scaled",
        "the scores are not scaled",
        "scores divided by the square root of the key depth",
        "The weights are too sharp, and the more so the wider the keys.",
        "Divide before the softmax.",
        {" / k.shape[-1] ** 0.5": ""},
    ),
    Mistake(
        "scaled_by_depth",
        "the scores are divided by the depth, not by its root",
        "scores divided by the square root of the key depth",
        "A sum of d random products has a standard deviation of the root of d; the weights become too flat.",
        "Mind the exponent of d.",
        {" ** 0.5": ""},
    ),
    Mistake(
        "scaled_by_keys",
        "the scale comes from the number of keys",
        "the square root of the key depth",
        "The spread of the scores depends on how many products each one adds up, not on how many keys there are.",
        "k is (..., Tk, d): see which axis q k^T sums over.",
        {"k.shape[-1]": "k.shape[-2]"},
    ),
    Mistake(
        "scaled_by_queries",
        "the scale comes from the number of queries",
        "the square root of the key depth",
        "The spread of the scores depends on how many products each one adds up, not on who asks.",
        "q is (..., Tq, d): see which axis q k^T sums over.",
        {"k.shape[-1]": "q.shape[-2]"},
    ),
    Mistake(
        "scaled_by_value_depth",
        "the scale comes from the depth of the values",
        "the square root of the key depth",
        "The values take no part in the scores.",
        "Take the depth from k or q; v may have another.",
        {"k.shape[-1]": "v.shape[-1]"},
    ),
    Mistake(
        "depth_from_axis_1",
        "the depth is read from axis 1, counted from the front",
        "the depth is the last axis of k",
        "It is right for matrices only; with leading axes, axis 1 is something else.",
        "Count axes from the back: shape[-1].",
        {"k.shape[-1]": "k.shape[1]"},
    ),
    Mistake(
        "scaled_up",
        "the scores are multiplied by the root of the depth",
        "scores divided by the square root of the key depth",
        "That makes the weights sharper still.",
        "Look for * where / belongs, or for an exponent of the wrong sign.",
        {"** 0.5": "** -0.5"},
    ),
    Mistake(
        "scaled_twice",
        "the root is taken twice",
        "scores divided by the square root of the key depth",
        "The fourth root belongs to both q and k; on the scores it is half the scale.",
        "Take the root of d once.",
        {"** 0.5": "** 0.25"},
    ),
    Mistake(
        "scale_of_64",
        "the scale is always 8",
        "the square root of the key depth",
        "8 is right for heads of 64 columns only.",
        "Compute it from the shape of k.",
        {"k.shape[-1] ** 0.5": "8.0"},
    ),
    Mistake(
        "scaled_after_softmax",
        "the scale is applied after the softmax",
        "weights.sum(dim=-1) == 1",
        "There it makes all weights smaller and changes no ratio between them.",
        "Divide the scores, before softmax.",
        {" / k.shape[-1] ** 0.5": "", "dim=-1)": "dim=-1) / k.shape[-1] ** 0.5"},
        evidence=evidence.row_sums,
    ),
    families.UNSTABLE,
    families.SCORES_RETURNED,
    Mistake(
        "output_from_scores",
        "the values are mixed by the scores, not by the weights",
        "output = a weighted mean of the values",
        "Scores do not sum to 1, so the output leaves the range of the values.",
        "Multiply v by what softmax gave.",
        {"weights @ v": "scores @ v"},
    ),
    Mistake(
        "weights_transposed",
        "the weights come back transposed",
        "weights (..., Tq, Tk): a row for each query",
        "A row of weights belongs to one query.",
        "Return them as they multiply v.",
        {"@ v, weights": "@ v, weights.transpose(-2, -1)"},
        evidence=evidence.shapes,
    ),
    families.RESULTS_SWAPPED,
    families.WEIGHTS_NOT_RETURNED,
    Mistake(
        "scores_transposed",
        "the scores have a row for each key",
        "scores (..., Tq, Tk): a row for each query",
        "The softmax over the last axis then runs over queries, and the product with v fits only when there are as many queries as keys.",
        "Look at which of q and k is transposed, and which comes first.",
        {"weights = softmax": "scores = scores.transpose(-2, -1)\nweights = softmax"},
        evidence=evidence.shapes,
    ),
    Mistake(
        "mixed_by_columns",
        "the values are mixed by the columns of the weights",
        "output[..., i, :] mixes the values by row i of the weights",
        "A column holds what one key gets from all queries; it does not sum to 1.",
        "Multiply by the weights as they are.",
        {"weights @ v": "weights.transpose(-2, -1) @ v"},
    ),
    Mistake(
        "keys_not_transposed",
        "the keys are not transposed",
        "scores (..., Tq, Tk)",
        "Queries meet keys along the depth; without the transpose it runs only when T equals d, and is wrong there.",
        "Exchange the last two axes of k.",
        {"k.transpose(-2, -1)": "k"},
    ),
    Mistake(
        "keys_reshaped",
        "the keys are reshaped where they should be transposed",
        "scores[..., i, j] = q[..., i, :] . k[..., j, :] / scale",
        "A reshape keeps the order of the numbers, so the columns are no longer keys.",
        "Exchange the last two axes of k with transpose.",
        {"k.transpose(-2, -1)": "k.reshape(k.mT.shape)"},
    ),
    Mistake(
        "matrices_only",
        "only matrices are handled: leading axes break it",
        "any number of leading axes",
        "Batch and heads stand in front, and each pair of matrices meets only its own.",
        "If you use k.T or transpose(0, 1): they move leading axes too; name the last two axes instead.",
        {"k.transpose(-2, -1)": "k.permute(*reversed(range(k.ndim)))"},
    ),
    Mistake(
        "three_axes_only",
        "the axes of k are counted from the front",
        "any number of leading axes",
        "transpose(1, 2) is right with one leading axis only.",
        "Count the axes from the back.",
        {"transpose(-2, -1)": "transpose(1, 2)"},
    ),
    families.CAUSAL.by(
        {
            "weights = softmax": "scores = scores.masked_fill(torch.ones_like(scores).tril() == 0, -1e9)\nweights = softmax"
        },
        name="a query may not look at later keys",
        expected="every query sees every key",
    ),
)


def by_einsum(q, k, v):
    scores = torch.einsum("...id,...jd->...ij", q, k) * q.size(-1) ** -0.5
    weights = F.softmax(scores, dim=-1)
    return torch.einsum("...ij,...jc->...ic", weights, v), weights


def by_queries(q, k, v):
    outputs, rows = [], []
    for query in q.unbind(-2):
        scores = (k * query.unsqueeze(-2)).sum(-1) / math.sqrt(query.shape[-1])
        row = torch.softmax(scores, -1)
        rows.append(row)
        outputs.append((row.unsqueeze(-1) * v).sum(-2))
    return torch.stack(outputs, -2), torch.stack(rows, -2)


def by_kernel_regression(q, k, v):
    scores = (q[..., :, None, :] * k[..., None, :, :]).sum(-1) / k.shape[-1] ** 0.5
    kernel = (scores - scores.amax(-1, keepdim=True)).exp()
    total = kernel.sum(-1, keepdim=True)
    return kernel @ v / total, kernel / total


def by_batches(q, k, v):
    leading = q.shape[:-2]
    flat = [
        x.reshape(-1, *x.shape[-2:]) for x in (q / q.shape[-1] ** 0.25, k / k.shape[-1] ** 0.25, v)
    ]
    weights = torch.bmm(flat[0], flat[1].mT).softmax(dim=2)
    output = torch.bmm(weights, flat[2])
    return output.reshape(*leading, *output.shape[1:]), weights.reshape(
        *leading, *weights.shape[1:]
    )


def in_double(q, k, v):
    scores = (
        torch.matmul(q.double(), k.double().swapaxes(-1, -2)) / torch.tensor(k.shape[-1]).sqrt()
    )
    weights = scores.log_softmax(-1).exp()
    return [torch.matmul(weights, v.double()).to(v.dtype), weights.to(q.dtype)]


CHECKER = Checker(
    "scaled_dot_product_attention",
    cases=shaped(
        "q: B nh Tq d; k: B nh Tk d; v: B nh Tk dv",
        also("leading axes", "no leading axis", shapes="q: Tq d; k: Tk d; v: Tk dv"),
        also("leading axes", "one leading axis", shapes="q: B Tq d; k: B Tk d; v: B Tk dv"),
        also(
            "leading axes",
            "three leading axes",
            shapes="q: 2 1 B Tq d; k: 2 1 B Tk d; v: 2 1 B Tk dv",
        ),
        also("other sizes", "T equals d", Tq="d", Tk="d", dv="d"),
        also("other sizes", "a batch of one", B=1, nh=1),
        also("other sizes", "one query", Tq=1),
        also("other sizes", "one key", Tk=1),
        also("other sizes", "one column", d=1),
        also("other sizes", "one column of values", dv=1),
        FLOAT64,
        # so large that one key wins for every query, whatever the scale: what is judged is that nothing overflows
        also("large scores", "large scores", scale={"q": 1e3, "k": 1e3}, rtol=1e-2, atol=1e-2),
        ON_ACCELERATOR,
        outputs=("output", "weights"),
        ranges={"d": (5, 8)},  # no square: its root is told from a rounded one
    ),
    forbidden=families.FUSED_NAMES,
    proves={
        "allowed operations": "made from products and a softmax",
        "values": "output and weights are those of softmax(q k^T / sqrt(d)) v",
        "leading axes": "with none, one, two or three leading axes",
        "other sizes": "also when T equals d, for a batch of one, one query, one key, and float64",
        "large scores": "finite and right for large scores",
    },
    picture=evidence.draw_sums,
    special="q.ndim == 2; q.ndim == 3; len(q) == 1; q.shape[-2] == 1; k.shape[-2] == 1; "
    "k.shape[-1] == 1; v.shape[-1] == 1; q.shape == k.shape; q.shape[-2] == q.shape[-1]",
    equivalent={
        "queries and keys have one depth": (
            "scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5",
        ),
        families.DEFAULT: ("weights = softmax(scores)",),
    },
)
