"""Diagnosis: which mistake, exactly, gives what we saw?

Role: ``diagnose``. Known mistakes are replayed, one, then several together, and compared with the answer; where none
fits, ``relations`` looks for something simpler. Nothing is claimed that does not reproduce the answer on every case.
"""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from vitedu.checks.checker import Checker
from vitedu.checks.judging import Problem, Stage, close, read, same
from vitedu.checks.mistakes import Mistake
from vitedu.checks.probing import Case, Clash, Observation, observe
from vitedu.checks.relations import Seen, described

PAIR_SECONDS = 1.0  # of computing; looking for two mistakes together while a student waits
MOST = 5  # so many mistakes made together are still told apart
# stages that are judged beside the numbers, and the part of the mistakes that show there
OF_THEIR_OWN = {Stage.UNCHANGED: "unchanged", Stage.GRADIENTS: "gradients"}
_OTHER_ASPECTS = (
    "errors",
    "gradients",
    "unchanged",
    "any device",
)  # parts whose mistakes are recognised without replay


@dataclass(frozen=True)
class Diagnosis:
    """A recognised mistake: the words of a report."""

    id: str
    name: str
    expected: str
    got: str
    why: str
    look: str
    parts: tuple[str, ...]  # the findings that it explains


# --- from problems to names ------------------------------------------------------------------------


def diagnose(
    checker: Checker, cases: list[Case], problems: dict[str, Problem], got: Seen, want: Seen
) -> list[Diagnosis]:
    """Name the mistakes behind the problems, each only if it reproduces what was seen."""
    if any(seen.error is not None and seen.error.kind == "TimeUp" for seen in got.values()):
        return []
    found: list[Diagnosis] = []
    mistakes = checker.mistakes()
    legit = [case for case in cases if not case.raises and not case.on_accelerator]
    numeric = {
        part: p for part, p in problems.items() if p.case in legit and p.stage not in OF_THEIR_OWN
    }
    if numeric:
        problem, parts = next(iter(numeric.values())), tuple(numeric)
        named = replayed(checker.make, mistakes, legit, got, want)
        for mistake in named:
            evidence = mistake.evidence and mistake.evidence(problem.case, got[problem.case.name])
            found.append(_diagnosis(mistake, evidence or problem.got, parts))
        if not named:
            found += _diagnosed_apart(checker, legit, numeric, got, want)
        if not found and checker.is_related:
            in_any_order = problem.stage in (Stage.VALUES, Stage.SHAPE)
            if words := described(legit, got, want, in_any_order):
                id_, name, seen, look = words
                found.append(Diagnosis(id_, name, problem.expected, seen, "", look, parts))
    crashed = "returns" in problems and problems["returns"].stage in (Stage.CALL, Stage.TYPE)
    for part, problem in problems.items():
        if crashed and problem.case not in legit:
            continue  # the crash comes first; what it does to the other calls says nothing new
        for mistake in mistakes:
            if mistake.part == _aspect(problem, part) and _explains(
                mistake.id, problem, got[problem.case.name]
            ):
                found = _joined(found, _diagnosis(mistake, problem.got, (part,)))
                break
    return found


def _joined(found: list[Diagnosis], new: Diagnosis) -> list[Diagnosis]:
    """Add a diagnosis; one that was made already explains one part more."""
    if new.id not in [diagnosis.id for diagnosis in found]:
        return [*found, new]
    return [replace(d, parts=d.parts + new.parts) if d.id == new.id else d for d in found]


def _aspect(problem: Problem, part: str) -> str:
    if problem.stage in OF_THEIR_OWN:
        return OF_THEIR_OWN[problem.stage]
    return "errors" if problem.case.raises else part


def _explains(mistake_id: str, problem: Problem, seen: Observation) -> bool:
    """Tell whether a fact mistake is the one behind a problem."""
    clash = Clash.NONE if seen.error is None else seen.error.clash
    return {
        "no_error": seen.error is None,
        "wrong_error": seen.error is not None and problem.case.raises not in seen.error.kinds,
        "error_without_numbers": seen.error is not None and problem.case.raises in seen.error.kinds,
        "modifies_input": problem.stage is Stage.UNCHANGED,
        "detached": seen.detached,
        "own_device": problem.stage is Stage.DEVICE and clash is not Clash.GENERATOR,
        "generator_device": problem.stage is Stage.DEVICE and clash is Clash.GENERATOR,
    }.get(mistake_id, False)


def _diagnosis(mistake: Mistake, evidence: str, parts: tuple[str, ...]) -> Diagnosis:
    return Diagnosis(
        mistake.id, mistake.name, mistake.expected, evidence, mistake.why, mistake.look, parts
    )


def _diagnosed_apart(checker: Checker, cases, numeric, got, want) -> list[Diagnosis]:
    """Name the mistakes of several numbers one by one, where no mistake gives all of them."""
    numbers = [case for case in cases if case.number and len(case.outputs) > 1]
    parts = tuple(part for part, problem in numeric.items() if problem.stage is Stage.VALUES)
    if not numbers or not parts:
        return []
    problem, found = numeric[parts[0]], []
    for output in numbers[0].outputs:
        kept, alone = apart(output, cases, got, want)
        if all(same(case, alone[case.name], want[case.name]) for case in kept):
            continue
        named = replayed(checker.make, checker.mistakes(), kept, alone, want, most=1)
        for mistake in named:
            evidence = mistake.evidence and mistake.evidence(problem.case, got[problem.case.name])
            found.append(_diagnosis(mistake, evidence or problem.got, parts))
        if not named:
            words = (f"{output} is another number", f"{output} as the text defines it")
            found.append(Diagnosis("", *words, "", "", "", parts))
    return sorted(found, key=lambda d: not d.id) if any(d.id for d in found) else []


# --- replaying mistakes -----------------------------------------------------------------------------


def replayed(
    make: Callable[[frozenset[str]], Any],
    bank: list[Mistake],
    cases: list[Case],
    got: Seen,
    want: Seen,
    most: int = MOST,
) -> list[Mistake]:
    """Find the mistakes of the bank, as few as possible, that together reproduce an answer on all cases.

    Cases where the answer was wrong are tried first, small ones before large: most candidates fall at the first.
    ``make`` gives the reference with the named mistakes made, or None where they do not go together.
    """
    order = sorted(
        cases, key=lambda case: (same(case, got[case.name], want[case.name]), _size(case))
    )

    def reproduces(implementation: Any) -> bool:
        return all(same(case, got[case.name], observe(implementation, case, 2.0)) for case in order)

    singles = [mistake for mistake in bank if mistake.part not in _OTHER_ASPECTS]
    for mistake in singles:
        if reproduces(mistake.build() if mistake.build else make(frozenset({mistake.id}))):
            return [mistake]
    if most == 1:
        return []
    combinable = [mistake for mistake in singles if mistake.build is None]
    start = time.process_time()  # so that a busy machine names no less
    wrong = [case for case in order if not same(case, got[case.name], want[case.name])]
    telling = list({case.part: case for case in reversed(wrong)}.values())  # one of each part
    alone = {  # what each mistake explains by itself: the right pair explains much
        mistake.id: _explained(make(frozenset({mistake.id})), telling, got, want)
        for mistake in combinable
    }
    pairs = itertools.combinations(combinable, 2)
    for pair in sorted(pairs, key=lambda pair: -len(alone[pair[0].id] | alone[pair[1].id])):
        if time.process_time() - start > PAIR_SECONDS:
            break
        together = make(frozenset(mistake.id for mistake in pair))
        if together is not None and reproduces(together):
            return list(pair)
    several: list[Mistake] = []
    while len(several) < most:  # always add the mistake that explains most of what is left
        told = set().union(*(alone[mistake.id] for mistake in several))
        best = max(combinable, key=lambda m: len(alone[m.id] - told), default=None)
        if best is None or not alone[best.id] - told:
            break
        several.append(best)
        together = make(frozenset(m.id for m in several)) if len(several) > 2 else None
        if together is not None and reproduces(together):
            return several
    return []


def apart(output: str, cases: list[Case], got: Seen, want: Seen) -> tuple[list[Case], Seen]:
    """Give the calls that returned an output, and what they did as if all other outputs were right."""
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


def _explained(
    implementation: Any, cases: list[Case], got: Seen, want: Seen
) -> set[tuple[str, ...]]:
    """List what a mistake explains by itself: (case, fact or array) where the answer is wrong in just this way."""
    explained: set[tuple[str, ...]] = set()
    for case in cases:
        ours, theirs, right = got[case.name], observe(implementation, case, 2.0), want[case.name]
        read(case, ours, theirs, right)
        if ours.error is not None and theirs.error is not None:
            if ours.error.kind == theirs.error.kind:
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


def _size(case: Case) -> int:
    """Estimate the work of a case: small ones are replayed first."""
    return sum(
        value.numel()
        for value in [*case.state.values(), *case.args.values()]
        if isinstance(value, torch.Tensor)
    )
