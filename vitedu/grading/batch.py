"""A class is graded: every submission found, every one graded, nothing lost.

Role: ``grade_class`` (folder of submissions -> folder of grades, with resume). Not here: one student (``student``), what
decides whether a grade is up to date (``fingerprint``), how grades are kept (``store``) and shown (``publish``).

Whatever goes wrong with one submission, the grader's own faults included, is that submission's finding. What goes wrong
with the output folder stops the batch: a grade that cannot be kept must not be announced.
"""

import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from vitedu.exercises import EXERCISES, Exercise, find, in_notebook, notebook_named
from vitedu.grading.fingerprint import digest
from vitedu.grading.grades import Flag, Submission
from vitedu.grading.intake.reading import Reading
from vitedu.grading.store import FOLDERS, SPLIT, Store
from vitedu.grading.student import (
    MIN_RUNS,
    Parts,
    grade_submission,
    not_gradable,
    real_parts,
)
from vitedu.progressbar import ProgressBar

SHARE = 0.25  # of the submissions that hold the most frequent notebook; rarer ones are left out


@dataclass
class Outcome:
    """What a run of ``grade_class`` did."""

    students: list[str]  # who has a grade now, in order
    graded: int  # in this run
    kept: int  # graded by an earlier run
    waiting: int  # changed or new, and left out by ``only``
    level: str  # isolation of this run; "" if nothing had to be graded
    seconds: float
    class_flags: dict[str, list[Flag]]  # what shows only in the class as a whole
    problems: list[Flag]  # what was handed in under no name
    left_out: dict[str, int]  # notebook that is not graded -> submissions that hold it


def grade_class(
    folder: Path,
    out: Path,
    *,
    jobs: int | None = None,
    student_from: str = "auto",
    exercises: Sequence[str] = (),
    notebook: str | None = None,
    only: Sequence[str] = (),
    runs: int = MIN_RUNS,
    seed: int | None = None,
    again: bool = False,
    allow_unsafe: bool = False,
    parts: Parts | None = None,
    after: Callable[[Store, Outcome, list[Exercise]], None] | None = None,
) -> Outcome:
    """Grade every submission in a folder that has no up-to-date grade.

    A grade is up to date while files, versions, list of exercises and number of runs are what they were, and the grader
    itself did not fail. So the same command after a kill finishes the rest and leaves what is there, to the byte.

    Args:
        folder: what the students handed in; it is only read.
        out: for ``submissions/*.json``, one a student, and ``grader.log``.
        jobs: submissions graded at a time; default: one more than there are cores for this process.
        student_from: where names come from; see ``submissions.find_submissions``.
        exercises: ids to grade; default: all of ``notebook``.
        notebook: stem of the notebook to grade; default: those that the class handed in.
        only: names of students to grade; default: all.
        runs: of each answer, 3 or more.
        seed: of the secret inputs, to repeat a grading; default: secret sizes for the class, and secret values for each
            submission.
        again: grade also what has an up-to-date grade.
        allow_unsafe: grade even where the machine cannot isolate answers at all.
        parts: the functions that do the work.
        after: called with the store, the outcome and the exercises while the folder is still held.

    Raises:
        ValueError: a choice that makes no sense, or nothing to grade.
        OSError: ``out`` cannot be written.
    """
    if runs < MIN_RUNS:
        raise ValueError(
            f"runs must be {MIN_RUNS} or more (got {runs}): luck must not earn points."
        )
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs must be 1 or more (got {jobs}).")
    folder, out = Path(folder), Path(out)
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder; name the folder with the returned notebooks.")
    _refuse_overlap(folder.resolve(), out.resolve())
    start = time.monotonic()
    parts = parts or real_parts()
    intake = parts.find(folder, student_from=student_from)
    submissions = _told_apart(intake.submissions)
    if not submissions:
        raise ValueError(f"{folder} holds no notebooks (*.ipynb).")
    unknown = sorted(set(only) - {submission.student for submission in submissions})
    if unknown:
        raise ValueError(f"no submission of {', '.join(map(repr, unknown))} in {folder}.")

    with Store(out) as store:
        reading = Reading(submissions, parts, store)
        held = {} if exercises or notebook else reading.notebooks()
        chosen = choose_exercises(exercises, notebook, held)
        digests = {name: digest(files, chosen, runs) for name, files in reading.files.items()}

        def stands(student: str) -> bool:
            grade = store.load(student)
            return (
                grade is not None
                and grade.digest == digests[student]
                and not (again or any(each.reason == "grader" for each in grade.exercises))
                and seed in (None, grade.seed)
            )

        todo = [s for s in submissions if (not only or s.student in only) and not stands(s.student)]
        level = ""
        if todo:
            with parts.open_box(allow_unsafe=allow_unsafe) as box:
                level = box.level
                try:
                    _grade_all(todo, chosen, parts, box, store, digests, reading, seed, runs, jobs)
                finally:
                    for event in getattr(box, "events", ()):
                        store.log(f"isolation: {event}")
        graded = {submission.student for submission in todo}
        students = [
            grade.student
            for grade in store.load_all(submission.student for submission in submissions)
            if grade.student in graded or grade.digest == digests[grade.student]
        ]
        outcome = Outcome(
            students,
            len(graded),
            len(students) - len(graded),
            len(submissions) - len(students),
            level,
            time.monotonic() - start,
            reading.flags(),
            list(intake.problems),
            {
                name: often
                for name, often in sorted(reading.notebooks().items())
                if name not in {exercise.notebook for exercise in chosen}
            },
        )
        reading.keep()
        if after:
            after(store, outcome, chosen)
    return outcome


def _refuse_overlap(folder: Path, out: Path) -> None:
    """Keep grades from being taken for submissions, and submissions from lying where grades are written."""
    written = [out / name for name in FOLDERS]
    if out.is_relative_to(folder) or any(folder.is_relative_to(each) for each in written):
        raise ValueError(
            f"--out must lie outside the submissions, and they outside it (got {out} for {folder}); "
            f"use for example {folder.parent / 'grades'}."
        )


def _grade_all(todo, chosen, parts, box, store, digests, reading, seed, runs, jobs) -> None:
    """Grade in threads, each of which waits for workers of the box; write each grade as it comes."""
    jobs = min(jobs or getattr(box, "jobs", None) or default_jobs(), len(todo))
    bar, stopped = ProgressBar(total=len(todo)), threading.Event()

    def work(submission: Submission) -> None:
        if stopped.is_set():
            return
        own_seed = store.class_secret() * SPLIT + secrets.randbelow(SPLIT) if seed is None else seed
        grade = getattr(box, "grade_submission", grade_submission)(  # a cluster has its own
            submission,
            chosen,
            parts,
            box,
            seed=own_seed,
            runs=runs,
            extraction=reading.extraction(submission),
            log=store.log,
        )
        grade = replace(grade, digest=digests[submission.student])
        try:
            store.save(grade)
        except (ValueError, TypeError) as error:  # a grade that is no JSON: a fault of the grader
            store.log(f"{ascii(submission.student)}, writing: {type(error).__name__}: {error}")
            detail = f"{type(error).__name__} in the grader; grader.log has the lines"
            lost = [not_gradable(exercise, "grader", detail) for exercise in chosen]
            store.save(replace(grade, exercises=lost, flags=[]))

    with ThreadPoolExecutor(jobs, thread_name_prefix="grade") as pool:
        waiting = [pool.submit(work, submission) for submission in todo]
        try:
            for done, future in enumerate(as_completed(waiting), 1):
                future.result()
                bar.update(done, f"{done} of {len(todo)} submissions")
        except BaseException:  # a full disk, or Ctrl-C: finish what runs, begin nothing
            stopped.set()
            pool.shutdown(cancel_futures=True)
            raise
        finally:
            bar.close()


def choose_exercises(
    ids: Sequence[str], notebook: str | None, handed_in: Mapping[str, int]
) -> list[Exercise]:
    """Decide what is graded: the ids, or a notebook, or the notebooks that the class handed in.

    Args:
        ids: of exercises.
        notebook: stem of one.
        handed_in: notebook -> submissions that hold it; what few hold, a stray file, adds nothing to the others' points.

    Raises:
        ValueError: no such exercise or notebook, or nothing left.
    """
    if ids:
        wanted = {find(id).id for id in ids}
        if notebook:
            wanted &= {exercise.id for exercise in in_notebook(notebook_named(notebook))}
    else:
        most = max(handed_in.values(), default=0)
        names = {name for name, often in handed_in.items() if often >= SHARE * most}
        if notebook:
            names = {notebook_named(notebook)}
        wanted = {exercise.id for exercise in EXERCISES if exercise.notebook in names}
    chosen = [exercise for exercise in EXERCISES if exercise.id in wanted]
    if not chosen:
        raise ValueError(
            "nothing to grade: no file holds exercises of the course; name --notebook or --exercises "
            "to grade the class nevertheless."
        )
    return chosen


def _told_apart(submissions: list[Submission]) -> list[Submission]:
    """Sort by name, and give a number to those who share one, so that none is overwritten."""
    told, seen = [], set()
    for submission in sorted(submissions, key=lambda s: (s.student, [f.name for f in s.files])):
        name, number = submission.student, 2
        while name in seen:
            name, number = f"{submission.student} ({number})", number + 1
        seen.add(name)
        told.append(replace(submission, student=name))
    return told


def default_jobs() -> int:
    """Give how many submissions to grade at a time.

    One more than cores: to join its control group, a worker waits some milliseconds for the kernel and for no core.
    """
    return cores() + 1


def cores() -> int:
    """Count the cores this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
