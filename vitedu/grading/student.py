"""One student is graded: each exercise judged, each trouble a finding of its own.

Role: ``grade_submission`` and ``Parts``, the functions that it and a class are made of. Not here: how submissions are
read (``submissions``, ``extraction``), how an answer is judged (``judge``), where it runs (``isolation``), what becomes
of the grade (``batch``, ``store``).
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
    Answer,
    ExerciseGrade,
    Flag,
    Submission,
    SubmissionGrade,
)

MIN_RUNS = 3  # an answer that is right one time in three passes in 5 % of all gradings
MOST_SECONDS = 600.0  # wall clock of one student's answers; right ones take some 5
KEPT_TRACEBACK = 12  # lines of one fault in the log


@dataclass(frozen=True)
class Parts:
    """The functions that grading puts together; tests put others in their place."""

    find: Callable[..., Any]  # (folder, student_from=...) -> submissions and problems
    extract: Callable[[Submission], Any]  # -> answers, problems and flags of one
    open_box: Callable[..., Any]  # (allow_unsafe=...) -> context manager with ``.level``
    grade: Callable[..., ExerciseGrade]  # (answer, seed, box, runs=...) -> grade
    compare: Callable[[dict[str, dict[str, Answer]]], dict[str, list[Flag]]]
    # student -> exercise -> answer, to student -> what a person should look at


def real_parts() -> Parts:
    """Load the grader proper."""
    from vitedu.grading.box.isolation import IsolationError, open_box
    from vitedu.grading.box.limits import Limits
    from vitedu.grading.intake.extraction import extract
    from vitedu.grading.intake.similarity import compare_class
    from vitedu.grading.intake.submissions import look_through
    from vitedu.grading.judge import grade_answer

    def open_default_box(*, allow_unsafe: bool):
        try:
            return open_box(Limits(), allow_unsafe=allow_unsafe)
        except IsolationError as error:
            raise ValueError(str(error)) from None

    return Parts(look_through, extract, open_default_box, grade_answer, compare_class)


def grade_submission(
    submission: Submission,
    exercises: Sequence[Exercise],
    parts: Parts,
    box: Any,
    *,
    seed: int,
    runs: int = MIN_RUNS,
    extraction: Any = None,
    log: Callable[[str], None] = lambda text: None,
) -> SubmissionGrade:
    """Grade one student. Never raises because of what was handed in.

    Args:
        submission: what ``Parts.find`` gave.
        exercises: what is graded, in this order, whether or not it was handed in.
        parts: the functions that do the work.
        box: where answers run.
        seed: of the secret inputs.
        runs: processes that must agree about an exercise; see ``judge.grade_answer``.
        extraction: what ``Parts.extract`` gave, if that is known already.
        log: takes the traceback of a fault of the grader.

    Returns:
        The grade with an empty digest; ``grade_class`` fills it in.
    """
    start, answers, problems, flags = time.monotonic(), {}, {}, list(submission.flags)
    with faults(log, submission.student, "reading") as fault:
        found = parts.extract(submission) if extraction is None else extraction
        answers, problems, flags = found.answers, found.problems, list(found.flags)
    grades = []
    shared = getattr(box, "shared", None)
    with shared() if shared else contextlib.nullcontext(box) as own_box:
        for exercise in exercises:
            if fault:
                grades.append(not_gradable(exercise, "grader", fault[0]))
                continue
            answer = answers.get(exercise.id)
            if answer is None:
                reason, detail = problems.get(exercise.id, ("no_cell", ""))
                if reason == NOT_HANDED_IN:
                    grades.append(not_handed_in(exercise, detail))
                else:
                    grades.append(not_gradable(exercise, reason, detail))
                continue
            if time.monotonic() - start > MOST_SECONDS:
                words = f"the answers before it took more than {MOST_SECONDS:g} s together"
                grades.append(not_gradable(exercise, "timeout", words))
                continue
            grade = None
            with faults(log, submission.student, exercise.id) as own_fault:
                grade = parts.grade(answer, seed, own_box, runs=runs)
            if own_fault or grade is None:
                grade = not_gradable(exercise, "grader", "".join(own_fault))
            elif grade.reason == "grader":  # a part told of its own fault
                log(f"{ascii(submission.student)}, {exercise.id}: {grade.detail}")
            grades.append(grade)
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
    """Say that an exercise has no points yet, and why."""
    return ExerciseGrade(
        exercise.id, NOT_GRADABLE, float(exercise.points), reason=reason, detail=detail
    )


def not_handed_in(exercise: Exercise, detail: str) -> ExerciseGrade:
    """Give the 0 of an exercise whose whole notebook was not handed in."""
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
def faults(log: Callable[[str], None], student: str, where: str):
    """Keep a fault of the grader: its last line in the list that is given, its traceback in the log."""
    fault: list[str] = []
    try:
        yield fault
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also those that are no Exception: a batch has to go on
        fault.append(f"{type(error).__name__} in the grader; grader.log has the lines")
        lines = traceback.format_exc(limit=-KEPT_TRACEBACK).splitlines()[-2 * KEPT_TRACEBACK :]
        log(f"{ascii(student)}, {where}:\n  " + "\n  ".join(line[:500] for line in lines))
