"""Checker of MultiHeadAttention: its cases, its known mistakes, and what is said of them."""

from collections.abc import Callable

import torch
from torch import nn

from vitedu import attention as reference
from vitedu.checks.attention.evidence import draw_sums, row_sums, shapes
from vitedu.checks.attention.scaled_dot_product_attention import (
    FUSED_NAMES,
    RESULTS_SWAPPED,
    SCORES_RETURNED,
    UNSTABLE,
    WEIGHTS_NOT_RETURNED,
)
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, normal
from vitedu.checks.probing import Case


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
            weights = faulty_weights(scores, mistakes)
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
    WEIGHTS_NOT_RETURNED,
    RESULTS_SWAPPED,
    SCORES_RETURNED,
    UNSTABLE,
    Misconception(
        "causal", "a token may not look at later tokens", "every token sees every token",
        "That mask belongs to language models; an image has no future.", "Leave the mask out.",
    ),
)  # fmt: skip

CHECKER = Checker(
    "MultiHeadAttention",
    reference.MultiHeadAttention,
    layer_cases,
    faulty_layer,
    LAYER_BANK,
    forbidden=FUSED_NAMES
    | {
        "MultiheadAttention",
        "multi_head_attention_forward",
        "_native_multi_head_attention",
        "aten._native_multi_head_attention",
        "aten._transformer_encoder_layer_fwd",
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
    given=("__init__",),
)
