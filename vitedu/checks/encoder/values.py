"""Checkers of the values that notebook 03 asks for."""

from vitedu import encoder as reference
from vitedu.checks.values import ValueChecker


def eight_rows(value) -> bool:
    return value[0] == 8


def no_row(value) -> bool:
    return value[0] == 0


def expects_gradient(value) -> bool:
    return value[0] == 1 and value[1] != 0


CHECKERS = {
    "class_token_alone": ValueChecker(
        "class_token_alone",
        reference.class_token_alone,
        proves="one answer for every image, and no gradient for the patches",
    ),
    "mlp_share": ValueChecker(
        "mlp_share", reference.mlp_share, rtol=0.008, proves="about two thirds"
    ),
}
