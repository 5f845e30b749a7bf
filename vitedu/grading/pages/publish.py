"""``vitedu grade``: grade a class and write all results.

Role: ``main_grade`` is the command. ``publish`` turns stored grades into tables, pages and files
for learning platforms. Each file depends only on the grades, and is written only if it changes.
``batch`` grades.
"""

import getpass
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from vitedu.grading.batch import Outcome, grade_class
from vitedu.grading.decisions import FILE as DECISIONS
from vitedu.grading.decisions import OVERRIDES, apply, read_points
from vitedu.grading.grades import SubmissionGrade
from vitedu.grading.pages.class_report import Summary, report_page, summarise
from vitedu.grading.pages.exports import (
    canvas_csv,
    classroom_results,
    grades_csv,
    gradescope_results,
    moodle_csv,
    open_csv,
    totals_csv,
)
from vitedu.grading.pages.feedback import feedback_page
from vitedu.grading.pages.skeleton import STORED, clean, count, number, render
from vitedu.grading.store import TABLES, Store, safe_name

# format -> its file or folder; what an earlier run has written is renewed
FORMATS = {"gradescope": "gradescope/", "canvas": "canvas.csv", "moodle": "moodle.csv"}
FORMATS |= {"classroom": "classroom.json"}
IDS = {"canvas": "canvas_id", "moodle": "moodle_id"}  # the id by which a platform finds a student


def main_grade(
    folder: Path,
    out: Path,
    *,
    formats: Sequence[str] = (),
    assignment: str = "",
    decisions: Path | None = None,
    **choices,
) -> int:
    """Grade a class, write everything, print a summary.

    Args:
        folder, out, **choices: see ``batch.grade_class``.
        formats: of ``FORMATS``, in addition to what is always written and to those of earlier runs.
        decisions: an ``open.csv`` in which a person has filled in points and comments.
        assignment: the column of ``canvas.csv``; default: that of earlier runs, or a column for
            each notebook.

    Returns:
        0. It means that every submission has a grade, even if some exercises are not gradable.
    """
    lines: list[str] = []

    def on_finish(store: Store, outcome: Outcome) -> None:
        if decisions:
            lines.append(store_decisions(store, outcome, decisions))
        lines.extend(publish(store, outcome, formats=formats, assignment=assignment))

    outcome = grade_class(folder, out, on_finish=on_finish, **choices)
    summary = (
        f"{count(len(outcome.students), 'submission')}: {outcome.num_new} graded now, "
        f"{outcome.num_stored} before"
    )
    if outcome.num_pending:
        summary += f"; {outcome.num_pending} with something new or changed and not asked for"
    for name, often in outcome.other_notebooks.items():
        lines.append(
            f"{name}: held by {count(often, 'submission')} and not graded; --notebook {name} "
            "grades it."
        )
    level = f" Isolation: {outcome.level}." if outcome.level else ""
    print("\n".join([f"{summary}.{level} {outcome.seconds:.1f} s.", *lines, STORED]))
    return 0


def publish(
    store: Store, outcome: Outcome, *, formats: Sequence[str] = (), assignment: str = ""
) -> list[str]:
    """Write tables and pages, also those for other programs that an earlier run has written.

    Returns:
        Lines for the terminal.

    Raises:
        OSError: the folder cannot be written.
        ValueError: ``overrides.csv`` is wrong.
    """
    exercises, students = outcome.exercises, outcome.students
    ids = {exercise.id for exercise in exercises}
    settings = store.load_json(TABLES)
    formats = [f for f, name in FORMATS.items() if f in formats or (store.out / name).exists()]
    assignment = assignment or settings.get("assignment", "")
    store.write_json(TABLES, settings | {"assignment": assignment})
    known, overrides = store.load_json(DECISIONS), {}
    if (path := store.out / OVERRIDES).exists():
        stored = store.load_all(students)
        overrides = read_points(path, stored, OVERRIDES, comment="reason", only_open=False)

    def grades() -> Iterator[SubmissionGrade]:
        for grade in store.load_all(students):
            own = [*grade.flags, *outcome.class_flags.get(grade.student, ())]
            yield apply(replace(grade.limit_to(ids), flags=own), known, overrides)

    store.write("grades.csv", grades_csv(grades()))
    store.write("totals.csv", totals_csv(grades(), len(exercises)))
    store.write("open.csv", open_csv(grades()))
    if "canvas" in formats:
        store.write("canvas.csv", canvas_csv(grades(), exercises, assignment))
    if "moodle" in formats:
        store.write("moodle.csv", moodle_csv(grades(), exercises))
    without_id: Counter[str] = Counter()
    for grade in grades():
        name = safe_name(grade.student)
        without_id.update(format for format, key in IDS.items() if key not in grade.identity)
        store.write(f"feedback/{name}.html", _write_feedback(store, grade))
        if "gradescope" in formats:
            store.write(f"gradescope/{name}.json", json.dumps(gradescope_results(grade), indent=1))
        if "classroom" in formats:
            store.write_json("classroom.json", classroom_results(grade, os.environ))
    store.remove_others("feedback", ".html", students)
    store.remove_others("gradescope", ".json", students)
    summary = summarise(grades(), exercises, outcome.problems)
    store.write("report.html", report_page(summary))
    lines = [
        f"{format}.csv: {count(without_id[format], 'student')} without the number that "
        f"{format.title()} gives; name them by hand or grade its own download."
        for format in IDS
        if format in formats and without_id[format]
    ]
    if overrides:
        decided = count(sum(map(len, overrides.values())), "exercise")
        lines.append(f"{decided} decided by {path}.")
    return lines + _summary_lines(store.out, summary, formats)


def store_decisions(store: Store, outcome: Outcome, path: Path) -> str:
    """Read a person's decisions and store them beside the grades; return a line for the terminal.

    Raises:
        ValueError, OSError: as ``read_points``.
    """
    grades = store.load_all(outcome.students)
    new = read_points(path, grades, getpass.getuser(), comment="comment", only_open=True)
    known = store.load_json(DECISIONS)
    for student, own in new.items():
        known[student] = {**known.get(student, {}), **own}
    store.write_json(DECISIONS, known)
    return f"{count(sum(map(len, new.values())), 'open exercise')} decided by {path}."


def _write_feedback(store: Store, grade: SubmissionGrade) -> str:
    """Write a student's page, or a page with the points only after a fault of the grader."""
    try:
        return feedback_page(grade)
    except Exception as error:
        store.log(f"{ascii(grade.student)}, feedback: {type(error).__name__}: {error}")
        return render("points_only.html", title="Feedback", grade=grade)


def _summary_lines(out: Path, summary: Summary, formats: Sequence[str]) -> list[str]:
    rows = summary.rows
    open_rows = [row for row in rows if row.open_points]
    concerned = [row for row in rows if row.concerns]
    of = f" ({len(summary.final)} of {len(rows)} are final)" if summary.final != rows else ""
    lines = [
        f"Mean {summary.average(name='core_points')} of {number(summary.core_max)} core points, "
        f"{summary.average()} of all {number(summary.max_points)}{of}."
    ]
    if open_rows:
        points = sum(row.open_points for row in open_rows)
        lines.append(
            f"{number(points)} points of {count(len(open_rows), 'submission')} are open, since "
            f"they could not be graded: {out / 'open.csv'}"
        )
    if concerned:
        lines.append(f"{count(len(concerned), 'submission')} should be seen by a person.")
    for words, often in summary.faults.most_common(3):
        lines.append(
            f"The grader itself failed at {count(often, 'answer')}: {clean(words)} "
            "The same command again grades them alone."
        )
    lines += [f"{out}: {clean(flag.message)}" for flag in summary.problems]
    names = ["report.html", "feedback/", "grades.csv", "totals.csv"]
    lines.append(f"{out}: {', '.join([*names, *(FORMATS[each] for each in formats)])}")
    return lines
