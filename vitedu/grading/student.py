"""Grade one student: every exercise is judged, and a failure affects only its own exercise.

Role: ``grade_submission``, ``grade_answer``, ``Parts``, the functions that ``batch`` and it call,
and the ``versions`` of all that decides a grade. Submissions are read by ``intake``, ``running``
has the answers judged, and ``batch`` stores the grade. A wrong answer gets its points, and a right
one that could not be run here is open, with the cell and its error: never a zero that nobody can
explain.
"""

import contextlib
import functools
import hashlib
import platform
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from vitedu import __version__
from vitedu.checks.explaining.report import Report
from vitedu.checks.writing.checker import MOST_POLISH
from vitedu.exercises import Exercise, find
from vitedu.grading.box.isolation import open_box
from vitedu.grading.grades import (
    NOT_HANDED_IN,
    PASSED,
    REASONS,
    Answer,
    ExerciseGrade,
    Flag,
    Submission,
    SubmissionGrade,
    not_gradable,
    not_handed_in,
)
from vitedu.grading.intake.flags import compare_class
from vitedu.grading.intake.reading import read_submission
from vitedu.grading.intake.submissions import find_submissions
from vitedu.grading.judge import Judge, Verdict, copy_report
from vitedu.grading.running import Found, Run, StudentRuns

MAX_FRAMES = 12  # frames of a traceback that the log keeps
MAX_KEPT = 6000  # the most characters of code that a grade keeps
SYNTAX = ("SyntaxError", "IndentationError", "TabError")
# files whose text decides a grade: what judges, checkers, words, references, options of models
SOURCES = (
    "checks/**/*.py checks/**/*.toml grading/box/*.* grading/intake/*.py grading/transport/*.py "
    "grading/[gjrs]*.py grading/words.toml *.py course/exercises.toml ground/words.py "
    "extras/options.py extras/fast.py"
).split()


def grade_answer(answer: Answer, runs: StudentRuns) -> ExerciseGrade:
    """Grade one answer from what the runs of the student's notebooks found."""
    exercise, start = find(answer.exercise), time.perf_counter()
    all_found, all_runs = runs.found
    found = all_found.get(answer.exercise)
    verdict = _judge_found(found) if found else _explain(answer.exercise, all_runs)
    if verdict.reason == "no_cell" and any(exercise.id in s.blank for s in runs.extraction.scripts):
        verdict = Verdict(Report(exercise.id).set_not_attempted())
    flags = [*answer.flags, *_find_flags(answer.exercise, verdict, found, runs)]
    grade = ExerciseGrade(
        answer.exercise,
        verdict.state,
        float(exercise.points),
        verdict.points,
        reason=verdict.reason,
        detail=verdict.detail,
        flags=flags,
        runs=len(found.results) if found else 0,
        headline=REASONS.get(verdict.reason, ""),
        seconds=round(time.perf_counter() - start, 3),
    )
    if verdict.report is not None:
        copy_report(grade, verdict.report)
    if grade.state != PASSED and grade.attempted:
        grade.code = answer.source[:MAX_KEPT]
        grade.place = f"{answer.notebook}, cell {answer.cell}" if answer.cell else answer.notebook
    return grade


def _judge_found(found: Found) -> Verdict:
    """Return the verdict on an answer; it is open if it failed and misses something."""
    verdict = found.final
    if verdict.reason or verdict.state == PASSED or verdict.is_stub or not found.lost:
        return verdict
    number, name, error = found.lost[0]
    words = f"it needs {name}; cell {number} ended here in {error}"
    if number < 0:
        words = f"it needs {name}, which is made of the course's data; they are not here"
    return Verdict(reason="import", detail=words)


def _find_flags(
    exercise: str, verdict: Verdict, found: Found | None, runs: StudentRuns
) -> list[Flag]:
    flags = []
    if verdict.reason == "unstable":
        flags.append(Flag("unstable", f"Draws disagreed: {verdict.detail}."))
    if found and any(each.is_undecided for each in found.results):
        words = "What it does on another device could not be seen: it ended in an error there."
        flags.append(Flag("undecided", words))
    for script in runs.extraction.scripts if verdict.state != PASSED else ():
        if number := script.passes.get(exercise):
            words = f"cell {number} of {script.name} shows that it passed there"
            flags.append(Flag("stored_verdict", words))
            break
    return flags


def _explain(exercise: str, runs: list[Run]) -> Verdict:
    """Say why no run came to an answer, from the cell that would have bound it."""
    for run in runs:
        for place in reversed(run.script.defines.get(exercise, ())):
            if verdict := _explain_cell(exercise, run.script.cells[place].number, run):
                return verdict
        if -1 in run.troubles:
            return Verdict(None, *run.troubles[-1])
        if exercise in run.hidden:
            report = Report(exercise)
            report.status, report.headline = "failed", "a reference of the course is not an answer"
            return Verdict(report)
        if exercise in run.absent:
            words = "it is made of the course's data, which are not here"
            return Verdict(reason="import", detail=words)
    return Verdict(reason="no_cell", detail=f"no cell that ran here binds {exercise}")


def _explain_cell(exercise: str, number: int, run: Run) -> Verdict | None:
    if number in run.troubles:
        reason, detail = run.troubles[number]
        return Verdict(reason=reason, detail=f"cell {number}: {detail}")
    errors = [error for error in run.errors if error[0] == number]
    errors.sort(key=lambda error: exercise in error[3] or error[1] in SYNTAX)
    if not errors:
        return None
    missing = [error for error in errors if error[1] in ("ImportError", "ModuleNotFoundError")]
    _, kind, text, _ = missing[0] if missing and errors[-1][1] == "NameError" else errors[-1]
    reasons = dict.fromkeys(SYNTAX, "syntax") | {"TimeUp": "timeout", "MemoryError": "memory"}
    return Verdict(reason=reasons.get(kind, "import"), detail=f"cell {number}: {kind}: {text}")


@dataclass(frozen=True)
class Parts:
    """The functions that grading calls; tests replace them."""

    find: Callable[..., Any] = find_submissions
    extract: Callable[[Submission], Any] = read_submission
    open_box: Callable[..., Any] = open_box
    grade: Callable[..., ExerciseGrade] = grade_answer
    compare: Callable[[dict], dict] = compare_class  # of all answers -> student -> flags


def grade_submission(
    submission: Submission,
    exercises: Sequence[Exercise],
    parts: Parts,
    box: Any,
    *,
    seed: int,
    polish: float = MOST_POLISH,
    extraction: Any = None,
    log: Callable[[str], None] = lambda text: None,
) -> SubmissionGrade:
    """Grade one student. Never raises because of what was handed in.

    Args:
        submission: from ``Parts.find``.
        exercises: what is graded, in this order, whether or not it was handed in.
        parts: the functions that do the work.
        box: where answers run.
        seed: of the secret inputs.
        polish: the share of the points that polish has at most; ``Checker.most_polish``.
        extraction: from ``Parts.extract``; default: it is called here.
        log: called with the traceback of a fault of the grader.

    Returns:
        The grade with an empty digest, which ``grade_class`` sets.
    """
    start, answers, problems, flags = time.monotonic(), {}, {}, list(submission.flags)
    with catch_faults(log, submission.student, "reading") as fault:
        extraction = parts.extract(submission) if extraction is None else extraction
        answers, problems, flags = extraction.answers, extraction.problems, list(extraction.flags)
    missing = ("grader", fault[0]) if fault else ("no_cell", "")
    grades, runs = [], StudentRuns(box, extraction, exercises, Judge(seed, polish))
    for exercise in exercises:
        reason, detail = problems.get(exercise.id, missing)
        grade: ExerciseGrade | None = None
        if exercise.id in answers:
            with catch_faults(log, submission.student, exercise.id) as fault:
                grade = parts.grade(answers[exercise.id], runs)
            reason, detail = "grader", "".join(fault)
            if grade and grade.reason == "grader":  # it reported a fault of its own
                log(f"{ascii(submission.student)}, {exercise.id}: {grade.detail}")
        elif reason == NOT_HANDED_IN:
            grade = not_handed_in(exercise, detail)
        grades.append(grade or not_gradable(exercise, reason, detail))
    files, identity = [path.name for path in submission.files], dict(submission.identity)
    whole = SubmissionGrade(submission.student, files, "", seed, box.level, grades, flags, identity)
    return replace(whole, versions=versions(), seconds=round(time.monotonic() - start, 3))


@contextlib.contextmanager
def catch_faults(log: Callable[[str], None], student: str, where: str):
    """Catch a fault of the grader: add a line to the yielded list, and log the traceback."""
    fault: list[str] = []
    try:
        yield fault
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit as well, because the batch must continue
        fault.append(f"{type(error).__name__} in the grader; grader.log has the lines")
        lines = traceback.format_exc(limit=-MAX_FRAMES).splitlines()[-2 * MAX_FRAMES :]
        log(f"{ascii(student)}, {where}:\n  " + "\n  ".join(line[:500] for line in lines))


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of what judges, with a hash of the references, checkers and grader."""
    package, total = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted({path for pattern in SOURCES for path in package.glob(pattern)}):
        total.update(path.read_bytes())
    own = {"vitedu": __version__, "checkers": total.hexdigest()[:12]}
    return own | {"torch": str(torch.__version__), "python": platform.python_version()}
