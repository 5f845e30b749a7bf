"""Checkers of the values that notebook 05 asks for."""

import math

from vitedu.checks.explaining.values import ValueChecker

PLACES = [(i, j) for i in range(8) for j in range(8)]


def mean_distance(pairs, apart=math.dist) -> float:
    distances = [apart(a, b) for a, b in pairs]
    return sum(distances) / len(distances)


ALL_PAIRS = [(a, b) for a in PLACES for b in PLACES]
EVEN = 1 / 65

CHECKERS = {
    "uniform_distance": ValueChecker(
        rtol=2e-3, proves="the mean distance of two places on an 8 x 8 grid"
    ),
    "rollout_self_share": ValueChecker(
        rtol=2e-3, proves="what four halvings leave, and what uniform attention brings back"
    ),
}
