"""What is late: ``deadlines.csv`` in the output folder, beside the times of the files.

Role: ``read_deadlines`` reads the table, and ``apply_deadlines`` flags a grade and takes points of
it where a row says so. Columns: student, notebook, due, and if wanted points_a_day. A row without a
student is for everybody, one without a notebook for all of them, and the most particular row
counts. A file's time is that of the file system, which an unpacked download keeps.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from vitedu.exercises import find, notebook_named
from vitedu.grading.grades import Flag, SubmissionGrade
from vitedu.grading.pages.decisions import read_rows
from vitedu.grading.pages.skeleton import count, number

DEADLINES = "deadlines.csv"
DAY = 24 * 60 * 60


# (student or "", notebook or "") -> when it is due, with a time zone, and the points a day
Deadlines = dict[tuple[str, str], tuple[datetime, float]]


def read_deadlines(path: Path, students: Iterable[str], warn: Callable[[str], None]) -> Deadlines:
    """Read the table; no rows where there is none.

    Args:
        path: the file, separated by commas or semicolons.
        students: of the class.
        warn: called with a line for each row of a student who is not among them.

    Raises:
        ValueError: a row names no notebook of the course, no date, or no number of points.
    """
    deadlines: Deadlines = {}
    for line, row in read_rows(path, students, warn) if path.exists() else ():
        try:
            notebook = notebook_named(row["notebook"]) if row["notebook"] else ""
            rate = float(row["points_a_day"].replace(",", ".") or 0)
            if not 0 <= rate < math.inf:
                raise ValueError(f"points_a_day must be 0 or more (got {rate:g}).")
            due = datetime.fromisoformat(row["due"])
        except ValueError as error:
            words = f"{error} A date is written 2026-10-05 23:59."
            raise ValueError(f"{path}, line {line}: {words}") from None
        if len(row["due"]) <= 10:  # a date alone: until its end
            due = due.replace(hour=23, minute=59, second=59)
        # without a time zone in the row, that of this computer
        deadlines[row["student"], notebook] = due.astimezone(), rate
    return deadlines


def apply_deadlines(
    grade: SubmissionGrade, deadlines: Deadlines, times: Mapping[str, float]
) -> SubmissionGrade:
    """Return a grade with a flag, and the points that go, for each notebook that came late.

    Args:
        grade: of one student.
        deadlines: from ``read_deadlines``.
        times: file of the course -> when its newest file was written, in seconds; "" is the name of
            files that bear no notebook's name.
    """
    flags, deductions = list(grade.flags), dict[str, float]()
    for notebook in dict.fromkeys(find(each.exercise).notebook for each in grade.exercises):
        keys = [(s, n) for s in (grade.student, "") for n in (notebook, "")]
        due, points = next((deadlines[key] for key in keys if key in deadlines), (None, 0.0))
        own = [time for stem, time in times.items() if not stem or stem.startswith(notebook)]
        late = max(own) - due.timestamp() if due and own else 0
        if due is None or late <= 0:
            continue
        days = math.ceil(late / DAY)
        when = datetime.fromtimestamp(max(own)).astimezone()
        words = f"{notebook}: handed in {when:%Y-%m-%d %H:%M}, due {due:%Y-%m-%d %H:%M}, "
        words += f"{count(days, 'day')} late"
        if points:
            deductions[notebook] = days * points
            words += f"; {number(deductions[notebook])} points less"
        flags.append(Flag("late", words))
    return replace(grade, flags=flags, deductions=deductions)
