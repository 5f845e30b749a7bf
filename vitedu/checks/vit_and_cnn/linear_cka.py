"""6.7 linear_cka: do two layers say the same?."""

from vitedu.checks.writing.kit import FLOAT64, ON_ACCELERATOR, also, shaped

ZEROS = dict.fromkeys("xy", lambda z: z.clamp(min=0))  # as behind a ReLU
FAR = dict.fromkeys("xy", lambda z: z + 1e3)
# a mean of its own for each column, so that centring is felt
UNCENTRED = dict.fromkeys("xy", lambda z: z + 2 * z[:1] + 0.5 * z.mean(dim=1).mean())

cases = shaped(
    "x: n p; y: n q",
    also("other sizes", "as many features on both sides, 70 images", n=70, q="p", values=ZEROS),
    also("other sizes", "as many features as images", p="n"),
    also("other sizes", "more features than images", p="14 * n", q="7 * n + 1"),
    also("other sizes", "y a hundred times as large", scale={"y": 100.0}),
    also("rare features", "one feature against several", p=1),
    also("rare features", "columns far from zero", values=FAR, rtol=1e-2),
    # features that are small, not so small that a guard of 1e-12 against 0 is felt
    also("other sizes", "both sides a hundredth as large", scale=1 / 100, rtol=2e-3),
    also("rare features", "y the first two columns of x in memory", p=5, q=2, views={"y": "x"}),
    FLOAT64,
    ON_ACCELERATOR,
    ranges={"n": (6, 9), "p": (2, 5), "q": (2, 5)},
    values=UNCENTRED,
    name="features ({n}, {p}) and ({n}, {q})",
    rtol=1e-4,
)
