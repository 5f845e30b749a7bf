"""Checkers of the values that notebook 02 asks for."""

from vitedu.checks.explaining.values import ValueChecker

CHECKERS = {
    # 60 is a fair rounding; without the class token it is 1 % less
    "attention_megabytes": ValueChecker(
        rtol=0.0066, proves="batch, heads, T x T weights, four bytes each"
    ),
    "order_blindness": ValueChecker(
        proves="the outputs move with their tokens and change in nothing else"
    ),
    # an exactly uniform map, 1, was not measured
    "untrained_entropy": ValueChecker(
        rtol=4.5e-4, proves="an untrained map is uniform but for a trace"
    ),
}
