"""Replay mistakes: run them on the cases and find those that do what the answer did.

Role: ``find_mistakes`` tries mistakes of a bank one by one, then in pairs. ``ReplayCache``
remembers what each of them does.
"""

import itertools
from dataclasses import replace
from typing import Any

from vitedu.checks.judging.compare import is_close, is_same
from vitedu.checks.observing.case import Case, size_of
from vitedu.checks.observing.observation import Observation, Observations, is_informative
from vitedu.checks.observing.observe import observe
from vitedu.checks.writing.checker import Checker
from vitedu.checks.writing.mistakes import Mistake

REPLAY_SECONDS = 2.0  # of computing, for one case on one mistake
MAX_PAIRS = 400  # pairs of mistakes that are tried, because a student waits

# parts whose mistakes are recognised from facts, without replay
PARTS_WITHOUT_REPLAY = ("errors", "gradients", "unchanged", "any device", "again")


class ReplayCache:
    """What the reference and the mistakes of a bank do on the cases of one draw.

    They do the same on a case whatever answer they are compared with, so each runs once a case.
    Whoever judges many answers on the same draw keeps one of these for all of them.
    """

    def __init__(self) -> None:
        self._observations: dict[tuple[Any, str], Observation] = {}
        self._cases: list[Case] = []

    def cases(self, checker: Checker, seed: int) -> list[Case]:
        """Make the cases of the draw, or recall them: every call gets arguments of its own."""
        self._cases = self._cases or checker.draw(seed)
        return self._cases

    def observe(self, implementation: Any, case: Case, seconds: float | None = None) -> Observation:
        """Run a case on the reference or on a mistake, or recall what it did."""
        key = implementation, case.name
        if key not in self._observations:
            if case.part != "values" and not seconds:  # mistakes are compared without gradients
                case = replace(case, gradients=(), learns=False)
            seen = observe(implementation, case, seconds or REPLAY_SECONDS)
            if seen.error_kind == "TimeUp":
                return seen  # a busy machine: another time it may end
            self._observations[key] = seen
        return self._observations[key]


def find_mistakes(
    checker: Checker, cases: list[Case], got: Observations, want: Observations, cache: ReplayCache
) -> list[Mistake]:
    """Find the one or two known mistakes that together reproduce an answer on all cases, or none.

    A single mistake is also accepted if it is the only one that reproduces all wrong results, and
    at least two of these cannot agree by chance.
    """
    # Wrong cases come first, small ones before large: most candidates fail on the first case.
    by_size = sorted(cases, key=size_of)
    wrong = [case for case in by_size if not is_same(case, got[case.name], want[case.name])]
    if not wrong:
        return []  # a mistake that changes nothing here would fit
    rest = [case for case in by_size if case not in wrong]
    is_strong = sum(_is_distinctive(case, got[case.name]) for case in wrong) > 1

    def reproduces(implementation: Any, on: list[Case]) -> bool:
        return all(is_same(c, got[c.name], cache.observe(implementation, c)) for c in on)

    singles = [m for m in checker.bank if m.part not in PARTS_WITHOUT_REPLAY]
    candidates: list[Mistake] = []
    for mistake in singles:
        for variant in mistake.variants():
            implementation = checker.combine([variant])
            if reproduces(implementation, wrong):
                if reproduces(implementation, rest):
                    return [mistake]
                candidates += [mistake] if is_strong and mistake not in candidates else []
    # The only mistake that reproduces every wrong result: the answer makes it in those cases alone.
    if len(candidates) == 1:
        return candidates
    samples = list({case.part: case for case in reversed(wrong)}.values())  # one of each part
    likely = [
        (_count_equal(checker.combine([variant]), samples, got, cache), variant)
        for mistake in singles
        for variant in mistake.variants()
    ]
    pairs = sorted(itertools.combinations(likely, 2), key=lambda two: -two[0][0] - two[1][0])
    for (_, one), (_, other) in pairs[:MAX_PAIRS]:
        together = None if one.id == other.id else checker.combine([one, other])
        if together is not None and reproduces(together, wrong + rest):
            return [one, other]
    return []


def _count_equal(
    implementation: Any, cases: list[Case], got: Observations, cache: ReplayCache
) -> int:
    """Count the arrays of an answer that a mistake alone gives too."""
    count = 0
    for case in cases:
        theirs = cache.observe(implementation, case).arrays
        for name, x in got[case.name].arrays.items():
            count += name in theirs and is_close(case, x, theirs[name])
    return count


def _is_distinctive(case: Case, seen: Observation) -> bool:
    """Tell whether another mistake can hardly give the same result by chance.

    True for cases of the part "values", unless the result is a share of 0 or 1, and for results
    with more than 8 numbers in an array.
    """
    if case.part == "values" and (seen.error or not seen.arrays or is_informative(seen.arrays)):
        return True
    return seen.error is None and any(x.numel() > 8 for x in seen.tensors())
