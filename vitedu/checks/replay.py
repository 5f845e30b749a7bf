"""Replay mistakes: run them on the cases and find those that do what the answer did.

Role: ``replayed`` tries the mistakes of a bank one by one, then several together. ``Replays``
remembers what each of them does.
"""

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from vitedu.checks.case import Case, size_of
from vitedu.checks.checker import Checker
from vitedu.checks.compare import close, read, same, same_error
from vitedu.checks.mistakes import Mistake
from vitedu.checks.observation import Observation, Observations, tells
from vitedu.checks.observe import observe

REPLAY_SECONDS = 2.0  # of wall-clock time, for one case on one mistake


PAIR_SECONDS = 1.0  # CPU time for trying pairs of mistakes, because a student waits


MOST = 5  # the most mistakes made together that are looked for


# parts whose mistakes are recognised from facts, without replay
_OTHER_ASPECTS = (
    "errors",
    "gradients",
    "unchanged",
    "any device",
    "again",
)


class Replays:
    """What the reference and the mistakes of a bank do on the cases of one draw.

    They do the same on a case whatever answer they are compared with, so each runs once a case.
    Whoever judges many answers on the same draw keeps one of these for all of them.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[Any, str], Observation] = {}
        self._drawn: list[Case] = []

    def cases(self, checker: Checker, seed: int) -> list[Case]:
        """Make the cases of the draw, or recall them: every call gets arguments of its own."""
        self._drawn = self._drawn or checker.draw(seed)
        return self._drawn

    def observe(self, implementation: Any, case: Case, seconds: float | None = None) -> Observation:
        """Run a case on the reference or on a mistake, or recall what it did."""
        key = implementation, case.name
        if key not in self._seen:
            seen = observe(implementation, case, seconds or REPLAY_SECONDS)
            if seen.error is not None and seen.error.kind == "TimeUp":
                return seen  # a busy machine: another time it may end
            self._seen[key] = seen
        return self._seen[key]


def replayed(
    combined: Callable[[list[Mistake]], Any],
    bank: list[Mistake],
    cases: list[Case],
    got: Observations,
    want: Observations,
    replays: Replays,
    most: int = MOST,
) -> list[Mistake]:
    """Find the fewest mistakes of the bank that together reproduce an answer on all cases, or none.

    A single mistake is also accepted if it is the only one that reproduces all wrong results, and
    at least two of these cannot agree by chance. ``combined`` is ``Checker.combined``; ``most`` is
    the largest number of mistakes made together.
    """
    # Wrong cases come first, small ones before large: most candidates fail on the first case.
    order = sorted(
        cases, key=lambda case: (same(case, got[case.name], want[case.name]), size_of(case))
    )

    wrong = [case for case in order if not same(case, got[case.name], want[case.name])]
    is_strong = sum(_is_telling(case, got[case.name]) for case in wrong) > 1

    def reproduces(implementation: Any, on: list[Case] = order) -> bool:
        return all(same(case, got[case.name], replays.observe(implementation, case)) for case in on)

    singles = [mistake for mistake in bank if mistake.part not in _OTHER_ASPECTS]
    guarded: list[Mistake] = []
    for mistake in singles:
        for dress in mistake.dresses():
            implementation = dress.build() if dress.build else combined([dress])
            if reproduces(implementation, wrong):
                if reproduces(implementation, order[len(wrong) :]):
                    return [mistake]
                guarded += [mistake] if is_strong and mistake not in guarded else []
    # The only mistake that reproduces every wrong result: the answer makes it in those cases alone.
    if len(guarded) == 1:
        return guarded
    if most == 1:
        return []
    combinable = [dress for m in singles if m.build is None for dress in m.dresses()]
    start = time.process_time()  # CPU time, so that a busy machine finds as much
    telling = list({case.part: case for case in reversed(wrong)}.values())  # one of each part
    # What each mistake explains alone, in each of its versions. The pairs that explain most come
    # first.
    alone = [(m, explained(combined([m]), telling, got, want, replays)) for m in combinable]
    pairs = [two for two in itertools.combinations(alone, 2) if two[0][0].id != two[1][0].id]
    for (one, _), (other, _) in sorted(pairs, key=lambda two: -len(two[0][1] | two[1][1])):
        if time.process_time() - start > PAIR_SECONDS:
            break
        together = combined([one, other])
        if together is not None and reproduces(together):
            return [one, other]
    several: list[Mistake] = []
    told: set[tuple[str, ...]] = set()
    while len(several) < most:  # greedy: add the mistake that explains most of what is left
        best, more = max(alone, key=lambda entry: len(entry[1] - told), default=(None, told))
        if best is None or not more - told:
            break
        several.append(best)
        told = told | more
        together = combined(several) if len(several) > 2 else None
        if together is not None and reproduces(together):
            return several
    return []


def is_double(case: Case) -> bool:
    """Tell whether a tensor among the arguments, or in a list of them, is float64."""
    values = [x for v in case.args.values() for x in (v if isinstance(v, (list, tuple)) else [v])]
    return any(isinstance(x, torch.Tensor) and x.dtype == torch.float64 for x in values)


def _is_telling(case: Case, seen: Observation) -> bool:
    """Tell whether another mistake can hardly give the same result by chance.

    True for cases of the part "values", unless the result is a share of 0 or 1, and for results
    with more than 8 numbers in an array.
    """
    if case.part == "values" and (seen.error is not None or not seen.arrays or tells(seen.arrays)):
        return True
    return seen.error is None and any(x.numel() > 8 for x in seen.tensors())


def apart(
    output: str, cases: list[Case], got: Observations, want: Observations
) -> tuple[list[Case], Observations]:
    """Isolate one output: replace all other outputs of the answer by the reference's.

    Returns:
        The cases on which the answer returned the output, and the changed observations by name.
    """
    kept = [
        case
        for case in cases
        if got[case.name].error is None
        and output in want[case.name].arrays
        and output in got[case.name].arrays
    ]
    alone = {}
    for case in kept:
        ours, right = got[case.name], want[case.name]
        alone[case.name] = replace(
            ours,
            arrays=right.arrays | {output: ours.arrays[output]},
            facts=dict(right.facts),
            types=right.types | {output: ours.types[output]},
        )
    return kept, alone


def explained(
    implementation: Any, cases: list[Case], got: Observations, want: Observations, replays: Replays
) -> set[tuple[str, ...]]:
    """List what a mistake explains alone: where the answer is wrong in the same way.

    Returns:
        Tuples (name of the case, what), where ``what`` names an error, a fact, a type or an array.
    """
    explained: set[tuple[str, ...]] = set()
    for case in cases:
        ours, right = got[case.name], want[case.name]
        theirs = replays.observe(implementation, case)
        read(case, ours, theirs, right)
        if ours.error is not None and theirs.error is not None:
            if same_error(ours, theirs):
                explained.add((case.name, "error"))
            continue
        done = [seen.behaviour() for seen in (ours, theirs, right)]
        explained |= {
            (case.name, *what)
            for what, found in done[0].items()
            if found != done[2].get(what, found) and found == done[1].get(what)
        }
        outputs = [seen.arrays | seen.draws for seen in (ours, theirs, right)]
        for name, array in outputs[0].items():
            other, wanted = outputs[1].get(name), outputs[2].get(name)
            if other is None or wanted is None:
                continue
            kinds = [(x.shape, x.dtype) for x in (array, other, wanted)]
            if kinds[0] == kinds[1] != kinds[2]:
                explained.add((case.name, f"kind of {name}"))
            elif (
                name in ours.arrays and close(case, array, other) and not close(case, array, wanted)
            ):
                explained.add((case.name, name))
    return explained
