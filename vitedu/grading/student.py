"""Grade one student: every exercise is judged, and a failure affects only its own exercise.

Role: ``grade_submission``, ``Parts``, the functions that it and ``batch`` call, and the
``versions`` of all that decides a grade. Submissions are read by ``intake``, an answer is judged by
``judge`` in a worker of ``box``, and ``batch`` stores the grade.
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
from vitedu.checks.writing.checker import MOST_POLISH
from vitedu.exercises import EXERCISES, Exercise
from vitedu.grading.answers import grade_answer
from vitedu.grading.box.isolation import open_box
from vitedu.grading.grades import (
    NOT_HANDED_IN,
    PASSED,
    ExerciseGrade,
    Submission,
    SubmissionGrade,
    not_gradable,
    not_handed_in,
)
from vitedu.grading.intake.reading import read_submission
from vitedu.grading.intake.similarity import compare_class
from vitedu.grading.intake.submissions import find_submissions
from vitedu.grading.running import StudentRuns

MIN_RUNS = 3  # draws of an answer, which must agree
MAX_SECONDS = 600.0  # wall-clock time of one student's answers; right ones take some 5 s
MAX_FRAMES = 12  # frames of a traceback that the log keeps
# the files whose text decides a grade: what judges, the checkers, their words, the references
SOURCES = [
    *"checks/**/*.py checks/**/*.toml grading/box/*.* grading/intake/*.py".split(),
    *"grading/transport/*.py grading/[agjrs]*.py".split(),
    # with the options of models in arguments
    *"grading/words.toml exercises.* words.py options.py fast.py".split(),
    *sorted({f"{exercise.module.removeprefix('vitedu.')}.py" for exercise in EXERCISES}),
]


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
    runs: int = MIN_RUNS,
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
        runs, polish: of each answer; see ``judge.grade_answer``.
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
    grades, passed = [], set[str]()
    with StudentRuns(box, extraction, exercises) as own_box:
        for exercise in exercises:
            reason, detail = problems.get(exercise.id, missing)
            grade: ExerciseGrade | None = None
            if exercise.id in answers and time.monotonic() - start > MAX_SECONDS:
                reason = "timeout"
                detail = f"the answers before it took more than {MAX_SECONDS:g} s together"
            elif exercise.id in answers:
                how = {"passed": frozenset(passed), "runs": runs, "polish": polish}
                with catch_faults(log, submission.student, exercise.id) as fault:
                    grade = parts.grade(answers[exercise.id], seed, own_box, **how)
                reason, detail = "grader", "".join(fault)
                if grade and grade.reason == "grader":  # it reported a fault of its own
                    log(f"{ascii(submission.student)}, {exercise.id}: {grade.detail}")
            elif reason == NOT_HANDED_IN:
                grade = not_handed_in(exercise, detail)
            grades.append(grade or not_gradable(exercise, reason, detail))
            passed |= {exercise.id} if grades[-1].state == PASSED else set()
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
