"""2.3 split_heads: a slice of columns for each head."""

from vitedu.checks.writing.kit import EXACT, USUAL, also, refused, shaped

cases = shaped(
    "x: B T D; num_heads = nh",
    also("other sizes", "as many tokens as heads", T="nh"),
    also("other sizes", "as many tokens as columns, 128", T="D", nh=8, hd=16),
    also("other sizes", "one head", nh=1, B=17),
    also("rare sizes", "one column a head", hd=1),
    also("rare sizes", "one token", T=1),
    refused("D={D} is not divisible by num_heads {nh}", D="nh*hd + 1"),
    refused("D={D} is not divisible by num_heads {nh}, T * D is", D="nh*hd + 1", T="nh"),
    refused("D={D} is smaller than num_heads {nh}", D="nh - 1"),
    *USUAL,
    letters={"D": "nh*hd"},
    **EXACT,
)
