"""Checkers of the values that notebook 08 asks for."""

from vitedu.checks.explaining.values import ValueChecker

CHECKERS = {
    "tokens_reached": ValueChecker(
        proves="a corner reaches its window, a central token four of them"
    ),
    "crossing_tokens": ValueChecker(proves="2*T*T*d equals 2*T*d*d at T = d"),
}
