"""Decisions of a person about open points, read from a filled-in ``open.csv``.

Role: ``read_decisions`` reads the file and ``apply_decisions`` applies decisions to a grade. A
decision counts only if the exercise is still open and the grade's digest is the same, so a new
submission waits for a person again. The stored grade does not change. ``pages.exports`` writes
``open.csv``.
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from vitedu.grading.grades import FAILED, NOT_GRADABLE, PASSED, ExerciseGrade, SubmissionGrade
from vitedu.grading.pages.exports import safe_cell

FILE = "decisions.json"
MAX_COMMENT = 1000  # the most characters of a comment

# student -> exercise -> points, comment, by, digest
Decisions = dict[str, dict[str, dict[str, Any]]]


def read_decisions(path: Path, grades: Iterable[SubmissionGrade], by: str) -> Decisions:
    """Read the rows of a filled-in ``open.csv`` that have points.

    Args:
        path: the file, separated by commas or semicolons.
        grades: of the class.
        by: the person who decides.

    Raises:
        ValueError: a row has an unknown student, an exercise that is not open, or impossible
            points.
        OSError: the file cannot be read.
    """
    text = Path(path).read_text(encoding="utf-8-sig")
    separator = ";" if text.partition("\n")[0].count(";") > 1 else ","
    known = {safe_cell(grade.student): grade for grade in grades}
    decisions: Decisions = {}
    for number, row in enumerate(csv.DictReader(text.splitlines(), delimiter=separator), 2):
        words = (row.get("points") or "").strip()
        if not words:
            continue
        grade = known.get(row.get("student") or "")
        if grade is None:
            raise ValueError(f"{path}, line {number}: no student {row.get('student')!r} is graded.")
        name = row.get("exercise") or ""
        each = next((e for e in grade.exercises if e.exercise == name), None)
        if each is None or each.state != NOT_GRADABLE:
            raise ValueError(f"{path}, line {number}: {name!r} of {grade.student} is not open.")
        try:
            points = float(words.replace(",", "."))
        except ValueError:
            points = -1.0
        if not 0 <= points <= each.max_points:
            raise ValueError(
                f"{path}, line {number}: points must be a number from 0 to {each.max_points:g} "
                f"(got {words!r})."
            )
        comment = (row.get("comment") or "").strip()[:MAX_COMMENT]
        decision = {"points": points, "comment": comment, "by": by, "digest": grade.digest}
        decisions.setdefault(grade.student, {})[name] = decision
    return decisions


def apply_decisions(grade: SubmissionGrade, decisions: Mapping[str, Any]) -> SubmissionGrade:
    """Return a grade with the decisions that apply to it."""
    own = decisions.get(grade.student)
    if not isinstance(own, dict):
        return grade
    exercises = [_apply(each, own.get(each.exercise), grade.digest) for each in grade.exercises]
    return replace(grade, exercises=exercises)


def _apply(each: ExerciseGrade, decision: Any, digest: str) -> ExerciseGrade:
    if each.state != NOT_GRADABLE or not isinstance(decision, dict):
        return each
    if decision.get("digest") != digest:
        return each
    points = float(decision["points"])
    return replace(
        each,
        state=PASSED if points == each.max_points else FAILED,
        points=points,
        reason="",
        headline="graded by a person",
        comment=str(decision["comment"]),
        decided_by=str(decision["by"]),
    )
