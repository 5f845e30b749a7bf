"""The engine: from an answer to a report.

Role: ``judge_answer`` makes the cases, ``observe_answer`` runs them on the answer, and
``judge_observations`` judges, diagnoses and writes the ``Report``. Only ``observe_answer`` reaches
the answer, through ``answers.Source``, so the answer may live in another process. Nothing is
displayed or stored here: see ``vitedu.checks.api``.
"""

import inspect
import re
from dataclasses import dataclass, field, replace
from typing import Any

from vitedu.checks.explaining.contrast import describe_contrast, describe_pattern
from vitedu.checks.explaining.diagnose import Diagnosis, Evidence, ReplayCache, diagnose
from vitedu.checks.explaining.report import Report
from vitedu.checks.explaining.values import judge_value
from vitedu.checks.judging.findings import RETURNS, is_polish, list_parts, make_findings
from vitedu.checks.judging.judge import (
    ANOTHER_GRADIENT,
    CLOTHES,
    Problem,
    Stage,
    cast_clothes,
    find_problems,
)
from vitedu.checks.observing.answers import AnswerInfo, Call, LocalAnswer, Source, is_written
from vitedu.checks.observing.case import Case
from vitedu.checks.observing.limits import SECONDS, time_budget
from vitedu.checks.observing.observation import CONSTRUCTION, Observation, Observations
from vitedu.checks.observing.settings import neutral_settings
from vitedu.checks.writing.checker import Checker, ValueChecker


def judge_answer(
    checker: Checker | ValueChecker, answer: Any, seed: int, cache: ReplayCache | None = None
) -> Report:
    """Judge an answer in this process. Never raises because of what the answer is or does.

    Args:
        checker: of its exercise.
        answer: any object.
        seed: of the inputs; the same seed repeats the same check.
        cache: one for all answers that the caller judges with this seed.
    """
    source = LocalAnswer(answer)
    if isinstance(checker, ValueChecker):
        return judge_value(checker, source.plain(), answer)
    cache = cache or ReplayCache()
    with neutral_settings():
        cases = cache.cases(checker, seed)
        observed = observe_answer(checker, cases, source, time_budget(), {})
        return judge_observations(checker, cases, observed, seed, answer, cache)


@dataclass(frozen=True)
class ObservedAnswer:
    """All that is known about an answer: what it is, and what it did on each case."""

    info: AnswerInfo
    observations: Observations = field(default_factory=dict)


def observe_answer(
    checker: Checker, cases: list[Case], source: Source, seconds: float, earlier: Observations
) -> ObservedAnswer:
    """Probe an answer, wherever it lives, on every case. The reference does not run here.

    Args:
        checker: its signature and forbidden operations decide when to stop early.
        cases: as ``checker.draw`` made them.
        source: the answer.
        seconds: time limit for all calls together.
        earlier: observations of cases that are not run, by their names.
    """
    info = source.info([_call_form(checker, case) for case in cases])
    problem = None if info.is_empty else _judge_info(checker, info, cases)
    if problem and problem.stage is Stage.SIGNATURE:  # a default is missing, or has another name
        by_position = [_by_position(checker.reference, case) for case in cases]
        again = source.info([_call_form(checker, case) for case in by_position])
        if not any(again.refusals):
            cases, problem = by_position, None
    if info.is_empty or problem:
        return ObservedAnswer(info)
    observations = dict(earlier)
    last: Observation | None = None
    todo = [case for case in cases if case.name not in observations]
    results = source.observe_all(todo, seconds)
    for case in todo:
        seen = observations[case.name] = last or next(results)
        is_over = seen.error_kind in ("TimeUp", "KeyboardInterrupt")
        if is_over:
            seen.seconds = seconds
        if is_over or checker.forbidden & seen.operations:
            last = seen  # the remaining cases are not called
    return ObservedAnswer(info, {case.name: observations[case.name] for case in cases})


def judge_observations(
    checker: Checker,
    cases: list[Case],
    observed: ObservedAnswer,
    seed: int,
    answer: Any = None,
    cache: ReplayCache | None = None,
) -> Report:
    """Judge what an answer did: compare it with the reference, diagnose, and write the report."""
    report = Report(checker.exercise, reference=checker.reference, answer=answer, seed=seed)
    got, parts = observed.observations, list_parts(checker, cases)
    first = got.get(cases[0].name, Observation())
    # a class without ``forward`` may have a working ``__init__`` of the student's
    is_begun = first.facts.get(CONSTRUCTION) == "yes" and "__init__" not in checker.given
    if observed.info.is_empty or (first.is_open and not is_begun):
        return report.set_not_attempted(is_written(answer))
    report.printed = first.printed.rstrip()
    early = {
        "returns": _judge_info(checker, observed.info, cases),
        "allowed operations": _judge_operations(checker, cases[0], got),
    }
    slip = early.pop("returns") if got else None  # the calls could be made by position
    if problems := {part: problem for part, problem in early.items() if problem}:
        findings = make_findings(checker, cases, parts, problems)
        return report.set_failed(findings, [], problems, got)
    cache = cache or ReplayCache()
    want = {case.name: cache.observe(checker.reference, case, SECONDS) for case in cases}
    evidence = Evidence(checker, cases, got, want, cache)
    cast, problems = _compare_all(evidence, parts, slip)
    findings = make_findings(checker, cases, parts, problems)
    undecided = {case.part for case in cases if got[case.name].undecided}
    findings = [replace(f, message="") if f.passed and f.name in undecided else f for f in findings]
    if not problems:
        return report.set_passed(findings)
    ours = {part: p for part, p in problems.items() if not slip or p.got != slip.got}
    diagnoses = _name_mistakes(evidence, cast, ours)
    main = {part for part, p in problems.items() if not is_polish(checker, part, p.stage)}
    if main.isdisjoint(part for diagnosis in diagnoses for part in diagnosis.parts):
        _add_contrast(cast, problems)
    if not main:
        return report.set_passed(findings, diagnoses)
    problem, picture = next(iter(problems.values())), None
    if checker.picture and problem.stage is Stage.VALUES:
        picture = checker.picture(problem.case, cast.got[problem.case.name])
    report.set_failed(findings, diagnoses, problems, got, picture)
    if first.error is not None:
        report.status = "error"
    return report


def _compare_all(
    evidence: Evidence, parts: list[str], slip: Problem | None
) -> tuple[Evidence, dict[str, Problem]]:
    """Compare what an answer did on all cases, without its clothes, with what is right.

    ``slip`` is one of the signature. Returns the evidence compared and the problems by part.
    """
    cases, got, want = evidence.cases, evidence.got, evidence.want
    clothed = {case.name: cast_clothes(case, got[case.name], want[case.name]) for case in cases}
    cast = replace(evidence, got={name: seen for name, (seen, _) in clothed.items()})
    slips = [slip and replace(slip, stage=Stage.CLOTHES, credit=CLOTHES)]
    slips += [problem for _, problem in clothed.values()]
    problems = _find_problems(cast, parts, next(filter(None, slips), None))
    if got[cases[0].name].is_open:
        words = "a forward as well; __init__ holds", "forward is still open: NotImplementedError"
        headline = "__init__ holds, forward is still open"
        problems["returns"] = Problem(Stage.CALL, cases[0], *words, headline)
    return cast, problems


def _name_mistakes(evidence: Evidence, cast: Evidence, problems) -> list[Diagnosis]:
    """Diagnose an answer as it is or, if that does not explain its clothes, without them."""
    slip = {part: p for part, p in problems.items() if p.stage is Stage.CLOTHES}
    rest = {part: p for part, p in problems.items() if part not in slip}
    found = diagnose(evidence, problems)
    if slip and rest and not any(slip.keys() & set(diagnosis.parts) for diagnosis in found):
        found = diagnose(cast, rest)
    return found


def _add_contrast(evidence: Evidence, problems: dict[str, Problem]) -> None:
    """Say of problems with wrong values which cases are right, and what the wrong ones share."""
    got, want = evidence.got, evidence.want
    usual = [case for case in evidence.cases if case.is_usual]
    if any(got[case.name].error is not None for case in usual):
        return
    headline, pattern = describe_contrast(usual, got, want), describe_pattern(usual, got, want)
    for part, problem in problems.items():
        if problem.stage is Stage.VALUES and problem.case.is_usual:
            words = "; ".join(filter(None, (problem.got, pattern)))
            problems[part] = replace(problem, headline=headline, got=words)


def _call_form(checker: Checker, case: Case) -> Call:
    """Return the form of a case's call or, for a class, of its construction."""
    if isinstance(checker.reference, type):
        return len([name for name in case.init if name not in case.keywords]), ()
    return len([name for name in case.args if name not in case.keywords]), case.keywords


def _judge_info(checker: Checker, info: AnswerInfo, cases: list[Case]) -> Problem | None:
    """Judge what shows without a call: a function or a class as asked for, and its signature."""
    wants_class = isinstance(checker.reference, type)
    if wants_class and info.is_layer:
        wanted = f"the class {checker.exercise} itself, without parentheses"
        words = wanted, f"an instance of {info.kind}", "this is an instance, not the class"
        return Problem(Stage.CALLABLE, cases[0], *words)
    if info.is_class != wants_class or not info.is_callable:
        wanted = "a class" if wants_class else "a function"
        kind = f"the class {info.kind}" if info.is_class else f"a value of type {info.kind}"
        return Problem(Stage.CALLABLE, cases[0], wanted, kind, f"this is not {wanted}")
    for case, refusal in zip(cases, info.refusals, strict=False):
        if refusal:
            signature = inspect.signature(checker.reference)
            asked = [p for p in signature.parameters.values() if p.kind is not p.KEYWORD_ONLY]
            wanted = f"{checker.exercise}{signature.replace(parameters=asked)}"
            got = f"{_short(info.signature)}; {refusal}"
            return Problem(Stage.SIGNATURE, case, _short(wanted), got)
    return None


def _by_position(reference: Any, case: Case) -> Case:
    """Return the same call with every argument by position, defaults of the reference written."""
    parameters = inspect.signature(reference).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD}
    if isinstance(reference, type):
        given = dict(zip(defaults, case.init.values(), strict=False))
        return replace(case, init=defaults | given)
    given = dict(zip(defaults, [n for n in case.args if n not in case.keywords], strict=False))
    names = {place: given.get(place, place) for place in [*defaults, *case.keywords]}
    args = {name: case.args.get(name, defaults.get(place)) for place, name in names.items()}
    return replace(case, args=args, keywords=())


def _short(signature: str) -> str:
    return re.sub(r"torch\.nn\.modules\.\w+\.", "nn.", signature.replace("torch.Tensor", "Tensor"))


def _judge_operations(checker: Checker, case: Case, got: Observations) -> Problem | None:
    """Judge which operations ran, in whatever case."""
    ran = checker.forbidden & frozenset().union(*(seen.operations for seen in got.values()))
    if not ran:
        return None
    names = checker.forbidden_words or ", ".join(
        sorted({n.rstrip("_") for n in checker.forbidden if n[0] != "_" and "." not in n})
    )
    calls = sorted({name.removeprefix("aten.").strip("_") for name in ran})
    words = f"an answer without {names}", f"a call that ran {', '.join(calls)}"
    return Problem(Stage.OPERATIONS, case, *words)


def _find_problems(evidence: Evidence, parts, slip: Problem | None) -> dict[str, Problem]:
    """Find the first problem of every part that has one; ``slip`` is one of clothes."""
    checker, cases, got, want = evidence.checker, evidence.cases, evidence.got, evidence.want
    problems: dict[str, Problem] = {}
    mistakes: dict[str, Problem] = {}  # in parts whose first problem may be a remark
    for case in cases:
        for problem in find_problems(case, got[case.name], want[case.name]):
            if problem.stage is Stage.VALUES:
                problem = replace(problem, expected=expected_values(checker, problem.case.part))
            part = _part_of(problem, parts, checker)
            if not is_polish(checker, part, problem.stage):
                mistakes.setdefault(part, problem)
            earlier = problems.get(part)
            if earlier is None or (problem.stage, problem.credit) < (earlier.stage, earlier.credit):
                problems[part] = problem
    if all(is_polish(checker, part, problem.stage) for part, problem in problems.items()):
        problems |= mistakes  # a remark hides none
    wrong = [problems[part].case for part in ("values", "returns") if part in problems]
    if slip:
        problems.setdefault("returns", slip)
    slope = problems.get("gradients")
    if wrong and slope:  # another function has other gradients
        if is_polish(checker, "gradients") or slope.got.startswith(ANOTHER_GRADIENT):
            problems.pop("gradients")
    if any(case is cases[0] for case in wrong):
        problems.pop("again", None)  # the second call repeats the first, so it is wrong as well
        cost = problems.get("cost")
        if cost is not None and got[cost.case.name].facts == want[cost.case.name].facts:
            problems.pop("cost")  # only the values are wrong there, and they count elsewhere
    return {part: problems[part] for part in parts if part in problems}


def expected_values(checker: Checker, part: str) -> str:
    """Say what the values of a part shall be: its own words, not those of a part that holds."""
    values = checker.idea.get("values", "the values of the definition")
    own = "" if part == "dtype" else (checker.idea | checker.polish).get(part, "")
    return f"{values}, {own}" if own.startswith("also") else own or values


def _part_of(problem: Problem, parts: list[str], checker: Checker) -> str:
    """Return the part that a problem belongs to: its case's, or a general one."""
    if problem.stage is Stage.SECOND_CALL:
        return "again"
    if problem.stage is Stage.PRECISION and "dtype" in parts:
        return "dtype"
    is_rare = is_polish(checker, problem.case.part)
    if problem.stage is Stage.GRADIENTS and "gradients" in parts and not is_rare:
        return "gradients"
    if problem.case.part != "values":
        return problem.case.part
    return "returns" if problem.stage in RETURNS else "values"
