"""Checkers of the values that notebook 02 asks for."""

from vitedu import attention as reference
from vitedu.checks.values import ValueChecker

CHECKERS = {
    "attention_megabytes": ValueChecker(
        "attention_megabytes",
        reference.attention_megabytes,
        rtol=0.0066,  # 60 is a fair rounding; without the class token it is 1 % less
        proves="batch, heads, T x T weights, four bytes each",
    ),
    "order_blindness": ValueChecker(
        "order_blindness",
        reference.order_blindness,
        proves="the outputs move with their tokens and change in nothing else",
    ),
    "untrained_entropy": ValueChecker(
        "untrained_entropy",
        reference.untrained_entropy,
        rtol=4.5e-4,  # an exactly uniform map, 1, was not measured
        proves="an untrained map is uniform but for a trace",
    ),
}
