"""Checkers of the values that notebook 09 asks for."""

import math

from vitedu.checks.explaining.values import ValueChecker


def one_pair(answer) -> bool:
    return len(answer) == 3 and math.isclose(answer[1], math.log(2), rel_tol=0.005)


CHECKERS = {
    "lora_parameters": ValueChecker(proves="two thin matrices beside each of twelve layers"),
    "blind_losses": ValueChecker(
        rtol=5e-3, proves="what both losses cost while nothing is known, and what the bias saves"
    ),
}
