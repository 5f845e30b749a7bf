import math

import torch
import torch.nn.functional as F

from vitedu.attention import MultiHeadAttention as Given  # right answers need its constructor
from vitedu.attention import merge_heads, scaled_dot_product_attention, split_heads
from vitedu.checks import evidence, families
from vitedu.checks.kit import (
    Case,
    Checker,
    Mistake,
    distinct,
    normal,
    random_state,
    rearrange,
    usual,
)


def cases(g: torch.Generator) -> list[Case]:
    """Draw layers and tokens whose sizes all differ."""

    def case(B, T, nh, hd, bias=True, dtype=torch.float32, x=None, note="", **rest):
        D = nh * hd
        init = {"embed_dim": D, "num_heads": nh} | ({} if bias else {"qkv_bias": False})
        state = random_state(Given, init.values(), g, dtype)
        state |= {name: value / 2 for name, value in state.items() if name.endswith("bias")}
        name = f"MultiHeadAttention({', '.join(str(v) for v in init.values())}) on x ({B}, {T}, {D}){note}"
        args = {"x": normal(g, B, T, D, dtype=dtype) if x is None else x}
        rest |= {"driver": "module", "outputs": ("output", "weights")}
        return Case(name, args, init=init, state=state, **rest)

    B, T, nh, hd = distinct(g, 4, 2, 6)
    # tokens in pairs that are almost alike: scores of size 1000, and no row gives all to one key
    pairs = 30.0 * normal(g, B, 4, nh * hd).repeat_interleave(2, dim=1)
    pairs = pairs + 0.03 * normal(g, B, 8, nh * hd)
    return [
        case(B, T, nh, hd, gradients=("x",)),
        case(B, hd, nh, T, bias=False, part="without bias", note=", no bias in qkv"),
        case(1, T, hd, nh, part="other sizes", note=", a batch of one"),
        case(B, nh, nh, hd, part="other sizes", note=", as many tokens as heads"),
        case(B, nh * hd, nh, hd, part="other sizes", note=", T equals D"),
        case(T, B, 1, nh * hd, part="other sizes", note=", one head"),
        case(nh, 1, B, T, part="other sizes", note=", one token"),
        case(B, T, hd, 1, part="other sizes", note=", one column a head"),
        case(
            B, 8, nh, hd, x=pairs, part="large scores", note=", large scores", rtol=5e-3, atol=1e-2
        ),
        *usual(case, B, T, nh, hd),
    ]


SCORES = "q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5"
ATTENTION = "output, weights = scaled_dot_product_attention(q, k, v)"
SPLIT, THIRDS, NEXT = "split_heads(part, self.num_heads)", "chunk(3, dim=-1)", "q, k, v = ("


def _scaled(factor: str) -> dict[str, str]:
    return {"output, weights =": f"q = q * {factor}\noutput, weights ="}


def _attending(*lines: str) -> dict[str, str]:
    return {ATTENTION: "\n".join((f"scores = {SCORES}", *lines, "output = weights @ v"))}


HEAD_DEPTH = "the square root of hd = D / nh"
THREE_THIRDS = "the first D columns of qkv(x) are q, the next k, the last v"
PUBLISHED = "Published weights would be read as something else."
AS_UNPACKED = "Look at the order when you unpack, or in the call of 2.2."

MISTAKES = (
    families.OVER_QUERIES.by(
        _attending("weights = softmax(scores, dim=-2)"),
        look="Use your function of 2.2, or look at the dim of softmax.",
    ),
    Mistake(
        "not_scaled",
        "the scores are not scaled",
        "scores divided by the square root of the head's depth",
        "The weights are too sharp.",
        "Use your function of 2.2, or divide before the softmax.",
        _scaled("k.shape[-1] ** 0.5"),
    ),
    Mistake(
        "scaled_by_embed_dim",
        "the scale comes from embed_dim, not from the head",
        HEAD_DEPTH,
        "Each score adds up hd products, not D; it goes unnoticed with one head.",
        "Take the depth from q after the split.",
        _scaled("(k.shape[-1] / x.shape[-1]) ** 0.5"),
    ),
    Mistake(
        "scaled_by_head_dim",
        "the scores are divided by the head's depth, not by its root",
        "the square root of hd",
        "The weights become too flat.",
        "Mind the exponent.",
        _scaled("k.shape[-1] ** -0.5"),
    ),
    Mistake(
        "scaled_by_heads",
        "the scale comes from the number of heads",
        HEAD_DEPTH,
        "Each score adds up hd products, however many heads there are.",
        "Take the depth from q after the split.",
        _scaled("(k.shape[-1] / k.shape[1]) ** 0.5"),
    ),
    Mistake(
        "scaled_by_tokens",
        "the scale comes from the number of tokens",
        HEAD_DEPTH,
        "Each score adds up hd products, however many tokens there are.",
        "After the split q is (B, nh, T, hd): the depth is its last axis.",
        _scaled("(k.shape[-1] / k.shape[-2]) ** 0.5"),
    ),
    Mistake(
        "split_by_reshape",
        "the heads are split by a reshape alone",
        "head j sees columns j*hd : (j+1)*hd of every token",
        "Each head then holds a few whole tokens instead of its slice of all.",
        "Use split_heads.",
        {SPLIT: "part.reshape(part.shape[0], self.num_heads, part.shape[1], -1)"},
    ),
    Mistake(
        "merged_by_reshape",
        "the heads are merged by a reshape alone",
        "token i gets what its own queries collected",
        "In memory each head's tokens stand together, so a reshape mixes tokens.",
        "Use merge_heads.",
        {"merge_heads(output)": "output.reshape(x.shape)"},
    ),
    Mistake(
        "interleaved",
        "the heads take turns, column by column",
        "head j owns consecutive columns: j*hd : (j+1)*hd",
        "The layer would learn as well, but published weights would not fit it.",
        "Look at the order of nh and hd in your reshape.",
        {
            SPLIT: "part.unflatten(2, (-1, self.num_heads)).permute(0, 3, 1, 2)",
            "merge_heads(output)": "output.permute(0, 2, 3, 1).flatten(2)",
        },
    ),
    Mistake(
        "attends_over_heads",
        "the heads of one token attend to each other",
        "weights (B, nh, T, T): tokens attend to tokens",
        "Attention runs over the last axis but one; after the cut that is still the heads' axis.",
        "Exchange heads and tokens before attending.",
        {
            SPLIT: "part.unflatten(2, (self.num_heads, -1))",
            "merge_heads(output)": "output.flatten(2)",
        },
        evidence=evidence.shapes,
    ),
    Mistake(
        "values_are_keys",
        "the keys are used as values, too",
        "three different thirds of qkv(x)",
        "The last third of the projection would never learn.",
        "Look at the names that you hand on.",
        {"attention(q, k, v)": "attention(q, k, k)"},
    ),
    Mistake(
        "one_head",
        "one head attends with all columns",
        "weights (B, nh, T, T): each head attends on its own",
        "num_heads is given, but nothing is split.",
        "Split q, k and v into heads.",
        {"q, k, v = self": "self.num_heads = 1\nq, k, v = self"},
        evidence=evidence.shapes,
        also=(
            {
                "q, k, v = self": "self.num_heads = 1\nq, k, v = self",
                "), weights": "), weights[:, 0]",
            },
        ),
    ),
    Mistake(
        "projected_without_bias",
        "the last projection leaves out its bias",
        "self.proj(merged), bias included",
        "The bias of proj would never be used.",
        "Call self.proj, or add its bias.",
        {
            "return self.proj(merge_heads(output))": "return merge_heads(output) @ self.proj.weight.T"
        },
    ),
    Mistake(
        "thirds_inside_heads",
        "q, k and v are cut inside each head",
        THREE_THIRDS,
        "Some libraries store them so; timm, torch and this course store three thirds.",
        "Cut into three first, then into heads.",
        {THIRDS: "unflatten(2, (self.num_heads, 3, -1)).transpose(2, 3).flatten(3).unbind(2)"},
    ),
    Mistake(
        "every_third_column",
        "q, k and v take turns, column by column",
        THREE_THIRDS,
        "Published weights hold three consecutive thirds.",
        "Use chunk(3, dim=-1), or reshape to (B, T, 3, D).",
        {THIRDS: "unflatten(2, (-1, 3)).unbind(3)"},
    ),
    Mistake(
        "queries_and_keys_swapped",
        "queries and keys are swapped",
        "the first third of qkv(x) is q, the second k",
        "Row i then holds how much others look for token i, and it is the wrong row that sums to 1.",
        "Look at the order when you unpack.",
        {NEXT: f"q, k = k, q\n{NEXT}"},
    ),
    Mistake(
        "keys_and_values_swapped",
        "keys and values are swapped",
        "the second third of qkv(x) is k, the last v",
        PUBLISHED,
        AS_UNPACKED,
        {NEXT: f"k, v = v, k\n{NEXT}"},
    ),
    Mistake(
        "queries_and_values_swapped",
        "queries and values are swapped",
        "the first third of qkv(x) is q, the last v",
        PUBLISHED,
        AS_UNPACKED,
        {NEXT: f"q, v = v, q\n{NEXT}"},
    ),
    Mistake(
        "thirds_rotated",
        "q, k and v are each taken from another's third",
        "the first third of qkv(x) is q, the second k, the last v",
        PUBLISHED,
        AS_UNPACKED,
        {NEXT: f"q, k, v = k, v, q\n{NEXT}"},
        also=({NEXT: f"q, k, v = v, q, k\n{NEXT}"},),
    ),
    Mistake(
        "keys_are_queries",
        "the queries serve as keys, too",
        "scores of queries with keys",
        "Then i looks for j as much as j for i, and a token matches itself well.",
        "The second third of qkv(x) is not used yet.",
        {NEXT: f"k = q\n{NEXT}"},
    ),
    Mistake(
        "values_are_tokens",
        "the tokens themselves are collected, not the values",
        "output from v, the last third of qkv(x)",
        "What a token hands over is learned.",
        "The last third of qkv(x) is not used yet.",
        {NEXT: f"v = x\n{NEXT}"},
    ),
    Mistake(
        "bias_ignored",
        "the bias of qkv is not added",
        "q, k, v = the thirds of self.qkv(x)",
        "It goes unnoticed in layers that have none.",
        "Call self.qkv instead of multiplying by its weight.",
        {"self.qkv(x)": "F.linear(x, self.qkv.weight)"},
    ),
    Mistake(
        "bias_always",
        "qkv has a bias even with qkv_bias=False",
        "a bias if and only if qkv_bias",
        "Models without one would have a parameter too many.",
        "Hand qkv_bias on to nn.Linear, as the given __init__ does.",
        {"bias=qkv_bias": "bias=True"},
    ),
    Mistake(
        "not_projected",
        "the output is not projected",
        "self.proj applied to the merged heads",
        "The heads would never meet.",
        "The last step on the output is self.proj.",
        {"self.proj(": "("},
    ),
    Mistake(
        "residual",
        "x is added to the output",
        "the output of self.proj, alone",
        "The residual belongs to the block around this layer (notebook 03); there it would be added twice.",
        "Leave out the x + ....",
        {"return ": "return x + "},
    ),
    Mistake(
        "weights_averaged",
        "the weights are averaged over the heads",
        "weights (B, nh, T, T)",
        "Each head looks elsewhere; the mean hides it.",
        "Return them as attention gave them.",
        {"), weights": "), weights.mean(dim=1)"},
        evidence=evidence.shapes,
    ),
    families.WEIGHTS_NOT_RETURNED.by({"), weights": ")"}),
    families.RESULTS_SWAPPED.by({"return ": "return weights, ", "), weights": ")"}),
    families.SCORES_RETURNED.by({"return ": f"weights = {SCORES}\nreturn "}),
    families.UNSTABLE.by(
        _attending("weights = scores.exp() / scores.exp().sum(dim=-1, keepdim=True)")
    ),
    families.CAUSAL.by(
        _attending(
            "weights = softmax(scores.masked_fill(torch.ones_like(scores).tril() == 0, -1e9))"
        )
    ),
)


class AsInTimm(Given):
    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        attn = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
        attn = attn.softmax(dim=-1)
        return self.proj((attn @ v).transpose(1, 2).reshape(B, N, C)), attn


class ByHeads(Given):
    def forward(self, x):
        D = x.shape[-1]
        width = D // self.num_heads
        output, weights = self.proj.bias, []
        for j in range(self.num_heads):
            rows = [slice(third * D + j * width, third * D + (j + 1) * width) for third in range(3)]
            q, k, v = (x @ self.qkv.weight[r].T for r in rows)
            if self.qkv.bias is not None:
                q, k, v = (part + self.qkv.bias[r] for part, r in zip((q, k, v), rows, strict=True))
            weights.append(torch.softmax(q @ k.mT / math.sqrt(width), dim=2))
            output = output + weights[-1] @ v @ self.proj.weight[:, rows[0]].T
        return output, torch.stack(weights, dim=1)


class ByEinsum(Given):
    def forward(self, x):
        qkv = torch.einsum("btc,ec->bte", x, self.qkv.weight)
        if self.qkv.bias is not None:
            qkv = qkv + self.qkv.bias
        q, k, v = qkv.unflatten(-1, (3, self.num_heads, -1)).unbind(2)
        scores = torch.einsum("bihd,bjhd->bhij", q, k).div(q.size(-1) ** 0.5)
        weights = scores.sub(scores.logsumexp(-1, keepdim=True)).exp()
        merged = torch.einsum("bhij,bjhd->bihd", weights, v)
        home = self.proj.weight.unflatten(1, (self.num_heads, -1))
        return torch.einsum("bihd,ohd->bio", merged, home) + self.proj.bias, weights


class ByEinops(Given):
    def forward(self, x):
        q, k, v = rearrange(self.qkv(x), "b t (s h d) -> s (b h) t d", s=3, h=self.num_heads)
        weights = F.softmax(torch.bmm(q, k.mT) / q.shape[-1] ** 0.5, -1)
        output = rearrange(torch.bmm(weights, v), "(b h) t d -> b t (h d)", h=self.num_heads)
        return self.proj(output), rearrange(weights, "(b h) i j -> b h i j", h=self.num_heads)


class OfParts(Given):
    def forward(self, x):
        D = x.size(2)
        qkv = self.qkv(x)
        parts = [split_heads(qkv[:, :, i * D : i * D + D], self.num_heads) for i in range(3)]
        output, weights = scaled_dot_product_attention(*parts)
        return self.proj(merge_heads(output)), weights


LAYERS = frozenset(
    "MultiheadAttention multi_head_attention_forward _native_multi_head_attention "
    "aten._native_multi_head_attention aten._transformer_encoder_layer_fwd".split()
)

CHECKER = Checker(
    "MultiHeadAttention",
    forbidden=families.FUSED_NAMES | LAYERS,
    proves={
        "allowed operations": "made from your own parts",
        "values": "output and weights, with given parameters",
        "gradients": "gradients of x and of every parameter, through output and weights",
        "without bias": "also with qkv_bias=False",
        "other sizes": "also for one head, one token, a batch of one, T equals D, and float64",
        "large scores": "finite and right for large scores",
    },
    picture=evidence.draw_sums,
    special="self.num_heads == 1; x.shape[1] == 1; len(x) == 1; x.shape[2] == self.num_heads; "
    "self.qkv.bias is None; x.shape[1] == self.num_heads",
    given=("__init__",),
)
