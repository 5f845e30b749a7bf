"""Checkers of the values that notebook 01 asks for."""

from vitedu.checks.explaining.values import ValueChecker


def pixels(value) -> bool:
    return value in (224 * 224, 224 * 224 + 1)


def answers_not_numbers(value) -> bool:
    return set(value) <= {True, False}


CHECKERS = {
    "tokens_at_224": ValueChecker(proves="patches down times patches across, and the class token"),
    # two decimals are enough
    "seam_neighbours": ValueChecker(
        atol=0.006, proves="the 1-D code joins the seam, the 2-D code does not"
    ),
    "stem_tokens": ValueChecker(
        proves="three convolutions of stride 2 leave a grid eight times smaller on each side"
    ),
}
