import math

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.attention import MultiHeadAttention
from vitedu.checks import drawing
from vitedu.checks.kit import (
    Case,
    Checker,
    Mistake,
    distinct,
    draw,
    normal,
    plural,
    random_state,
    usual,
)
from vitedu.encoder import EncoderBlock, Mlp


def cases(g: torch.Generator) -> list[Case]:
    """Draw blocks of different widths, heads and MLP ratios."""

    def case(B, T, D, heads, ratio=2.0, note="", dtype=torch.float32, spread=1.5, said=1.0, **rest):
        init = {"embed_dim": D, "num_heads": heads}
        if ratio is not None:
            init["mlp_ratio"] = ratio
        state = random_state(EncoderBlock, init.values(), g, dtype)
        for name in ("attn.proj.weight", "attn.proj.bias"):
            state[name] = said * state[name]  # how much attention adds to the tokens
        shown = "" if ratio is None else f", mlp_ratio {ratio}"
        name = f"{plural(B, 'sequence')} of {plural(T, 'token')}, embed_dim {D}, {plural(heads, 'head')}{shown}{note}"
        allowed = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {}
        x = normal(g, B, T, D, dtype=dtype)
        x = spread * x / x.std(dim=-1, keepdim=True)  # no token so even that eps is felt by chance
        return Case(name, {"x": x}, driver="module", init=init, state=state, **allowed, **rest)

    B, T = distinct(g, 2, 2, 6)
    heads = draw(g, 2, 3)
    D = heads * (draw(g, 2, 3) if heads == 3 else draw(g, 3, 5))
    ratio = (3 * D - 1 + 0.7) / D  # hidden width 3D - 0.3: cut off to 3D - 1, rounded to 3D
    tiny = {"part": "eps", "spread": 1e-3}
    return [
        case(B, T, D, heads, None, gradients=("x",)),
        case(B, T, D, heads, ratio, part="hidden width"),
        case(1, T, D, heads, part="other sizes"),
        case(B, 1, D, 1, 1.0, part="other sizes"),
        case(B, D, D, heads, note=", as many tokens as columns", part="other sizes"),
        case(B, T, D, heads, note=", tokens with variance near 1e-6", **tiny),
        case(B, T, D, heads, note=", also before the MLP", said=1e-3, **tiny),
        *usual(case, B, T, D, heads),
    ]


ADD = "A block corrects its tokens; without the path around it replaces them."
MISTAKES = (
    Mistake(
        "no_first_residual",
        "the path around attention is missing",
        "x plus what attention says",
        ADD,
        "Add x back after attention.",
        {"x + attended": "attended"},
    ),
    Mistake(
        "no_second_residual",
        "the path around the MLP is missing",
        "x plus what the MLP says",
        ADD,
        "Add x back after the MLP.",
        {"return x + ": "return "},
    ),
    Mistake(
        "no_residuals",
        "both paths around are missing",
        "two additions",
        ADD,
        "Add x back after attention, and again after the MLP.",
        {"x + attended": "attended", "return x + ": "return "},
    ),
    Mistake(
        "pair_added",
        "attention's pair is added, not its output",
        "x plus the first of (output, weights)",
        "A tuple is no tensor, so + fails.",
        "attn returns two things; take the first.",
        {"attended, weights = ": "attended = "},
    ),
    Mistake(
        "post_norm",
        "the norms stand after the additions",
        "each norm before its sub-layer, off the path around",
        "That is the block of 2017; deep ones of its kind are hard to train without warm-up.",
        "Normalise what goes into attention and MLP, not what comes out.",
        {
            "self.norm1(x)": "x",
            "x = x + attended": "x = x + attended\nx = self.norm1(x)",
            "return x + self.mlp(self.norm2(x))": "return self.norm2(x + self.mlp(x))",
        },
    ),
    Mistake(
        "norm_after_work",
        "the norms stand behind attention and MLP",
        "each norm before its sub-layer",
        "The sub-layers would see tokens of any length.",
        "Normalise first, then attend.",
        {
            "self.norm1(x)": "x",
            "x = x + attended": "attended = self.norm1(attended)\nx = x + attended",
            "self.mlp(self.norm2(x))": "self.norm2(self.mlp(x))",
        },
    ),
    Mistake(
        "residual_from_the_norm",
        "the normalised tokens are added back, not the tokens",
        "x itself on the path around",
        "Then nothing can pass the block untouched.",
        "Keep x; do not overwrite it with norm1(x).",
        {
            "attended, weights": "x = self.norm1(x)\nattended, weights",
            "self.norm1(x)": "x",
            "return x": "x = self.norm2(x)\nreturn x",
            "self.norm2(x)": "x",
        },
        also=(
            {"attended, weights": "x = self.norm1(x)\nattended, weights", "self.norm1(x)": "x"},
            {"return x": "x = self.norm2(x)\nreturn x", "self.norm2(x)": "x"},
        ),
    ),
    Mistake(
        "second_residual_from_the_input",
        "the second addition adds the block's input again",
        "what the first addition gave",
        "What attention found would get lost.",
        "The second path starts behind the first addition.",
        {"attended, weights": "start = x\nattended, weights", "return x": "return start"},
    ),
    Mistake(
        "first_norm_twice",
        "norm1 is used in both places",
        "norm1 before attention, norm2 before the MLP",
        "norm2 would never learn.",
        "Look at which norm stands before the MLP.",
        {"self.norm2(x)": "self.norm1(x)"},
    ),
    Mistake(
        "norms_swapped",
        "norm1 and norm2 have changed places",
        "norm1 before attention, norm2 before the MLP",
        "Published weights would land in the wrong one.",
        "Look at which norm stands where.",
        {"self.norm1(x)": "self.norm2(x)", "self.norm2(x)": "self.norm1(x)"},
    ),
    Mistake(
        "no_first_norm",
        "attention sees tokens that were not normalised",
        "attn(norm1(x))",
        "Their length grows from block to block.",
        "Put norm1 before attention.",
        {"self.norm1(x)": "x"},
    ),
    Mistake(
        "no_second_norm",
        "the MLP sees tokens that were not normalised",
        "mlp(norm2(x))",
        "Their length grows from block to block.",
        "Put norm2 before the MLP.",
        {"self.norm2(x)": "x"},
    ),
    Mistake(
        "parallel",
        "attention and MLP work side by side",
        "the MLP works on what attention left",
        "Some models do so, to save time; ViT does not.",
        "Finish the first addition before the second begins.",
        {"x = x + attended": "pass", "return x": "return x + attended"},
    ),
    Mistake(
        "mlp_first",
        "the MLP comes before attention",
        "attention first, then the MLP",
        "The order of the paper, and of all published weights.",
        "Look at the order of the two steps.",
        {
            "attended, weights = self.attn(self.norm1(x))": "attended = self.mlp(self.norm2(x))",
            "self.mlp(self.norm2(x))": "self.attn(self.norm1(x))[0]",
        },
        also=(
            {
                "attended, weights = self.attn(": "attended = self.mlp(",
                "self.mlp(self.norm2(x))": "self.attn(self.norm2(x))[0]",
            },
        ),
    ),
    Mistake(
        "one_norm",
        "there is only one norm",
        "norm1 and norm2, each with parameters of its own",
        "The two places need different scales.",
        "Make two nn.LayerNorm.",
        {
            "self.norm2 = nn.LayerNorm(embed_dim, eps=1e-6)": "pass",
            "self.norm2(x)": "self.norm1(x)",
        },
    ),
    Mistake(
        "default_eps_of_torch",
        "the norms have torch's default eps",
        "eps 1e-6",
        "nn.LayerNorm's own default is 1e-5.",
        "Give both norms eps=1e-6.",
        {"1e-6)\nself.attn": "1e-5)\nself.attn", "1e-6)\nself.mlp": "1e-5)\nself.mlp"},
    ),
    Mistake(
        "hidden_rounded",
        "the ratio or the hidden width is rounded",
        "int(embed_dim * mlp_ratio), cut off",
        "int cuts off; timm does the same.",
        "Use int() on the product.",
        {"int(embed": "round(embed"},
        also=({"int(embed_dim * mlp_ratio)": "embed_dim * int(mlp_ratio)"},),
    ),
    Mistake(
        "hidden_always_four",
        "the hidden width is always four times embed_dim",
        "int(embed_dim * mlp_ratio)",
        "mlp_ratio is an argument.",
        "Use the argument.",
        {"int(embed_dim * mlp_ratio)": "4 * embed_dim"},
    ),
    Mistake(
        "relu",
        "the MLP bends with ReLU",
        "the exact GELU between fc1 and fc2",
        "ViT uses GELU.",
        "Mlp, as given, has the right one.",
        {"mlp_ratio))": "mlp_ratio))\nself.mlp.act = nn.ReLU()"},
    ),
    Mistake(
        "tanh_gelu",
        "the MLP bends with the tanh approximation of GELU",
        "the exact GELU between fc1 and fc2",
        "Close is not equal.",
        "Mlp, as given, has the right one.",
        {"mlp_ratio))": "mlp_ratio))\nself.mlp.act = nn.GELU(approximate='tanh')"},
    ),
)


class _Parts(nn.Module):
    """The parts by their names; only ``forward`` differs below."""

    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
        super().__init__()
        self.norm1 = nn.LayerNorm(embed_dim, eps=1e-6)
        self.attn = MultiHeadAttention(embed_dim, num_heads)
        self.norm2 = nn.LayerNorm(embed_dim, eps=1e-6)
        self.mlp = Mlp(embed_dim, int(embed_dim * mlp_ratio))


class WithShortcut(_Parts):
    def forward(self, x):
        shortcut = x
        x, _ = self.attn(self.norm1(x))
        x += shortcut
        return torch.add(self.mlp(self.norm2(x)), x)


class Functional(_Parts):
    def forward(self, x):
        D = (x.shape[-1],)
        y = x + self.attn(F.layer_norm(x, D, self.norm1.weight, self.norm1.bias, 1e-6))[0]
        z = F.layer_norm(y, D, self.norm2.weight, self.norm2.bias, 1e-6)
        z = F.gelu(F.linear(z, self.mlp.fc1.weight, self.mlp.fc1.bias))
        return y + F.linear(z, self.mlp.fc2.weight, self.mlp.fc2.bias)


class OwnMlp(nn.Module):
    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
        super().__init__()
        hidden = int(mlp_ratio * embed_dim)
        fc1, fc2 = nn.Linear(embed_dim, hidden), nn.Linear(hidden, embed_dim)
        self.mlp = nn.ModuleDict({"fc1": fc1, "fc2": fc2})
        self.norm2, self.norm1 = (nn.LayerNorm(embed_dim, 1e-6) for _ in range(2))
        self.attn = MultiHeadAttention(embed_dim, num_heads)

    def forward(self, x):
        for norm, work in ((self.norm1, lambda t: self.attn(t)[0]), (self.norm2, self.bend)):
            x = x + work(norm(x))
        return x

    def bend(self, x):
        x = self.mlp["fc1"](x)
        return self.mlp["fc2"](x * (torch.erf(x / math.sqrt(2)) + 1) / 2)


class TokenByToken(_Parts):
    def forward(self, x):
        x = x + self.attn(self.norm1(x))[0]
        return torch.stack([token + self.mlp(self.norm2(token)) for token in x.unbind(1)], dim=1)


CHECKER = Checker(
    "EncoderBlock",
    proves={
        "values": "two residual steps, each normalised first",
        "hidden width": "int(embed_dim * mlp_ratio) hidden units",
        "other sizes": "also for one token, one head and float64",
        "eps": "norms with eps 1e-6",
    },
    picture=drawing.draw_block(
        {
            "no_first_residual": ("first",),
            "no_second_residual": ("second",),
            "no_residuals": ("first", "second"),
        }
    ),
    special="self.attn.num_heads == 1; x.shape[1] == 1; len(x) == 1; x.shape[1] == x.shape[2]; "
    "self.mlp.fc1.out_features == x.shape[2]",
)
