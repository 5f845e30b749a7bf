"""Diagnosis: find the mistakes that reproduce what an answer did.

Role: ``diagnose``. It replays the mistakes of the bank, first one, then several together, and
compares the results with the answer's. If none fits, ``relations`` looks for a simple relation to
the right result. A diagnosis about numbers must reproduce every wrong result.
"""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from vitedu.checks.checker import Checker
from vitedu.checks.judging import (
    NO_GRADIENT,
    Problem,
    Stage,
    close,
    number_text,
    read,
    same,
    same_error,
    without_effect,
)
from vitedu.checks.mistake_files import family
from vitedu.checks.mistakes import Mistake
from vitedu.checks.probing import (
    ALONE,
    LEFT,
    OTHER,
    OVERWRITTEN,
    REMEMBERED,
    REPEATED,
    SEEDED,
    Case,
    Clash,
    Observation,
    observe,
    size_of,
    tells,
)
from vitedu.checks.relations import Seen, described
from vitedu.checks.restated import restated

REPLAY_SECONDS = 2.0  # of wall-clock time, for one case on one mistake
PAIR_SECONDS = 1.0  # CPU time for trying pairs of mistakes, because a student waits
MOST = 5  # the most mistakes made together that are looked for
# stages whose problems do not show in the numbers -> the ``part`` of the mistakes that cause them
OF_THEIR_OWN = {Stage.UNCHANGED: "unchanged", Stage.GRADIENTS: "gradients"}
# parts whose mistakes are recognised from facts, without replay
_OTHER_ASPECTS = (
    "errors",
    "gradients",
    "unchanged",
    "any device",
    "again",
)


@dataclass(frozen=True)
class Diagnosis:
    """A recognised mistake, in the words of a report. ``id`` is "" if it only describes numbers."""

    id: str
    name: str
    expected: str
    got: str
    why: str
    look: str
    parts: tuple[str, ...]  # the parts whose problems it explains


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


# --- from problems to names -----------------------------------------------------------------------


def diagnose(
    checker: Checker,
    cases: list[Case],
    problems: dict[str, Problem],
    got: Seen,
    want: Seen,
    replays: Replays,
) -> list[Diagnosis]:
    """Name the mistakes that cause the problems, given the first problem of each failed part.

    Returns:
        The diagnoses; an empty list if nothing fits or the answer ran out of time.
    """
    mistakes = checker.mistakes()
    if not mistakes or any(
        seen.error is not None and seen.error.kind == "TimeUp" for seen in got.values()
    ):
        return []
    found: list[Diagnosis] = []
    legit = [
        case for case in cases if not (case.raises or case.on_accelerator or case.driver == "again")
    ]
    remembers = "again" in problems and problems["again"].stage is Stage.AGAIN
    numeric = {
        part: p
        for part, p in problems.items()
        if p.case in legit and p.stage not in (*OF_THEIR_OWN, Stage.AGAIN)
    }
    if numeric:
        named = replayed(checker.combined, mistakes, legit, got, want, replays)
        # an error in some calls hides no mistake of the others, where "values" are wrong too; so
        # does the error of a float32 tensor of one's own that meets float64 inputs
        works = got[numeric["values"].case.name].error is None if "values" in numeric else False
        ran = [c for c in legit if got[c.name].error is None or not (works or _is_double(c))]
        of_these = {part: p for part, p in numeric.items() if p.case in ran}
        if not named and of_these and len(ran) < len(legit):
            named = replayed(checker.combined, mistakes, ran, got, want, replays)
            numeric = of_these if named else numeric
        problem, parts = next(iter(numeric.values())), tuple(numeric)
        shares = _shares(checker, named, numeric, got, want, replays)
        for mistake, share in zip(named, shares, strict=True):
            shown = numeric[share[0]]
            evidence = mistake.evidence and mistake.evidence(shown.case, got[shown.case.name])
            found.append(_diagnosis(mistake, evidence or shown.got, share))
        if not named:
            found += _diagnosed_apart(checker, legit, numeric, got, want, replays)
        if not found and checker.is_related and not remembers:
            words = described(legit, got, want, False)
            if not words and problem.stage in (Stage.VALUES, Stage.SHAPE):
                words = restated(checker.reference, legit, got, want, replays) or described(
                    legit, got, want, True
                )
            if words:
                id_, name, seen, look = words
                found.append(Diagnosis(id_, name, problem.expected, seen, "", look, parts))
        if not any(d.id for d in found) and (evidence := _earlier(legit, got, want)):
            found = [_diagnosis(family("cached_by_shape"), evidence, parts)]
        is_open = problem.stage in (Stage.SHAPE, Stage.VALUES) and not any(d.id for d in found)
        if is_open and not remembers:
            if words := _probed(cases, got, want, problem.stage):
                found = [Diagnosis(*words[:2], problem.expected, words[2], "", words[3], parts)]
    crashed = "returns" in problems and problems["returns"].stage in (Stage.CALL, Stage.TYPE)
    for part, problem in problems.items():
        if crashed and problem.case not in legit:
            continue  # the answer crashes on ordinary calls; these calls fail for the same reason
        if problem.stage is Stage.DEVICE and "again" in problems:
            continue  # what an earlier call left behind is on another device, too
        for mistake in mistakes:
            if mistake.part == _aspect(problem, part) and _explains(
                mistake.id, problem, got[problem.case.name]
            ):
                found = _joined(found, _diagnosis(mistake, problem.got, (part,)))
                break
    return found


# fact that a further call writes down (probing.again) -> (id, name, evidence, what to look at)
_PROBES = {
    REPEATED: (
        "random_result",
        "the same input gives another result each time",
        "two calls alike, two results",
        (
            "Look for what is drawn anew in every call: dropout, torch.rand, a layer with fresh "
            "weights."
        ),
    ),
    ALONE: (
        "depends_on_the_batch",
        "the result of an item depends on the others in its batch",
        "the first item by itself gives another result than in its batch",
        "Look at what sums, averages or reshapes over axis 0.",
    ),
}


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
    """Tell whether two calls gave the same arrays, large enough not to be alike by chance."""
    return (
        bool(some)
        and some.keys() == others.keys()
        and all(x.numel() > 8 and close(case, x, others[name]) for name, x in some.items())
    )


def _probed(
    cases: list[Case], got: Seen, want: Seen, stage: Stage
) -> tuple[str, str, str, str] | None:
    """Return the words for the first fact of ``_PROBES`` in which answer and reference differ.

    If there is none, name the arguments without effect, provided that another has one. Results of a
    wrong shape have no facts.
    """
    cached, evidence = (
        family("cached_by_shape"),
        "the same call with other values gives the earlier result",
    )
    probes = {REMEMBERED: (cached.id, cached.name, evidence, cached.look), **_PROBES}
    for case in cases:
        ours, right = got[case.name], want[case.name]
        if case.driver == "again" and ours.error is None:
            for fact, words in probes.items() if stage is Stage.VALUES else ():
                found = ours.facts.get(fact)
                if found and found != right.facts.get(fact):
                    return words
            # another share of the same few images is the same number by chance
            is_share = case.number and any(
                min(abs(float(x) * n - round(float(x) * n)) for n in range(1, 65)) < 1e-6
                for x in ours.arrays.values()
                if x.numel() == 1 and 0 <= float(x) <= 1
            )
            has_effects = not is_share and any(OTHER in found for found in ours.effects.values())
            if has_effects and (idle := without_effect(case, ours, right)):
                evidence = "the same result with other values"
                return "argument_unused", idle, evidence, "Look at where it enters the result."
    return None


def _shares(
    checker: Checker, named: list[Mistake], numeric, got, want, replays: Replays
) -> list[tuple[str, ...]]:
    """Assign the failed parts to the mistakes found together.

    A mistake gets the parts that it reproduces alone. Parts that none reproduces alone go to all.
    """
    parts = tuple(numeric)
    if len(named) < 2:
        return [parts] * len(named)
    shares = []
    for mistake in named:
        shown = [problem.case for problem in numeric.values()]
        alone = checker.combined([mistake])
        told = {what[0] for what in _explained(alone, shown, got, want, replays)}
        shares.append(tuple(part for part in parts if numeric[part].case.name in told))
    rest = tuple(part for part in parts if not any(part in share for share in shares))
    return [share + rest or parts for share in shares]


def _joined(found: list[Diagnosis], new: Diagnosis) -> list[Diagnosis]:
    """Add a diagnosis. If it was made before, add its parts to the earlier one."""
    if new.id not in [diagnosis.id for diagnosis in found]:
        return [*found, new]
    return [replace(d, parts=d.parts + new.parts) if d.id == new.id else d for d in found]


def _aspect(problem: Problem, part: str) -> str:
    """Return the ``part`` of the mistakes that may cause a problem."""
    if problem.stage in OF_THEIR_OWN:
        return OF_THEIR_OWN[problem.stage]
    return "errors" if problem.case.raises else part


def _explains(mistake_id: str, problem: Problem, seen: Observation) -> bool:
    """Tell whether a mistake that is recognised from facts causes a problem."""
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
        "seeded": SEEDED in seen.facts.get(LEFT, ""),
        "detached": seen.detached,
        "not_detached": problem.stage is Stage.GRADIENTS and problem.got == NO_GRADIENT,
        "own_device": problem.stage is Stage.DEVICE and clash is not Clash.GENERATOR,
        "generator_device": problem.stage is Stage.DEVICE and clash is Clash.GENERATOR,
    }.get(mistake_id, False)


def _diagnosis(mistake: Mistake, evidence: str, parts: tuple[str, ...]) -> Diagnosis:
    return Diagnosis(
        mistake.id, mistake.name, mistake.expected, evidence, mistake.why, mistake.look, parts
    )


def _diagnosed_apart(
    checker: Checker, cases, numeric, got, want, replays: Replays
) -> list[Diagnosis]:
    """Diagnose the outputs one by one, for an exercise that returns several numbers.

    Used if no mistake reproduces all of them together.
    """
    numbers = [case for case in cases if case.number and len(case.outputs) > 1]
    parts = tuple(part for part, problem in numeric.items() if problem.stage is Stage.VALUES)
    if not numbers or not parts:
        return []
    if any(
        not set(numbers[0].outputs) & set(want[numeric[part].case.name].arrays) for part in parts
    ):
        return []  # a problem outside these outputs would stay unexplained
    problem, found = numeric[parts[0]], []
    for output in numbers[0].outputs:
        kept, alone = apart(output, cases, got, want)
        if all(same(case, alone[case.name], want[case.name]) for case in kept):
            continue
        named = replayed(checker.combined, checker.mistakes(), kept, alone, want, replays, most=1)
        for mistake in named:
            evidence = mistake.evidence and mistake.evidence(problem.case, got[problem.case.name])
            found.append(_diagnosis(mistake, evidence or problem.got, parts))
        if not named:
            number = number_text(float(got[problem.case.name].arrays[output]))
            words = (f"{output} is another number", "", f"{output} {number}")
            found.append(Diagnosis("", *words, "", "", parts))
    return sorted(found, key=lambda d: not d.id) if any(d.id for d in found) else []


# --- replaying mistakes ---------------------------------------------------------------------------


def replayed(
    combined: Callable[[list[Mistake]], Any],
    bank: list[Mistake],
    cases: list[Case],
    got: Seen,
    want: Seen,
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
    alone = [(m, _explained(combined([m]), telling, got, want, replays)) for m in combinable]
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


def _is_double(case: Case) -> bool:
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


def apart(output: str, cases: list[Case], got: Seen, want: Seen) -> tuple[list[Case], Seen]:
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


def _explained(
    implementation: Any, cases: list[Case], got: Seen, want: Seen, replays: Replays
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
