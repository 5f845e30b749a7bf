"""Checkers of the values that notebook 07 asks for."""

import math

from vitedu.checks.explaining.values import ValueChecker

LOG_64 = math.log(64)


def no_end(value) -> bool:
    return math.isinf(value)


def label_alone(value) -> bool:
    return abs(abs(value) - 0.0943) < 0.002


def other_alone(value) -> bool:
    return abs(abs(value) - 4.6052) < 0.005


CHECKERS = {
    "smoothed_gap": ValueChecker(rtol=1e-3, proves="the log of the ratio of 0.91 and 0.01"),
    "collapse_losses": ValueChecker(
        rtol=1e-3,
        atol=1e-3,
        proves="an even collapse costs log 64, a collapse onto one prototype nothing at all",
    ),
}
