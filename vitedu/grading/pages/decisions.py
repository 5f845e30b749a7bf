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
from vitedu.grading.grades import (
    FAILED,
    NOT_GRADABLE,
    PASSED,
    ExerciseGrade,
    SubmissionGrade,
    safe_cell,
)
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
    """
    text = Path(path).read_text(encoding="utf-8-sig")
    separator = ";" if text.partition("\n")[0].count(";") > 1 else ","
    graded = list(grades)
    known = {grade.student: grade for grade in graded}
    known |= {safe_cell(grade.student): grade for grade in graded}  # as the tables write them
    decisions: Decisions = {}
    for line, row in enumerate(csv.DictReader(text.splitlines(), delimiter=separator), 2):
        written = (row.get("points") or "").strip()
        if not written:
            continue
        try:
            student, each, points = _read_row(row, written, known, only_open)
        except ValueError as error:
            raise ValueError(f"{path}, line {line}: {error}") from None
        decisions.setdefault(student, {})[each.exercise] = {
            "points": points,
            "comment": (row.get(comment) or "").strip()[:MAX_COMMENT],
            "by": by,
            "digest": each.digest if only_open else "",
        }
    return decisions


def _read_row(
    row: dict, written: str, known: dict, only_open: bool
) -> tuple[str, ExerciseGrade, float]:
    grade, name = known.get(row.get("student") or ""), (row.get("exercise") or "").strip()
    if grade is None:
        raise ValueError(f"no student {row.get('student')!r} is graded.")
    ids = [exercise.id for exercise in select([name])]
    each = next((e for e in grade.exercises if [e.exercise] == ids), None)
    if each is None or (only_open and each.state != NOT_GRADABLE):
        state = "open" if only_open else "graded"
        raise ValueError(f"{name!r} of {grade.student} is not {state}.")
    most = each.max_points
    try:
        if 0 <= (points := float(written.replace(",", "."))) <= most:
            return grade.student, each, points
    except ValueError:
        pass
    raise ValueError(f"points must be a number from 0 to {most:g} (got {written!r}).")


def apply(grade: SubmissionGrade, *decisions: Mapping[str, Any]) -> SubmissionGrade:
    """Return a grade with the decisions that apply to it; later ones win."""
    exercises = grade.exercises
    for each in decisions:
        if isinstance(own := each.get(grade.student), dict):
            exercises = [_apply(one, own.get(one.exercise)) for one in exercises]
    return replace(grade, exercises=exercises)


def _apply(each: ExerciseGrade, decision: Any) -> ExerciseGrade:
    digest = decision.get("digest", "") if isinstance(decision, dict) else None
    if digest is None or (digest and (each.state, each.digest) != (NOT_GRADABLE, digest)):
        return each
    is_open, points = each.points is None, float(decision["points"])
    by_machine = "open" if is_open else f"{number(each.points or 0)} points"
    return replace(
        each,
        state=PASSED if points == each.max_points else FAILED,
        points=points,
        reason="",
        attempted=True,
        headline="graded by a person" if is_open else each.headline,
        comment=str(decision["comment"]),
        decided_by=f"{decision['by']} (by machine: {by_machine})",
    )
