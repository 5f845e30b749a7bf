"""Diagnose: name the mistakes that reproduce what an answer did.

Role: ``diagnose``. It asks ``replay`` for mistakes of the bank. If none fits, ``relations`` looks
for a simple relation to the right result. A diagnosis about numbers must reproduce every wrong
result.
"""

from dataclasses import dataclass, replace

from vitedu.checks.case import Case
from vitedu.checks.checker import Checker
from vitedu.checks.compare import number_text, same, without_effect
from vitedu.checks.errors import Clash
from vitedu.checks.judge import NO_GRADIENT, Problem, Stage
from vitedu.checks.mistake_files import family
from vitedu.checks.mistakes import Mistake
from vitedu.checks.observation import (
    ALONE,
    LEFT,
    OTHER,
    OVERWRITTEN,
    REMEMBERED,
    REPEATED,
    SEEDED,
    Observation,
    Observations,
)
from vitedu.checks.other_arguments import for_other_argument
from vitedu.checks.relations import described
from vitedu.checks.replay import Replays, apart, explained, is_double, replayed

# stages whose problems do not show in the numbers -> the ``part`` of the mistakes that cause them
OF_THEIR_OWN = {Stage.UNCHANGED: "unchanged", Stage.GRADIENTS: "gradients"}


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


def diagnose(
    checker: Checker,
    cases: list[Case],
    problems: dict[str, Problem],
    got: Observations,
    want: Observations,
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
        ran = [c for c in legit if got[c.name].error is None or not (works or is_double(c))]
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
                words = for_other_argument(
                    checker.reference, legit, got, want, replays
                ) or described(legit, got, want, True)
            if words:
                id_, name, seen, look = words
                found.append(Diagnosis(id_, name, problem.expected, seen, "", look, parts))
        if not any(d.id for d in found) and (evidence := _earlier(legit, got, want)):
            found = [_diagnosis(family("cached_by_shape"), evidence, parts)]
        is_open = problem.stage in (Stage.SHAPE, Stage.VALUES) and not any(d.id for d in found)
        if is_open and not remembers:
            if words := _named_by_facts(cases, got, want, problem.stage):
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


# fact that a further call writes down (second_call) -> (id, name, evidence, what to look at)
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


def _earlier(cases: list[Case], got: Observations, want: Observations) -> str:
    """Say so if wherever an answer is wrong it gives what is right for an earlier call."""
    evidence = ""
    for i, case in enumerate(cases):
        ours = got[case.name]
        if same(case, ours, want[case.name]):
            continue
        is_large = all(x.numel() > 8 for x in ours.arrays.values())  # else alike by chance
        earlier = [c for c in cases[:i] if is_large and same(case, ours, want[c.name])]
        if not earlier:
            return ""
        evidence = evidence or f"{case.name}: the result for {earlier[0].name}"
    return evidence


def _named_by_facts(
    cases: list[Case], got: Observations, want: Observations, stage: Stage
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
        told = {what[0] for what in explained(alone, shown, got, want, replays)}
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
