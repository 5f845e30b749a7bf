"""Checker of attention_macs: its cases, its known mistakes, and what is said of them."""

import torch

from vitedu import attention as reference
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, draw, plural
from vitedu.checks.probing import Case


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

CHECKER = Checker(
    "attention_macs",
    reference.attention_macs,
    macs_cases,
    faulty_macs,
    MACS_BANK,
    proves={
        "values": "four projections and two products between tokens",
        "other sizes": "also for long, short, wide and narrow sequences",
    },
)
