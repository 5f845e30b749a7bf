"""4.10 orthogonalise: the heart of Muon."""

from vitedu.checks.writing.kit import USUAL, also, shaped

cases = shaped(
    "matrix: n m",
    also("tall matrices", "taller than wide", shapes="matrix: m n"),
    also("steps", "no step", shapes="matrix: n m; steps = 0"),
    also("steps", "one step", shapes="matrix: m n; steps = 1"),
    also("steps", "seven steps", shapes="matrix: n m; steps = 7"),
    also("other sizes", "square", m="n"),
    also("rare matrices", "one row", n=1),
    also("rare matrices", "one column", shapes="matrix: m n", n=1),
    also("other sizes", "large numbers", scale=1e6),
    also("other sizes", "small numbers, as in a gradient", scale=1e-3),
    also("rare matrices", "zeros", scale=0.0),
    *USUAL[1:],
    ranges={"n": (3, 5)},
    letters={"m": "n + k"},
    gradients=(),
    rtol=1e-3,
    atol=1e-3,
)
