"""``vitedu grade``: grade a class and write all results.

Role: ``main_grade`` is the command. ``publish`` turns stored grades into tables, pages and files
for learning platforms. Each file depends only on the grades, and is written only if it changes.
``batch`` grades.
"""

import getpass
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from vitedu.exercises import Exercise
from vitedu.grading.batch import Outcome, grade_class
from vitedu.grading.decisions import FILE as DECISIONS
from vitedu.grading.decisions import apply_decisions, read_decisions
from vitedu.grading.grades import Flag, SubmissionGrade
from vitedu.grading.pages.class_report import explain_mistake, report_page
from vitedu.grading.pages.class_summary import Summary, summarise
from vitedu.grading.pages.exports import (
    canvas_csv,
    grades_csv,
    gradescope_text,
    moodle_csv,
    open_csv,
    totals_csv,
)
from vitedu.grading.pages.feedback import feedback_page
from vitedu.grading.pages.skeleton import clean, count, number, render
from vitedu.grading.store import Store, safe_name
from vitedu.grading.student import Parts

FORMATS = ("gradescope", "canvas", "moodle")
IDS = {"canvas": "canvas_id", "moodle": "moodle_id"}  # the id by which a platform finds a student


def main_grade(
    folder: Path,
    out: Path,
    *,
    formats: Sequence[str] = (),
    assignment: str = "",
    parts: Parts | None = None,
    decisions: Path | None = None,
    **choices,
) -> int:
    """Grade a class, write everything, print a summary.

    Args:
        folder, out, **choices: see ``batch.grade_class``.
        formats: of ``FORMATS``, in addition to what is always written.
        decisions: an ``open.csv`` in which a person has filled in points and comments.
        assignment: the column of ``canvas.csv``; default: a column for each notebook.

    Returns:
        0. It means that every submission has a grade, even if some exercises are not gradable.
    """
    lines: list[str] = []

    def on_finish(store: Store, outcome: Outcome, exercises: list[Exercise]) -> None:
        if decisions:
            lines.append(store_decisions(store, outcome, decisions))
        lines.extend(publish(store, outcome, exercises, formats=formats, assignment=assignment))

    outcome = grade_class(folder, out, on_finish=on_finish, parts=parts, **choices)
    summary = (
        f"{count(len(outcome.students), 'submission')}: {outcome.num_new} graded now, "
        f"{outcome.num_stored} before"
    )
    if outcome.num_pending:
        summary += f"; {outcome.num_pending} new or changed and not asked for"
    for name, often in outcome.other_notebooks.items():
        lines.append(
            f"{name}: held by {count(often, 'submission')} and not graded; --notebook {name} "
            "grades it."
        )
    level = f" Isolation: {outcome.level}." if outcome.level else ""
    print("\n".join([f"{summary}.{level} {outcome.seconds:.1f} s.", *lines]))
    return 0


def publish(
    store: Store,
    outcome: Outcome,
    exercises: Sequence[Exercise],
    *,
    formats: Sequence[str] = (),
    assignment: str = "",
) -> list[str]:
    """Write tables and pages; return lines for the terminal.

    Raises:
        OSError: the folder cannot be written.
    """

    known = store.load_json(DECISIONS)

    def grades() -> Iterator[SubmissionGrade]:
        return (apply_decisions(grade, known) for grade in store.load_all(outcome.students))

    flags: dict[str, list[Flag]] = outcome.class_flags
    unknown: Counter[str] = Counter()
    store.write("grades.csv", grades_csv(grades(), flags))
    store.write("totals.csv", totals_csv(grades(), flags))
    store.write("open.csv", open_csv(grades()))
    if "canvas" in formats:
        store.write("canvas.csv", canvas_csv(grades(), exercises, assignment))
    if "moodle" in formats:
        store.write("moodle.csv", moodle_csv(grades(), exercises))
    for grade in grades():
        name = safe_name(grade.student)
        unknown.update(key for key in IDS.values() if key not in grade.identity)
        store.write(f"feedback/{name}.html", _write_feedback(store, grade))
        if "gradescope" in formats:
            store.write(f"gradescope/{name}.json", gradescope_text(grade))
    summary = summarise(grades(), flags, outcome.problems)
    store.write("report.html", report_page(summary, exercises, explain_mistake))
    lines = [
        f"{format}.csv: {count(unknown[key], 'student')} without the number that {format.title()} "
        "gives; name them by hand or grade its own download."
        for format, key in IDS.items()
        if format in formats and unknown[key]
    ]
    return lines + _summary_lines(store.out, summary, formats)


def store_decisions(store: Store, outcome: Outcome, path: Path) -> str:
    """Read a person's decisions and store them beside the grades; return a line for the terminal.

    Raises:
        ValueError, OSError: as ``read_decisions``.
    """
    new = read_decisions(path, store.load_all(outcome.students), getpass.getuser())
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
    lines = []
    if rows:
        final = [row.points for row in rows if not row.open_points]
        mean = number(sum(final) / len(final)) if final else "not known"
        of = "" if len(final) == len(rows) else f" ({len(final)} of {len(rows)} are final)"
        lines.append(f"Mean {mean} of {number(summary.max_points)} points{of}.")
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
    names += [f"{each}.csv" for each in formats if each != "gradescope"]
    names += ["gradescope/"] * ("gradescope" in formats)
    lines.append(f"{out}: {', '.join(names)}")
    return lines
