"""The values that notebook 05 asks for; ``values.toml`` says the rest."""

import math
from collections.abc import Callable, Iterable

PLACES = [(i, j) for i in range(8) for j in range(8)]
ALL_PAIRS = [(a, b) for a in PLACES for b in PLACES]
EVEN = 1 / 65


def mean_distance(pairs: Iterable, apart: Callable[..., float] = math.dist) -> float:
    distances = [apart(a, b) for a, b in pairs]
    return sum(distances) / len(distances)
