"""Diagnose: name the mistakes that reproduce what an answer did.

Role: ``diagnose``. It asks ``replay`` for mistakes of the bank. If none fits, ``relations`` looks
for a simple relation to the right result. A diagnosis about numbers must reproduce every wrong
result.
"""

from dataclasses import dataclass, replace

from vitedu.checks.case import Case, has_float64_inputs
from vitedu.checks.checker import Checker
from vitedu.checks.compare import is_same, name_unused_arguments, number_text
from vitedu.checks.errors import DeviceMismatch
from vitedu.checks.findings import is_polish
from vitedu.checks.judge import UNWANTED_GRADIENT, Problem, Stage
from vitedu.checks.mistake_files import family
from vitedu.checks.mistakes import Mistake
from vitedu.checks.observation import (
    FRESHNESS,
    INDEPENDENCE,
    OTHER,
    REPEATABILITY,
    SEED_CHANGE,
    SIDE_EFFECTS,
    STABILITY,
    Observation,
    Observations,
)
from vitedu.checks.other_arguments import find_other_argument
from vitedu.checks.relations import describe_relation
from vitedu.checks.replay import ReplayCache, explained_differences, find_mistakes

# stages whose problems do not show in the numbers -> the ``part`` of the mistakes that cause them
PART_OF_STAGE = {Stage.UNCHANGED: "unchanged", Stage.GRADIENTS: "gradients"}


@dataclass(frozen=True)
class Diagnosis:
    """A recognised mistake, in the words of a report. ``id`` is "" if it only describes numbers."""

    id: str
    name: str
    expected: str
    got: str
    why: str
    next_step: str
    parts: tuple[str, ...]  # the parts whose problems it explains


def diagnose(
    checker: Checker,
    cases: list[Case],
    problems: dict[str, Problem],
    got: Observations,
    want: Observations,
    cache: ReplayCache,
) -> list[Diagnosis]:
    """Name the mistakes that cause the problems, given the first problem of each failed part.

    Returns:
        The diagnoses; an empty list if nothing fits or the answer ran out of time.
    """
    mistakes = checker.mistakes()
    if not mistakes or any(seen.error_kind == "TimeUp" for seen in got.values()):
        return []
    diagnoses: list[Diagnosis] = []
    usual = [case for case in cases if case.is_usual]
    remembers = "again" in problems and problems["again"].stage is Stage.SECOND_CALL
    numeric = {
        part: p
        for part, p in problems.items()
        if p.case in usual and p.stage not in (*PART_OF_STAGE, Stage.SECOND_CALL)
    }
    if numeric:
        tries = [(usual, numeric)]  # cases, and the problems that are explained with them
        # an error in some calls hides no mistake of the others, where "values" are wrong too; so
        # does the error of a float32 tensor of one's own that meets float64 inputs
        works = "values" in numeric and got[numeric["values"].case.name].error is None
        ran = [c for c in usual if not got[c.name].error or not (works or has_float64_inputs(c))]
        of_these = {part: p for part, p in numeric.items() if p.case in ran}
        if of_these and len(ran) < len(usual):
            tries.append((ran, of_these))
        # a slip of polish hides no mistake either
        main = {part: p for part, p in numeric.items() if not is_polish(checker, part, p.stage)}
        if main and len(main) < len(numeric):
            slips = numeric.keys() - main.keys()
            tries.append(([case for case in usual if case.part not in slips], main))
        matches: list[Mistake] = []
        for some, explained in tries:
            if matches := find_mistakes(checker, some, got, want, cache):
                numeric = explained
                break
        problem, parts = next(iter(numeric.values())), tuple(numeric)
        shares = _assign_parts(checker, matches, numeric, got, want, cache)
        for mistake, share in zip(matches, shares, strict=True):
            diagnoses.append(_diagnosis(mistake, numeric[share[0]], got, share))
        if not matches:
            diagnoses += _diagnose_outputs(checker, usual, numeric, got, want, cache)
        if not diagnoses and checker.is_related and not remembers:
            words = describe_relation(usual, got, want, False)
            if not words and problem.stage in (Stage.VALUES, Stage.SHAPE):
                words = find_other_argument(checker.reference, usual, got, want, cache)
                words = words or describe_relation(usual, got, want, True)
            if words:
                id_, name, evidence, step = words
                diagnoses.append(Diagnosis(id_, name, problem.expected, evidence, "", step, parts))
        if not any(d.id for d in diagnoses) and (evidence := _find_earlier(usual, got, want)):
            earlier = replace(problem, got=evidence)
            diagnoses = [_diagnosis(family("cached_by_shape"), earlier, got, parts)]
        is_open = problem.stage in (Stage.SHAPE, Stage.VALUES) and not any(d.id for d in diagnoses)
        if is_open and not remembers:
            if words := _diagnose_from_facts(cases, got, want, problem.stage):
                diagnoses = [Diagnosis(*words[:2], problem.expected, words[2], "", words[3], parts)]
    crashed = "returns" in problems and problems["returns"].stage in (Stage.CALL, Stage.TYPE)
    for part, problem in problems.items():
        if crashed and problem.case not in usual:
            continue  # the answer crashes on ordinary calls; these calls fail for the same reason
        if problem.stage is Stage.DEVICE and "again" in problems:
            continue  # what an earlier call left behind is on another device, too
        # the ``part`` of the mistakes that may cause it
        home = PART_OF_STAGE.get(problem.stage, "errors" if problem.case.raises else part)
        for mistake in mistakes:
            if mistake.part == home and _explains(mistake.id, problem, got[problem.case.name]):
                diagnoses = _add_diagnosis(diagnoses, _diagnosis(mistake, problem, got, (part,)))
                break
    return diagnoses


# fact that a further call writes down (second_call) -> (id, name, evidence, what to look at)
_FACT_WORDS = {
    REPEATABILITY: (
        "random_result",
        "the same input gives another result each time",
        "two calls alike, two results",
        (
            "Look for what is drawn anew in every call: dropout, torch.rand, a layer with fresh "
            "weights."
        ),
    ),
    INDEPENDENCE: (
        "depends_on_the_batch",
        "the result of an item depends on the others in its batch",
        "the first item by itself gives another result than in its batch",
        "Look at what sums, averages or reshapes over axis 0.",
    ),
}


def _find_earlier(cases: list[Case], got: Observations, want: Observations) -> str:
    """Say so if wherever an answer is wrong it gives what is right for an earlier call."""
    evidence = ""
    for i, case in enumerate(cases):
        ours = got[case.name]
        if is_same(case, ours, want[case.name]):
            continue
        is_large = all(x.numel() > 8 for x in ours.arrays.values())  # else alike by chance
        earlier = [c for c in cases[:i] if is_large and is_same(case, ours, want[c.name])]
        if not earlier:
            return ""
        evidence = evidence or f"the result for {earlier[0].name}"
    return evidence


def _diagnose_from_facts(
    cases: list[Case], got: Observations, want: Observations, stage: Stage
) -> tuple[str, str, str, str] | None:
    """Return the words for the first fact of ``_FACT_WORDS`` in which answer and reference differ.

    If there is none, name the arguments without effect, provided that another has one. Results of a
    wrong shape have no facts.
    """
    cached, evidence = (
        family("cached_by_shape"),
        "the same call with other values gives the earlier result",
    )
    probes = {FRESHNESS: (cached.id, cached.name, evidence, cached.next_step), **_FACT_WORDS}
    for case in cases:
        ours, right = got[case.name], want[case.name]
        if case.driver == "second_call" and ours.error is None:
            for fact, words in probes.items() if stage is Stage.VALUES else ():
                text = ours.facts.get(fact)
                if text and text != right.facts.get(fact):
                    return words
            # another share of the same few images is the same number by chance
            is_share = case.number and any(
                min(abs(float(x) * n - round(float(x) * n)) for n in range(1, 65)) < 1e-6
                for x in ours.arrays.values()
                if x.numel() == 1 and 0 <= float(x) <= 1
            )
            has_effects = not is_share and any(OTHER in text for text in ours.effects.values())
            if has_effects and (unused := name_unused_arguments(case, ours, right)):
                evidence = "the same result with other values"
                return "argument_unused", unused, evidence, "Look at where it enters the result."
    return None


def _assign_parts(
    checker: Checker, mistakes: list[Mistake], numeric, got, want, cache: ReplayCache
) -> list[tuple[str, ...]]:
    """Assign the failed parts to the mistakes found together.

    A mistake gets the parts that it reproduces alone. Parts that none reproduces alone go to all.
    """
    parts = tuple(numeric)
    if len(mistakes) < 2:
        return [parts] * len(mistakes)
    shares = []
    for mistake in mistakes:
        wrong_cases = [problem.case for problem in numeric.values()]
        alone = checker.combine([mistake])
        names = {what[0] for what in explained_differences(alone, wrong_cases, got, want, cache)}
        shares.append(tuple(part for part in parts if numeric[part].case.name in names))
    rest = tuple(part for part in parts if not any(part in share for share in shares))
    return [share + rest or parts[-1:] for share in shares]


def _add_diagnosis(diagnoses: list[Diagnosis], new: Diagnosis) -> list[Diagnosis]:
    """Add a diagnosis. If it was made before, add its parts to the earlier one."""
    if new.id not in [diagnosis.id for diagnosis in diagnoses]:
        return [*diagnoses, new]
    return [replace(d, parts=d.parts + new.parts) if d.id == new.id else d for d in diagnoses]


def _explains(mistake_id: str, problem: Problem, seen: Observation) -> bool:
    """Tell whether a mistake that is recognised from facts causes a problem."""
    mismatch = DeviceMismatch.NONE if seen.error is None else seen.error.device_mismatch
    return {
        "no_error": seen.error is None,
        "wrong_error": seen.error is not None and problem.case.raises not in seen.error.kinds,
        "error_without_numbers": seen.error is not None and problem.case.raises in seen.error.kinds,
        "modifies_input": problem.stage is Stage.UNCHANGED,
        "cached_by_shape": seen.facts.get(FRESHNESS) == "the earlier result",
        "buffer_overwritten": seen.facts.get(STABILITY) == "they changed",
        "gradients_left_off": "gradients are switched off" in seen.facts.get(SIDE_EFFECTS, ""),
        "dtype_left": "the default dtype is" in seen.facts.get(SIDE_EFFECTS, ""),
        "seeded": SEED_CHANGE in seen.facts.get(SIDE_EFFECTS, ""),
        "detached": seen.detached,
        "not_detached": problem.stage is Stage.GRADIENTS and problem.got == UNWANTED_GRADIENT,
        "own_device": problem.stage is Stage.DEVICE and mismatch is not DeviceMismatch.GENERATOR,
        "generator_device": problem.stage is Stage.DEVICE and mismatch is DeviceMismatch.GENERATOR,
    }.get(mistake_id, False)


def _diagnosis(mistake: Mistake, problem: Problem, got: Observations, parts) -> Diagnosis:
    """Write a mistake with what the answer shows of it on the problem's case."""
    evidence = mistake.evidence and mistake.evidence(problem.case, got[problem.case.name])
    words = mistake.name, mistake.expected, evidence or problem.got, mistake.why, mistake.next_step
    return Diagnosis(mistake.id, *words, parts)


def _diagnose_outputs(
    checker: Checker, cases, numeric, got, want, cache: ReplayCache
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
    problem, diagnoses = numeric[parts[0]], []
    for output in numbers[0].outputs:
        alone = {}  # what the answer did, with all other outputs replaced by the reference's
        for name in (case.name for case in cases if not got[case.name].error):
            ours, right = got[name], want[name]
            if output in ours.arrays and output in right.arrays:
                arrays = right.arrays | {output: ours.arrays[output]}
                types = right.types | {output: ours.types[output]}
                alone[name] = replace(right, arrays=arrays, types=types)
        usable = [case for case in cases if case.name in alone]
        if all(is_same(case, alone[case.name], want[case.name]) for case in usable):
            continue
        matches = find_mistakes(checker, usable, alone, want, cache, max_mistakes=1)
        diagnoses += [_diagnosis(mistake, problem, got, parts) for mistake in matches]
        if not matches:
            number = number_text(float(got[problem.case.name].arrays[output]))
            words = (f"{output} is another number", "", f"{output} {number}")
            diagnoses.append(Diagnosis("", *words, "", "", parts))
    return sorted(diagnoses, key=lambda d: not d.id) if any(d.id for d in diagnoses) else []
