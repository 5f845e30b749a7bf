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
from vitedu.checks.families import CACHED_BY_SHAPE
from vitedu.checks.judging import Problem, Stage, close, number_text, read, same, same_error
from vitedu.checks.mistakes import Mistake
from vitedu.checks.probing import (
    ALONE,
    HEADS,
    LEFT,
    OVERWRITTEN,
    REMEMBERED,
    REPEATED,
    Case,
    Clash,
    Observation,
    observe,
)
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
    "again",
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
    legit = [
        case for case in cases if not (case.raises or case.on_accelerator or case.driver == "again")
    ]
    remembers = "again" in problems and problems["again"].stage is Stage.AGAIN
    numeric = {
        part: p for part, p in problems.items() if p.case in legit and p.stage not in OF_THEIR_OWN
    }
    if numeric:
        problem, parts = next(iter(numeric.values())), tuple(numeric)
        named = replayed(checker.make, mistakes, legit, got, want)
        shares = _shares(checker, named, numeric, got, want)
        for mistake, share in zip(named, shares, strict=True):
            shown = numeric[share[0]]
            evidence = mistake.evidence and mistake.evidence(shown.case, got[shown.case.name])
            found.append(_diagnosis(mistake, evidence or shown.got, share))
        if not named:
            found += _diagnosed_apart(checker, legit, numeric, got, want)
        if not found and checker.is_related and not remembers:
            in_any_order = problem.stage in (Stage.VALUES, Stage.SHAPE)
            if words := described(legit, got, want, in_any_order):
                id_, name, seen, look = words
                found.append(Diagnosis(id_, name, problem.expected, seen, "", look, parts))
        if not any(d.id for d in found) and (words := _earlier(legit, got, want)):
            found = [_diagnosis(CACHED_BY_SHAPE, words, parts)]
        if not any(d.id for d in found) and problem.stage is Stage.VALUES and not remembers:
            if words := _probed(cases, got, want):
                found = [Diagnosis(*words[:2], problem.expected, words[2], "", words[3], parts)]
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


_PROBES = {  # what a further call shows -> id, name, evidence, what to look at
    REMEMBERED: (
        CACHED_BY_SHAPE.id, CACHED_BY_SHAPE.name, "the same call with other values gives the earlier result",
        CACHED_BY_SHAPE.look,
    ),
    REPEATED: (
        "random_result", "the same input gives another result each time", "two calls alike, two results",
        "Look for what is drawn anew in every call: dropout, torch.rand, a layer with fresh weights.",
    ),
    ALONE: (
        "depends_on_the_batch", "the result of an item depends on the others in its batch",
        "the first item by itself gives another result than in its batch",
        "Look at what sums, averages or reshapes over axis 0.",
    ),
    HEADS: (
        "heads_unused", "num_heads changes nothing", "the same result with one head",
        "Look at where num_heads enters.",
    ),
}  # fmt: skip


def _earlier(cases: list[Case], got: Seen, want: Seen) -> str:
    """Say so if wherever an answer is wrong it gives what is right for an earlier call."""
    evidence = ""
    for i, case in enumerate(cases):
        if same(case, got[case.name], want[case.name]):
            continue
        ours = got[case.name].arrays
        earlier = next((c for c in cases[:i] if _equal(case, ours, want[c.name].arrays)), None)
        if earlier is None:
            return ""
        evidence = evidence or f"{case.name}: the result for {earlier.name}"
    return evidence


def _equal(case: Case, some: dict[str, torch.Tensor], others: dict[str, torch.Tensor]) -> bool:
    return some.keys() == others.keys() and all(
        x.numel() > 8 and close(case, x, others[name]) for name, x in some.items()
    )


def _probed(cases: list[Case], got: Seen, want: Seen) -> tuple[str, str, str, str] | None:
    """Give the words of the first probe that the answer does not pass, and the reference does."""
    for case in cases:
        if case.driver == "again" and got[case.name].error is None:
            for fact, words in _PROBES.items():
                found = got[case.name].facts.get(fact)
                if found and found != want[case.name].facts.get(fact):
                    return words
    return None


def _shares(checker: Checker, named: list[Mistake], numeric, got, want) -> list[tuple[str, ...]]:
    """Share the failed parts out among the mistakes found together: to each those that it reproduces by itself."""
    parts = tuple(numeric)
    if len(named) < 2:
        return [parts] * len(named)
    shares = []
    for mistake in named:
        shown = [problem.case for problem in numeric.values()]
        told = {
            what[0] for what in _explained(checker.make(frozenset({mistake.id})), shown, got, want)
        }
        shares.append(tuple(part for part in parts if numeric[part].case.name in told))
    rest = tuple(part for part in parts if not any(part in share for share in shares))
    return [share + rest or parts for share in shares]


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
        "cached_by_shape": seen.facts.get(REMEMBERED) == "the earlier result",
        "buffer_overwritten": seen.facts.get(OVERWRITTEN) == "they changed",
        "gradients_left_off": "gradients are switched off" in seen.facts.get(LEFT, ""),
        "dtype_left": "the default dtype is" in seen.facts.get(LEFT, ""),
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
    if any(
        not set(numbers[0].outputs) & set(want[numeric[part].case.name].arrays) for part in parts
    ):
        return []  # what else is wrong would have to be explained too
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
            number = number_text(float(got[problem.case.name].arrays[output]))
            words = (f"{output} is another number", "", f"{output} {number}")
            found.append(Diagnosis("", *words, "", "", parts))
    return sorted(found, key=lambda d: not d.id) if any(d.id for d in found) else []


# --- replaying mistakes -----------------------------------------------------------------------------


def replayed(
    make: Callable[..., Any],
    bank: list[Mistake],
    cases: list[Case],
    got: Seen,
    want: Seen,
    most: int = MOST,
) -> list[Mistake]:
    """Find the mistakes of the bank, as few as possible, that together reproduce an answer on all cases.

    Cases where the answer was wrong are tried first, small ones before large: most candidates fall at the first.
    ``make`` gives the reference with the named mistakes made, or None where they do not go together; its second argument
    chooses among the texts of one mistake.
    """
    order = sorted(
        cases, key=lambda case: (same(case, got[case.name], want[case.name]), _size(case))
    )

    wrong = [case for case in order if not same(case, got[case.name], want[case.name])]
    is_strong = sum(_is_telling(case, got[case.name]) for case in wrong) > 1

    def reproduces(implementation: Any, on: list[Case] = order) -> bool:
        return all(same(case, got[case.name], observe(implementation, case, 2.0)) for case in on)

    singles = [mistake for mistake in bank if mistake.part not in _OTHER_ASPECTS]
    guarded: list[Mistake] = []
    for mistake in singles:
        if mistake.build:
            dresses = iter([mistake.build()])
        else:
            dresses = (make(frozenset({mistake.id}), n) for n in range(1 + len(mistake.also)))
        for dress in dresses:
            if reproduces(dress, wrong):
                if reproduces(dress, order[len(wrong) :]):
                    return [mistake]
                guarded += [mistake] if is_strong and mistake not in guarded else []
    if len(guarded) == 1:  # it gives every wrong result; where it would show besides, all is right
        return guarded
    if most == 1:
        return []
    combinable = [mistake for mistake in singles if mistake.build is None]
    start = time.process_time()  # so that a busy machine names no less
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


def _is_telling(case: Case, seen: Observation) -> bool:
    """Tell whether nobody gives the same by chance: enough random numbers, all sizes different."""
    return case.part == "values" or (
        seen.error is None and any(x.numel() > 8 for x in seen.tensors())
    )


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


def _size(case: Case) -> int:
    """Estimate the work of a case: small ones are replayed first."""
    return sum(
        value.numel()
        for value in [*case.state.values(), *case.args.values()]
        if isinstance(value, torch.Tensor)
    )
