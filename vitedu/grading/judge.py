"""Grade one answer: fresh workers run it, and its observations are judged here.

Role: ``grade_answer``. The checkers of the notebook decide (``vitedu.checks.engine``). A
``RemoteAnswer`` replaces the student's object, and only ``observe_answer`` uses it. Several
processes must agree, so that luck earns nothing. Later runs of one student's answers may share a
process (``box.sharing``). An answer that cannot be judged gets a reason and no points, never an
exception.
"""

import dis
import functools
import hashlib
import re
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from vitedu import exercises
from vitedu.checks.engine import judge_observations, observe_answer
from vitedu.checks.explaining.report import Report
from vitedu.checks.observing.answers import LocalAnswer, PlainValue
from vitedu.checks.observing.case import Case
from vitedu.checks.observing.errors import RaisedError
from vitedu.checks.observing.limits import MAX_OUTPUT
from vitedu.checks.observing.observation import Observation
from vitedu.checks.observing.settings import neutral_settings
from vitedu.checks.writing.checker import MOST_POLISH, Checker, find_lenient_checker
from vitedu.grading.box.conversation import Worker, WorkerTrouble
from vitedu.grading.box.isolation import Box
from vitedu.grading.box.names import CLOSED_MODULES
from vitedu.grading.box.package_view import earlier_exercises
from vitedu.grading.box.sharing import SharedBox
from vitedu.grading.grades import FAILED, NOT_GRADABLE, PASSED, REASONS, Answer, ExerciseGrade, Flag
from vitedu.grading.transport.messages import (
    LoadResult,
    read_fields,
    write_observation,
    write_plain,
)
from vitedu.grading.transport.remote_answer import RemoteAnswer
from vitedu.grading.transport.wire import WireError, clean, pack

RUNS = 3  # an answer that is right one time in three passes with probability 5 % at most
MAX_SECONDS = 60.0  # wall-clock time of all runs of an answer together; right ones take 1 s
MAX_LITERAL = 1000  # characters of an answer that is read as a number
MAX_KEPT = 6000  # the most characters of code that a grade keeps
SERVER_ENDED = (
    "the process that starts all workers ended while this answer ran, and again when it ran alone"
)
# Judging changes settings of the whole process for a moment (random state, default dtype), so only
# one thread may do it at a time.
_LOCK = threading.Lock()


@dataclass
class _Run:
    report: Report | None = None  # None: not gradable
    reason: str = ""  # a key of REASONS if not gradable
    detail: str = ""
    printed: str = ""
    is_last: bool = False  # another run would say the same or take too long, so none follows
    digest: str = ""  # of all observations that every run makes
    observations: dict[str, Observation] = field(default_factory=dict)  # by name of the case
    is_read: bool = False  # a literal value, judged without a process
    is_undecided: bool = False  # its behaviour on another device is not known
    server_ended: bool = False  # the fork server ended during the run, with all its workers

    @property
    def state(self) -> str:
        if self.reason:
            return NOT_GRADABLE
        return PASSED if self.report is not None and self.report.passed else FAILED

    @property
    def points(self) -> float | None:
        if self.reason:
            return None
        return float(self.report.points) if self.report is not None else 0.0

    @property
    def verdict(self) -> tuple:
        """What all runs must agree on."""
        mistakes = self.report.misconceptions if self.report is not None else ()
        return self.state, self.points, tuple(mistakes), self.reason

    def describe(self) -> str:
        """Describe the verdict, for a list of runs that disagree."""
        mistakes = ", ".join(self.verdict[2])
        return self.reason or f"{self.state} with {self.points:g}" + (mistakes and f" ({mistakes})")


def grade_answer(
    answer: Answer,
    seed: int,
    box: Box | SharedBox,
    *,
    runs: int = RUNS,
    polish: float = MOST_POLISH,
    passed: frozenset[str] = frozenset(),
) -> ExerciseGrade:
    """Grade one answer.

    It runs with the student's own earlier answers. If it fails, it runs again with references in
    place of those that did not pass, so that a mistake costs its own points only.

    Args:
        answer: its code as text.
        seed: of the secret inputs; the same seed repeats them.
        box: starts the workers.
        runs: number of runs, each in another process; all must agree.
        polish: the share of the points that polish has at most; ``Checker.most_polish``.
        passed: exercises that this student has passed.

    Raises:
        ValueError: the exercise is unknown, or ``runs`` is below 1.
    """
    if runs < 1:
        raise ValueError(f"runs must be at least 1 (got {runs}).")
    exercise, start = exercises.find(answer.exercise), time.perf_counter()
    flags = list(answer.flags)
    results: list[_Run] = []
    try:
        checker = find_lenient_checker(answer.exercise, polish)
        with _LOCK, neutral_settings():
            cases = checker.draw(seed) if isinstance(checker, Checker) else []
        task = _Task(answer, checker, cases, seed, box, passed, time.monotonic() + MAX_SECONDS)
        results, final = _run_often(task, runs)
        stand_ins = _find_stand_ins(task) if _may_improve(final) else ()
        if stand_ins and time.monotonic() < task.deadline:
            task = replace(task, stand_ins=stand_ins)
            again, other = _run_often(task, runs)
            clash = _describe_clash(other, stand_ins)
            if other.state != PASSED and clash and not _describe_clash(final, stand_ins):
                final = _Run(reason="depends", detail=clash)
            elif other.points is not None and other.points >= (final.points or 0.0):
                words = f"references stood in for {', '.join(stand_ins)}, which did not pass"
                flags.append(Flag("stand_ins", words))
                results, final = again, other
    # a fault of the grader must cost no student points and must not stop the batch
    except Exception as error:
        words = f"{type(error).__name__}: {error}"[:300]
        results = [final := _Run(reason="grader", detail=words)]
    if final.reason == "unstable":
        flags.append(Flag("unstable", f"Fresh processes disagreed: {final.detail}."))
    if final.is_undecided:  # worth a flag, because no reference is ever undecided
        words = "What it does on another device could not be seen: it ended in an error there."
        flags.append(Flag("undecided", words))
    grade = ExerciseGrade(
        answer.exercise,
        final.state,
        float(exercise.points),
        final.points,
        reason=final.reason,
        detail=final.detail,
        printed=final.printed,
        flags=flags,
        runs=sum(not result.is_read for result in results),
        headline=REASONS.get(final.reason, ""),
        seconds=round(time.perf_counter() - start, 3),
    )
    if final.report is not None:
        _copy_report(grade, final.report)
    if grade.state != PASSED and grade.attempted:
        grade.code = answer.source[:MAX_KEPT]
        grade.place = f"{answer.notebook}, cell {answer.cell}" if answer.cell else answer.notebook
    return grade


@dataclass(frozen=True)
class _Task:
    """All that the runs of one answer have in common."""

    answer: Answer
    checker: Any
    cases: list[Case]
    seed: int
    box: Box | SharedBox
    passed: frozenset[str]
    deadline: float  # of all runs together, as ``time.monotonic`` counts
    stand_ins: tuple[str, ...] = ()  # exercises whose references replace the student's own


def _run_often(task: _Task, runs: int) -> tuple[list[_Run], _Run]:
    """Run an answer until enough processes agree; return the runs and what they amount to."""
    results: list[_Run] = []
    target, box = runs, task.box
    hides_names = any(getattr(task.checker, name, ()) for name in ("forbidden", "hides"))
    while len(results) < target and not (results and results[-1].is_last):
        if results and isinstance(box, SharedBox) and box.is_shared and not hides_names:
            lend = functools.partial(box.lend_worker, len(results))
            result = _run_answer(task, results, lend)
            if result.verdict == results[0].verdict:
                results.append(result)
                continue
            # no second chance: shared runs count no more, and one more run must agree
            box.is_shared, target, results = False, runs + 1, results[:1]
        result = _run_answer(task, results)
        if result.reason == "grader":  # try once more, apart from other answers
            result = _rerun_alone(result, task, results)
        results.append(result)
    final = next((result for result in results if result.reason == "grader"), results[0])
    if final.reason != "grader" and len({result.verdict for result in results}) > 1:
        words = "; ".join(result.describe() for result in results)
        final = _Run(reason="unstable", detail=f"{len(results)} fresh processes: {words}")
    return results, final


def _may_improve(final: _Run) -> bool:
    """Tell whether references in place of earlier answers could change a result."""
    if final.reason:
        return final.reason not in ("grader", "syntax", "unreadable", "no_cell")
    report = final.report
    return final.state != PASSED and report is not None and report.status != "not_attempted"


def _find_stand_ins(task: _Task) -> tuple[str, ...]:
    """List the student's own earlier answers that this one may use and that have not passed."""
    program = task.answer.program
    if program is None:
        return ()
    own = {
        name
        for statements in program.spaces.values()
        for statement in statements.values()
        for name in statement.binds
        if "import" not in statement.marks
    }
    earlier = earlier_exercises(task.answer.exercise)
    return tuple(e.id for e in earlier if e.id in own - task.passed)


def _describe_clash(run: _Run, stand_ins: tuple[str, ...]) -> str:
    """Say how an answer uses an earlier one in a way that the reference does not allow; or ""."""
    for observation in run.observations.values():
        error = observation.error
        if error is None:
            continue
        for name in stand_ins:
            if error.kind == "TypeError" and re.match(rf"(?:\w+\.)?{name}\b.*\(\) ", error.message):
                return f"it calls its own {name} in another way: {error.message}"[:300]
            if error.kind == "AttributeError" and f"'{name}' object" in error.message:
                return f"it reads more of its own {name}: {error.message}"[:300]
    return ""


def _copy_report(grade: ExerciseGrade, report: Report) -> None:
    grade.attempted = report.status != "not_attempted"
    grade.headline = report.headline if grade.attempted else "not attempted"
    grade.lines = [[label, str(text)] for label, text in report.lines]
    grade.misconceptions, grade.picture = list(report.misconceptions), report.picture
    grade.printed = report.printed or grade.printed
    grade.findings = [
        {
            "name": finding.name,
            "passed": finding.passed,
            "skipped": finding.skipped,
            "polish": finding.is_polish,
            "points": round(finding.points, 2),
            "max_points": round(finding.max_points, 2),
            "message": finding.message,
        }
        for finding in report.findings
    ]


def _run_answer(
    task: _Task,
    earlier: list[_Run],
    open_worker: Callable[[], AbstractContextManager[Worker]] | None = None,
) -> _Run:
    """Run an answer in one worker, which ``open_worker`` may provide, and judge what it did."""
    answer, checker, box = task.answer, task.checker, task.box
    program = answer.program
    if not re.search(r"^\s*[^\s#]", answer.source, re.MULTILINE):
        return _Run(Report(answer.exercise).set_not_attempted(), is_last=True)
    if program is None:
        words = f"the cell of this exercise defines no {answer.exercise}"
        return _Run(reason="no_cell", detail=words, is_last=True)
    if not isinstance(checker, Checker):
        space, place = program.targets[0]
        plain = read_literal(program.spaces[space][place].text, answer.exercise)
        if plain is not None:
            return _judge_value(checker, plain, is_last=True, is_read=True)
    seconds_left = task.deadline - time.monotonic()
    if seconds_left <= 0:
        words = f"its runs take more than {MAX_SECONDS:g} s together"
        return _Run(reason="timeout", detail=words, is_last=True)
    worker: Worker | None = None
    try:
        with (open_worker or box.worker)() as worker:
            remote = RemoteAnswer(worker, box.limits)
            remote.budget = min(remote.budget, seconds_left)
            forbidden: frozenset[str] = getattr(checker, "forbidden", frozenset())
            loaded = remote.load(answer, forbidden, task.passed, task.stand_ins)
            if not loaded.is_defined:
                return _judge_undefined(answer, loaded)
            if isinstance(checker, Checker):
                # other draws in each run, and the mistakes that are replayed draw the same
                seeded = [replace(case, seed=secrets.randbits(32)) for case in task.cases]
                task = replace(task, cases=seeded)
                first = earlier[0].observations if earlier else {}
                once = [case.name for case in task.cases if _runs_once(case)]
                observations = {name: first[name] for name in once if name in first}
                gathered = observe_answer(checker, task.cases, remote, remote.seconds, observations)
            else:
                value = remote.plain()
    except WireError as error:
        reason = "memory" if "MemoryError" in str(error) else "protocol"
        return _Run(reason=reason, detail=str(error)[:300], printed=_read_output(worker))
    except WorkerTrouble as trouble:
        return _Run(
            reason=trouble.reason,
            detail=clean(trouble.detail, 300),
            printed=_read_output(worker),
            is_last=trouble.reason == "timeout",
            server_ended=trouble.server_ended,
        )
    printed = loaded.printed or _read_output(worker)
    if not isinstance(checker, Checker):
        return _judge_value(checker, value, printed=printed, is_last=value.is_empty)
    return _judge_run(task, gathered, loaded, printed, earlier)


def _runs_once(case: Case) -> bool:
    """Tell whether a case is left to the first run: second calls and devices.

    Later runs make sure that values are not right by luck, which these cases do not judge; they
    take about two fifths of a run's time.
    """
    return case.driver == "second_call" or case.on_accelerator


def _rerun_alone(first: _Run, task: _Task, earlier: list[_Run]) -> _Run:
    """Run an answer again after a fault of the grader, with a fork server of its own.

    Answers share a fork server. If it ends, any answer that was running may be the cause. The
    one that also ends its own process is.

    Args:
        first: the result of the run that is repeated.
    """
    with task.box.open_separate() as separate_box:
        result = _run_answer(replace(task, box=separate_box), earlier)
    if first.server_ended and result.server_ended:
        return replace(result, reason="crashed", detail=SERVER_ENDED, is_last=True)
    return replace(result, is_last=result.is_last or result.reason == "grader")


def _read_output(worker: Worker | None) -> str:
    return clean(worker.output, MAX_OUTPUT) if worker is not None else ""


def read_literal(source: str, exercise: str) -> PlainValue | None:
    """Read an answer that is only a name and numbers, without running it; None if it has to be run.

    Arithmetic counts as a number if Python's compiler folds it into a constant.

    Example:
        >>> read_literal("stem_tokens = 3 * 4  # a guess", "stem_tokens").value
        12
        >>> read_literal("stem_tokens = 3 * four", "stem_tokens")
    """
    try:
        code = compile(source[:MAX_LITERAL], "<answer>", "exec", dont_inherit=True)
        steps = [
            step for step in dis.get_instructions(code) if step.opname not in ("RESUME", "NOP")
        ]
        is_literal = _LITERAL.fullmatch(" ".join(step.opname for step in steps))
        if not is_literal or steps[1].argval != exercise or len(source) > MAX_LITERAL:
            return None
        plain = read_fields(PlainValue, write_plain(LocalAnswer(steps[0].argval).plain()))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None  # a worker will report what is wrong
    return None if plain.is_empty else plain


_LITERAL = re.compile("LOAD_(CONST|SMALL_INT) STORE_NAME (LOAD_CONST RETURN_VALUE|RETURN_CONST)")


def _judge_value(checker: Any, value: PlainValue, **fields: Any) -> _Run:
    with _LOCK:
        report = checker.judge(SimpleNamespace(answer=None, plain=lambda: value))
    return _Run(report, **fields)


def _judge_run(task: _Task, gathered, loaded: LoadResult, printed: str, earlier) -> _Run:
    """Judge what was gathered. Observations equal to those of an earlier run get its result."""
    answer, checker, cases = task.answer, task.checker, task.cases
    observations = list(gathered.observations.values())
    errors = [s.error for s in observations if s.error is not None]
    for error in errors:
        if error.raised_by_student:
            continue  # an answer may not make itself not gradable by raising such an error
        if error.kind == "MemoryError" or "allocate memory" in error.message:
            return _Run(reason="memory", detail=f"{error.kind}: {error.message}"[:300])
        if loaded.timed_out and error.kind == "NameError":
            words = f"what the answer needs does not end in time: {error.message}"[:300]
            return _Run(reason="timeout", detail=words, is_last=True)
        reason = _describe_missing(answer, loaded, error)
        if reason:
            return _Run(reason="import", detail=reason, is_last=True)
    marks = hashlib.sha256(repr(gathered.info).encode())
    for case in cases:
        if case.name in gathered.observations and not _runs_once(case):
            marks.update(pack(write_observation(gathered.observations[case.name])))
    digest = marks.hexdigest()
    for run in earlier:
        if run.digest == digest:
            return run
    with _LOCK, neutral_settings():
        report = judge_observations(checker, cases, gathered, task.seed)
    timed_out = loaded.timed_out or any(error.kind == "TimeUp" for error in errors)
    # one run is enough for 0 points, but never for a pass
    is_last = not report.points or (timed_out and not report.passed)
    undecided = any(observation.undecided for observation in observations)
    return _Run(
        report,
        printed=printed,
        is_last=is_last,
        digest=digest,
        observations=gathered.observations,
        is_undecided=undecided,
    )


def _judge_undefined(answer: Answer, loaded: LoadResult) -> _Run:
    """Return the result of an answer whose cell did not define the name of the exercise."""
    trouble = loaded.trouble
    if trouble is None:
        words = f"the cell of this exercise defines no {answer.exercise}"
        return _Run(reason="no_cell", detail=words, is_last=True)
    words = f"{trouble.kind}: {trouble.message}"[:300]
    if loaded.timed_out:
        return _Run(reason="timeout", detail="the cell itself does not end", is_last=True)
    if "SyntaxError" in trouble.kinds:
        return _Run(reason="syntax", detail=words, is_last=True)
    if not trouble.raised_by_student:
        if trouble.kind == "MemoryError":
            return _Run(reason="memory", detail=words)
        if missing := _describe_missing(answer, loaded, trouble):
            return _Run(reason="import", detail=missing, is_last=True)
    report = Report(answer.exercise)
    report.status, report.headline = "error", "the cell ends in an error before it defines anything"
    report.lines = [("got", words)]
    return _Run(report, printed=loaded.printed)


NEEDS = "Answers of this course need no more than torch, numpy and what Python itself brings."
_MODULE = re.compile(r"No module named '([\w.]+)")
_MISSING = re.compile(r"NameError: name '(\w+)' is not defined")
_OWN_NAME = re.compile(r"(?:'|import of )vitedu\b")  # the package's name, but not inside a path


def _describe_missing(answer: Answer, loaded: LoadResult, error: RaisedError) -> str:
    """Say what an answer needs that a worker does not have, judging by an error; "" if nothing.

    Names of this package do not count: answers may not use those that are missing.
    """
    if "ImportError" in error.kinds and not _OWN_NAME.search(error.message):
        if any(name in error.message for name in CLOSED_MODULES):
            return ""  # an import that is forbidden on purpose
        if match := _MODULE.search(error.message):
            return f"it imports {match[1]}, which is not here. {NEEDS}"[:300]
        return f"it needs a library that is not here: {error.message}. {NEEDS}"[:300]
    name = re.fullmatch(r"name '(\w+)' is not defined.*", error.message)
    if error.kind != "NameError" or not name:
        return ""
    for names, why, origin in loaded.failures:
        if (name[1] in names or "*" in names) and origin.split(".")[0] != "vitedu":
            if origin and _MODULE.search(why):
                return f"it imports {origin}, which is not here. {NEEDS}"[:300]
            return f"it needs {name[1]}, which is not here: {_find_cause(loaded, why)}. {NEEDS}"[
                :300
            ]
    if answer.program and name[1] in answer.program.bound:
        why = f" ({loaded.trouble.message})" if loaded.trouble else ""
        words = f"it needs {name[1]}, which its notebook makes in a way that does not work here"
        return f"{words}{why}."[:300]
    return ""


def _find_cause(loaded: LoadResult, why: str) -> str:
    """Follow missing names to the first statement that failed, and say why it did."""
    for _ in loaded.failures:
        name = _MISSING.match(why)
        causes = [reason for names, reason, _ in loaded.failures if name and name[1] in names]
        if not causes or causes[0] == why:
            break
        why = causes[0]
    return why
