"""``vitedu grade``: grade a class and write all results.

Role: ``main_grade`` is the command. ``publish`` turns stored grades into tables, pages and files
for learning platforms. Each file depends only on the grades, and is written only if it changes.
``batch`` grades.
"""

import getpass
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from vitedu.grading.batch import TABLES, Outcome, Store, grade_class
from vitedu.grading.grades import Flag, SubmissionGrade, safe_name
from vitedu.grading.pages import exports
from vitedu.grading.pages.class_report import examples_page, report_page, summarise
from vitedu.grading.pages.deadlines import DEADLINES, apply_deadlines, read_deadlines
from vitedu.grading.pages.decisions import FILE as DECISIONS
from vitedu.grading.pages.decisions import OVERRIDES, apply, bind_rows, read_points
from vitedu.grading.pages.feedback import feedback_page
from vitedu.grading.pages.skeleton import count, render

# format -> its file or folder; what an earlier run has written is renewed
FORMATS = {"gradescope": "gradescope/", "canvas": "canvas.csv", "moodle": "moodle.csv"}
ANONYMOUS = "anonymous"  # the folder of pages without names
BOUND = "overrides.json"  # row of overrides.csv -> hash of the files for which it was written
IDS = {"canvas": "canvas_id", "moodle": "moodle_id"}  # the id by which a platform finds a student


def main_grade(
    folder: Path,
    out: Path,
    *,
    formats: Sequence[str] = (),
    assignment: str = "",
    decisions: Path | None = None,
    **choices: Any,
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
    if decisions:
        decisions.read_bytes()  # a wrong path ends here, before the class is graded

    def on_finish(store: Store, outcome: Outcome) -> None:
        decided = store_decisions(store, outcome, decisions) if decisions else ""
        lines.append(decided + publish(store, outcome, formats=formats, assignment=assignment))

    outcome = grade_class(folder, out, on_finish=on_finish, **choices)
    print(render("graded.txt", outcome=outcome, lines=lines[0]))
    return 0


def publish(
    store: Store, outcome: Outcome, *, formats: Sequence[str] = (), assignment: str = ""
) -> str:
    """Write tables and pages, also those for other programs that an earlier run has written.

    Returns:
        Lines for the terminal.
    """
    exercises, students = outcome.exercises, outcome.students
    ids = {exercise.id for exercise in exercises}
    settings = store.load_json(TABLES)
    is_anonymous = ANONYMOUS in formats or (store.out / ANONYMOUS).exists()
    formats = [f for f, name in FORMATS.items() if f in formats or (store.out / name).exists()]
    assignment = assignment or settings.get("assignment", "")
    store.write_json(TABLES, settings | {"assignment": assignment})
    warnings: list[str] = []
    known, overrides = store.load_json(DECISIONS), {}
    if (path := store.out / OVERRIDES).exists():
        stored, warn = store.load_all(students), warnings.append
        overrides = read_points(path, stored, OVERRIDES, only_open=False, warn=warn)
        bound, stale = bind_rows(overrides, store.load_json(BOUND), outcome.handed_in)
        store.write_json(BOUND, bound)
        warnings += stale
    deadlines = read_deadlines(store.out / DEADLINES, students, warnings.append)

    def grades() -> Iterator[SubmissionGrade]:
        for grade in store.load_all(students):
            own = [*grade.flags, *outcome.class_flags.get(grade.student, ())]
            grade = apply(replace(grade.limit_to(ids), flags=own), known, overrides)
            yield apply_deadlines(grade, deadlines, outcome.times.get(grade.student, {}))

    store.write("grades.csv", exports.grades_csv(grades()))
    store.write("totals.csv", exports.totals_csv(grades(), len(exercises)))
    store.write("open.csv", exports.open_csv(grades()))
    if "canvas" in formats:
        store.write("canvas.csv", exports.canvas_csv(grades(), exercises, assignment))
    if "moodle" in formats:
        store.write("moodle.csv", exports.moodle_csv(grades(), exercises))
    without_id: Counter[str] = Counter()
    pages: dict[str, str] = {}
    for grade in grades():
        name = safe_name(grade.student)
        without_id.update(f for f, key in IDS.items() if f in formats and key not in grade.identity)
        page = _write_feedback(store, grade)
        store.write(f"feedback/{name}.html", page)
        pages |= dict.fromkeys(exports.upload_names(grade) or [f"{name}.html"], page)
        if "gradescope" in formats:
            store.write_json(f"gradescope/{name}.json", exports.gradescope_results(grade))
    store.remove_others("feedback", ".html", students)
    store.remove_others("gradescope", ".json", students)
    store.write("feedback.zip", exports.zip_pages(pages))
    problems = [*outcome.problems, *(Flag("table", words) for words in warnings)]
    summary = summarise(grades(), exercises, problems)
    store.write("report.html", report_page(summary))
    store.write("examples.html", examples_page(grades(), students))
    if is_anonymous:
        secret = store.class_secret()  # decides the order
        mixed = sorted(students, key=lambda name: sha256(f"{secret} {name}".encode()).digest())
        numbers = {name: f"student {place:03}" for place, name in enumerate(mixed, 1)}
        hidden = [without_name(grade, numbers[grade.student]) for grade in grades()]
        for grade in hidden:
            page = _write_feedback(store, grade)
            store.write(f"{ANONYMOUS}/{safe_name(grade.student)}.html", page)
        store.remove_others(ANONYMOUS, ".html", numbers.values())
        store.write(f"{ANONYMOUS}/report.html", report_page(summarise(hidden, exercises), pages=""))
        names = sorted((number, student) for student, number in numbers.items())
        store.write(f"{ANONYMOUS}.csv", exports.write_table("page student", names))
    files = "report.html examples.html feedback/ feedback.zip grades.csv totals.csv".split()
    files += [*map(FORMATS.__getitem__, formats), *[f"{ANONYMOUS}/"] * is_anonymous]
    return render(
        "published.txt",
        out=store.out,
        summary=summary,
        without_id=without_id,
        num_overrides=sum(map(len, overrides.values())),
        files=files,
    )


def store_decisions(store: Store, outcome: Outcome, path: Path) -> str:
    """Store a person's decisions beside the grades; return a line for the terminal."""
    grades, warnings = store.load_all(outcome.students), list[str]()
    new = read_points(path, grades, getpass.getuser(), only_open=True, warn=warnings.append)
    known = store.load_json(DECISIONS)
    for student, own in new.items():
        known[student] = {**known.get(student, {}), **own}
    store.write_json(DECISIONS, known)
    lines = [f"{count(sum(map(len, new.values())), 'open exercise')} decided by {path}.", *warnings]
    return "".join(f"{line}\n" for line in lines)


def _write_feedback(store: Store, grade: SubmissionGrade) -> str:
    """Write a student's page, or a page with the points only after a fault of the grader."""
    try:
        return feedback_page(grade)
    except Exception as error:
        store.log(f"{ascii(grade.student)}, feedback: {type(error).__name__}: {error}")
        return render("points_only.html", title="Feedback", grade=grade)


def without_name(grade: SubmissionGrade, number: str) -> SubmissionGrade:
    """Return a grade with a number in place of the name, without what may name a student.

    Flags name others, and what could not be read is named by its file. A name that a student wrote
    into the answer itself stays.
    """
    exercises = [replace(each, place="", detail="", flags=[]) for each in grade.exercises]
    own: dict[str, Any] = {"student": number, "files": ["a file"], "identity": {}, "flags": []}
    return replace(grade, exercises=exercises, **own)
