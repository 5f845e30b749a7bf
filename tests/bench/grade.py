"""How fast is a class graded? ``make bench-grade``.

Role: grade a made class (``bench_class``) with the real grader, measure, and hold every grade
against what was known before; beside it, where nbgrader is installed, its ``autograde`` on the same
files (``bench_nbgrader``). Not here: the grader.

What is compared: nbgrader runs a notebook and its checks once, in one process without any limits;
the grader runs it in a box and tries each answer on three draws. nbgrader
takes one submission after the other, the grader one more than there are cores. Hostile notebooks
are left out of the comparison: a fork bomb in nbgrader is a fork bomb.
"""

import contextlib
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.made_class import HOSTILE, Student, lean_notebook, make_class
from vitedu.exercises import in_notebook, notebook_named
from vitedu.grading.batch import Store, cores, default_jobs, grade_class
from vitedu.grading.grades import SubmissionGrade
from vitedu.grading.judge import DRAWS
from vitedu.grading.pages.publish import publish
from vitedu.grading.student import Parts
from vitedu.ground.progressbar import ProgressBar

NOTEBOOK = "01_patches"  # six functions, three values, and the one that every course hands out
FACTOR = 10.0  # times nbgrader's rate: the aim
PARENT_MB = 400  # of memory in the parent beyond what importing torch takes: the promise
COMPARED, ROUND = 24, 8  # students whom nbgrader grades too, so many in turn
EVERY = 0.5  # seconds between two looks at memory


def bench_grade(
    students: int = 200,
    jobs: int | None = None,
    notebook: str = NOTEBOOK,
    notebooks: Path = Path("notebooks"),
    out: Path | None = None,
    compared: int = COMPARED,
) -> bool:
    """Grade a made class and print how that went.

    Args:
        students: size of the class.
        jobs: submissions at a time; default: as ``vitedu grade`` chooses.
        notebook: which one is handed in.
        notebooks: folder of the course's notebooks, for the stubs.
        out: a JSON file for all figures.
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
    lean = lean_notebook(Path(notebooks), stem)
    print(
        f"{students} submissions of {stem}, {len(in_notebook(stem))} exercises, {DRAWS} draws "
        f"each, {jobs} at a time on {cores()} cores"
    )
    sample = list(make_class(lean, stem, students))
    figures: dict[str, Any] = {
        "notebook": stem,
        "students": students,
        "jobs": jobs,
        "cores": cores(),
    }
    figures |= {"mix": dict(Counter(student.kind for student in sample)), "machine": machine()}
    with tempfile.TemporaryDirectory(prefix="vitedu-bench-") as folder:
        figures |= measure(sample, stem, Path(folder), jobs)
        tell(figures)
        if compared and importlib.util.find_spec("nbgrader"):
            harmless = [student for student in sample if student.kind not in HOSTILE][:compared]
            figures["nbgrader"] = beside_nbgrader(lean, stem, harmless, Path(folder), jobs)
        elif compared:
            print("nbgrader is not installed; `pip install nbgrader` compares it")
    if out:
        Path(out).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    met = not figures["wrong_grades"] and figures["parent_mb"] - figures["torch_mb"] < PARENT_MB
    return met and figures.get("nbgrader", {}).get("factor", FACTOR) >= FACTOR


def machine() -> dict:
    """Say where this was measured."""
    import torch

    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {"system": platform.platform(), "python": platform.python_version()} | {
        "torch": str(torch.__version__),
        "load_before": busy,
    }


# --- the class ----------------------------------------------------------------------------------


def measure(students: list[Student], stem: str, folder: Path, jobs: int) -> dict:
    """Grade all of them and give figures."""
    submissions, out = folder / "submissions", folder / "grades"
    for student in students:
        path = submissions / student.name / f"{stem}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(student.text, encoding="utf-8")
    clock = Clock()
    spent: dict[str, float] = {}
    grades: dict[str, SubmissionGrade] = {}

    def after(store: Store, outcome) -> None:
        spent["grading"] = time.perf_counter() - start
        with clock.part("tables and pages"):
            publish(store, outcome)
        grades.update({grade.student: grade for grade in store.load_all(outcome.students)})
        spent["level"] = outcome.level

    parts = timed(Parts(), clock)
    with Watch() as watch:
        start, cpu = time.perf_counter(), time.process_time()
        grade_class(submissions, out, jobs=jobs, notebook=stem, parts=parts, on_finish=after)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    own = [grades[student.name].seconds for student in students if student.name in grades]
    slowest = max(students, key=lambda s: grades[s.name].seconds if s.name in grades else 0.0)
    usual = [grades[s.name].seconds for s in students if s.kind not in HOSTILE and s.name in grades]
    opening = clock.seconds.get("opening the box", 0.0)
    return {
        "isolation": spent["level"],
        "seconds": round(seconds, 1),
        "opening_seconds": round(opening, 1),
        "per_minute": round(60 * len(students) / seconds, 1),
        "median_seconds": round(statistics.median(own), 2),
        "median_usual_seconds": round(statistics.median(usual), 2) if usual else None,
        "slowest_seconds": round(max(own), 1),
        "slowest": slowest.kind,
        "parent_mb": round(watch.parent_mb),
        "torch_mb": round(torch_mb()),
        "workers_mb": round(watch.workers_mb),
        "cpu_parent_seconds": round(cpu, 1),
        "cpu_workers_seconds": round(watch.workers_cpu, 1),
        "cpu_per_submission": round((cpu + watch.workers_cpu) / len(students), 2),
        "parts": {part: round(s, 1) for part, s in clock.shares().items()},
        "wrong_grades": differences(students, grades),
    }


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


def tell(figures: dict) -> None:
    """Print what was measured."""
    print(
        f"isolation {figures['isolation']}\n"
        f"{figures['per_minute']:g} submissions a minute: {figures['seconds']:g} s, of them "
        f"{figures['opening_seconds']:g} s for opening the box and tables and pages in it\n"
        f"a submission: median {figures['median_seconds']:g} s, without hostile ones "
        f"{figures['median_usual_seconds']:g} s, slowest {figures['slowest_seconds']:g} s "
        f"({figures['slowest']})\n"
        f"memory at most: parent {figures['parent_mb']} MB ({figures['torch_mb']} after importing "
        f"torch), all workers and their parent {figures['workers_mb']} MB\n"
        f"computing: parent {figures['cpu_parent_seconds']:g} s, workers "
        f"{figures['cpu_workers_seconds']:g} s; {figures['cpu_per_submission']:g} s a submission"
    )
    total = sum(figures["parts"].values())
    for part, seconds in sorted(figures["parts"].items(), key=lambda item: -item[1]):
        print(f"  {seconds / total:6.1%}  {part}")
    wrong = figures["wrong_grades"]
    print(
        "every grade is what it should be"
        if not wrong
        else f"{len(wrong)} grades are not what they should be"
    )
    for line in wrong[:20]:
        print(f"  {line}")


def beside_nbgrader(lean, stem: str, students: list[Student], folder: Path, jobs: int) -> dict:
    """Have nbgrader and the grader grade the same files in turn; print and give both rates."""
    from bench.nbgrader import Course

    ours = theirs = 0.0
    cpu = 0.0
    with Course(lean, stem, students, folder / "course") as course:
        parts = Parts()
        with parts.open_box(allow_unsafe=False) as box:
            parts = replace(parts, open_box=lambda *, allow_unsafe: contextlib.nullcontext(box))
            bar = ProgressBar(total=len(students))
            for first in range(0, len(students), ROUND):
                names = [student.name for student in students[first : first + ROUND]]
                for name in names:
                    seconds, cpu_seconds = course.autograde(name)
                    theirs, cpu = theirs + seconds, cpu + cpu_seconds
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
    rates = {
        "nbgrader_per_minute": 60 * len(students) / theirs,
        "per_minute": 60 * len(students) / ours,
    }
    points_by_name = {s.name: sum(e.points or 0.0 for e in s.expected.values()) for s in students}
    others = {
        name: [round(scores.get(name, -1.0), 2), round(points, 2)]
        for name, points in sorted(points_by_name.items())
        if abs(scores.get(name, -1.0) - points) > 0.05
    }
    factor = theirs / ours
    print(
        f"the same {len(students)} submissions, in turn: nbgrader "
        f"{rates['nbgrader_per_minute']:.1f} a minute ({theirs / len(students):.2f} s each, "
        f"computing {cpu / len(students):.2f} s), vitedu {rates['per_minute']:.1f}; factor "
        f"{factor:.1f}, aim {FACTOR:g}\n"
        f"nbgrader gives other points to {len(others)} of them"
    )
    for name, (got, wanted) in others.items():
        print(f"  {name}: {got:g}, not {wanted:g}")
    return {
        "students": len(students),
        "factor": round(factor, 2),
        "nbgrader_cpu": round(cpu, 1),
    } | {**{name: round(rate, 1) for name, rate in rates.items()}, "other_points": others}


# --- measuring ----------------------------------------------------------------------------------


class Clock:
    """Wall-clock seconds by part, summed over threads."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def part(self, name: str):
        """Count the time of a block."""
        start = time.perf_counter()
        try:
            yield
        finally:
            took = time.perf_counter() - start
            with self._lock:
                self.seconds[name] = self.seconds.get(name, 0.0) + took

    def shares(self) -> dict[str, float]:
        """Give seconds by part; judging is what an answer takes beside its workers."""
        seconds = dict(self.seconds)
        inside = [
            seconds.get(name, 0.0) for name in ("starting workers", "answers", "ending workers")
        ]
        seconds["judging"] = seconds.pop("an answer", 0.0) - sum(inside)
        return seconds


def timed(parts: Parts, clock: Clock) -> Parts:
    """Put a clock on the functions of the grader."""

    def on(name, function):
        def run(*args, **settings):
            with clock.part(name):
                return function(*args, **settings)

        return run

    def open_box(*, allow_unsafe: bool):
        with clock.part("opening the box"):
            return TimedBox(parts.open_box(allow_unsafe=allow_unsafe), clock)

    return Parts(
        on("reading", parts.find),
        on("reading", parts.extract),
        open_box,
        on("an answer", parts.grade),
        on("comparing answers", parts.compare),
    )


class TimedBox:
    """A box with a clock on its workers."""

    def __init__(self, box, clock: Clock):
        self._box, self._clock, self.level = box, clock, box.level
        self.limits, self.events = box.limits, box.events

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._box.close()

    def worker(self):
        """Give a fresh worker."""
        with self._clock.part("starting workers"):
            return TimedWorker(self._box.worker(), self._clock)

    def open_separate(self):
        """Open a box for one answer, without a clock."""
        return self._box.open_separate()


class TimedWorker:
    """A worker with a clock on its requests."""

    def __init__(self, worker, clock: Clock):
        self._worker, self._clock = worker, clock

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self._clock.part("ending workers"):
            self._worker.close()

    def ask(self, frame: bytes, seconds: float) -> bytes:
        """Send one frame and wait for one."""
        with self._clock.part("answers"):
            return self._worker.ask(frame, seconds)


class Watch:
    """The memory of this process and of all below it, looked at now and then; Linux.

    Memory is the proportional share (PSS) where the system tells it: shared pages count once.
    """

    def __init__(self):
        import psutil

        self._me = psutil.Process()
        self.parent_mb = self.workers_mb = self.workers_cpu = 0.0
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
        total = cpu = 0.0
        for process in self._me.children(recursive=True):
            with contextlib.suppress(psutil.Error, OSError, ValueError):
                total += proportional(process.pid) or process.memory_info().rss
                times = process.cpu_times()
                cpu += times.user + times.system + times.children_user + times.children_system
        self.workers_mb = max(self.workers_mb, total / 2**20)
        self.workers_cpu = max(self.workers_cpu, cpu)


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
