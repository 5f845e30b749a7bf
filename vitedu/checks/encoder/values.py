"""Checkers of the values that notebook 03 asks for."""

from vitedu.checks.explaining.values import ValueChecker


def eight_rows(value) -> bool:
    return value[0] == 8


def no_row(value) -> bool:
    return value[0] == 0


def expects_gradient(value) -> bool:
    return value[0] == 1 and value[1] != 0


CHECKERS = {
    "class_token_alone": ValueChecker(
        proves="one answer for every image, and no gradient for the patches"
    ),
    "mlp_share": ValueChecker(rtol=0.008, proves="about two thirds"),
}
