"""Write grades as tables and files for other programs: CSV, Canvas, Moodle, Gradescope.

Role: turns ``SubmissionGrade``s, one at a time, into text. ``publish`` writes the files.

One rule holds everywhere: what is not gradable has an empty cell, never a 0, and is listed in
``open.csv`` with its reason.

``grades.csv``, ``totals.csv`` and ``open.csv`` begin with a byte order mark, because Excel
otherwise reads them in the system's code page. Python reads them as "utf-8-sig"; R and pandas skip
the mark. Files for learning platforms have none: Canvas requires "Student" in the very first cell.

References: Canvas' importer (app/models/gradebook_importer.rb), Moodle's offline grading worksheet
(mod/assign/feedback/offline), https://gradescope-autograders.readthedocs.io/en/latest/specs/,
https://owasp.org/www-community/attacks/CSV_Injection
"""

import csv
import io
import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from vitedu.exercises import Exercise, find
from vitedu.grading.grades import FAILED, NOT_GRADABLE, PASSED, REASONS, ExerciseGrade, Flag
from vitedu.grading.grades import SubmissionGrade as Grade
from vitedu.grading.pages.skeleton import clean, count, number

MARK = "\ufeff"  # byte order mark: tells Excel that this is UTF-8
FORMULA = tuple("=+-@|＝＋－＠")  # signs with which a formula begins in some spreadsheet
MAX_CELL = 1000  # the most characters of a cell; spreadsheets accept 32,767

Flags = Mapping[str, Sequence[Flag]]  # student -> flags from comparing the class


def safe_cell(words: str) -> str:
    """Make text that a spreadsheet shows and does not compute; line ends become spaces.

    A cell that begins like a formula, also after spaces, gets an apostrophe in front.

    Example:
        >>> [safe_cell(words) for words in ("=1+1", " @SUM(A1)", "Anna-Lena", "a\\tb\\r\\nc")]
        ["'=1+1", "' @SUM(A1)", 'Anna-Lena', 'a b c']
    """
    flat = " ".join(clean(words[:MAX_CELL]).replace("\t", " ").splitlines())
    visible = (c for c in flat if unicodedata.category(c) not in ("Cf", "Zs"))
    return f"'{flat}" if words[:1] in ("\t", "\r", "\n") or next(visible, "") in FORMULA else flat


def write_table(rows: Iterable[Sequence], *, mark: bool = False) -> str:
    """Write rows as CSV. Numbers stay numbers; text is made safe by ``safe_cell``."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    for row in rows:
        writer.writerow([safe_cell(each) if isinstance(each, str) else each for each in row])
    return (MARK if mark else "") + buffer.getvalue()


# --- for people ----------------------------------------------------------------------------------


def grades_csv(grades: Iterable[Grade], class_flags: Flags) -> str:
    """Write a row for each student and exercise."""

    def rows():
        names = "student exercise points max_points state reason attempted"
        yield f"{names} misconceptions flags detail".split()
        for grade in grades:
            flags = [*grade.flags, *class_flags.get(grade.student, ())]
            for each in grade.exercises:
                kinds = dict.fromkeys(flag.kind for flag in [*each.flags, *flags])
                yield [grade.student, each.exercise, _points(each.points), each.max_points] + [
                    each.state,
                    each.reason,
                    "" if each.state == NOT_GRADABLE else "yes" if each.attempted else "no",
                    " ".join(each.misconceptions),
                    " ".join(kinds),
                    each.detail,
                ]

    return write_table(rows(), mark=True)


def totals_csv(grades: Iterable[Grade], class_flags: Flags) -> str:
    """Write a row for each student. The column "final" says whether no points are open."""

    def rows():
        names = "student points max_points open_points final passed failed not_attempted"
        yield f"{names} not_gradable isolation flags files".split()
        for grade in grades:
            states = [each.state for each in grade.exercises]
            num_untouched = sum(not each.attempted for each in grade.exercises)
            flags = [flag for each in grade.exercises for flag in each.flags]
            flags += [*grade.flags, *class_flags.get(grade.student, ())]
            yield [grade.student, _points(grade.points), grade.max_points, grade.open_points] + [
                "no" if grade.open_points else "yes",
                states.count(PASSED),
                states.count(FAILED) - num_untouched,
                num_untouched,
                states.count(NOT_GRADABLE),
                grade.isolation,
                " ".join(dict.fromkeys(flag.kind for flag in flags)),
                ", ".join(grade.files),
            ]

    return write_table(rows(), mark=True)


def open_csv(grades: Iterable[Grade]) -> str:
    """Write a row for each exercise of a student that a person has to grade, with the reason.

    Points and a comment are filled in by hand and read with ``vitedu grade ... --with open.csv``.
    """

    def rows():
        yield "student exercise open_points reason meaning detail points comment".split()
        for grade in grades:
            for each in grade.exercises:
                if each.state == NOT_GRADABLE:
                    yield [grade.student, each.exercise, each.max_points, each.reason] + [
                        REASONS[each.reason],
                        each.detail,
                        "",
                        "",
                    ]

    return write_table(rows(), mark=True)


def _points(points: float | None):
    return "" if points is None else round(points, 2)


# --- for learning platforms ----------------------------------------------------------------------


def canvas_csv(grades: Iterable[Grade], exercises: Sequence[Exercise], assignment: str = "") -> str:
    """Write a gradebook file for Canvas: a column for each notebook, or one for an assignment.

    Canvas finds students by ID, then by SIS IDs, then by name. It finds an assignment by its name,
    or by a number in parentheses after it, as its own export writes it. An unknown column becomes a
    new assignment. A cell is empty while any of its points are open. An empty cell deletes a grade
    that Canvas already has; its preview shows this first.
    """
    columns = _group_columns(exercises, assignment)

    def rows():
        yield ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *columns]
        yield ["Points Possible", "", "", "", ""] + [
            float(sum(exercise.points for exercise in each)) for each in columns.values()
        ]
        for grade in grades:
            ids = grade.identity
            yield [grade.student, ids.get("canvas_id", ""), ids.get("sis_user_id", "")] + [
                ids.get("sis_login_id", ids.get("login", "")),
                ids.get("section", ""),
                *(_points(_sum_points(grade, each)) for each in columns.values()),
            ]

    return write_table(rows())


def moodle_csv(grades: Iterable[Grade], exercises: Sequence[Exercise]) -> str:
    """Write a grading worksheet for Moodle's assignment ("Upload grading worksheet").

    Moodle finds students by "Identifier", the number in the names of its own download. A student
    has a number, and so a row, for each assignment. Moodle skips rows of other assignments and rows
    without a grade, so open points stay open. It also skips a grade above the assignment's maximum,
    which should therefore be the sum of points. Replacing grades needs the option "Allow updating
    records that have been modified more recently".
    """
    all_exercises = _group_columns(exercises, "vitedu")["vitedu"]

    def rows():
        yield ["Identifier", "Full name", "Email address", "Grade", "Maximum Grade"] + [
            "Last modified (grade)"
        ]
        for grade in grades:
            ids = grade.identity
            for participant in ids.get("moodle_id", "").split() or [""]:
                yield [f"Participant {participant}" if participant else "", grade.student] + [
                    ids.get("email", ""),
                    _points(_sum_points(grade, all_exercises)),
                    float(sum(exercise.points for exercise in all_exercises)),
                    "",
                ]

    return write_table(rows())


def _group_columns(exercises: Sequence[Exercise], assignment: str) -> dict[str, list[Exercise]]:
    if assignment:
        return {assignment: list(exercises)}
    columns: dict[str, list[Exercise]] = {}
    for exercise in exercises:
        columns.setdefault(f"vitedu {exercise.notebook}", []).append(exercise)
    return columns


def _sum_points(grade: Grade, exercises: Sequence[Exercise]) -> float | None:
    """Add up the points of exercises; None if any of them is open."""
    by_id = {each.exercise: each for each in grade.exercises}
    points = [by_id[exercise.id].points for exercise in exercises if exercise.id in by_id]
    if None in points or len(points) < len(exercises):
        return None
    return round(sum(each or 0.0 for each in points), 2)


def gradescope_results(grade: Grade) -> dict:
    """Make the content of Gradescope's ``results.json`` for one submission.

    Gradescope requires a score for every test, or one for the submission. A test that is not
    gradable gets no score and no status here, so it shows as neither passed nor failed. The
    submission's score is the sum of what was graded, and its text says first if that is not final.
    If nothing could be graded, the required score is 0, and the text says that it is not a grade.
    """
    tests = [_gradescope_test(find(each.exercise), each) for each in grade.exercises]
    open_grades = [each for each in grade.exercises if each.state == NOT_GRADABLE]
    lines = []
    if open_grades and len(open_grades) == len(grade.exercises):
        lines.append("Nothing could be graded by machine. The score shown is not a grade.")
    elif open_grades:
        lines.append("The score shown is not final.")
    if open_grades:
        lines.append(
            f"{count(len(open_grades), 'exercise')} with {number(grade.open_points)} points could "
            "not be graded by machine and wait for your instructor. They are marked below."
        )
    lines.append(f"{number(grade.points)} of {number(grade.max_points)} points so far.")
    return {
        "score": grade.points,
        "output": "\n".join(lines),
        "output_format": "text",
        "test_output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
        "extra_data": {
            "open_points": grade.open_points,
            "states": {each.exercise: each.state for each in grade.exercises},
            "isolation": grade.isolation,
            "versions": grade.versions,
        },
    }


def _gradescope_test(exercise: Exercise, grade: ExerciseGrade) -> dict:
    test = {
        "number": exercise.number,
        "name": f"{exercise.id}: {exercise.title}",
        "max_score": grade.max_points,
        "visibility": "visible",
    }
    if grade.state == NOT_GRADABLE:
        text = f"Not graded yet, and not a 0: {REASONS[grade.reason]}."
        return test | {"output": clean("\n".join(filter(None, [text, grade.detail])))}
    lines = [f"{label}: {words}" for label, words in grade.lines if label != "again"]
    if not grade.attempted:
        lines = ["The cell is as you got it."]
    words = clean("\n".join(filter(None, [grade.headline, *lines])))
    status = "passed" if grade.state == PASSED else "failed"
    return test | {"score": grade.points, "status": status, "output": words}


def gradescope_text(grade: Grade) -> str:
    """Write ``results.json`` as text."""
    return json.dumps(gradescope_results(grade), indent=1)
