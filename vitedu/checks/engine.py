"""The engine: from an answer to a report.

Role: ``judge_answer`` makes the cases, ``gather`` runs them on the answer, and ``conclude`` judges,
diagnoses and writes the ``Report``. Only ``gather`` reaches the answer, through ``answers.Source``,
so the answer may live in another process. Nothing is displayed or stored here: see
``vitedu.checks.api``.
"""

import inspect
import os
import re
from dataclasses import dataclass, field, replace
from typing import Any

from vitedu.checks.answers import Call, LocalAnswer, Look, Source
from vitedu.checks.case import Case
from vitedu.checks.checker import Checker
from vitedu.checks.compare import same
from vitedu.checks.contrast import contrast
from vitedu.checks.diagnose import diagnose
from vitedu.checks.findings import RETURNS, findings_of, parts_of
from vitedu.checks.judge import DEFINED, Problem, Stage, find_problem
from vitedu.checks.observation import CONSTRUCTED, REMEMBERED, Observation
from vitedu.checks.replay import Replays
from vitedu.checks.report import Report
from vitedu.checks.settings import neutral_settings

SECONDS = 10.0  # time limit of a whole check; VITEDU_TIME_LIMIT overrides it


def judge_answer(checker, answer: Any, seed: int, replays: Replays | None = None) -> Report:
    """Judge an answer in this process. Never raises because of what the answer is or does.

    Args:
        checker: a ``Checker`` or ``vitedu.checks.values.ValueChecker``.
        answer: any object.
        seed: of the inputs; the same seed repeats the same check.
        replays: kept by the caller for all answers that he judges with this seed.
    """
    source = LocalAnswer(answer)
    if not isinstance(checker, Checker):
        return checker.judge(source)
    replays = replays or Replays()
    with neutral_settings():
        cases = replays.cases(checker, seed)
        gathered = gather(checker, cases, source)
        return conclude(checker, cases, gathered, seed, answer, replays)


@dataclass(frozen=True)
class Gathered:
    """All that is known about an answer: what it is, and what it did on each case."""

    look: Look
    got: dict[str, Observation] = field(default_factory=dict)  # by name of the case


def gather(
    checker: Checker,
    cases: list[Case],
    source: Source,
    seconds: float | None = None,
    known: dict[str, Observation] | None = None,
) -> Gathered:
    """Probe an answer, wherever it lives, on every case. The reference does not run here.

    Args:
        checker: its signature and forbidden operations decide when to stop early.
        cases: as ``checker.draw`` made them.
        source: the answer.
        seconds: time limit for all calls together; default ``time_budget()``.
        known: observations of cases that are not run, by their names.
    """
    look = source.look([_call(checker, case) for case in cases])
    if look.idle or _unusable(checker, look, cases):
        return Gathered(look)
    budget = time_budget() if seconds is None else seconds
    known = known or {}
    todo = [case for case in cases if case.name not in known]
    got = known | _observe_all(checker, source, todo, budget)
    return Gathered(look, {case.name: got[case.name] for case in cases})


def conclude(
    checker: Checker,
    cases: list[Case],
    gathered: Gathered,
    seed: int,
    answer: Any = None,
    replays: Replays | None = None,
) -> Report:
    """Judge what was gathered: compare it with the reference, diagnose, and write the report."""
    report = Report(checker.exercise, reference=checker.reference, answer=answer, seed=seed)
    if gathered.look.idle:
        return report.not_attempted()
    parts = parts_of(checker, cases)
    refusal = _unusable(checker, gathered.look, cases)
    if refusal:
        problems = {"returns": refusal}
        return report.failed(findings_of(checker, cases, parts, problems), [], problems=problems)

    got = gathered.got
    first = got[cases[0].name]
    if (
        first.error is not None
        and first.error.kind == "NotImplementedError"
        and first.error.by_hand
        and not _is_begun(checker, first)
    ):
        return report.not_attempted()
    replays = replays or Replays()
    want = {case.name: replays.observe(checker.reference, case, SECONDS) for case in cases}

    used = sorted(
        checker.forbidden & frozenset().union(*(seen.operations for seen in got.values()))
    )
    if used:
        named = checker.forbidden_words or ", ".join(
            sorted({n.rstrip("_") for n in checker.forbidden if n[0] != "_" and "." not in n})
        )
        words = f"an answer without {named}", f"a call that ran {', '.join(_spoken(used))}"
        problem = Problem(Stage.OPERATIONS, cases[0], *words)
        problems = {"allowed operations": problem}
        findings = findings_of(checker, cases, parts, problems)
        return report.failed(findings, [], got=got, problems=problems)

    if not same(cases[0], first, want[cases[0].name]):  # then nothing shows that it remembers
        for case in (case for case in cases if case.driver == "again"):
            if REMEMBERED in want[case.name].facts:
                got[case.name].facts[REMEMBERED] = want[case.name].facts[REMEMBERED]
    problems = _problems(checker, parts, cases, got, want)
    if (
        first.error is not None
        and first.error.kind == "NotImplementedError"
        and first.error.by_hand
    ):
        words = "a forward as well; __init__ holds", "forward is still open: NotImplementedError"
        open_forward = Problem(
            Stage.CALL, cases[0], *words, "__init__ holds, forward is still open"
        )
        problems["returns"] = open_forward
    findings = findings_of(checker, cases, parts, problems)
    if not problems:
        return report.passed_with(findings, got)
    diagnoses = diagnose(checker, cases, problems, got, want, replays)
    if checker.is_related and not diagnoses:
        problems = _contrasted(cases, problems, got, want)
    report.failed(findings, diagnoses, got=got, problems=problems, advice=checker.advice)
    if first.error is not None:
        report.status = "error"
    if checker.picture:
        shown = next(iter(problems.values())).case
        drawing = checker.picture(shown, got[shown.name], [d.id for d in diagnoses])
        if drawing:
            report.draw(drawing.svg, drawing.label, drawing.text)
    return report


def _contrasted(cases: list[Case], problems: dict[str, Problem], got, want) -> dict[str, Problem]:
    """Give problems with wrong values a headline: which cases are right and which are wrong."""
    usual = [case for case in cases if not case.on_accelerator and case.driver != "again"]
    if any(got[case.name].error is not None for case in usual if not case.raises):
        return problems
    words = contrast(usual, got, want)
    return {
        part: replace(problem, headline=words)
        if problem.stage is Stage.VALUES and problem.case in usual
        else problem
        for part, problem in problems.items()
    }


def _is_begun(checker: Checker, first: Observation) -> bool:
    """Tell whether a class without ``forward`` has a working ``__init__`` of the student's."""
    return first.facts.get(CONSTRUCTED) == "yes" and "__init__" not in checker.given


def _call(checker: Checker, case: Case) -> Call:
    """Return the form of a case's call or, for a class, of its construction."""
    if isinstance(checker.reference, type):
        return len([name for name in case.init if name not in case.keywords]), ()
    return len([name for name in case.args if name not in case.keywords]), case.keywords


def _unusable(checker: Checker, look: Look, cases: list[Case]) -> Problem | None:
    """Judge what shows without a call: a function or a class as asked for, and its signature."""
    wants_class = isinstance(checker.reference, type)
    if wants_class and look.is_layer:
        words = (
            f"the class {checker.exercise} itself, without parentheses",
            f"an instance of {look.kind}",
        )
        headline = "this is an instance, not the class"
        return Problem(Stage.CALLABLE, cases[0], *words, headline)
    if look.is_class != wants_class or not look.is_callable:
        wanted = "a class" if wants_class else "a function"
        found = f"the class {look.kind}" if look.is_class else f"a value of type {look.kind}"
        return Problem(Stage.CALLABLE, cases[0], wanted, found, f"this is not {wanted}")
    for case, refusal in zip(cases, look.refusals, strict=False):
        if refusal:
            wanted = f"{checker.exercise}{_asked(checker.reference)}"
            return Problem(
                Stage.SIGNATURE, case, _plain(wanted), f"{_plain(look.signature)}; {refusal}"
            )
    return None


def _asked(reference: Any) -> inspect.Signature:
    """Return the reference's signature without its keyword-only parameters."""
    signature = inspect.signature(reference)
    asked = [p for p in signature.parameters.values() if p.kind is not p.KEYWORD_ONLY]
    return signature.replace(parameters=asked)


def _plain(signature: str) -> str:
    return re.sub(r"torch\.nn\.modules\.\w+\.", "nn.", signature.replace("torch.Tensor", "Tensor"))


def _observe_all(
    checker: Checker, source: Source, cases: list[Case], budget: float
) -> dict[str, Observation]:
    """Probe every case within the time limit.

    After a timeout, an interrupt or a forbidden operation the remaining cases are not called. They
    get the last observation.
    """
    got, last = {}, None
    found = source.observe_all(cases, budget)
    for case in cases:
        if last is not None:
            got[case.name] = last
            continue
        seen = got[case.name] = next(found)
        if seen.error is not None and seen.error.kind in ("TimeUp", "KeyboardInterrupt"):
            seen.seconds = budget
            last = seen
        elif checker.forbidden & seen.operations:
            last = seen
    return got


def time_budget() -> float:
    """Read the time limit of a check in seconds; the default unless it is a positive number."""
    try:
        seconds = float(os.environ.get("VITEDU_TIME_LIMIT", SECONDS))
    except ValueError:
        return SECONDS
    return seconds if 0 < seconds < float("inf") else SECONDS


def _problems(checker: Checker, parts, cases, got, want) -> dict[str, Problem]:
    """Find the first problem of every part that has one."""
    problems: dict[str, Problem] = {}
    for case in cases:
        problem = find_problem(case, got[case.name], want[case.name])
        if problem is None:
            continue
        if problem.expected == DEFINED:
            problem = replace(problem, expected=checker.proves.get("values", DEFINED))
        part = "again" if problem.stage is Stage.AGAIN else case.part
        if part == "values":
            part = (
                "returns"
                if problem.stage in RETURNS
                else "gradients"
                if problem.stage is Stage.GRADIENTS
                else "values"
            )
        earlier = problems.get(part)
        if earlier is None or problem.stage < earlier.stage:
            problems[part] = problem
    wrong = [problems[part].case for part in ("values", "returns") if part in problems]
    again = problems.get("again")
    if again is not None and again.stage is Stage.EFFECTS and len(problems) > 1:
        problems.pop("again")  # what has no effect costs points where the values show it
    if any(case is cases[0] for case in wrong):
        problems.pop("again", None)  # the second call repeats the first, so it is wrong as well
        cost = problems.get("cost")
        if cost is not None and got[cost.case.name].facts == want[cost.case.name].facts:
            problems.pop("cost")  # only the values are wrong there, and they count elsewhere
    for part, judge in checker.judges.items():
        if part not in problems and not any(got[c.name].error for c in cases if c.part == part):
            words = judge([case for case in cases if case.part == part], got)
            if words:
                problems[part] = Problem(
                    Stage.VALUES, next(c for c in cases if c.part == part), *words
                )
    return {part: problems[part] for part in parts if part in problems}


def _spoken(names) -> list[str]:
    """Write the names of functions and kernels as a student knows them, without "aten."."""
    return sorted({name.removeprefix("aten.").strip("_") for name in names})
