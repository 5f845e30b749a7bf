"""Checker of merge_heads: its cases, its known mistakes, and what is said of them."""

import torch

from vitedu import attention as reference
from vitedu.checks.attention.evidence import shapes
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, normal
from vitedu.checks.probing import Case


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

CHECKER = Checker(
    "merge_heads",
    reference.merge_heads,
    merge_cases,
    faulty_merge,
    MERGE_BANK,
    proves={
        "values": "every head is back in its columns, compared to the bit",
        "other sizes": "also for a batch of one, one head, one token, one column a head, and float64",
    },
)
