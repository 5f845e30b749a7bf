"""Checkers of the values that notebook 01 asks for."""

from vitedu import patches as reference
from vitedu.checks.values import ValueChecker


def pixels(value) -> bool:
    return value in (224 * 224, 224 * 224 + 1)


def answers_not_numbers(value) -> bool:
    return set(value) <= {True, False}


CHECKERS = {
    "tokens_at_224": ValueChecker(
        "tokens_at_224",
        reference.tokens_at_224,
        proves="patches down times patches across, and the class token",
    ),
    "seam_neighbours": ValueChecker(
        "seam_neighbours",
        reference.seam_neighbours,
        atol=0.006,  # two decimals are enough
        proves="the 1-D code joins the seam, the 2-D code does not",
    ),
    "stem_tokens": ValueChecker(
        "stem_tokens",
        reference.stem_tokens,
        proves="three convolutions of stride 2 leave a grid eight times smaller on each side",
    ),
}
