"""2.4 merge_heads: the slices side by side again."""

from vitedu.checks.writing.kit import EXACT, USUAL, also, shaped

cases = shaped(
    "x: B nh T hd",
    also("other sizes", "as many tokens as heads", T="nh"),
    also("other sizes", "as many tokens as columns, more than 64", T="hd", hd=72, nh=2),
    also("other sizes", "one head", nh=1, B=17),
    also("rare sizes", "one token", T=1),
    also("rare sizes", "one column a head", hd=1),
    *USUAL,
    **EXACT,
)
