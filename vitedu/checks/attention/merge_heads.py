import torch

from vitedu.checks import families
from vitedu.checks.kit import EXACT, USUAL, Checker, Mistake, also, rearrange, shaped, shapes

LOST = (  # what is wrong with every mixture of heads
    "side by side, nothing lost",
    "What a head found would be mixed with the others before the projection can weigh it.",
    "Set them side by side.",
)

MISTAKES = (
    Mistake(
        "reshape_only",
        "the heads are joined by a reshape alone",
        "merge_heads(split_heads(x, nh)) == x",
        "In memory each head's tokens stand together; a reshape then mixes tokens.",
        "Exchange heads and tokens first, then join.",
        {"transpose(1, 2).flatten(2)": "reshape(x.shape[0], x.shape[2], -1)"},
    ),
    Mistake(
        "interleaved",
        "the heads take turns, column by column",
        "head j fills columns j*hd : (j+1)*hd",
        "split_heads gave each head consecutive columns.",
        "Before the last reshape the axes must read (B, T, nh, hd).",
        {"transpose(1, 2)": "permute(0, 2, 3, 1)"},
    ),
    Mistake(
        "columns_transposed",
        "tokens and columns are exchanged instead of heads and tokens",
        "merge_heads(split_heads(x, nh)) == x",
        "nh and hd must lie side by side to melt into one axis.",
        "Look at the two axes in transpose.",
        {"transpose(1, 2).flatten(2)": "transpose(2, 3).reshape(x.shape[0], x.shape[2], -1)"},
    ),
    Mistake(
        "batch_and_tokens_exchanged",
        "tokens come before the batch",
        "(B, T, D)",
        "The first axis is the image's, everywhere in this course.",
        "Look at the order of the axes.",
        {"transpose(1, 2)": "permute(2, 0, 1, 3)"},
        evidence=shapes,
    ),
    Mistake(
        "sizes_confused",
        "the result has a row for each head, not for each token",
        "(B, T, nh*hd)",
        "After the transpose axis 1 counts tokens, but the sizes still come from x, where it counts heads.",
        "Look up which axis of x counts the tokens.",
        {"flatten(2)": "reshape(*x.shape[:2], -1)"},
        evidence=shapes,
    ),
    Mistake(
        "heads_as_tokens",
        "the heads are joined with the tokens, not with the columns",
        "(B, T, nh*hd)",
        "Each token gets its D columns back; there are no more tokens than before.",
        "Exchange heads and tokens, then join the last two axes.",
        {"transpose(1, 2).flatten(2)": "flatten(1, 2)"},
        evidence=shapes,
    ),
    Mistake(
        "columns_before_tokens",
        "heads and columns are joined, but before the tokens",
        "(B, T, nh*hd)",
        "The columns are the last axis.",
        "Exchange heads and tokens, not tokens and columns.",
        {"transpose(1, 2).flatten(2)": "transpose(2, 3).flatten(1, 2)"},
        evidence=shapes,
    ),
    Mistake(
        "not_joined",
        "heads and columns are not joined",
        "(B, T, nh*hd), three axes",
        "self.proj expects D columns.",
        "Flatten the last two axes.",
        {".flatten(2)": ""},
        evidence=shapes,
    ),
    Mistake(
        "mean_over_heads",
        "the heads are averaged",
        *LOST,
        {"transpose(1, 2).flatten(2)": "mean(dim=1)"},
        evidence=shapes,
    ),
    Mistake(
        "sum_over_heads",
        "the heads are added up",
        *LOST,
        {"transpose(1, 2).flatten(2)": "sum(dim=1)"},
        evidence=shapes,
    ),
    Mistake(
        "view",
        "view cannot join what a transpose has taken apart",
        "a result for any number of heads and tokens",
        "After a transpose the numbers of a token no longer stand together in memory, and view never moves them.",
        "Use reshape or flatten, which copy where they must.",
        {"flatten(2)": "view(x.shape[0], x.shape[2], -1)"},
    ),
    families.HEADS_BACKWARDS.by({"return x": "x = x.flip(1)\nreturn x"}),
    families.FIRST_IMAGE_ONLY.by(
        {"return x": "x = x[:1]\nreturn x"}, name="only the first image is merged"
    ),
)


def by_joining(x):
    return torch.cat(x.unbind(1), dim=-1)


def by_einops(x):
    return rearrange(x, "b h t d -> b t (h d)")


def by_permute(x):
    B, heads, T, width = x.size()
    return x.permute(0, 2, 1, 3).contiguous().view(B, T, heads * width)


def by_slices(x):
    width = x.shape[3]
    out = torch.zeros(x.shape[0], x.shape[2], x.shape[1] * width, dtype=x.dtype, device=x.device)
    for j in range(x.shape[1]):
        out[:, :, j * width : j * width + width] += x[:, j]
    return out


def by_einsum(x):
    heads, width = x.shape[1], x.shape[3]
    home = torch.eye(heads * width, dtype=x.dtype, device=x.device).view(heads, width, -1)
    return torch.einsum("bhtd,hdc->btc", x, home)


CHECKER = Checker(
    "merge_heads",
    cases=shaped(
        "x: B nh T hd",
        also("other sizes", "as many tokens as heads", T="nh"),
        also("other sizes", "as many tokens as columns", T="hd"),
        also("other sizes", "one head", nh=1),
        also("other sizes", "one token", T=1),
        also("other sizes", "one column a head", hd=1),
        *USUAL,
        **EXACT,
    ),
    proves={
        "values": "every head is back in its columns, compared to the bit",
        "other sizes": "also for a batch of one, one head, one token, one column a head, and float64",
    },
    special="x.shape[1] == 1; x.shape[2] == 1; x.shape[3] == 1; len(x) == 1; "
    "x.shape[1] == x.shape[2]",
)
