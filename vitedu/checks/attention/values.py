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
    # 0.9992 to 0.9997, by the images; the mean over heads, measured as one map, has 0.9999
    "untrained_entropy": ValueChecker(
        rtol=3.1e-4, proves="an untrained map is uniform but for a trace"
    ),
}
