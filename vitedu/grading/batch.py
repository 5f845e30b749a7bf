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
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vitedu.exercises import EXERCISES, Exercise, in_notebook, notebook_named, select
from vitedu.grading.fingerprint import digest, digest_files
from vitedu.grading.grades import Flag, Submission, SubmissionGrade
from vitedu.grading.pages.exports import safe_cell
from vitedu.grading.store import FOLDERS, SPLIT, TABLES, Store
from vitedu.grading.student import (
    MIN_RUNS,
    Parts,
    catch_faults,
    grade_submission,
    not_gradable,
    real_parts,
)
from vitedu.progressbar import ProgressBar

# A notebook is graded by default if it occurs in this share of the submissions, compared with the
# most frequent notebook.
SHARE = 0.25
CLASS = "class.json"  # what comparing the whole class found out
AMBIGUOUS = "ambiguous"  # a flag, and a reason of ``grades.REASONS``
STALE = "graded before the files, vitedu or the options changed; grade without --only, --exercises"


@dataclass
class Outcome:
    """What a run of ``grade_class`` did."""

    students: list[str]  # students with a grade, in order
    num_new: int  # in this run
    num_stored: int  # graded by an earlier run
    num_pending: int  # with something new or changed, but left out by ``only`` or ``exercises``
    level: str  # isolation of this run; "" if nothing had to be graded
    seconds: float
    class_flags: dict[str, list[Flag]]  # student -> flags from comparing the class
    problems: list[Flag]  # files that belong to no student
    other_notebooks: dict[str, int]  # notebook that is not graded -> number of submissions with it
    exercises: list[Exercise]  # of the tables: those of this run, and of earlier ones if it is part


def grade_class(
    folder: Path,
    out: Path,
    *,
    jobs: int | None = None,
    student_from: str = "auto",
    exercises: Sequence[str] = (),
    core: bool = False,
    notebook: str | None = None,
    only: Sequence[str] = (),
    runs: int = MIN_RUNS,
    polish: float | None = None,
    seed: int | None = None,
    again: bool = False,
    allow_unsafe: bool = False,
    parts: Parts | None = None,
    on_finish: Callable[[Store, Outcome], None] | None = None,
) -> Outcome:
    """Grade every exercise of every submission in a folder that has no up-to-date grade.

    A grade is up to date if files, versions and options have not changed and the grader itself did
    not fail. After a kill, the same command grades the rest and leaves finished grades unchanged.
    A run for some students or exercises changes only their grades: the others stay in the tables.

    Args:
        folder: what the students handed in; it is only read.
        out: folder for ``submissions/*.json``, one for each student, and ``grader.log``.
        jobs: submissions graded at the same time; default: one more than the usable cores.
        student_from: where names come from; see ``submissions.find_submissions``.
        exercises: ids, numbers or ranges of numbers to grade; default: all of ``notebook``.
        core: grade the core exercises only.
        notebook: stem of the notebook to grade; default: those that the class handed in.
        only: names of students to grade; default: all.
        runs: runs of each answer, 3 or more.
        polish: the share of an exercise's points that remarks cost at most, 0 to 0.25.
        seed: of the secret inputs, to repeat a grading; default: secret sizes for the class, and
            secret values for each submission.
        again: grade submissions with an up-to-date grade as well.
        allow_unsafe: grade even if the machine cannot isolate answers at all.
        parts: the functions that do the work; default ``real_parts()``.
        on_finish: called with store and outcome while ``out`` is still locked.

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
    jobs = default_jobs() if jobs is None else jobs
    if jobs < 1:
        raise ValueError(f"jobs must be 1 or more (got {jobs}).")
    folder, out = Path(folder), Path(out)
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder; name the folder with the returned notebooks.")
    _refuse_overlap(folder.resolve(), out.resolve())
    start = time.monotonic()
    parts = parts or real_parts()
    intake = parts.find(folder, student_from=student_from)
    submissions = _tell_apart(intake.submissions)
    if not submissions:
        raise ValueError(f"{folder} holds no notebooks (*.ipynb).")
    unknown = sorted(set(only) - {submission.student for submission in submissions})
    if unknown:
        raise ValueError(f"no submission of {', '.join(map(repr, unknown))} in {folder}.")

    with Store(out) as store:
        files = {each.student: digest_files(each) for each in submissions}
        counts, flags, extractions = _read_class(submissions, files, parts, store, jobs)
        chosen = choose_exercises(exercises, notebook, counts, core=core)
        options = (runs,) if polish is None else (runs, polish)
        digests = {student: digest(own, *options) for student, own in files.items()}
        ids = {exercise.id for exercise in chosen}
        if exercises or core or notebook or only:  # a part: the tables keep what they hold
            known = store.load_json(TABLES).get("exercises")
            stored = (each for grade in store.load_all(digests) for each in grade.exercises)
            ids |= set(known or {each.exercise for each in stored})
        all_exercises = [exercise for exercise in EXERCISES if exercise.id in ids]

        def needs(submission: Submission) -> list[Exercise]:
            """List the chosen exercises without an up-to-date grade."""
            grade, own = store.load(submission.student), digests[submission.student]
            current = {
                each.exercise
                for each in (grade.exercises if grade and not again else ())
                if each.digest == own and each.reason != "grader" and seed in (None, each.seed)
            }
            return [exercise for exercise in chosen if exercise.id not in current]

        asked = [each for each in submissions if not only or each.student in only]
        todo = [(submission, own) for submission in asked if (own := needs(submission))]
        level = ""
        if todo:
            with parts.open_box(allow_unsafe=allow_unsafe) as box:
                level = box.level
                try:
                    how = {"seed": seed, "runs": runs, "polish": polish, "jobs": jobs}
                    _grade_all(todo, parts, box, store, digests, extractions, **how)
                finally:
                    for event in getattr(box, "events", ()):
                        store.log(f"isolation: {event}")
        graded = {submission.student for submission, _ in todo}
        students, num_pending = list[str](), 0
        for student, digest_now in digests.items():
            grade = store.load(student)
            known = grade.limit_to(ids).exercises if grade else []
            students += [student] if known else []
            stale = [each.exercise for each in known if each.digest != digest_now]
            num_pending += student not in graded and (bool(stale) or len(known) < len(ids))
            if stale:
                words = f"{', '.join(stale)}: {STALE}"
                flags[student] = [*flags.get(student, ()), Flag("stale", words)]
        outcome = Outcome(
            students,
            len(graded),
            len(set(students) - graded),
            num_pending,
            level,
            time.monotonic() - start,
            flags,
            list(intake.problems),
            {
                name: count
                for name, count in sorted(counts.items())
                if name not in {exercise.stem for exercise in all_exercises}
            },
            all_exercises,
        )
        store.write_json(TABLES, store.load_json(TABLES) | {"exercises": sorted(ids)})
        if on_finish:
            on_finish(store, outcome)
    return outcome


def _refuse_overlap(folder: Path, out: Path) -> None:
    """Raise ValueError if grades could be taken for submissions or be written over them."""
    output_folders = [out / name for name in FOLDERS]
    if out.is_relative_to(folder) or any(folder.is_relative_to(each) for each in output_folders):
        raise ValueError(
            f"--out must lie outside the submissions, and they outside it (got {out} for "
            f"{folder}); use for example {folder.parent / 'grades'}."
        )


def _read_class(
    submissions: list[Submission], files: dict[str, str], parts: Parts, store: Store, jobs: int
) -> tuple[Counter[str], dict[str, list[Flag]], dict[str, Any]]:
    """Read the submissions of a class and compare them.

    What that finds out is stored with a hash of all files and versions, so that the same command
    again reads no notebook. A fault in reading leaves a submission out: ``grade_submission`` tries
    again and reports it. A fault in comparing is logged and changes no grade.

    Returns:
        Notebook of the course -> number of submissions with it; student -> flags from comparing;
        student -> from ``Parts.extract``, empty if nothing had to be read.
    """
    key, known = digest("", *map(ascii, sorted(files.items()))), store.load_json(CLASS)
    extractions: dict[str, Any] = {}
    if known.get("key") != key:
        bar = ProgressBar(total=len(submissions))

        def read(submission: Submission) -> Any:
            with catch_faults(lambda text: None, submission.student, "reading"):
                return parts.extract(submission)

        with ThreadPoolExecutor(jobs) as pool:
            for done, found in enumerate(pool.map(read, submissions), 1):
                bar.update(done, f"{done} of {len(submissions)} submissions read")
                if found is not None:
                    extractions[submissions[done - 1].student] = found
        bar.close()
        flags = None
        with catch_faults(store.log, "the class", "comparing answers"):
            flags = parts.compare({s: each.answers for s, each in extractions.items()})
        known = {"key": key if flags is not None else ""}
        known["notebooks"] = Counter(n for each in extractions.values() for n in each.notebooks)
        known["flags"] = {
            student: [[flag.kind, flag.message] for flag in own]
            for student, own in (flags or {}).items()
        }
        store.write_json(CLASS, known)
    flags = {s: [Flag(*words) for words in own] for s, own in known["flags"].items()}
    return Counter(known["notebooks"]), flags, extractions


def _grade_all(todo, parts, box, store, digests, extractions, *, seed, runs, polish, jobs) -> None:
    """Grade in threads that wait for the workers of the box; store each grade when it is ready."""
    jobs = min(jobs, len(todo))
    bar, stop = ProgressBar(total=len(todo)), threading.Event()

    def work(submission: Submission, exercises: list[Exercise]) -> None:
        if stop.is_set():
            return
        own_seed = store.class_secret() * SPLIT + secrets.randbelow(SPLIT) if seed is None else seed
        twins = next((flag for flag in submission.flags if flag.kind == AMBIGUOUS), None)
        grade = grade_submission(
            submission,
            [] if twins else exercises,
            parts,
            box,
            seed=own_seed,
            runs=runs,
            polish=polish,
            extraction=extractions.get(submission.student),
            log=store.log,
        )
        if twins:
            grades = [not_gradable(each, AMBIGUOUS, twins.message) for each in exercises]
            grade = replace(grade, exercises=grades)
        old, own = store.load(submission.student), digests[submission.student]
        try:
            store.save(_merge(old, grade, own))
        except (ValueError, TypeError) as error:  # not valid JSON: a fault of the grader
            store.log(f"{ascii(submission.student)}, writing: {type(error).__name__}: {error}")
            detail = f"{type(error).__name__} in the grader; grader.log has the lines"
            grades = [not_gradable(exercise, "grader", detail) for exercise in exercises]
            store.save(_merge(old, replace(grade, exercises=grades, flags=[]), own))

    with ThreadPoolExecutor(jobs, thread_name_prefix="grade") as pool:
        futures = [pool.submit(work, *each) for each in todo]
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


def _merge(old: SubmissionGrade | None, new: SubmissionGrade, digest: str) -> SubmissionGrade:
    """Put new grades in the place of old ones, and keep those that were not graded now."""
    fresh = [replace(each, digest=digest, seed=new.seed) for each in new.exercises]
    ids = {each.exercise for each in fresh}
    kept = [each for each in old.exercises if each.exercise not in ids] if old else []
    levels = [*(old.isolation.split("; ") if old and kept else ()), new.isolation]
    places = {exercise.id: place for place, exercise in enumerate(EXERCISES)}
    return replace(
        new,
        digest=digest,
        isolation="; ".join(dict.fromkeys(levels)),
        exercises=sorted(
            [each for each in kept if each.exercise in places] + fresh,
            key=lambda each: places[each.exercise],
        ),
    )


def choose_exercises(
    words: Sequence[str], notebook: str | None, counts: Mapping[str, int], *, core: bool = False
) -> list[Exercise]:
    """Decide what is graded: the exercises named, or a notebook, or those that the class handed in.

    Args:
        words: ids, numbers or ranges of numbers; see ``vitedu.exercises.select``.
        notebook: stem of a notebook.
        counts: notebook -> number of submissions with it. A rare notebook is left out: a stray
            file, or one with marks of all chapters, must not add points that all others miss.
        core: whether only core exercises are graded.

    Raises:
        ValueError: an exercise or notebook is unknown, or nothing is left to grade.
    """
    most = max(counts.values(), default=0)
    names = {name for name, count in counts.items() if count >= max(SHARE * most, min(2, most))}
    if notebook:
        names = {exercise.stem for exercise in in_notebook(notebook_named(notebook))}
    chosen = [
        exercise
        for exercise in (select(words) if words else EXERCISES)
        if exercise.stem in names or (words and not notebook)
    ]
    chosen = [exercise for exercise in chosen if exercise.core or not core]
    if not chosen:
        raise ValueError(
            "nothing to grade: no file holds exercises of the course; name --notebook or "
            "--exercises to grade the class nevertheless."
        )
    return chosen


def _tell_apart(submissions: list[Submission]) -> list[Submission]:
    """Sort submissions by name, and flag those whose names would be one cell of a table.

    Each gets the path as a part of its name, so that no grade is overwritten.
    """
    alike = defaultdict(list)
    for submission in sorted(submissions, key=lambda s: (s.student, [f.name for f in s.files])):
        alike[safe_cell(submission.student)].append(submission)
    result = []
    for group in alike.values():
        places = [ascii(each.place or number) for number, each in enumerate(group, 1)]
        flag = Flag(AMBIGUOUS, f"these bear one name: {', '.join(places)}; rename one, grade again")
        for submission, place in zip(group, places, strict=True):
            if len(group) > 1:
                flags, name = (*submission.flags, flag), f"{submission.student} [{place}]"
                submission = replace(submission, student=name, flags=flags)
            result.append(submission)
    return result


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
