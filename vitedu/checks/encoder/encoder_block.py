"""Checker of EncoderBlock: its cases, its known mistakes, and what is said of them."""

import torch
import torch.nn.functional as F
from torch import nn

from vitedu import encoder as reference
from vitedu.attention import MultiHeadAttention
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.drawing import draw_block
from vitedu.checks.encoder.states import random_state
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, draw, normal, plural
from vitedu.checks.probing import Case


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

CHECKER = Checker(
    "EncoderBlock",
    reference.EncoderBlock,
    block_cases,
    faulty_block,
    BLOCK_BANK,
    proves={
        "values": "two residual steps, each normalised first",
        "hidden width": "int(embed_dim * mlp_ratio) hidden units",
        "other sizes": "also for one token, one head and float64",
        "eps": "norms with eps 1e-6",
    },
    picture=BLOCK_PICTURE,
)
