"""What is left to chance in random results, and how little.

Role: the reader of ``repeated_draws``, for two exercises, and the bounds that readers use.
"""

import math

import torch

from vitedu.checks.judging.compare import reader
from vitedu.checks.observing.case import Case
from vitedu.checks.observing.observation import Observation

CHANCE = 1e-12  # the probability with which one statistical test may fail a right answer


def chi_square_tail(statistic: float, freedom: int) -> float:
    """Return an upper bound for the probability of a chi-square this large (Chernoff)."""
    ratio = statistic / freedom
    return 1.0 if ratio <= 1 else math.exp(freedom / 2 * (1 - ratio + math.log(ratio)))


@reader("repeated_draws", facts=("every call moves the generator on",))
def read_repeated_draws(case: Case, seen: Observation) -> None:
    """Write down whether the generator alone decides the output."""
    first, again, other, third = map(seen.draws.get, ("first", "again", "other", "third"))
    if first is None or again is None or other is None or third is None:
        return
    if first.shape != again.shape:
        return
    same = torch.equal(first, again)
    fact = "the same state of generator gives the same output"
    seen.facts[fact] = "the same" if same else "another output"
    differs = any(x.shape != first.shape or not torch.equal(x, first) for x in (other, third))
    fact = "another state of generator gives another output"
    seen.facts[fact] = "another" if differs else "the same output"
