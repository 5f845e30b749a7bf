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


@dataclass(frozen=True)
class Evidence:
    """What an answer and the reference did on the cases of a check."""

    checker: Checker
    cases: list[Case]
    got: Observations
    want: Observations
    cache: ReplayCache

    def fits(self, mistakes: list[Mistake], case: Case) -> bool:
        """Tell whether mistakes, made together, do on a case what the answer did."""
        made, seen = self.checker.combine(mistakes), self.got[case.name]
        return made is not None and is_same(case, seen, self.cache.observe(made, case))


def diagnose(evidence: Evidence, problems: Problems) -> list[Diagnosis]:
    """Name the mistakes that cause the problems, given the first problem of each failed part.

    Returns:
        The diagnoses; an empty list if nothing fits or the answer ran out of time.
    """
    if any(seen.error_kind == "TimeUp" for seen in evidence.got.values()):
        return []
    numeric = {
        part: p
        for part, p in problems.items()
        if p.case.is_usual and p.stage not in (*PART_OF_STAGE, Stage.SECOND_CALL)
    }
    found: dict[str, Diagnosis] = {}  # by id of the mistake
    if numeric:
        found = {each.mistake.id: each for each in _name_numbers(evidence, numeric)}
    crashed = "returns" in problems and problems["returns"].stage in (Stage.CALL, Stage.TYPE)
    for part, problem in problems.items():
        if crashed and not problem.case.is_usual:
            continue  # the answer crashes on ordinary calls; these calls fail for the same reason
        if problem.stage is Stage.DEVICE and "again" in problems:
            continue  # what an earlier call left behind is on another device, too
        if part in numeric and any(part in diagnosis.parts for diagnosis in found.values()):
            continue
        if new := _name_fact(evidence, part, problem, next(iter(found.values()), None)):
            is_other = "returns" in problems and part != "returns" and not found
            if new.mistake.id == "squeezed" and is_other:
                continue  # an ordinary result has another shape for another reason
            # what is old is wrong elsewhere, too
            if new.mistake.id == "cached_by_shape" and not found:
                new = replace(new, parts=(*numeric, part))
            earlier = found.get(new.mistake.id, replace(new, parts=()))
            found[new.mistake.id] = replace(earlier, parts=earlier.parts + new.parts)
    return list(found.values())


def _name_fact(
    evidence: Evidence, part: str, problem: Problem, first: Diagnosis | None
) -> Diagnosis | None:
    """Name the mistake that is recognised from a fact, in a part that no number explains."""
    checker, cache, case = evidence.checker, evidence.cache, problem.case
    got, want = evidence.got[case.name], evidence.want[case.name]
    if problem.stage is Stage.GRADIENTS and got.detached and first and first.mistake.edits:
        if cache.observe(checker.combine([first.mistake]), evidence.cases[0]).detached:
            return replace(first, parts=(part,))
    # the ``part`` of the mistakes that may cause it
    home = PART_OF_STAGE.get(problem.stage, "errors" if case.raises else part)
    for mistake in checker.mistakes:
        if mistake.part in (home, "values") and _explains(mistake.id, problem, got, want):
            return _diagnosis(mistake, problem, got, (part,))
    return None


def _name_numbers(evidence: Evidence, numeric: Problems) -> list[Diagnosis]:
    """Name the mistakes of the bank that give the answer's results, as far as they are wrong."""
    checker, got, want = evidence.checker, evidence.got, evidence.want
    # wrong cases come first, small ones before large: most candidates fail on the first case
    usual = sorted((case for case in evidence.cases if case.is_usual), key=size_of)
    wrong = [case for case in usual if not is_same(case, got[case.name], want[case.name])]
    usual = wrong + [case for case in usual if case not in wrong]
    # where nothing is wrong, a mistake that changes nothing would fit
    views = _list_views(checker, usual, numeric, got)
    views = [view for view in views if any(case in wrong for case in view[0])]
    bank = [mistake for mistake in checker.bank if mistake.part not in PARTS_WITHOUT_REPLAY]
    alone = [[version] for mistake in bank for version in mistake.variants()]

    def find(tries: list[list[Mistake]], cases: list[Case]) -> list[Mistake]:
        return next((some for some in tries if all(evidence.fits(some, c) for c in cases)), [])

    single = ((n, one) for n, (cases, _) in enumerate(views) if (one := find(alone, cases)))
    place, known = next(single, (len(views), []))
    # what a mistake explains of fewer cases alone, it explains of more together with another
    pairs = [a + b for a, b in itertools.combinations(alone, 2) if a[0].id != b[0].id]
    pairs = [pair for pair in pairs if known[0] in pair] if known else pairs
    rank = partial(_rank_pairs, evidence, alone, pairs, wrong)
    # few cases first: where no two mistakes fit them, none are looked for in more
    double = ((n, find(rank(views[n][0]), views[n][0])) for n in reversed(range(place)))
    fitting = itertools.takewhile(lambda found: found[1], double)
    place, matches = [(place, known), *fitting][-1]
    problems = views[place][1] if matches else {}
    # a mistake gets the parts that it gives alone; parts that none gives alone go to all
    shares = [[p for p in problems if evidence.fits([one], problems[p].case)] for one in matches]
    rest = [part for part in problems if not any(part in share for share in shares)]
    shares = [share + rest or list(problems)[-1:] for share in shares]
    return [
        _diagnosis(mistake, problems[share[0]], got[problems[share[0]].case.name], tuple(share))
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


def _rank_pairs(evidence: Evidence, alone, pairs, wrong: list[Case], cases: list[Case]):
    """Sort pairs of mistakes: first those that give most of the wrong results when made alone."""
    # one case of a part
    samples = list({case.part: case for case in reversed(cases) if case in wrong}.values())
    equal = {id(one): _count_equal(evidence, one, samples) for [one] in alone}
    return sorted(pairs, key=lambda pair: -sum(equal[id(one)] for one in pair))[:MAX_PAIRS]


def _count_equal(evidence: Evidence, mistake: Mistake, cases: list[Case]) -> int:
    """Count the arrays of an answer that a mistake alone gives too."""
    made, count = evidence.checker.combine([mistake]), 0
    for case in cases:
        theirs = evidence.cache.observe(made, case).arrays
        for name, x in evidence.got[case.name].arrays.items():
            count += name in theirs and is_close(case, x, theirs[name])
    return count


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
