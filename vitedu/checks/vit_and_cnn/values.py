"""Checkers of the values that notebook 06 asks for."""

from vitedu import vit_and_cnn as reference
from vitedu.checks.values import ValueChecker


def counts_values(value) -> bool:
    return value[0] > 32


CHECKERS = {
    "layers_to_see_all": ValueChecker(
        "layers_to_see_all", reference.layers_to_see_all, proves="two pixels a layer, rounded up"
    ),
    "weight_uses": ValueChecker(
        "weight_uses",
        reference.weight_uses,
        proves="a weight works once for each place, and a place of a ViT is a token",
    ),
    "token_shifts": ValueChecker(
        "token_shifts",
        reference.token_shifts,
        proves=(
            "a shift by whole patches only renumbers the tokens; a shift by a pixel makes new ones"
        ),
    ),
}
