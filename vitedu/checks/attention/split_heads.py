import torch

from vitedu.checks import evidence, families
from vitedu.checks.kit import EXACT, USUAL, Checker, Mistake, also, rearrange, refused, shaped

SPLIT = "x.reshape(B, T, num_heads, D // num_heads)"

MISTAKES = (
    Mistake(
        "reshape_only",
        "the heads are made by a reshape alone",
        "head j holds columns j*hd : (j+1)*hd of every token",
        "A reshape moves no number: the head that comes out holds slices of a few tokens, not of all.",
        "Cut the last axis first, then exchange two axes.",
        {f"{SPLIT}.transpose(1, 2)": "x.reshape(B, num_heads, T, D // num_heads)"},
    ),
    Mistake(
        "interleaved",
        "the heads take turns, column by column",
        "head j owns consecutive columns: j*hd : (j+1)*hd",
        "Published weights expect each head's columns side by side.",
        "Look at the order of nh and hd when you cut the last axis.",
        {SPLIT: "x.reshape(B, T, D // num_heads, num_heads).mT"},
    ),
    Mistake(
        "heads_behind_tokens",
        "the heads stay behind the tokens",
        "(B, nh, T, hd)",
        "Attention works on the last two axes: they have to be tokens and columns.",
        "Exchange axes 1 and 2 at the end.",
        {".transpose(1, 2)": ""},
        evidence=evidence.shapes,
    ),
    Mistake(
        "columns_before_tokens",
        "columns and tokens are exchanged",
        "(B, nh, T, hd)",
        "Attention works on the last two axes, tokens before columns.",
        "Look at the order of the axes.",
        {"transpose(1, 2)": "permute(0, 2, 3, 1)"},
        evidence=evidence.shapes,
    ),
    Mistake(
        "heads_before_batch",
        "the heads stand before the batch",
        "(B, nh, T, hd)",
        "The first axis is the image's, everywhere in this course.",
        "Look at the order of the axes.",
        {"transpose(1, 2)": "permute(2, 0, 1, 3)"},
        evidence=evidence.shapes,
    ),
    Mistake(
        "joined_with_batch",
        "heads and batch are joined into one axis",
        "(B, nh, T, hd)",
        "Some code does that for bmm; here the head has an axis of its own.",
        "Leave out the last reshape.",
        {"transpose(1, 2)": "transpose(1, 2).flatten(0, 1)"},
        evidence=evidence.shapes,
    ),
    Mistake(
        "counts_exchanged",
        "num_heads is taken for the columns of a head",
        "nh = num_heads, hd = D / num_heads",
        "It goes unnoticed when the two are equal.",
        "Look at the order of num_heads and D // num_heads.",
        {"return x": "num_heads = D // num_heads\nreturn x"},
        evidence=evidence.shapes,
    ),
    families.HEADS_BACKWARDS.by(
        {"return x": "x = x.unflatten(2, (num_heads, -1)).flip(2).flatten(2)\nreturn x"}
    ),
    families.FIRST_IMAGE_ONLY.by(
        {"return x": "x, B = x[:1], 1\nreturn x"}, name="only the first image is split"
    ),
    Mistake(
        "list_of_heads",
        "a list of heads comes back",
        "one tensor (B, nh, T, hd)",
        "With an axis for the heads, one product serves them all.",
        "Stack them along a new axis 1.",
        {"return x": "return list(x", "transpose(1, 2)": "transpose(1, 2).unbind(1))"},
    ),
)


def _divides(x, num_heads):
    if x.shape[-1] % num_heads != 0:
        raise ValueError("the heads do not divide the columns")


def by_chunks(x, num_heads):
    _divides(x, num_heads)
    return torch.stack(torch.chunk(x, num_heads, dim=-1), dim=1)


def by_einops(x, num_heads):
    _divides(x, num_heads)
    return rearrange(x, "b t (h d) -> b h t d", h=num_heads)


def by_unflatten(x, num_heads):
    _divides(x, num_heads)
    return x.unflatten(2, (num_heads, -1)).movedim(2, 1)


def by_slices(x, num_heads):
    B, T, D = x.shape
    width, rest = divmod(D, num_heads)
    if rest:
        raise ValueError(f"{D} = {num_heads} * {width} + {rest}")
    heads = x.new_empty(B, num_heads, T, width)
    for j in range(num_heads):
        heads[:, j] = x[..., j * width : (j + 1) * width]
    return heads


def by_windows(x, num_heads):
    _divides(x, num_heads)
    width = x.shape[2] // num_heads
    return x.unfold(2, width, width).permute(0, 2, 1, 3).contiguous()


def by_strides(x, num_heads):
    B, T, D = x.shape
    if D / num_heads != D // num_heads:
        raise ValueError((D, num_heads))
    x = x.contiguous()
    return x.as_strided((B, num_heads, T, D // num_heads), (T * D, D // num_heads, D, 1))


CHECKER = Checker(
    "split_heads",
    cases=shaped(
        "x: B T D; num_heads = nh",
        also("other sizes", "as many tokens as heads", T="nh"),
        also("other sizes", "as many tokens as columns", T="D"),
        also("other sizes", "one head", nh=1),
        also("other sizes", "one column a head", hd=1),
        also("other sizes", "one token", T=1),
        refused("D={D} is not divisible by num_heads {nh}", D="nh*hd + 1"),
        refused("D={D} is not divisible by num_heads {nh}, T * D is", D="nh*hd + 1", T="nh"),
        refused("D={D} is smaller than num_heads {nh}", D="nh - 1"),
        *USUAL,
        letters={"D": "nh*hd"},
        **EXACT,
    ),
    proves={
        "values": "head j holds columns j*hd : (j+1)*hd of every token, compared to the bit",
        "other sizes": "also for a batch of one, one head, one token, one column a head, and float64",
        "errors": "a D that num_heads does not divide is refused",
    },
    special="num_heads == 1; num_heads == x.shape[2]; num_heads == x.shape[1]; x.shape[1] == 1; "
    "len(x) == 1",
)
