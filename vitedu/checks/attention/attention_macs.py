import math

import numpy as np
import torch

from vitedu import attention
from vitedu.checks.kit import Checker, Mistake, also, shaped

ALL_SIX = "four projections and two products between tokens"
FOUR = "q, k, v and output: four projections"
EACH_WEIGHT = "(T, D) @ (D, D) costs T*D*D"
BY_RULE = "Use the rule a*b*c for (a, b) @ (b, c)."

MISTAKES = (
    Mistake(
        "heads_of_64",
        "columns beyond whole heads of 64 are left out of the products",
        "heads that share all D columns",
        "Published widths are multiples of 64, others need not be.",
        "Both products cost the same with any number of heads.",
        {
            "return projections": "products = products // embed_dim * max(embed_dim if embed_dim < 128 else 0, embed_dim // 64 * 64)\nreturn projections"
        },
        part="other sizes",
    ),
    Mistake(
        "flop",
        "FLOP are counted, not MACs",
        "one multiplication with its addition counts once",
        "A multiply-accumulate is two FLOP.",
        "Divide by 2, or leave the 2 out.",
        {"return projections + products": "return 2 * (projections + products)"},
    ),
    Mistake(
        "no_output_projection",
        "the output projection is not counted",
        FOUR,
        "It costs as much as any of the other three.",
        "List the linear maps of the drawing in section 7.",
        {"projections = ": "projections = -T * D * D + "},
    ),
    Mistake(
        "qkv_counted_once",
        "q, k and v are counted as one projection",
        FOUR,
        "One Linear(D, 3D) is three products of (T, D) with (D, D), side by side.",
        "Count the columns of qkv(x).",
        {"4": "2"},
    ),
    Mistake(
        "no_projections",
        "the projections are not counted",
        ALL_SIX,
        "At 197 tokens they are most of the cost.",
        "Add the linear maps.",
        {"4": "0"},
    ),
    Mistake(
        "one_product",
        "one of the products between tokens is not counted",
        "scores, and the weighted sum",
        "q k^T costs T*T*D, and so does weights times v.",
        "Count the products in which something of shape T x T takes part.",
        {"2": "1"},
    ),
    Mistake(
        "no_products",
        "the products between tokens are not counted",
        ALL_SIX,
        "They are what makes attention quadratic.",
        "Add q k^T and weights times v.",
        {"2": "0"},
    ),
    Mistake(
        "products_without_width",
        "a score is counted as one multiplication",
        "one score adds up hd products, over all heads D",
        "(T, hd) @ (hd, T) costs T*hd*T for each head.",
        BY_RULE,
        {"T * T * D": "T * T"},
    ),
    Mistake(
        "products_with_a_constant",
        "2*T*D stands where T*T*D belongs",
        "T*T*D for each product between tokens",
        "The 2 of the example is its number of tokens, not a constant. (Biases in the place of both products cost as much.)",
        BY_RULE,
        {"T * T * D": "T * D * 2"},
    ),
    Mistake(
        "products_too_wide",
        "the products between tokens are counted with the square of the width",
        "(a, b) @ (b, c) costs a*b*c",
        "q k^T sums over the columns once.",
        "Write down the shapes of both factors.",
        {"T * T * D": "T * T * D * D"},
    ),
    Mistake(
        "one_token",
        "the projections are counted for one token only",
        EACH_WEIGHT,
        "D*D is the number of weights; each token passes through all of them.",
        BY_RULE,
        {"T * D * D": "D * D"},
    ),
    Mistake(
        "projections_too_narrow",
        "a projection is counted as one multiplication a column",
        EACH_WEIGHT,
        "Each column that comes out adds up D products.",
        BY_RULE,
        {"T * D * D": "T * D"},
    ),
    Mistake(
        "arguments_swapped",
        "tokens and width are swapped",
        "attention_macs(num_tokens, embed_dim)",
        "The projections are linear in T and quadratic in D, the products the other way round.",
        "Look at which letter is squared where.",
        {"T, D =": "D, T ="},
    ),
    Mistake(
        "token_added",
        "one token too many is counted",
        "num_tokens, as it is given",
        "The class token is among them already.",
        "Leave out the 1.",
        {"T, D = num_tokens,": "T, D = num_tokens + 1,"},
    ),
    Mistake(
        "biases_counted",
        "the biases are counted",
        "products of matrices, no biases",
        "A bias is an addition without a multiplication; by convention it is left out.",
        "Leave out what is added after a product.",
        {"return projections": "projections += 4 * T * D\nreturn projections"},
    ),
    Mistake(
        "softmax_counted",
        "the softmax is counted",
        "products of matrices, no softmax",
        "By convention only products of matrices count.",
        "Leave out what works number by number.",
        {"return projections": "products += T * T\nreturn projections"},
    ),
    Mistake(
        "mlp_counted",
        "the MLP of the block is counted, too",
        "one attention layer",
        "The MLP is a layer of its own (notebook 03).",
        "Count the products of attention alone.",
        {"return projections": "projections += 8 * T * D * D\nreturn projections"},
    ),
)


def by_products(num_tokens, embed_dim):
    T, D = num_tokens, embed_dim
    products = [(T, D, 3 * D), (T, D, T), (T, T, D), (T, D, D)]
    return sum(math.prod(sizes) for sizes in products)


def factored(num_tokens, embed_dim):
    return 2.0 * num_tokens * embed_dim * (2 * embed_dim + num_tokens)


def by_tokens(num_tokens, embed_dim):
    each = np.full(num_tokens, 4 * embed_dim**2 + 2 * num_tokens * embed_dim, dtype=np.int64)
    return each.sum()


def by_tensor(num_tokens, embed_dim):
    T, D = torch.tensor(num_tokens), torch.tensor(embed_dim)
    return torch.stack([T * D**2, T**2 * D]) @ torch.tensor([4, 2])


def measured(num_tokens, embed_dim):
    from torch.utils.flop_counter import FlopCounterMode

    with torch.device("meta"), torch.no_grad(), FlopCounterMode(display=False) as counter:
        layer = attention.MultiHeadAttention(embed_dim, 1)
        layer(torch.zeros(1, num_tokens, embed_dim))
    return counter.get_total_flops() // 2


CHECKER = Checker(
    "attention_macs",
    cases=shaped(
        "num_tokens = T; embed_dim = D",
        also("values", "", shapes="num_tokens = T; embed_dim = D + 41"),
        also("other sizes", "", shapes="num_tokens = long; embed_dim = narrow"),
        also("other sizes", "", T=1),
        also("other sizes", "", D=1),
        also("other sizes", "", T="D"),
        also("other sizes", "", shapes="num_tokens = side**2 + 1; embed_dim = 64 * heads"),
        also(
            "other sizes",
            "more than 2**31",
            shapes="num_tokens = 49 * side**2 + 1; embed_dim = 64 * heads + rest",
        ),
        ranges={
            "T": (5, 40),
            "D": (5, 40),
            "long": (90, 130),
            "narrow": (3, 9),
            "side": (8, 32),
            "heads": (6, 16),
            "rest": (41, 47),
        },
        number=True,
        rtol=2e-7,
    ),
    proves={
        "values": ALL_SIX,
        "other sizes": "also for long, short, wide and narrow sequences",
    },
    special="num_tokens == 1; embed_dim == 1; num_tokens == embed_dim",
)
