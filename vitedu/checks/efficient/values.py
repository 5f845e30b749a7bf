"""Checkers of the values that notebook 08 asks for."""

from vitedu import efficient as reference
from vitedu.checks.values import ValueChecker

CHECKERS = {
    "tokens_reached": ValueChecker(
        "tokens_reached",
        reference.tokens_reached,
        proves="a corner reaches its window, a central token four of them",
    ),
    "crossing_tokens": ValueChecker(
        "crossing_tokens", reference.crossing_tokens, proves="2*T*T*d equals 2*T*d*d at T = d"
    ),
}
