"""Grade a class: every submission in a folder gets a grade file.

Role: ``grade_class``, which can be stopped and resumed. One student is graded by ``student``;
``fingerprint`` decides whether a grade is up to date; ``store`` keeps grades and ``publish`` shows
them.

A problem with one submission, even a fault of the grader, is recorded in that submission's grade. A
problem with the output folder stops the batch, because a grade that cannot be stored must not be
announced.
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
from vitedu.grading.intake.class_reader import ClassReader
from vitedu.grading.store import FOLDERS, SPLIT, Store
from vitedu.grading.student import MIN_RUNS, Parts, grade_submission, not_gradable, real_parts
from vitedu.progressbar import ProgressBar

# A notebook is graded by default if it occurs in this share of the submissions, compared with the
# most frequent notebook.
SHARE = 0.25


@dataclass
class Outcome:
    """What a run of ``grade_class`` did."""

    students: list[str]  # students with an up-to-date grade, in order
    num_new: int  # in this run
    num_stored: int  # graded by an earlier run
    num_pending: int  # changed or new, but left out by ``only``
    level: str  # isolation of this run; "" if nothing had to be graded
    seconds: float
    class_flags: dict[str, list[Flag]]  # student -> flags from comparing the class
    problems: list[Flag]  # files that belong to no student
    other_notebooks: dict[str, int]  # notebook that is not graded -> number of submissions with it


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
    polish: float | None = None,
    seed: int | None = None,
    again: bool = False,
    allow_unsafe: bool = False,
    parts: Parts | None = None,
    on_finish: Callable[[Store, Outcome, list[Exercise]], None] | None = None,
) -> Outcome:
    """Grade every submission in a folder that has no up-to-date grade.

    A grade is up to date if files, versions, exercises and number of runs have not changed and the
    grader itself did not fail. After a kill, the same command grades the rest and leaves finished
    grades unchanged.

    Args:
        folder: what the students handed in; it is only read.
        out: folder for ``submissions/*.json``, one for each student, and ``grader.log``.
        jobs: submissions graded at the same time; default: one more than the usable cores.
        student_from: where names come from; see ``submissions.find_submissions``.
        exercises: ids to grade; default: all of ``notebook``.
        notebook: stem of the notebook to grade; default: those that the class handed in.
        only: names of students to grade; default: all.
        runs: runs of each answer, 3 or more.
        polish: the share of an exercise's points that remarks cost at most, 0 to 0.25.
        seed: of the secret inputs, to repeat a grading; default: secret sizes for the class, and
            secret values for each submission.
        again: grade submissions with an up-to-date grade as well.
        allow_unsafe: grade even if the machine cannot isolate answers at all.
        parts: the functions that do the work; default ``real_parts()``.
        on_finish: called with store, outcome and exercises while ``out`` is still locked.

    Raises:
        ValueError: an option makes no sense, or there is nothing to grade.
        OSError: ``out`` cannot be written.
    """
    if runs < MIN_RUNS:
        raise ValueError(
            f"runs must be {MIN_RUNS} or more (got {runs}): luck must not earn points."
        )
    if polish is not None and not 0 <= polish <= 0.25:
        raise ValueError(f"polish must be 0 to 25 percent of the points (got {100 * polish:g}).")
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs must be 1 or more (got {jobs}).")
    folder, out = Path(folder), Path(out)
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder; name the folder with the returned notebooks.")
    _refuse_overlap(folder.resolve(), out.resolve())
    start = time.monotonic()
    parts = parts or real_parts()
    intake = parts.find(folder, student_from=student_from)
    submissions = _number_namesakes(intake.submissions)
    if not submissions:
        raise ValueError(f"{folder} holds no notebooks (*.ipynb).")
    unknown = sorted(set(only) - {submission.student for submission in submissions})
    if unknown:
        raise ValueError(f"no submission of {', '.join(map(repr, unknown))} in {folder}.")

    with Store(out) as store:
        reader = ClassReader(submissions, parts, store)
        counts = {} if exercises or notebook else reader.notebooks()
        chosen = choose_exercises(exercises, notebook, counts)
        options = (runs,) if polish is None else (runs, polish)
        digests = {name: digest(files, chosen, *options) for name, files in reader.files.items()}

        def is_done(submission: Submission) -> bool:
            grade = store.load(submission.student)
            return (
                grade is not None
                and grade.digest == digests[submission.student]
                and not (again or any(each.reason == "grader" for each in grade.exercises))
                and seed in (None, grade.seed)
            )

        todo = [s for s in submissions if (not only or s.student in only) and not is_done(s)]
        level = ""
        if todo:
            with parts.open_box(allow_unsafe=allow_unsafe) as box:
                level = box.level
                try:
                    _grade_all(
                        todo, chosen, parts, box, store, digests, reader, seed, runs, polish, jobs
                    )
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
            reader.flags(),
            list(intake.problems),
            {
                name: count
                for name, count in sorted(reader.notebooks().items())
                if name not in {exercise.notebook for exercise in chosen}
            },
        )
        reader.save()
        if on_finish:
            on_finish(store, outcome, chosen)
    return outcome


def _refuse_overlap(folder: Path, out: Path) -> None:
    """Raise ValueError if grades could be taken for submissions or be written over them."""
    output_folders = [out / name for name in FOLDERS]
    if out.is_relative_to(folder) or any(folder.is_relative_to(each) for each in output_folders):
        raise ValueError(
            f"--out must lie outside the submissions, and they outside it (got {out} for "
            f"{folder}); use for example {folder.parent / 'grades'}."
        )


def _grade_all(todo, chosen, parts, box, store, digests, reader, seed, runs, polish, jobs) -> None:
    """Grade in threads that wait for the workers of the box; store each grade when it is ready."""
    jobs = min(jobs or getattr(box, "jobs", None) or default_jobs(), len(todo))
    bar, stop = ProgressBar(total=len(todo)), threading.Event()

    def work(submission: Submission) -> None:
        if stop.is_set():
            return
        own_seed = store.class_secret() * SPLIT + secrets.randbelow(SPLIT) if seed is None else seed
        # a cluster's box has its own grade_submission
        grade = getattr(box, "grade_submission", grade_submission)(
            submission,
            chosen,
            parts,
            box,
            seed=own_seed,
            runs=runs,
            polish=polish,
            extraction=reader.extraction(submission),
            log=store.log,
        )
        grade = replace(grade, digest=digests[submission.student])
        try:
            store.save(grade)
        except (ValueError, TypeError) as error:  # not valid JSON: a fault of the grader
            store.log(f"{ascii(submission.student)}, writing: {type(error).__name__}: {error}")
            detail = f"{type(error).__name__} in the grader; grader.log has the lines"
            grades = [not_gradable(exercise, "grader", detail) for exercise in chosen]
            store.save(replace(grade, exercises=grades, flags=[]))

    with ThreadPoolExecutor(jobs, thread_name_prefix="grade") as pool:
        futures = [pool.submit(work, submission) for submission in todo]
        try:
            for done, future in enumerate(as_completed(futures), 1):
                future.result()
                bar.update(done, f"{done} of {len(todo)} submissions")
        except BaseException:  # a full disk or Ctrl-C: finish what runs and start nothing new
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
        finally:
            bar.close()


def choose_exercises(
    ids: Sequence[str], notebook: str | None, counts: Mapping[str, int]
) -> list[Exercise]:
    """Decide what is graded: the ids, or a notebook, or the notebooks that the class handed in.

    Args:
        ids: of exercises.
        notebook: stem of a notebook.
        counts: notebook -> number of submissions with it. A rare notebook is left out: a stray
            file must not add points that all others miss.

    Raises:
        ValueError: an exercise or notebook is unknown, or nothing is left to grade.
    """
    if ids:
        selected_ids = {find(id).id for id in ids}
        if notebook:
            selected_ids &= {exercise.id for exercise in in_notebook(notebook_named(notebook))}
    else:
        highest = max(counts.values(), default=0)
        names = {name for name, count in counts.items() if count >= SHARE * highest}
        if notebook:
            names = {notebook_named(notebook)}
        selected_ids = {exercise.id for exercise in EXERCISES if exercise.notebook in names}
    chosen = [exercise for exercise in EXERCISES if exercise.id in selected_ids]
    if not chosen:
        raise ValueError(
            "nothing to grade: no file holds exercises of the course; name --notebook or "
            "--exercises to grade the class nevertheless."
        )
    return chosen


def _number_namesakes(submissions: list[Submission]) -> list[Submission]:
    """Sort submissions by name, and number equal names, so that no grade is overwritten."""
    numbered, names = [], set()
    for submission in sorted(submissions, key=lambda s: (s.student, [f.name for f in s.files])):
        name, number = submission.student, 2
        while name in names:
            name, number = f"{submission.student} ({number})", number + 1
        names.add(name)
        numbered.append(replace(submission, student=name))
    return numbered


def default_jobs() -> int:
    """Return how many submissions to grade at the same time: one more than cores.

    While a worker starts or ends, its submission waits some milliseconds without using a core.
    """
    return cores() + 1


def cores() -> int:
    """Count the cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
