"""Grade one student: every exercise is judged, and a failure affects only its own exercise.

Role: ``grade_submission``, and ``Parts``, the functions that it and ``batch`` call. Submissions are
read by ``intake``, an answer is judged by ``judge`` in a worker of ``box``, and ``batch`` stores
the grade.
"""

import contextlib
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from vitedu.exercises import Exercise
from vitedu.grading.fingerprint import versions
from vitedu.grading.grades import (
    FAILED,
    NOT_GRADABLE,
    NOT_HANDED_IN,
    PASSED,
    Answer,
    ExerciseGrade,
    Flag,
    Submission,
    SubmissionGrade,
)
from vitedu.grading.running import StudentRuns

MIN_RUNS = 3  # draws of an answer, which must agree
MAX_SECONDS = 600.0  # wall-clock time of one student's answers; right ones take some 5 s
MAX_FRAMES = 12  # frames of a traceback that the log keeps


@dataclass(frozen=True)
class Parts:
    """The functions that grading calls; tests replace them."""

    find: Callable[..., Any]  # (folder, student_from=...) -> ``submissions.Intake``
    extract: Callable[[Submission], Any]  # -> ``extraction.Extraction``
    open_box: Callable[..., Any]  # (allow_unsafe=...) -> context manager with ``.level``
    grade: Callable[..., ExerciseGrade]  # (answer, seed, box, passed=..., runs=...) -> grade
    # (student -> exercise -> answer) -> (student -> flags)
    compare: Callable[[dict[str, dict[str, Answer]]], dict[str, list[Flag]]]


def real_parts() -> Parts:
    """Import and return the functions of the real grader."""
    from vitedu.grading.answers import grade_answer
    from vitedu.grading.box.isolation import IsolationError, open_box
    from vitedu.grading.box.limits import Limits
    from vitedu.grading.intake.reading import read_submission
    from vitedu.grading.intake.similarity import compare_class
    from vitedu.grading.intake.submissions import find_submissions

    def open_default_box(*, allow_unsafe: bool):
        try:
            return open_box(Limits(), allow_unsafe=allow_unsafe)
        except IsolationError as error:
            raise ValueError(str(error)) from None

    return Parts(find_submissions, read_submission, open_default_box, grade_answer, compare_class)


def grade_submission(
    submission: Submission,
    exercises: Sequence[Exercise],
    parts: Parts,
    box: Any,
    *,
    seed: int,
    runs: int = MIN_RUNS,
    polish: float | None = None,
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
        runs, polish: of each answer; see ``judge.grade_answer``. None: the checkers' own share.
        extraction: from ``Parts.extract``; default: it is called here.
        log: called with the traceback of a fault of the grader.

    Returns:
        The grade with an empty digest, which ``grade_class`` sets.
    """
    how = {"runs": runs} if polish is None else {"runs": runs, "polish": polish}
    start, answers, problems, flags = time.monotonic(), {}, {}, list(submission.flags)
    with catch_faults(log, submission.student, "reading") as fault:
        extraction = parts.extract(submission) if extraction is None else extraction
        answers, problems, flags = extraction.answers, extraction.problems, list(extraction.flags)
    missing = ("grader", fault[0]) if fault else ("no_cell", "")
    grades, passed = [], set[str]()
    with StudentRuns(box, extraction, exercises) as own_box:
        for exercise in exercises:
            grade: ExerciseGrade | None = None
            answer = answers.get(exercise.id)
            if answer is None:
                reason, detail = problems.get(exercise.id, missing)
                if reason == NOT_HANDED_IN:
                    grade = not_handed_in(exercise, detail)
                else:
                    grade = not_gradable(exercise, reason, detail)
            elif time.monotonic() - start > MAX_SECONDS:
                words = f"the answers before it took more than {MAX_SECONDS:g} s together"
                grade = not_gradable(exercise, "timeout", words)
            else:
                with catch_faults(log, submission.student, exercise.id) as own_fault:
                    grade = parts.grade(answer, seed, own_box, passed=frozenset(passed), **how)
                if grade is None:
                    grade = not_gradable(exercise, "grader", "".join(own_fault))
                elif grade.reason == "grader":  # ``Parts.grade`` reported a fault of its own
                    log(f"{ascii(submission.student)}, {exercise.id}: {grade.detail}")
            grades.append(grade)
            if grade.state == PASSED:
                passed.add(exercise.id)
    return SubmissionGrade(
        submission.student,
        [path.name for path in submission.files],
        "",
        seed,
        box.level,
        grades,
        flags,
        dict(submission.identity),
        versions(),
        round(time.monotonic() - start, 3),
    )


def not_gradable(exercise: Exercise, reason: str, detail: str = "") -> ExerciseGrade:
    """Make the grade of an exercise that a person must decide, with the reason."""
    return ExerciseGrade(
        exercise.id, NOT_GRADABLE, float(exercise.points), reason=reason, detail=detail
    )


def not_handed_in(exercise: Exercise, detail: str) -> ExerciseGrade:
    """Make the grade of an exercise whose whole notebook was not handed in: 0 points."""
    return ExerciseGrade(
        exercise.id,
        FAILED,
        float(exercise.points),
        0.0,
        detail=detail,
        attempted=False,
        headline=NOT_HANDED_IN,
    )


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
