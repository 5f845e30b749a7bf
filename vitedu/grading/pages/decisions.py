"""What a person decides about points: rows of a filled-in ``open.csv``, and ``overrides.csv``.

Role: ``read_points`` reads either file and ``apply`` changes a grade. A decision from ``open.csv``
is stored; it counts only while the exercise is open and the digest of its grade is the same, so a
new submission waits for a person again. ``overrides.csv`` in the output folder is read on every
grading. A row counts while it is there and the student's files are those for which it was first
read (``bind_rows``). The stored grade does not change.
"""

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
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
    path: Path,
    grades: Iterable[SubmissionGrade],
    by: str,
    *,
    only_open: bool,
    warn: Callable[[str], None],
) -> Decisions:
    """Read the rows of a table that have points or, in ``overrides.csv``, a comment.

    Args:
        path: the file, separated by commas or semicolons.
        grades: of the class.
        by: the person who decides, or the file that says so.
        only_open: whether rows may name open exercises only; then the comment stands in the column
            of that name, else in "reason".
        warn: called with a line for each row of a student who is not in the class.

    Raises:
        ValueError: a row has an unknown exercise, or impossible points.
    """
    known, decisions = {grade.student: grade for grade in grades}, Decisions()
    for line, row in read_rows(path, known, warn):
        written, words = row["points"], row["comment" if only_open else "reason"][:MAX_COMMENT]
        if not row["student"] or (not written and (only_open or not words)):
            continue
        grade = known[row["student"]]
        try:
            each, points = _read_row(row, written, grade, only_open)
        except ValueError as error:
            raise ValueError(f"{path}, line {line}: {error}") from None
        decisions.setdefault(grade.student, {})[each.exercise] = {
            "points": points,
            "comment": words,
            "by": by,
            "digest": each.digest if only_open else "",
        }
    return decisions


def _read_row(
    row: Mapping[str, str], written: str, grade: SubmissionGrade, only_open: bool
) -> tuple[ExerciseGrade, float | None]:
    name = row["exercise"]
    ids = [exercise.id for exercise in select([name])]
    each = next((e for e in grade.exercises if [e.exercise] == ids), None)
    if each is None or (only_open and each.state != NOT_GRADABLE):
        state = "open" if only_open else "graded"
        raise ValueError(f"{name!r} of {grade.student} is not {state}.")
    most = each.max_points
    if not written:
        return each, None
    try:
        if 0 <= (points := float(written.replace(",", "."))) <= most:
            return each, points
    except ValueError:
        pass
    raise ValueError(f"points must be a number from 0 to {most:g} (got {written!r}).")


def read_rows(
    path: Path, students: Iterable[str], warn: Callable[[str], None]
) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield line and cells of each row of a table, separated by commas or semicolons.

    A student is written as here or as in the tables; ``warn`` gets a line for one who is unknown,
    and the row is left out.
    """
    names = list(students)
    known = {name: name for name in ["", *names]} | {safe_cell(name): name for name in names}
    text = path.read_text(encoding="utf-8-sig")
    separator = ";" if text.partition("\n")[0].count(";") > 1 else ","
    for line, row in enumerate(csv.DictReader(text.splitlines(), delimiter=separator), 2):
        cells = defaultdict(str, {key: (row[key] or "").strip() for key in row if key})
        if cells["student"] in known and any(cells.values()):
            yield line, cells | {"student": known[cells["student"]]}
        elif any(cells.values()):
            warn(f"{path.name}, line {line}: no student {cells['student']!r} is graded")


def bind_rows(
    decisions: Decisions, bound: Mapping[str, str], files: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Take out the rows that a student's newer files have made stale.

    Args:
        decisions: from ``read_points``; it is changed.
        bound: row -> hash of the files for which it was read first; from the last grading.
        files: student -> hash of what was handed in.

    Returns:
        ``bound`` for the next grading, and a line for each row that was taken out.
    """
    now, stale = {}, []
    for student, own in decisions.items():
        for exercise, row in list(own.items()):
            key = "\t".join([student, exercise, str(row["points"]), row["comment"]])
            now[key] = bound.get(key) or files.get(student, "")
            if now[key] != files.get(student, ""):
                stale.append(
                    f"{row['by']}: {student} has handed in anew since the row of {exercise}, so it "
                    "counts no more; change its reason to decide again"
                )
                del own[exercise]
    return now, stale


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
    if decision["points"] is None:
        return replace(each, comment=str(decision["comment"]))
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
