"""Diagnose: name the mistakes that reproduce what an answer did.

Role: ``diagnose``. It runs the mistakes of the bank on the cases, one by one, then in pairs;
``ReplayCache`` remembers what each of them does. A diagnosis about numbers must reproduce every
wrong result. Where none does, ``contrast`` says where the answer is right.
"""

import itertools
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from vitedu.checks.judging.compare import is_close
from vitedu.checks.judging.findings import is_polish
from vitedu.checks.judging.judge import UNWANTED_GRADIENT, Problem, Stage, is_same
from vitedu.checks.observing.case import Case, has_float64_inputs, size_of
from vitedu.checks.observing.observation import (
    FRESHNESS,
    SIDE_EFFECTS,
    STABILITY,
    Observation,
    Observations,
)
from vitedu.checks.observing.observe import observe
from vitedu.checks.observing.settings import SEED_CHANGE
from vitedu.checks.writing.checker import Checker
from vitedu.checks.writing.mistakes import Mistake

REPLAY_SECONDS = 2.0  # of computing, for one case on one mistake
MAX_PAIRS = 400  # pairs of mistakes that are tried, because a student waits
# parts whose mistakes are recognised from facts, without replay
PARTS_WITHOUT_REPLAY = ("errors", "gradients", "unchanged", "any device", "again")
# stages whose problems do not show in the numbers -> the ``part`` of the mistakes that cause them
PART_OF_STAGE = {Stage.UNCHANGED: "unchanged", Stage.GRADIENTS: "gradients"}
Problems = dict[str, Problem]  # by part


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
            case = replace(case, record_operations=False)  # of these nobody asks which ran
            if case.part != "values" and not seconds:  # mistakes are compared without gradients
                case = replace(case, gradients=(), learns=False)
            seen = observe(implementation, case, seconds or REPLAY_SECONDS)
            if seen.error_kind == "TimeUp":
                return seen  # a busy machine: another time it may end
            self._observations[key] = seen
        return self._observations[key]


@dataclass(frozen=True)
class Diagnosis:
    """A recognised mistake."""

    mistake: Mistake
    got: str  # what the answer shows of it
    parts: tuple[str, ...]  # the parts whose problems it explains


def diagnose(
    checker: Checker,
    cases: list[Case],
    problems: Problems,
    got: Observations,
    want: Observations,
    cache: ReplayCache,
) -> list[Diagnosis]:
    """Name the mistakes that cause the problems, given the first problem of each failed part.

    Returns:
        The diagnoses; an empty list if nothing fits or the answer ran out of time.
    """
    if any(seen.error_kind == "TimeUp" for seen in got.values()):
        return []
    usual = [case for case in cases if case.is_usual]
    numeric = {
        part: p
        for part, p in problems.items()
        if p.case in usual and p.stage not in (*PART_OF_STAGE, Stage.SECOND_CALL)
    }
    diagnoses: list[Diagnosis] = []
    if numeric:
        diagnoses = _name_numbers(checker, usual, numeric, got, want, cache)
    crashed = "returns" in problems and problems["returns"].stage in (Stage.CALL, Stage.TYPE)
    for part, problem in problems.items():
        if crashed and problem.case not in usual:
            continue  # the answer crashes on ordinary calls; these calls fail for the same reason
        if problem.stage is Stage.DEVICE and "again" in problems:
            continue  # what an earlier call left behind is on another device, too
        if part in numeric and any(part in diagnosis.parts for diagnosis in diagnoses):
            continue
        seen = got[problem.case.name], want[problem.case.name]
        if new := _name_fact(checker, diagnoses, part, problem, seen, cases[0], cache):
            is_other = "returns" in problems and part != "returns" and not diagnoses
            if new.mistake.id == "squeezed" and is_other:
                continue  # an ordinary result has another shape for another reason
            # what is old is wrong elsewhere, too
            if new.mistake.id == "cached_by_shape" and not diagnoses:
                new = replace(new, parts=(*numeric, part))
            diagnoses = _add_diagnosis(diagnoses, new)
    return diagnoses


def _name_fact(
    checker: Checker, diagnoses, part: str, problem: Problem, seen, first: Case, cache: ReplayCache
) -> Diagnosis | None:
    """Name the mistake that is recognised from a fact, in a part that no number explains."""
    got, want = seen
    if problem.stage is Stage.GRADIENTS and got.detached and diagnoses:
        named = diagnoses[0].mistake
        if named.edits and cache.observe(checker.combine([named]), first).detached:
            return replace(diagnoses[0], parts=(part,))
    # the ``part`` of the mistakes that may cause it
    home = PART_OF_STAGE.get(problem.stage, "errors" if problem.case.raises else part)
    for mistake in checker.mistakes:
        if mistake.part in (home, "values") and _explains(mistake.id, problem, got, want):
            return _diagnosis(mistake, problem, got, (part,))
    return None


def _name_numbers(
    checker: Checker, usual: list[Case], numeric: Problems, got, want, cache: ReplayCache
) -> list[Diagnosis]:
    """Name the mistakes of the bank that give the answer's results, as far as they are wrong."""
    # wrong cases come first, small ones before large: most candidates fail on the first case
    by_size = sorted(usual, key=size_of)
    wrong = [case for case in by_size if not is_same(case, got[case.name], want[case.name])]
    ordered = wrong + [case for case in by_size if case not in wrong]
    views = _list_views(checker, ordered, numeric, got)
    # where nothing is wrong, a mistake that changes nothing would fit
    views = [view for view in views if any(case in wrong for case in view[0])]
    bank = [mistake for mistake in checker.bank if mistake.part not in PARTS_WITHOUT_REPLAY]
    alone = [[version] for mistake in bank for version in mistake.variants()]
    find = partial(_find_mistakes, checker, got, cache)
    single = ((n, one) for n, (cases, _) in enumerate(views) if (one := find(cases, alone)))
    place, known = next(single, (len(views), []))
    # what a mistake explains of fewer cases alone, it explains of more together with another
    pairs = [a + b for a, b in itertools.combinations(alone, 2) if a[0].id != b[0].id]
    pairs = [pair for pair in pairs if known[0] in pair] if known else pairs
    rank = partial(_rank_pairs, checker, got, cache, pairs, wrong)
    double = ((n, two) for n in range(place) if (two := find(views[n][0], rank(views[n][0]))))
    place, matches = next(double, (place, known))
    problems = views[place][1] if matches else {}
    shares = _assign_parts(checker, matches, problems, got, cache)
    return [
        _diagnosis(mistake, problems[share[0]], got[problems[share[0]].case.name], share)
        for mistake, share in zip(matches, shares, strict=True)
    ]


def _list_views(
    checker: Checker, usual: list[Case], numeric: Problems, got: Observations
) -> list[tuple[list[Case], Problems]]:
    """List which cases to look for mistakes in, and the problems that they explain: all first."""
    views = [(usual, numeric)]
    # an error in some calls hides no mistake of the others, where "values" are wrong too; so does
    # the error of a float32 tensor of one's own that meets float64 inputs
    works = "values" in numeric and got[numeric["values"].case.name].error is None
    ran = [c for c in usual if not got[c.name].error or not (works or has_float64_inputs(c))]
    of_these = {part: p for part, p in numeric.items() if p.case in ran}
    if of_these and len(ran) < len(usual):
        views.append((ran, of_these))
    # a slip of polish hides no mistake either
    main = {part: p for part, p in numeric.items() if not is_polish(checker, part, p.stage)}
    if main and len(main) < len(numeric):
        slips = numeric.keys() - main.keys()
        views.append(([case for case in usual if case.part not in slips], main))
    return views


def _find_mistakes(
    checker: Checker, got: Observations, cache: ReplayCache, cases: list[Case], tries
) -> list[Mistake]:
    """Find the first of ``tries``, mistakes made together, that does the same on all cases."""
    for mistakes in tries:
        made = checker.combine(mistakes)
        if made is not None and all(is_same(c, got[c.name], cache.observe(made, c)) for c in cases):
            return mistakes
    return []


def _rank_pairs(checker: Checker, got, cache, pairs, wrong: list[Case], cases: list[Case]):
    """List the pairs of mistakes first that give most of the wrong results when made alone."""
    # one case of a part
    samples = list({case.part: case for case in reversed(cases) if case in wrong}.values())
    mistakes = {id(one): one for pair in pairs for one in pair}
    equal = {
        key: _count_equal(checker.combine([one]), samples, got, cache)
        for key, one in mistakes.items()
    }
    return sorted(pairs, key=lambda pair: -sum(equal[id(one)] for one in pair))[:MAX_PAIRS]


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


def _assign_parts(
    checker: Checker, mistakes: list[Mistake], numeric: Problems, got, cache: ReplayCache
) -> list[tuple[str, ...]]:
    """Assign the failed parts to the mistakes found together.

    A mistake gets the parts that it reproduces alone. Parts that none reproduces alone go to all.
    """
    if len(mistakes) < 2:
        return [tuple(numeric)] * len(mistakes)
    shares = []
    for alone in (checker.combine([mistake]) for mistake in mistakes):
        cases = {part: problem.case for part, problem in numeric.items()}
        seen = {case.name: cache.observe(alone, case) for case in cases.values()}
        shares.append(tuple(p for p, c in cases.items() if is_same(c, got[c.name], seen[c.name])))
    rest = tuple(part for part in numeric if not any(part in share for share in shares))
    return [share + rest or tuple(numeric)[-1:] for share in shares]


def _add_diagnosis(diagnoses: list[Diagnosis], new: Diagnosis) -> list[Diagnosis]:
    """Add a diagnosis. If it was made before, add its parts to the earlier one."""
    earlier = next((d for d in diagnoses if d.mistake.id == new.mistake.id), None)
    if earlier is None:
        return [*diagnoses, new]
    both = replace(earlier, parts=earlier.parts + new.parts)
    return [both if d is earlier else d for d in diagnoses]


def _explains(mistake_id: str, problem: Problem, seen: Observation, want: Observation) -> bool:
    """Tell whether a mistake that is recognised from facts causes a problem."""
    of_generator = seen.error is not None and seen.error.device_mismatch == "generator"
    pairs = [(seen.arrays.get(name), x.squeeze()) for name, x in want.arrays.items()]
    is_squeezed = pairs and all(x is not None and x.shape == y.shape for x, y in pairs)
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
        "squeezed": problem.stage is Stage.SHAPE and bool(is_squeezed),
        "single_precision": problem.stage is Stage.PRECISION and problem.got == "dtype float32",
        "not_detached": problem.stage is Stage.GRADIENTS and problem.got == UNWANTED_GRADIENT,
        "own_device": problem.stage is Stage.DEVICE and not of_generator,
        "generator_device": problem.stage is Stage.DEVICE and of_generator,
    }.get(mistake_id, False)


def _diagnosis(mistake: Mistake, problem: Problem, seen: Observation, parts) -> Diagnosis:
    """Write a mistake with what the answer shows of it on the problem's case."""
    return Diagnosis(mistake, _describe_sums(seen) or problem.got, parts)


def _describe_sums(seen: Observation) -> str:
    """Say what weights sum to along rows and columns, if the rows do not sum to 1."""
    weights, texts = seen.arrays.get("weights"), []
    if weights is None or weights.ndim < 2 or not weights.isfinite().all():
        return ""
    for dim in (-1, -2):
        low, high = (float(x) for x in weights.double().sum(dim).aminmax())
        texts.append(f"all {low:.3f}" if high - low < 1e-3 else f"{low:.2f} to {high:.2f}")
    return "" if texts[0] == "all 1.000" else f"row sums {texts[0]}; column sums {texts[1]}"
