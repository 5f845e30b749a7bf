"""Checkers of the values that notebook 06 asks for."""

from vitedu.checks.explaining.values import ValueChecker


def counts_values(value) -> bool:
    return value[0] > 32


CHECKERS = {
    "layers_to_see_all": ValueChecker(proves="two pixels a layer, rounded up"),
    "weight_uses": ValueChecker(
        proves="a weight works once for each place, and a place of a ViT is a token"
    ),
    "token_shifts": ValueChecker(
        proves=(
            "a shift by whole patches only renumbers the tokens; a shift by a pixel makes new ones"
        ),
    ),
}
