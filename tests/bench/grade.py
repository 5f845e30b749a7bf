"""How fast is a class graded? ``make bench-grade``.

Role: grade a made class (``made_class``) with the real grader, measure, and hold every grade
against what was known before; beside it, where nbgrader is installed, its ``autograde`` on the same
files (``nbgrader``). Not here: the grader.

What is compared: nbgrader runs a notebook and its checks once, in one process without any limits;
the grader runs it in a box and tries each answer on three draws. nbgrader takes
one submission after the other, the grader one more than there are cores. Hostile notebooks are left
out of the comparison: a fork bomb in nbgrader is a fork bomb.
"""

import contextlib
import importlib.util
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

from bench.made_class import HOSTILE, Student, lean_notebook, make_class
from vitedu.exercises import in_notebook, notebook_named
from vitedu.grading.batch import cores, default_jobs, grade_class
from vitedu.grading.grades import SubmissionGrade
from vitedu.grading.judge import DRAWS
from vitedu.grading.pages.publish import publish
from vitedu.grading.student import Parts
from vitedu.ground.progressbar import ProgressBar

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
FACTOR = 10.0  # times nbgrader's rate: the aim
PARENT_MB = 400  # of memory in the parent beyond what importing torch takes: the promise
ROUND = 8  # students in turn, whom nbgrader grades too
EVERY = 0.5  # seconds between two looks at memory


def bench_grade(students: int, jobs: int | None, notebook: str, compared: int) -> bool:
    """Grade a made class and print how that went.

    Args:
        students: size of the class.
        jobs: submissions at a time; default: as ``vitedu grade`` chooses.
        notebook: which one is handed in.
        compared: students whom nbgrader grades as well; 0 for none.

    Returns:
        Whether every grade was what it should be, the parent stayed within ``PARENT_MB`` beyond
        torch, and, if nbgrader ran, the rate was ``FACTOR`` times its own.

    Raises:
        ValueError: too few students, or no such notebook.
    """
    if students < 1:
        raise ValueError(f"a class has at least 1 student (got {students}).")
    jobs, stem = jobs or default_jobs(), notebook_named(notebook)
    lean = lean_notebook(NOTEBOOKS, stem)
    print(
        f"{students} submissions of {stem}, {len(in_notebook(stem))} exercises, {DRAWS} draws "
        f"each, {jobs} at a time on {cores()} cores"
    )
    sample = list(make_class(lean, stem, students))
    with tempfile.TemporaryDirectory(prefix="vitedu-bench-") as folder:
        is_met = grade_all(sample, stem, Path(folder), jobs)
        if compared and importlib.util.find_spec("nbgrader"):
            harmless = [student for student in sample if student.kind not in HOSTILE][:compared]
            is_met &= beside_nbgrader(lean, stem, harmless, Path(folder), jobs) >= FACTOR
        elif compared:
            print("nbgrader is not installed; `pip install nbgrader` compares it")
    return is_met


def grade_all(students: list[Student], stem: str, folder: Path, jobs: int) -> bool:
    """Grade the class and print figures; tell whether grades and memory are as they should be."""
    submissions, out = folder / "submissions", folder / "grades"
    for student in students:
        path = submissions / student.name / f"{stem}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(student.text, encoding="utf-8")
    grades: dict[str, SubmissionGrade] = {}

    def after(store, outcome) -> None:
        publish(store, outcome)
        grades.update({grade.student: grade for grade in store.load_all(outcome.students)})

    with Watch() as watch:
        start = time.perf_counter()
        outcome = grade_class(submissions, out, jobs=jobs, notebook=stem, on_finish=after)
        seconds = time.perf_counter() - start
    own = {s.name: (grades[s.name].seconds, s.kind) for s in students if s.name in grades}
    slowest, kind = max(own.values())
    torch = torch_mb()
    print(
        f"isolation {outcome.level}\n"
        f"{60 * len(students) / seconds:.1f} submissions a minute: {seconds:.1f} s, with opening "
        f"the box, tables and pages\n"
        f"a submission: median {statistics.median(each for each, _ in own.values()):.2f} s, "
        f"slowest {slowest:.1f} s ({kind})\n"
        f"memory at most: parent {watch.parent_mb:.0f} MB ({torch:.0f} after importing torch), "
        f"all workers and their parent {watch.workers_mb:.0f} MB"
    )
    wrong = differences(students, grades)
    print(f"{len(wrong)} grades are not what they should be")
    for line in wrong[:20]:
        print(f"  {line}")
    return not wrong and watch.parent_mb - torch < PARENT_MB


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
    """Have nbgrader and the grader grade the same files in turn; print rates, give their ratio."""
    from bench.nbgrader import Course

    ours = theirs = 0.0
    with Course(lean, stem, students, folder / "course") as course:
        parts = Parts()
        with parts.open_box(allow_unsafe=False) as box:
            parts = replace(parts, open_box=lambda *, allow_unsafe: contextlib.nullcontext(box))
            bar = ProgressBar(total=len(students))
            for first in range(0, len(students), ROUND):
                names = [student.name for student in students[first : first + ROUND]]
                for name in names:
                    theirs += course.autograde(name)
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
    points_by_name = {s.name: sum(e.points or 0.0 for e in s.expected.values()) for s in students}
    others = {
        name: (scores.get(name, -1.0), points)
        for name, points in sorted(points_by_name.items())
        if abs(scores.get(name, -1.0) - points) > 0.05
    }
    print(
        f"the same {len(students)} submissions, in turn: nbgrader "
        f"{60 * len(students) / theirs:.1f} a minute, vitedu {60 * len(students) / ours:.1f}; "
        f"factor {theirs / ours:.1f}, aim {FACTOR:g}\n"
        f"nbgrader gives other points to {len(others)} of them"
    )
    for name, (got, wanted) in others.items():
        print(f"  {name}: {got:g}, not {wanted:g}")
    return theirs / ours


# --- measuring ----------------------------------------------------------------------------------


class Watch:
    """The memory of this process and of all below it, looked at now and then; Linux.

    Memory is the proportional share (PSS) where the system tells it: shared pages count once.
    """

    def __init__(self):
        import psutil

        self._me = psutil.Process()
        self.parent_mb = self.workers_mb = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()

    def _look_on(self) -> None:
        while not self._done.wait(EVERY):
            self._look()

    def _look(self) -> None:
        import psutil

        memory = self._me.memory_info().rss / 2**20
        self.parent_mb = max(self.parent_mb, memory)
        total = 0.0
        for process in self._me.children(recursive=True):
            with contextlib.suppress(psutil.Error, OSError, ValueError):
                total += proportional(process.pid) or process.memory_info().rss
        self.workers_mb = max(self.workers_mb, total / 2**20)


def torch_mb() -> float:
    """Measure what a fresh Python holds after importing torch alone, in MB, libraries included."""
    code = "import psutil, torch; print(psutil.Process().memory_info().rss)"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(child.stdout) / 2**20


def proportional(pid: int) -> int:
    """Give the bytes of a process, shared pages in part; 0 where the system does not tell."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
