"""Checkers of notebook 03: normalisation, GELU, the encoder block, the whole model, its parameters."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from vitedu import encoder as reference
from vitedu.attention import MultiHeadAttention
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.drawing import draw_block
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, draw, normal, plural
from vitedu.checks.probing import Case
from vitedu.checks.recipes import Config
from vitedu.checks.values import ValueChecker, ValueMistake
from vitedu.vit import PRESETS, VisionTransformer

# --- layer_norm ---------------------------------------------------------------------------------


def layer_norm_cases(g: torch.Generator) -> list[Case]:
    """Draw tokens whose sizes all differ, spread widely and hardly at all."""

    def case(*shape, dtype=torch.float32, spread=1.0, eps=None, note="", **rest):
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
    return [
        case(B, T, D, gradients=("x", "weight", "bias")),
        case(1, T, D, part="other sizes"),
        case(B, D, D, part="other sizes", note=", as many tokens as features"),
        case(D, part="other sizes", note=", a single token"),
        case(2, B, T, D, part="other sizes"),
        case(B, T, D, dtype=torch.float64, part="other sizes", note=", float64"),
        case(B, T, D, spread=1e-3, part="eps", note=", variance near 1e-6, the default eps"),
        case(B, T, D, eps=0.3, part="eps", note=", eps=0.3"),
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

# --- gelu ---------------------------------------------------------------------------------------


def gelu_cases(g: torch.Generator) -> list[Case]:
    """Draw values of both signs, some large."""

    def case(*shape, dtype=torch.float32, spread=1.5, note="", **rest):
        shown = " x ".join(str(size) for size in shape) or "one number"
        return Case(f"x of {shown}{note}", {"x": spread * normal(g, *shape, dtype=dtype)}, **rest)

    B, T, D = distinct(g, 3, 3, 9)
    return [
        # rounded to 2e-6 or less in float32; the tanh form is off by up to 4.7e-4
        case(B, T, 8 * D, gradients=("x",), rtol=1e-5, atol=1e-5),
        case(D, part="other sizes"),
        case(part="other sizes"),
        case(B, T, D, dtype=torch.float64, part="other sizes", note=", float64"),
        case(B, D, spread=300.0, part="large values", note=", values of some hundreds"),
        case(B, T, D, part="any device", on_accelerator=True, note=", on an accelerator"),
    ]


def faulty_gelu(mistakes: frozenset[str]):
    """Bend with the named mistakes made."""

    def gelu(x):
        if "relu" in mistakes:
            return x.clamp(min=0)
        if "silu" in mistakes:
            return x * torch.sigmoid(x)
        if "sigmoid_approximation" in mistakes:
            return x * torch.sigmoid(1.702 * x)
        if "tanh_approximation" in mistakes:
            return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
        inside = x if "root_two_missing" in mistakes else x / math.sqrt(2)
        phi = 1 + torch.erf(inside)
        if "half_missing" not in mistakes:
            phi = phi / 2
        if "density" in mistakes:
            phi = torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        if "one_missing" in mistakes:
            phi = torch.erf(inside) / 2
        if "erf_alone" in mistakes:
            phi = torch.erf(inside)
        return phi if "x_missing" in mistakes else x * phi

    return gelu


GELU_BANK = (
    Misconception(
        "tanh_approximation", "the tanh approximation is used", "x * Phi(x), exactly",
        "It is within 5e-4 everywhere, which is close, and not equal; published ViT weights were trained with the exact form.",
        "torch.erf gives the normal distribution function exactly.",
    ),
    Misconception("sigmoid_approximation", "the sigmoid approximation is used", "x * Phi(x), exactly", "It is off by up to 0.02.", "torch.erf gives the normal distribution function exactly."),
    Misconception("relu", "this is ReLU", "a smooth gate that lets some negative values through", "GELU is negative just below 0.", "Multiply x by a probability, not by a step."),
    Misconception("silu", "this is SiLU, with the logistic function as its gate", "the gate Phi, of the normal distribution", "The two gates look alike and are not equal.", "Phi(x) comes from erf."),
    Misconception(
        "root_two_missing", "erf gets x itself", "Phi(x) from erf of x over the root of 2",
        "erf belongs to a normal distribution of variance 1/2.", "Scale x before erf.",
    ),
    Misconception("half_missing", "the gate runs from 0 to 2", "a probability between 0 and 1", "Large values would be doubled.", "1 + erf runs from 0 to 2."),
    Misconception("density", "the gate is the density of the normal distribution", "its distribution function", "The density falls again for large x.", "Look at the gate for x = 5."),
    Misconception("one_missing", "the gate runs from -1/2 to 1/2", "a probability between 0 and 1", "erf is odd: it lies between -1 and 1.", "Shift it before you halve it."),
    Misconception("erf_alone", "the gate is erf itself, which runs from -1 to 1", "a probability between 0 and 1", "For x = 0 it would be shut, for negative x it would turn the sign.", "Look at how Phi is made of erf."),
    Misconception("x_missing", "the gate is returned, without the value it lets pass", "x * Phi(x)", "A gate alone is a sigmoid.", "Multiply by x."),
)  # fmt: skip

# --- EncoderBlock -------------------------------------------------------------------------------


def random_state(
    shapes: dict[str, tuple[int, ...]], g: torch.Generator, dtype=torch.float32
) -> dict:
    """Draw parameters at which nothing hides: norms that scale and shift, biases that are not 0."""
    state = {}
    for name, shape in shapes.items():
        values = normal(g, *shape, dtype=dtype)
        if len(shape) >= 2 and not name.endswith(("cls_token", "pos_embed")):
            values = values / math.prod(shape[1:]) ** 0.5
        if "norm" in name and name.endswith("weight"):
            values = 1 + 0.5 * values
        state[name] = values
    return state


def block_shapes(D: int, hidden: int) -> dict[str, tuple[int, ...]]:
    """List the parameters of a block."""
    shapes = {"norm1.weight": (D,), "norm1.bias": (D,)}
    shapes |= {
        "attn.qkv.weight": (3 * D, D),
        "attn.qkv.bias": (3 * D,),
        "attn.proj.weight": (D, D),
        "attn.proj.bias": (D,),
    }
    shapes |= {"norm2.weight": (D,), "norm2.bias": (D,)}
    return shapes | {
        "mlp.fc1.weight": (hidden, D),
        "mlp.fc1.bias": (hidden,),
        "mlp.fc2.weight": (D, hidden),
        "mlp.fc2.bias": (D,),
    }


def block_cases(g: torch.Generator) -> list[Case]:
    """Draw blocks of different widths, heads and MLP ratios."""

    def case(
        B, T, D, heads, ratio=None, dtype=torch.float32, spread=1.0, said=1.0, note="", **rest
    ):
        init = {"embed_dim": D, "num_heads": heads} | (
            {} if ratio is None else {"mlp_ratio": ratio}
        )
        state = random_state(block_shapes(D, int(D * (4.0 if ratio is None else ratio))), g, dtype)
        for name in ("attn.proj.weight", "attn.proj.bias"):
            state[name] = said * state[name]  # how much attention adds to the tokens
        shown = "" if ratio is None else f", mlp_ratio {ratio}"
        name = f"{plural(B, 'sequence')} of {plural(T, 'token')}, embed_dim {D}, {plural(heads, 'head')}{shown}{note}"
        x = spread * normal(g, B, T, D, dtype=dtype)
        return Case(name, {"x": x}, driver="module", init=init, state=state, rtol=1e-4 if dtype == torch.float32 else None,
                    atol=1e-4 if dtype == torch.float32 else None, **rest)  # fmt: skip

    B, T = distinct(g, 2, 2, 6)
    heads = draw(g, 2, 3)
    D = heads * (draw(g, 2, 3) if heads == 3 else draw(g, 3, 5))
    ratio = (3 * D - 1 + 0.7) / D  # hidden width 3D - 0.3: cut off to 3D - 1, rounded to 3D
    return [
        case(B, T, D, heads, gradients=("x",)),
        case(B, T, D, heads, ratio, part="hidden width"),
        case(1, T, D, heads, 2.0, part="other sizes"),
        case(B, 1, D, 1, 1.0, part="other sizes"),
        case(B, D, D, heads, 2.0, part="other sizes", note=", as many tokens as columns"),
        case(B, T, D, heads, 2.0, dtype=torch.float64, part="other sizes", note=", float64"),
        case(B, T, D, heads, 2.0, spread=1e-3, part="eps", note=", tokens with variance near 1e-6"),
        case(B, T, D, heads, 2.0, spread=1e-3, said=1e-3, part="eps", note=", also before the MLP"),
        case(
            B, T, D, heads, 2.0, part="any device", on_accelerator=True, note=", on an accelerator"
        ),
    ]


def faulty_block(mistakes: frozenset[str]):
    """Build a block with the named mistakes made."""

    class EncoderBlock(nn.Module):
        def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
            super().__init__()
            eps = 1e-5 if "default_eps_of_torch" in mistakes else 1e-6
            hidden = (
                round(embed_dim * mlp_ratio)
                if "hidden_rounded" in mistakes
                else int(embed_dim * mlp_ratio)
            )
            if "hidden_always_four" in mistakes:
                hidden = 4 * embed_dim
            self.norm1 = nn.LayerNorm(embed_dim, eps=eps)
            self.attn = MultiHeadAttention(embed_dim, num_heads)
            if "one_norm" not in mistakes:
                self.norm2 = nn.LayerNorm(embed_dim, eps=eps)
            self.mlp = reference.Mlp(embed_dim, hidden)

        def attend(self, x):
            return self.attn(x) if "pair_added" in mistakes else self.attn(x)[0]

        def bend(self, x):
            hidden = self.mlp.fc1(x)
            if "relu" in mistakes:
                return self.mlp.fc2(F.relu(hidden))
            if "tanh_gelu" in mistakes:
                return self.mlp.fc2(F.gelu(hidden, approximate="tanh"))
            return self.mlp.fc2(F.gelu(hidden))

        def forward(self, x):
            norm1, norm2 = self.norm1, getattr(self, "norm2", self.norm1)
            if "norms_swapped" in mistakes:
                norm1, norm2 = norm2, norm1
            if "first_norm_twice" in mistakes:
                norm2 = norm1
            if "no_first_norm" in mistakes:
                norm1 = nn.Identity()
            if "no_second_norm" in mistakes:
                norm2 = nn.Identity()
            steps = [
                (norm1, self.attend, "no_first_residual"),
                (norm2, self.bend, "no_second_residual"),
            ]
            if "mlp_first" in mistakes:
                steps.reverse()
            if "parallel" in mistakes:
                return x + self.attn(norm1(x))[0] + self.bend(norm2(x))
            start = x
            for norm, work, gone in steps:
                if "post_norm" in mistakes:
                    x = norm(work(x) if gone in mistakes else x + work(x))
                elif "norm_after_work" in mistakes:
                    x = norm(work(x)) if gone in mistakes else x + norm(work(x))
                else:
                    around = x
                    if "residual_from_the_norm" in mistakes:
                        around = norm(x)
                    if "second_residual_from_the_input" in mistakes:
                        around = start
                    x = work(norm(x)) if gone in mistakes else around + work(norm(x))
            return x

    return EncoderBlock


_ADD = "A block corrects its tokens; without the path around it replaces them."
BLOCK_BANK = (
    Misconception("no_first_residual", "the path around attention is missing", "x plus what attention says", _ADD, "Add x back after attention."),
    Misconception("no_second_residual", "the path around the MLP is missing", "x plus what the MLP says", _ADD, "Add x back after the MLP."),
    Misconception(
        "no_residuals", "both paths around are missing", "two additions", _ADD, "Add x back after attention, and again after the MLP.",
        build=lambda: faulty_block(frozenset({"no_first_residual", "no_second_residual"})),
    ),
    Misconception(
        "pair_added", "attention's pair is added, not its output", "x plus the first of (output, weights)",
        "A tuple is no tensor, so + fails.", "attn returns two things; take the first.",
    ),
    Misconception(
        "post_norm", "the norms stand after the additions", "each norm before its sub-layer, off the path around",
        "That is the block of 2017; deep ones of its kind are hard to train without warm-up.", "Normalise what goes into attention and MLP, not what comes out.",
    ),
    Misconception(
        "norm_after_work", "the norms stand behind attention and MLP", "each norm before its sub-layer", "The sub-layers would see tokens of any length.", "Normalise first, then attend.",
    ),
    Misconception(
        "residual_from_the_norm", "the normalised tokens are added back, not the tokens", "x itself on the path around",
        "Then nothing can pass the block untouched.", "Keep x; do not overwrite it with norm1(x).",
    ),
    Misconception(
        "second_residual_from_the_input", "the second addition adds the block's input again", "what the first addition gave",
        "What attention found would get lost.", "The second path starts behind the first addition.",
    ),
    Misconception("first_norm_twice", "norm1 is used in both places", "norm1 before attention, norm2 before the MLP", "norm2 would never learn.", "Look at which norm stands before the MLP."),
    Misconception("norms_swapped", "norm1 and norm2 have changed places", "norm1 before attention, norm2 before the MLP", "Published weights would land in the wrong one.", "Look at which norm stands where."),
    Misconception("no_first_norm", "attention sees tokens that were not normalised", "attn(norm1(x))", "Their length grows from block to block.", "Put norm1 before attention."),
    Misconception("no_second_norm", "the MLP sees tokens that were not normalised", "mlp(norm2(x))", "Their length grows from block to block.", "Put norm2 before the MLP."),
    Misconception("parallel", "attention and MLP work side by side", "the MLP works on what attention left", "Some models do so, to save time; ViT does not.", "Finish the first addition before the second begins."),
    Misconception("mlp_first", "the MLP comes before attention", "attention first, then the MLP", "The order of the paper, and of all published weights.", "Look at the order of the two steps."),
    Misconception("one_norm", "there is only one norm", "norm1 and norm2, each with parameters of its own", "The two places need different scales.", "Make two nn.LayerNorm."),
    Misconception(
        "default_eps_of_torch", "the norms have torch's default eps", "eps 1e-6", "nn.LayerNorm's own default is 1e-5.", "Give both norms eps=1e-6.",
    ),
    Misconception("hidden_rounded", "the hidden width is rounded", "int(embed_dim * mlp_ratio), cut off", "int cuts off; timm does the same.", "Use int()."),
    Misconception("hidden_always_four", "the hidden width is always four times embed_dim", "int(embed_dim * mlp_ratio)", "mlp_ratio is an argument.", "Use the argument."),
    Misconception("relu", "the MLP bends with ReLU", "the exact GELU between fc1 and fc2", "ViT uses GELU.", "Mlp, as given, has the right one."),
    Misconception("tanh_gelu", "the MLP bends with the tanh approximation of GELU", "the exact GELU between fc1 and fc2", "Close is not equal.", "Mlp, as given, has the right one."),
)  # fmt: skip

BLOCK_PICTURE = draw_block(
    {
        "no_first_residual": ("first",),
        "no_second_residual": ("second",),
        "no_residuals": ("first", "second"),
    }
)

# --- VisionTransformer --------------------------------------------------------------------------


def vit_cases(g: torch.Generator) -> list[Case]:
    """Draw small models whose sizes all differ."""

    def case(B, dtype=torch.float32, note="", rest=None, **fields):
        rest = rest or {}
        config = Config(**fields)
        with torch.device("meta"):
            shapes = {
                name: tuple(value.shape)
                for name, value in VisionTransformer(config.build()).named_parameters()
            }
        state = random_state(shapes, g, dtype)
        images = normal(
            g, B, fields["in_channels"], fields["image_size"], fields["image_size"], dtype=dtype
        )
        loose = {"rtol": 1e-3, "atol": 2e-4} if dtype == torch.float32 else {}
        return Case(f"{plural(B, 'image')}, {config}{note}", {"images": images}, driver="module",
                    init={"config": config}, state=state, outputs=("logits",), **loose, **rest)  # fmt: skip

    heads = draw(g, 2, 3)
    D = heads * draw(g, 3, 5)
    B, C = distinct(g, 2, 2, 4)
    K, P = draw(g, 5, 9), draw(g, 2, 3)
    side, depth = draw(g, 2, 4), draw(g, 2, 3)
    fields = {"image_size": side * P, "patch_size": P, "in_channels": C, "num_classes": K, "embed_dim": D, "depth": depth,
              "num_heads": heads, "mlp_ratio": 2.0}  # fmt: skip
    square = fields | {"image_size": 3 * P, "embed_dim": 9, "num_heads": 3, "depth": 1}
    return [
        case(B, **fields, rest={"gradients": ("images",)}),
        case(1, **(fields | {"depth": 1, "in_channels": 1}), rest={"part": "other sizes"}),
        case(B, **square, note=", as many patches as columns", rest={"part": "other sizes"}),
        case(B, **(fields | {"depth": 1, "qkv_bias": False}), rest={"part": "other sizes"}),
        case(
            B,
            **(fields | {"depth": 1}),
            dtype=torch.float64,
            note=", float64",
            rest={"part": "other sizes"},
        ),
        case(
            B,
            **(fields | {"depth": 1}),
            note=", on an accelerator",
            rest={"part": "any device", "on_accelerator": True},
        ),
    ]


def faulty_vit(mistakes: frozenset[str]):
    """Run a model with the named mistakes made."""

    class Faulty(VisionTransformer):
        def forward(self, images):
            B = len(images)
            x = self.patch_embed.proj(images).flatten(2)
            N = x.shape[-1]
            if "patches_reshaped" in mistakes:
                x = x.reshape(B, N, -1)
            elif "patches_by_column" in mistakes:
                side = math.isqrt(N)
                x = x.unflatten(2, (side, side)).transpose(2, 3).flatten(2).mT
            else:
                x = x.mT
            cls = self.cls_token.expand(B, -1, -1)
            positions = self.pos_embed
            if "no_positions" in mistakes:
                positions = torch.zeros_like(positions)
            if "positions_on_patches_only" in mistakes:
                positions = torch.cat([torch.zeros_like(positions[:, :1]), positions[:, 1:]], dim=1)
            if "class_token_last" in mistakes:
                x = torch.cat([x, cls], dim=1) + positions
            else:
                x = torch.cat([cls, x], dim=1) + positions
            if "norm_first" in mistakes:
                x = self.norm(x)
            blocks = list(self.blocks)
            if "first_block_only" in mistakes:
                blocks = blocks[:1] * len(blocks)
            if "blocks_reversed" in mistakes:
                blocks = blocks[::-1]
            if "last_block_left_out" in mistakes and len(blocks) > 1:
                blocks = blocks[:-1]
            for block in blocks if "blocks_unused" not in mistakes else ():
                x = x + block(x) if "added_around_blocks" in mistakes else block(x)
            if "no_final_norm" not in mistakes and "norm_first" not in mistakes:
                x = self.norm(x)
            if "head_on_mean" in mistakes:
                pooled = x.mean(dim=1)
            elif "head_on_patch_mean" in mistakes:
                pooled = x[:, 1:].mean(dim=1)
            elif "head_on_last_token" in mistakes:
                pooled = x[:, -1]
            elif "head_on_first_patch" in mistakes:
                pooled = x[:, 1]
            elif "all_tokens" in mistakes:
                pooled = x
            else:
                pooled = x[:, -1] if "class_token_last" in mistakes else x[:, 0]
            logits = pooled if "no_head" in mistakes else self.head(pooled)
            return logits.softmax(dim=-1) if "probabilities" in mistakes else logits

    Faulty.__name__ = "VisionTransformer"
    return Faulty


VIT_BANK = (
    Misconception("no_positions", "no positions are added", "class token and patches plus pos_embed", "The model could not tell a shuffled image from the image.", "Add pos_embed before the first block."),
    Misconception("positions_on_patches_only", "the class token gets no position", "pos_embed has a row for it too", "Its row would never learn.", "Add pos_embed after the class token has joined."),
    Misconception("class_token_last", "the class token stands last", "tokens[:, 0] is the class token", "Its position is row 0 of pos_embed.", "Look at the order in torch.cat."),
    Misconception("no_final_norm", "the final norm is missing", "norm after the last block, before the head", "The tokens of a pre-norm model grow with depth; the head needs them at one scale.", "Use self.norm."),
    Misconception("norm_first", "the norm stands before the blocks", "norm after the last block", "What comes out of the blocks would reach the head at any scale.", "Look at where self.norm is called."),
    Misconception("head_on_mean", "the head reads the mean of all tokens", "the class token", "A good choice, and another one: the mean includes the class token here.", "Take token 0."),
    Misconception("head_on_patch_mean", "the head reads the mean of the patch tokens", "the class token", "Many later ViTs do so; the textbook model has a class token for it.", "Take token 0."),
    Misconception("head_on_last_token", "the head reads the last token", "the class token, token 0", "The last token is a patch, at the bottom right.", "Look at the index."),
    Misconception("head_on_first_patch", "the head reads the first patch", "the class token, token 0", "Token 1 is the patch at the top left.", "Look at the index."),
    Misconception("all_tokens", "the head is applied to every token", "one row of logits for an image", "Only one token speaks for the image.", "Pick the class token first."),
    Misconception("no_head", "the class token is returned, not the logits", "logits, one for each class", "A feature is not yet an answer.", "Use self.head."),
    Misconception("probabilities", "softmax is applied to the logits", "logits, as they come from the head", "cross_entropy applies softmax itself; twice flattens the gradient.", "Return what the head gives."),
    Misconception("first_block_only", "the first block is used again and again", "every block once, in order", "The others would never learn.", "Look at what the loop calls."),
    Misconception("blocks_reversed", "the blocks run in reverse", "blocks 0, 1, 2 ...", "Trained weights belong to their place.", "Look at the loop."),
    Misconception("last_block_left_out", "the last block is left out", "every block once", "Off by one.", "Look at where the loop ends."),
    Misconception("blocks_unused", "what the blocks return is not used", "every block works on what the one before returned", "A block changes nothing in place: it returns new tokens.", "Look at the left side of the line that calls a block."),
    Misconception("added_around_blocks", "a path leads around every block as well", "x = block(x)", "The blocks have their own two paths inside.", "Do not add x again."),
    Misconception(
        "patches_reshaped", "the patch features are reshaped, not transposed", "token i holds all channels of patch i",
        "A reshape would mix channels and patches.", "From (B, D, N) to (B, N, D) it takes a transpose.",
    ),
    Misconception("patches_by_column", "the patches run down the columns", "row by row, as patchify numbers them", "Every patch would get another's position.", "flatten(2) keeps rows together."),
)  # fmt: skip

# --- count_parameters ---------------------------------------------------------------------------


def count_cases(g: torch.Generator) -> list[Case]:
    """Draw odd configurations; two published ones; one too large to build."""

    def case(part="values", **fields):
        return Case(
            f"{Config(**fields)}",
            {"config": Config(**fields)},
            part=part,
            number=True,
            rtol=0,
            atol=0.25,
        )

    def odd(qkv_bias, **changes):
        heads, P = distinct(g, 2, 2, 7)
        D = heads * draw(g, 5, 30)
        C, side, depth, K = distinct(g, 4, 2, 9)
        hidden = draw(g, 2 * D, 5 * D)
        fields = {"image_size": side * P, "patch_size": P, "in_channels": C, "num_classes": K, "embed_dim": D, "depth": depth,
                  "num_heads": heads, "mlp_ratio": (hidden + 0.7) / D, "qkv_bias": qkv_bias}  # fmt: skip
        return fields | changes

    presets = [
        Case(
            f"the preset {name}",
            {"config": Config(**vars(PRESETS[name]))},
            part="presets",
            number=True,
            rtol=0,
            atol=0.25,
        )
        for name in ("vit_tiny_patch4_32", "vit_base_patch16_224")
    ]
    return [
        case(**odd(True)),
        case(**odd(True)),
        case("qkv_bias=False", **odd(False)),
        *presets,
        case(
            "no model is built",
            **odd(True, embed_dim=7 * 2**20, num_heads=7, depth=1000, mlp_ratio=4.0),
        ),
    ]


def faulty_count(mistakes: frozenset[str]):
    """Count with the named mistakes made."""

    def count_parameters(config):
        c = config
        D = c.embed_dim
        hidden = 4 * D if "mlp_ratio_ignored" in mistakes else int(D * c.mlp_ratio)
        if "hidden_rounded" in mistakes:
            hidden = round(D * c.mlp_ratio)
        C = 3 if "three_channels" in mistakes else c.in_channels
        N = (c.image_size // c.patch_size) ** 2
        biases = "no_biases" not in mistakes
        qkv_bias = True if "qkv_bias_ignored" in mistakes else c.qkv_bias
        patch = C * c.patch_size**2 * D + (D if biases else 0)
        cls = 0 if "one_vector_missing" in mistakes else D
        positions = 0 if "positions_missing" in mistakes else (N + 1) * D
        norm = D if "norm_without_bias" in mistakes else 2 * D
        attention = 4 * D * D + ((3 * D * qkv_bias + D) if biases else 0)
        if "projection_missing" in mistakes:
            attention -= D * D + D
        if "heads_multiplied" in mistakes:
            attention *= c.num_heads
        mlp = 2 * D * hidden + (hidden + D if biases else 0)
        if "mlp_biases_of_one_width" in mistakes:
            mlp += D - hidden
        norms = norm if "one_norm_a_block" in mistakes else 2 * norm
        head = D * c.num_classes + (c.num_classes if biases else 0)
        final = 0 if "final_norm_missing" in mistakes else norm
        depth = 1 if "one_block" in mistakes else c.depth
        return patch + cls + positions + depth * (norms + attention + mlp) + final + head

    return count_parameters


def _missing(id_: str, what: str, look: str) -> Misconception:
    return Misconception(
        id_,
        f"{what} not counted",
        "every parameter once",
        "The sum falls short by exactly that.",
        look,
    )


COUNT_BANK = (
    _missing("one_vector_missing", "one vector of embed_dim values is", "Candidates: the class token, its row of pos_embed, the bias of the patch embedding."),
    _missing("positions_missing", "the positions are", "pos_embed is a parameter too."),
    _missing("final_norm_missing", "the final norm is", "One norm stands behind the last block."),
    _missing("one_norm_a_block", "one of the two norms of a block is", "norm1 and norm2."),
    _missing("norm_without_bias", "the biases of the norms are", "A norm scales and shifts."),
    _missing("projection_missing", "the output projection of attention is", "Four matrices: q, k, v and the one behind the heads."),
    _missing("no_biases", "the biases of the linear layers are", "Every nn.Linear and Conv2d has one, unless told otherwise."),
    Misconception(
        "mlp_biases_of_one_width", "both biases of the MLP are counted with embed_dim entries", "fc1 has as many biases as hidden units",
        "A slip that stood in print: it costs 3 * embed_dim a block at ratio 4.", "A bias is as long as its layer's output.",
    ),
    Misconception("qkv_bias_ignored", "a bias of q, k, v is counted where there is none", "3 * embed_dim biases only if qkv_bias", "qkv_bias is a field of the config.", "Look at config.qkv_bias."),
    Misconception("mlp_ratio_ignored", "the hidden width is always four times embed_dim", "int(embed_dim * mlp_ratio)", "mlp_ratio is a field of the config.", "Look at config.mlp_ratio."),
    Misconception("hidden_rounded", "the hidden width is rounded", "int(embed_dim * mlp_ratio), cut off", "int cuts off.", "Use int()."),
    Misconception("three_channels", "three channels are taken for granted", "in_channels from the config", "Satellites see more.", "Look at config.in_channels."),
    Misconception("heads_multiplied", "attention is counted once for every head", "heads share the columns of the same matrices", "More heads cost nothing: each gets a narrower slice.", "Leave num_heads out."),
    Misconception("one_block", "only one block is counted", "depth blocks", "The depth is the number of blocks.", "Multiply by config.depth."),
)  # fmt: skip


CHECKERS = {
    "layer_norm": Checker(
        "layer_norm", reference.layer_norm, layer_norm_cases, faulty_layer_norm, LAYER_NORM_BANK,
        forbidden=frozenset({"layer_norm", "native_layer_norm", "aten.native_layer_norm", "aten.layer_norm"}),
        proves={"other sizes": "also for one token, more axes, as many tokens as features, and float64", "eps": "eps as given, inside the root"},
    ),
    "gelu": Checker(
        "gelu", reference.gelu, gelu_cases, faulty_gelu, GELU_BANK,
        forbidden=frozenset({"gelu", "gelu_", "aten.gelu", "aten.gelu_", "mkldnn._linear_pointwise", "mkldnn._convolution_pointwise",
                             "mkldnn._convolution_transpose_pointwise"}),  # a layer with GELU behind it
        proves={"other sizes": "also for one number and float64", "large values": "finite and right for large values"},
    ),
    "EncoderBlock": Checker(
        "EncoderBlock", reference.EncoderBlock, block_cases, faulty_block, BLOCK_BANK,
        proves={"values": "two residual steps, each normalised first", "hidden width": "int(embed_dim * mlp_ratio) hidden units",
                "other sizes": "also for one token, one head and float64", "eps": "norms with eps 1e-6"},
        picture=BLOCK_PICTURE,
    ),
    "VisionTransformer": Checker(
        "VisionTransformer", VisionTransformer, vit_cases, faulty_vit, VIT_BANK,
        proves={"values": "logits equal to the definition at random weights", "other sizes": "also for one image, one channel, no qkv bias and float64"},
    ),
    "count_parameters": Checker(
        "count_parameters", reference.count_parameters, count_cases, faulty_count, COUNT_BANK,
        forbidden=frozenset({"aten.uniform_", "aten.normal_", "aten.empty"}),
        forbidden_words="building the model",
        proves={"values": "equal to the sum over model.parameters() for odd configurations", "presets": "and for ViT-Tiny and ViT-B/16",
                "qkv_bias=False": "and without biases of q, k, v", "no model is built": "from the formula alone, at any size"},
    ),
    "class_token_alone": ValueChecker(
        "class_token_alone", reference.class_token_alone,
        (
            ValueMistake("pair_swapped", (0.0, 1), "the pair is swapped", "Rows first, gradient second.", "Look at the order that the text asks for."),
            ValueMistake("eight_rows", lambda v: v[0] == 8, "eight different answers are given", "Nothing that the head reads has seen an image.", "Count the distinct rows of the logits.", example=(8, 0.0)),
            ValueMistake("no_row", lambda v: v[0] == 0, "no row at all is given", "All rows are equal: that is one distinct row.", "Count distinct rows, not differences.", example=(0, 0.0)),
            ValueMistake("gradient_expected", lambda v: v[0] == 1 and v[1] != 0, "a gradient is given where none can arrive", "The loss does not depend on the patches.",
                         "Read the largest entry of patch_embed's gradient.", example=(1, 0.5)),
        ),
        proves="one answer for every image, and no gradient for the patches",
    ),
    "mlp_share": ValueChecker(
        "mlp_share", reference.mlp_share,
        (
            ValueMistake("attention_share", 1 - reference.mlp_share, "the share of attention, or of one of the two layers, is given", "The MLP is fc1 and fc2, and has twice as many as attention.",
                         "Add fc1 and fc2, biases too, and divide by the block."),
            ValueMistake("whole_model", 85_017_600 * reference.mlp_share / 86_567_656, "the MLPs are held against the whole model", "Patch embedding, positions and head are no part of a block.", "Divide by one block."),
            ValueMistake("projection_forgotten", 2 / 3.5, "one of the matrices is forgotten", "A block has the q, k, v projection, the output projection, fc1 and fc2.", "List the six parts of a block first."),
            ValueMistake("one_layer", 0.5, "one of the two layers of the MLP is counted", "fc1 and fc2 both belong to it, and both belong to the block.", "List the six parts of a block first."),
            ValueMistake("percent", 100 * reference.mlp_share, "the share is given in percent", "A number between 0 and 1 was asked for.", "Divide by 100."),
            ValueMistake("ratio_to_attention", 2.0, "the ratio to attention is given", "The share is of the whole block.", "Divide by the block, not by attention."),
        ),
        rtol=0.008, proves="about two thirds",
    ),
}  # fmt: skip
