"""How fast is a class graded? ``make bench-grade``.

Role: grade a made class (``bench.made_class``) with the real grader, and hold every grade against
what was known before; beside it, where nbgrader is installed, its ``autograde`` on the same files
(``bench.nbgrader``). Not here: the grader.

What is compared: nbgrader runs a notebook and its checks once, in one process without any limits;
the grader runs it in a box and tries each answer on three draws. nbgrader
takes one submission after the other, the grader one more than there are cores. Hostile notebooks
are left out of the comparison: a fork bomb in nbgrader is a fork bomb.
"""

import contextlib
import importlib.util
import resource
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from bench.made_class import HOSTILE, Student, lean_notebook, make_class
from vitedu.exercises import in_notebook, notebook_named
from vitedu.grading.batch import MOST_JOBS, Store, cores, grade_class
from vitedu.grading.grades import SubmissionGrade
from vitedu.grading.judge import DRAWS
from vitedu.grading.pages.publish import publish
from vitedu.grading.student import Parts
from vitedu.ground.progressbar import ProgressBar

FACTOR = 10.0  # times nbgrader's rate: the aim
COMPARED, ROUND = 24, 8  # students whom nbgrader grades too, so many in turn


def bench_grade(students: int, jobs: int | None, notebook: str, compared: int = COMPARED) -> bool:
    """Grade a made class and print how that went.

    Args:
        students: size of the class.
        jobs: submissions at a time; default: as ``vitedu grade`` chooses.
        notebook: which one is handed in.
        compared: students whom nbgrader grades as well; 0 for none.

    Returns:
        Whether every grade was what it should be and, if nbgrader ran, the rate was ``FACTOR``
        times its own.

    Raises:
        ValueError: too few students, or no such notebook.
    """
    if students < 1:
        raise ValueError(f"a class has at least 1 student (got {students}).")
    jobs, stem = jobs or min(cores() + 1, MOST_JOBS), notebook_named(notebook)
    lean = lean_notebook(Path("notebooks"), stem)
    print(
        f"{students} submissions of {stem}, {len(in_notebook(stem))} exercises, {DRAWS} draws "
        f"each, {jobs} at a time on {cores()} cores"
    )
    sample, factor = list(make_class(lean, stem, students)), FACTOR
    with tempfile.TemporaryDirectory(prefix="vitedu-bench-") as folder:
        wrong = grade_sample(sample, stem, Path(folder), jobs)
        if compared and importlib.util.find_spec("nbgrader"):
            harmless = [student for student in sample if student.kind not in HOSTILE][:compared]
            factor = beside_nbgrader(lean, stem, harmless, Path(folder), jobs)
        elif compared:
            print("nbgrader is not installed; `pip install nbgrader` compares it")
    return not wrong and factor >= FACTOR


def grade_sample(students: list[Student], stem: str, folder: Path, jobs: int) -> list[str]:
    """Grade all of them with tables and pages, print how long it took; give wrong grades."""
    submissions, out = folder / "submissions", folder / "grades"
    for student in students:
        path = submissions / student.name / f"{stem}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(student.text, encoding="utf-8")
    grades: dict[str, SubmissionGrade] = {}

    def after(store: Store, outcome) -> None:
        publish(store, outcome)
        grades.update({grade.student: grade for grade in store.load_all(outcome.students)})
        print(f"isolation {outcome.level}")

    start = time.perf_counter()
    grade_class(submissions, out, jobs=jobs, notebook=stem, on_finish=after)
    seconds, most = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{60 * len(students) / seconds:.1f} submissions a minute: {seconds:.1f} s")
    print(f"{most / 1024:.0f} MB at the peak, workers apart")  # Linux counts kB
    wrong = differences(students, grades)
    print(f"{len(wrong)} grades are not what they should be", *wrong[:20], sep="\n  ")
    return wrong


def differences(students: list[Student], grades: dict) -> list[str]:
    """List the exercises whose grade is not what was known before."""
    lines = []
    for student in students:
        if student.name not in grades:
            lines.append(f"{student.name}: no grade")
            continue
        got = {grade.exercise: grade for grade in grades[student.name].exercises}
        for id, wanted in student.expected.items():
            grade = got.get(id)
            outcome = grade and (grade.state, grade.points, grade.reason)
            if outcome != (wanted.state, wanted.points, wanted.reason):
                detail = grade and (grade.detail or grade.headline)
                lines.append(
                    f"{student.name} ({student.kind}), {id}: {wanted}, got {outcome}: {detail}"
                )
    return lines


def beside_nbgrader(lean, stem: str, students: list[Student], folder: Path, jobs: int) -> float:
    """Have nbgrader and the grader grade the same files in turn; print both rates, give theirs."""
    from bench.nbgrader import Course

    ours = theirs = 0.0
    with Course(lean, stem, students, folder / "course") as course:
        parts = Parts()
        with parts.open_box(allow_unsafe=False) as box:
            parts = replace(parts, open_box=lambda *, allow_unsafe: contextlib.nullcontext(box))
            bar = ProgressBar(total=len(students))
            for first in range(0, len(students), ROUND):
                names = [student.name for student in students[first : first + ROUND]]
                theirs += sum(course.autograde(name) for name in names)
                start = time.perf_counter()
                grade_class(
                    course.folder / "submitted",
                    folder / "same",
                    jobs=jobs,
                    notebook=stem,
                    only=names,
                    parts=parts,
                )
                ours += time.perf_counter() - start
                bar.update(first + len(names), "nbgrader and vitedu in turn")
            bar.close()
        scores = course.scores()
    print(
        f"the same {len(students)} submissions, in turn: nbgrader "
        f"{60 * len(students) / theirs:.1f} a minute, vitedu {60 * len(students) / ours:.1f}; "
        f"factor {theirs / ours:.1f}, aim {FACTOR:g}"
    )
    for student in students:
        points = sum(expected.points or 0.0 for expected in student.expected.values())
        if abs(scores.get(student.name, -1.0) - points) > 0.05:
            print(f"  nbgrader gives {student.name} {scores.get(student.name)}, not {points:g}")
    return theirs / ours
