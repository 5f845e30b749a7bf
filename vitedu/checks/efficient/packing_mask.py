"""8.10 packing_mask: several images, one sequence."""

from vitedu.checks.writing.kit import also, shaped

cases = shaped(
    "lengths = [a, b, c]",
    also("values", "", shapes="lengths = [c, d, a, b]"),
    also("other sizes", "images of one size", shapes="lengths = [a, a, a]"),
    also("other sizes", "one image", shapes="lengths = [a]"),
    also("other sizes", "an image of one token", shapes="lengths = [a, 1, b]"),
    also("other sizes", "many tokens", shapes="lengths = [30 + a, b, 30 + c]"),
    also("rare lengths", "three hundred of one token", shapes="lengths = [1] * 300 + [a]"),
    also("rare lengths", "a tuple of lengths", shapes="lengths = (b, a)"),
)
