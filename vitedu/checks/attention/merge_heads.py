"""2.4 merge_heads: the slices side by side again."""

from vitedu.checks.kit import EXACT, USUAL, Checker, also, shaped

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
    idea={
        "values": "every head is back in its columns, compared to the bit",
        "other sizes": (
            "also for a batch of one, one head, one token, one column a head, and float64"
        ),
    },
)
