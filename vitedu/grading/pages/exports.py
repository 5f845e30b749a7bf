"""Write grades as tables and files for other programs: CSV, Canvas, Moodle, Gradescope.

Role: turns ``SubmissionGrade``s, one at a time, into text. ``publish`` writes the files.

One rule holds everywhere: what is not gradable has an empty cell, never a 0, and is listed in
``open.csv`` with its reason.

``grades.csv``, ``totals.csv`` and ``open.csv`` begin with a byte order mark, because Excel
otherwise reads them in the system's code page. Python reads them as "utf-8-sig"; R and pandas skip
the mark. Files for learning platforms have none: Canvas requires "Student" in the very first cell.

References: Canvas' importer (app/models/gradebook_importer.rb), Moodle's offline grading worksheet
(mod/assign/feedback/offline, file/importziplib.php),
https://gradescope-autograders.readthedocs.io/en/latest/specs/,
https://owasp.org/www-community/attacks/CSV_Injection
"""

import csv
import io
import zipfile
from collections.abc import Iterable, Mapping, Sequence

from vitedu.exercises import Exercise, find
from vitedu.grading.grades import (
    FAILED,
    NOT_GRADABLE,
    PASSED,
    REASONS,
    ExerciseGrade,
    Flag,
    clean,
    safe_cell,
)
from vitedu.grading.grades import SubmissionGrade as Grade
from vitedu.grading.intake.submissions import CANVAS
from vitedu.grading.pages.skeleton import count, number

MARK = "\ufeff"  # byte order mark: tells Excel that this is UTF-8


def write_table(names: str | Sequence[str], rows: Iterable[Sequence], *, mark: bool = True) -> str:
    """Write rows as CSV below the names of their columns; ``safe_cell`` makes text safe."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    for row in [names.split() if isinstance(names, str) else names, *rows]:
        cells = ["" if each is None else each for each in row]
        writer.writerow([safe_cell(each) if isinstance(each, str) else each for each in cells])
    return (MARK if mark else "") + buffer.getvalue()


def grades_csv(grades: Iterable[Grade]) -> str:
    """Write a row for each student and exercise."""
    names = "student exercise points max_points state reason attempted misconceptions flags detail "
    rows = (
        (grade.student, each.exercise, each.points, each.max_points, each.state, each.reason)
        + ("" if each.state == NOT_GRADABLE else "yes" if each.attempted else "no",)
        + (" ".join(each.misconceptions), list_kinds([*each.flags, *grade.flags]))
        + (each.detail, each.decided_by, each.comment)
        for grade in grades
        for each in grade.exercises
    )
    return write_table(names + "decided_by comment", rows)


def totals_csv(grades: Iterable[Grade], num_exercises: int) -> str:
    """Write a row for each student, with the sums over all exercises and over the core.

    "exercises" says over how many; "final" says whether these are all and no points are open.
    """

    def row(grade: Grade) -> Sequence:
        states = [each.state for each in grade.exercises]
        num_untouched = sum(not each.attempted for each in grade.exercises)
        num_decided = sum(bool(each.decided_by) for each in grade.exercises)
        flags = [flag for each in grade.exercises for flag in each.flags]
        is_final = not grade.open_points and len(states) >= num_exercises
        return (
            (grade.student, grade.points, grade.max_points, grade.open_points)
            + ("yes" if is_final else "no", grade.core.points, grade.core.max_points, len(states))
            + (states.count(PASSED), states.count(FAILED) - num_untouched, num_untouched)
            + (states.count(NOT_GRADABLE), num_decided, grade.isolation)
            + (list_kinds([*flags, *grade.flags]), ", ".join(grade.files))
        )

    return write_table(
        "student points max_points open_points final core_points core_max_points exercises passed "
        "failed not_attempted not_gradable decided isolation flags files",
        map(row, grades),
    )


def open_csv(grades: Iterable[Grade]) -> str:
    """Write a row for each exercise of a student that a person has to grade, with the reason.

    Points and a comment are filled in by hand and read with ``vitedu grade ... --with open.csv``.
    """
    rows = (
        (grade.student, each.exercise, each.max_points, each.reason)
        + (REASONS[each.reason], each.detail, "", "")
        for grade in grades
        for each in grade.exercises
        if each.state == NOT_GRADABLE
    )
    return write_table("student exercise open_points reason meaning detail points comment", rows)


def list_kinds(flags: Iterable[Flag]) -> str:
    """Name the kinds of flags, each once."""
    return " ".join(dict.fromkeys(flag.kind for flag in flags))


def canvas_csv(grades: Iterable[Grade], exercises: Sequence[Exercise], assignment: str = "") -> str:
    """Write a gradebook file for Canvas: a column for each notebook, or one for an assignment.

    Canvas finds students by ID, then by SIS IDs, then by name. It finds an assignment by its name,
    or by a number in parentheses after it, as its own export writes it. An unknown column becomes a
    new assignment. A cell is empty while any of its points are open. An empty cell deletes a grade
    that Canvas already has; its preview shows this first.
    """
    columns: dict[str, list[Exercise]] = {}
    for exercise in exercises:
        name = assignment or f"vitedu {exercise.notebook}"
        columns.setdefault(name, []).append(exercise)
    possible = [float(sum(exercise.points for exercise in each)) for each in columns.values()]
    rows = [
        (grade.student, grade.identity.get("canvas_id"), "", "", "")
        + tuple(_sum_points(grade, each) for each in columns.values())
        for grade in grades
    ]
    names = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *columns]
    return write_table(names, [["Points Possible", *[""] * 4, *possible], *rows], mark=False)


def moodle_csv(grades: Iterable[Grade], exercises: Sequence[Exercise]) -> str:
    """Write a grading worksheet for Moodle's assignment ("Upload grading worksheet").

    Moodle finds students by "Identifier", the number in the names of its own download. A student
    has a number, and so a row, for each assignment. Moodle skips rows of other assignments and rows
    without a grade, so open points stay open. It also skips a grade above the assignment's maximum,
    which should therefore be the sum of points. Replacing grades needs the option "Allow updating
    records that have been modified more recently".
    """
    most = float(sum(exercise.points for exercise in exercises))
    names = "Identifier,Full name,Email address,Grade,Maximum Grade,Last modified (grade)"
    rows = (
        (f"Participant {participant}" if participant else "", grade.student)
        + (grade.identity.get("email"), _sum_points(grade, exercises), most, "")
        for grade in grades
        for participant in grade.identity.get("moodle_id", "").split() or [""]
    )
    return write_table(names.split(","), rows, mark=False)


def upload_names(grade: Grade) -> list[str]:
    """Name a student's page so that a learning platform takes it from a zip file; [] for others.

    Moodle ("Upload multiple feedback files in a zip") wants the folders of its own download, one an
    assignment. Canvas ("Upload submissions") wants the names of its own download, with the numbers
    of student and file.
    """
    name = grade.identity.get("name", grade.student).replace("/", " ").replace("_", " ")
    numbers = grade.identity.get("moodle_id", "").split()
    places = [f"{name}_{number}_assignsubmission_file_/feedback.html" for number in numbers]
    for file in grade.files if "canvas_id" in grade.identity else ():
        if (found := CANVAS.fullmatch(file)) and found["file"]:
            return [f"{file[: found.start('rest')]}feedback.html"]
    return places


def zip_pages(pages: Mapping[str, str]) -> bytes:
    """Write a zip file of pages by name, dated 1980: the same pages make the same file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in sorted(pages.items()):
            entry = zipfile.ZipInfo(name)
            archive.writestr(entry, text.encode("utf-8", "replace"), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _sum_points(grade: Grade, exercises: Sequence[Exercise]) -> float | None:
    """Add up the points of exercises; None if any of them is open or was not graded."""
    own = grade.limit_to({exercise.id for exercise in exercises})
    is_known = len(own.exercises) == len(exercises) and not own.open_points
    return own.points if is_known else None


def gradescope_results(grade: Grade) -> dict:
    """Make the content of Gradescope's ``results.json`` for one submission.

    Gradescope requires a score for every test, or one for the submission. A test that is not
    gradable gets no score and no status here, so it shows as neither passed nor failed. The
    submission's score is the sum of what was graded, and its text says first if that is not final.
    If nothing could be graded, the required score is 0, and the text says that it is not a grade.
    """
    open_grades = [each for each in grade.exercises if each.state == NOT_GRADABLE]
    lines = []
    if open_grades:
        nothing = "Nothing could be graded by machine. The score shown is not a grade."
        is_all = len(open_grades) == len(grade.exercises)
        lines.append(nothing if is_all else "The score shown is not final.")
        lines.append(
            f"{count(len(open_grades), 'exercise')} with {number(grade.open_points)} points could "
            "not be graded by machine and wait for your instructor. They are marked below."
        )
    lines.append(f"{number(grade.points)} of {number(grade.max_points)} points so far.")
    return {
        "score": grade.points,
        "output": "\n".join(lines),
        **dict.fromkeys(("output_format", "test_output_format"), "text"),
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": [_gradescope_test(each) for each in grade.exercises],
        "extra_data": {
            "open_points": grade.open_points,
            "states": {each.exercise: each.state for each in grade.exercises},
            "isolation": grade.isolation,
            "versions": grade.versions,
        },
    }


def _gradescope_test(grade: ExerciseGrade) -> dict:
    exercise = find(grade.exercise)
    test: dict = {"number": exercise.number, "name": f"{exercise.id}: {exercise.title}"}
    test |= {"max_score": grade.max_points, "visibility": "visible", "output": _describe(grade)}
    if grade.state == NOT_GRADABLE:
        return test
    return test | {"score": grade.points, "status": grade.state}


def _describe(grade: ExerciseGrade) -> str:
    """Say in words what became of an exercise."""
    if grade.state == NOT_GRADABLE:
        lines = [f"Not graded yet, and not a 0: {REASONS[grade.reason]}.", grade.detail]
    elif not grade.attempted:
        lines = [grade.headline, "The cell is as you got it."]
    else:
        said = [f"{label}: {words}" for label, words in grade.lines if label != "again"]
        lines = [grade.headline, *said]
    return clean("\n".join(filter(None, lines)))
