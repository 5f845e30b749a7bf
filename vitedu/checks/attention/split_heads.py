"""Checker of split_heads: its cases, its known mistakes, and what is said of them."""

import torch

from vitedu import attention as reference
from vitedu.checks.attention.evidence import shapes
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, draw, normal
from vitedu.checks.probing import Case


def split_cases(g: torch.Generator) -> list[Case]:
    """Draw tokens whose sizes, heads and columns a head all differ."""

    def case(B, T, nh, hd, dtype=torch.float32, note="", **rest):
        name = f"x ({B}, {T}, {nh * hd}), num_heads {nh}{note}"
        args = {"x": normal(g, B, T, nh * hd, dtype=dtype), "num_heads": nh}
        return Case(name, args, rtol=1e-6, atol=1e-6, **rest)

    B, T, nh, hd = distinct(g, 4, 2, 7)
    uneven = nh * hd + draw(g, 1, nh - 1)
    return [
        case(B, T, nh, hd, gradients=("x",)),
        case(1, T, nh, hd, part="other sizes", note=", a batch of one"),
        case(B, nh, nh, hd, part="other sizes", note=", as many tokens as heads"),
        case(B, nh * hd, nh, hd, part="other sizes", note=", as many tokens as columns"),
        case(hd, T, 1, nh, part="other sizes", note=", one head"),
        case(B, T, nh, 1, part="other sizes", note=", one column a head"),
        case(B, 1, hd, nh, part="other sizes", note=", one token"),
        case(B, T, nh, hd, dtype=torch.float64, part="other sizes", note=", float64"),
        Case(
            f"D={uneven} is not divisible by num_heads {nh}",
            {"x": normal(g, B, T, uneven), "num_heads": nh}, part="errors", raises="ValueError",
        ),
        Case(
            f"D={nh} is smaller than num_heads {nh + hd}",
            {"x": normal(g, B, nh + hd, nh), "num_heads": nh + hd}, part="errors", raises="ValueError",
        ),
        case(B, T, nh, hd, part="any device", on_accelerator=True, note=", on an accelerator"),
    ]  # fmt: skip


def faulty_split(mistakes: frozenset[str]):
    """Split with the named mistakes made."""

    def split_heads(x, num_heads):
        B, T, D = x.shape
        if D % num_heads:
            return reference.split_heads(x, num_heads)
        nh, hd = num_heads, D // num_heads
        if "first_image_only" in mistakes:
            x, B = x[:1], 1
        if "counts_exchanged" in mistakes:
            nh, hd = hd, nh
        if "reshape_only" in mistakes:
            heads = x.reshape(B, nh, T, hd)
        elif "interleaved" in mistakes:
            heads = x.reshape(B, T, hd, nh).permute(0, 3, 1, 2)
        else:
            heads = x.reshape(B, T, nh, hd).transpose(1, 2)
        if "heads_backwards" in mistakes:
            heads = heads.flip(1)
        if "heads_behind_tokens" in mistakes:
            return heads.transpose(1, 2)
        if "columns_before_tokens" in mistakes:
            return heads.transpose(2, 3)
        if "heads_before_batch" in mistakes:
            return heads.transpose(0, 1)
        if "joined_with_batch" in mistakes:
            return heads.reshape(B * nh, T, hd)
        if "list_of_heads" in mistakes:
            return list(heads.unbind(1))
        return heads

    return split_heads


SPLIT_BANK = (
    Misconception(
        "reshape_only", "the heads are made by a reshape alone", "head j holds columns j*hd : (j+1)*hd of every token",
        "A reshape moves no number: the head that comes out holds slices of a few tokens, not of all.",
        "Cut the last axis first, then exchange two axes.",
    ),
    Misconception(
        "interleaved", "the heads take turns, column by column", "head j owns consecutive columns: j*hd : (j+1)*hd",
        "Published weights expect each head's columns side by side.", "Look at the order of nh and hd when you cut the last axis.",
    ),
    Misconception(
        "heads_behind_tokens", "the heads stay behind the tokens", "(B, nh, T, hd)",
        "Attention works on the last two axes: they have to be tokens and columns.", "Exchange axes 1 and 2 at the end.", evidence=shapes,
    ),
    Misconception(
        "columns_before_tokens", "columns and tokens are exchanged", "(B, nh, T, hd)",
        "Attention works on the last two axes, tokens before columns.", "Look at the order in permute.", evidence=shapes,
    ),
    Misconception(
        "heads_before_batch", "the heads stand before the batch", "(B, nh, T, hd)",
        "The first axis is the image's, everywhere in this course.", "Look at the order in permute.", evidence=shapes,
    ),
    Misconception(
        "joined_with_batch", "heads and batch are joined into one axis", "(B, nh, T, hd)",
        "Some code does that for bmm; here the head has an axis of its own.", "Leave out the last reshape.", evidence=shapes,
    ),
    Misconception(
        "counts_exchanged", "num_heads is taken for the columns of a head", "nh = num_heads, hd = D / num_heads",
        "It goes unnoticed when the two are equal.", "Look at the order of num_heads and D // num_heads.", evidence=shapes,
    ),
    Misconception(
        "heads_backwards", "the heads come in reverse order", "head 0 owns the first columns",
        "merge_heads would put them together the wrong way round.", "Look for a flip, or for a loop that counts down.",
    ),
    Misconception(
        "first_image_only", "only the first image is split", "all images of the batch",
        "It works for a batch of one.", "Look for an index 0 or for a 1 where B belongs.", evidence=shapes,
    ),
    Misconception(
        "list_of_heads", "a list of heads comes back", "one tensor (B, nh, T, hd)",
        "With an axis for the heads, one product serves them all.", "Stack them along a new axis 1.",
    ),
)  # fmt: skip

CHECKER = Checker(
    "split_heads",
    reference.split_heads,
    split_cases,
    faulty_split,
    SPLIT_BANK,
    proves={
        "values": "head j holds columns j*hd : (j+1)*hd of every token, compared to the bit",
        "other sizes": "also for a batch of one, one head, one token, one column a head, and float64",
        "errors": "a D that num_heads does not divide is refused",
    },
)
