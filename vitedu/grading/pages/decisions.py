"""What a person decides about points: rows of a filled-in ``open.csv``, and ``overrides.csv``.

Role: ``read_points`` reads either file and ``apply`` changes a grade. A decision from ``open.csv``
is stored; it counts only while the exercise is open and the digest of its grade is the same, so a
new submission waits for a person again. ``overrides.csv`` in the output folder is read on every
grading and counts as long as its row is there. The stored grade does not change.
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from vitedu.exercises import select
from vitedu.grading.grades import FAILED, NOT_GRADABLE, PASSED, ExerciseGrade, SubmissionGrade
from vitedu.grading.pages.exports import safe_cell
from vitedu.grading.pages.skeleton import number

FILE = "decisions.json"
OVERRIDES = "overrides.csv"  # its columns: student, exercise, points, reason
MAX_COMMENT = 1000  # the most characters of a comment

# student -> exercise -> points, comment, by, and the digest for which it counts; "": any
Decisions = dict[str, dict[str, dict[str, Any]]]


def read_points(
    path: Path, grades: Iterable[SubmissionGrade], by: str, *, comment: str, only_open: bool
) -> Decisions:
    """Read the rows of a table that have points.

    Args:
        path: the file, separated by commas or semicolons.
        grades: of the class.
        by: the person who decides, or the file that says so.
        comment: the column with the reason.
        only_open: whether rows may name open exercises only.

    Raises:
        ValueError: a row has an unknown student or exercise, or impossible points.
        OSError: the file cannot be read.
    """
    text = Path(path).read_text(encoding="utf-8-sig")
    separator = ";" if text.partition("\n")[0].count(";") > 1 else ","
    graded = list(grades)
    known = {grade.student: grade for grade in graded}
    known |= {safe_cell(grade.student): grade for grade in graded}  # as the tables write them
    decisions: Decisions = {}
    for line, row in enumerate(csv.DictReader(text.splitlines(), delimiter=separator), 2):
        where, words = f"{path}, line {line}", (row.get("points") or "").strip()
        if not words:
            continue
        grade, name = known.get(row.get("student") or ""), (row.get("exercise") or "").strip()
        if grade is None:
            raise ValueError(f"{where}: no student {row.get('student')!r} is graded.")
        try:
            ids = [exercise.id for exercise in select([name])]
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
        each = next((e for e in grade.exercises if [e.exercise] == ids), None)
        if each is None or (only_open and each.state != NOT_GRADABLE):
            state = "open" if only_open else "graded"
            raise ValueError(f"{where}: {name!r} of {grade.student} is not {state}.")
        try:
            points = float(words.replace(",", "."))
        except ValueError:
            points = -1.0
        if not 0 <= points <= each.max_points:
            most = f"{each.max_points:g}"
            raise ValueError(f"{where}: points must be a number from 0 to {most} (got {words!r}).")
        decisions.setdefault(grade.student, {})[each.exercise] = {
            "points": points,
            "comment": (row.get(comment) or "").strip()[:MAX_COMMENT],
            "by": by,
            "digest": each.digest if only_open else "",
        }
    return decisions


def apply(grade: SubmissionGrade, *decisions: Mapping[str, Any]) -> SubmissionGrade:
    """Return a grade with the decisions that apply to it; later ones win."""
    exercises = grade.exercises
    for each in decisions:
        own = each.get(grade.student)
        if isinstance(own, dict):
            exercises = [_apply(one, own.get(one.exercise)) for one in exercises]
    return replace(grade, exercises=exercises)


def _apply(each: ExerciseGrade, decision: Any) -> ExerciseGrade:
    if not isinstance(decision, dict):
        return each
    digest = decision.get("digest")
    if digest and (each.state != NOT_GRADABLE or digest != each.digest):
        return each
    points = float(decision["points"])
    by_machine = "open" if each.points is None else f"{number(each.points)} points"
    return replace(
        each,
        state=PASSED if points == each.max_points else FAILED,
        points=points,
        reason="",
        attempted=True,
        headline=each.headline if each.points is not None else "graded by a person",
        comment=str(decision["comment"]),
        decided_by=f"{decision['by']} (by machine: {by_machine})",
    )
