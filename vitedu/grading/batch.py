"""Grade a class: every submission in a folder gets a grade file, and what has one keeps it.

Role: ``grade_class``, which can be stopped and resumed, and ``Store``, its output folder. One
student is graded by ``student``, and ``pages`` shows the grades.

A problem with one submission, even a fault of the grader, is recorded in that submission's grade. A
problem with the output folder stops the batch, because a grade that cannot be stored must not be
announced.
"""

import hashlib
import json
import os
import re
import secrets
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from vitedu.checks.writing.checker import MOST_POLISH
from vitedu.checks.writing.inputs import SPLIT
from vitedu.exercises import EXERCISES, Exercise, find, in_notebook, notebook_named, select
from vitedu.grading.grades import (
    Flag,
    Submission,
    SubmissionGrade,
    from_plain,
    not_gradable,
    safe_cell,
    safe_name,
)
from vitedu.grading.intake.flags import PARTNERS
from vitedu.grading.intake.notebook_file import Unreadable, open_regular
from vitedu.grading.intake.submissions import clean_name, stem_of
from vitedu.grading.student import Parts, catch_faults, grade_submission, versions
from vitedu.ground.files import UNFINISHED, file_lock, write_whole
from vitedu.ground.progressbar import ProgressBar

# A notebook is graded by default if it occurs in this share of the submissions, compared with the
# most frequent notebook.
SHARE = 0.25
MOST_JOBS = 6  # by default; one judges at a time, and the time of a notebook goes on meanwhile
SAFE_NAME = re.compile(r"[a-z0-9-]+-[0-9a-f]{12}")
FOLDERS = ("submissions", "feedback", "gradescope", "anonymous")
SECRET = "secret.json"  # decides the sizes of this class's inputs; students may not see it
TABLES = "tables.json"  # what the tables hold: exercises, and the name of Canvas's column
CLASS = "class.json"  # what comparing the whole class found out
Files = dict[str, list[tuple[str, str]]]  # student -> (name, hash) of what was handed in
UNREADABLE = "unreadable"  # in place of a hash
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
    handed_in: dict[str, str]  # student -> hash of the files
    times: dict[str, dict[str, float]]  # student -> file of the course -> when it was written


def grade_class(
    folder: Path,
    out: Path,
    *,
    jobs: int | None = None,
    exercises: Sequence[str] = (),
    core: bool = False,
    notebook: str | None = None,
    only: Sequence[str] = (),
    polish: float = MOST_POLISH,
    seed: int | None = None,
    again: bool = False,
    allow_unsafe: bool = False,
    parts: Parts | None = None,
    on_finish: Callable[["Store", Outcome], None] | None = None,
) -> Outcome:
    """Grade every exercise of every submission in a folder that has no up-to-date grade.

    A grade is up to date if files, versions and options have not changed and the grader itself did
    not fail. After a kill, the same command grades the rest and leaves finished grades unchanged.
    A run for some students or exercises changes only their grades: the others stay in the tables.

    Args:
        folder: what the students handed in; it is only read.
        out: folder for ``submissions/*.json``, one for each student, and ``grader.log``.
        jobs: submissions graded at the same time; default: one more than the usable cores, up to
            ``MOST_JOBS``.
        exercises: ids, numbers or ranges of numbers to grade; default: all of ``notebook``.
        core: grade the core exercises only.
        notebook: stem of the notebook to grade; default: those that the class handed in.
        only: names of students to grade; default: all.
        polish: the share of an exercise's points that remarks cost at most, 0 to 0.25.
        seed: of the secret inputs, to repeat a grading; default: secret sizes for the class, and
            secret values for each submission.
        again: grade submissions with an up-to-date grade as well.
        allow_unsafe: grade even if the machine cannot isolate answers at all.
        parts: the functions that do the work; default: the real ones.
        on_finish: called with store and outcome while ``out`` is still locked.

    Raises:
        ValueError: an option makes no sense, or there is nothing to grade.
        OSError: ``out`` cannot be written.
    """
    folder, out, start = Path(folder), Path(out), time.monotonic()
    # while a worker starts or ends, its submission waits without using a core
    jobs, parts = jobs if jobs is not None else min(cores() + 1, MOST_JOBS), parts or Parts()
    _refuse_choices(folder, out, polish, jobs)
    intake = parts.find(folder)
    submissions = _tell_apart(intake.submissions)
    asked = _list_asked(submissions, only, folder)
    with Store(out) as store:
        files = {each.student: digest_files(each) for each in submissions}
        counts, given, flags, extractions = _read_class(submissions, files, parts, store, jobs)
        chosen = choose_exercises(exercises, notebook, counts, core=core, given=given)
        digests = {student: digest(own, polish) for student, own in files.items()}
        is_part = bool(exercises or core or notebook or only)
        in_tables = _list_in_tables(store, chosen, digests if is_part else ())
        todo = _list_todo(asked, chosen, None if again else store, digests, seed)
        opened = parts.open_box(allow_unsafe=allow_unsafe) if todo else nullcontext()
        with opened as box:
            if todo:
                _grade_all(todo, parts, box, store, digests, extractions, jobs, seed, polish)
        graded = {submission.student for submission, _ in todo}
        ids = {exercise.id for exercise in in_tables}
        students, num_pending = _find_graded(store, digests, graded, ids, flags)
        numbers = len(graded), len(set(students) - graded), num_pending
        level, seconds = box.level if box else "", time.monotonic() - start
        others = sorted(counts.keys() - {exercise.stem for exercise in in_tables})
        rest = list(intake.problems), {name: counts[name] for name in others}, in_tables
        hashes = {
            name: hashlib.sha256(ascii(own).encode()).hexdigest() for name, own in files.items()
        }
        times = {each.student: _times(each) for each in submissions}
        outcome = Outcome(students, *numbers, level, seconds, flags, *rest, hashes, times)
        store.write_json(TABLES, store.load_json(TABLES) | {"exercises": sorted(ids)})
        if on_finish:
            on_finish(store, outcome)
    return outcome


def _times(submission: Submission) -> dict[str, float]:
    """Return file of the course -> when the newest of that name was written."""
    times: dict[str, float] = {}
    for path in submission.files:
        with suppress(OSError):
            stem = stem_of(path.name)
            times[stem] = max(times.get(stem, 0.0), path.stat().st_mtime)
    return times


def _list_asked(submissions: list[Submission], only: Sequence[str], folder: Path):
    """Return the submissions of the students who are named, or all.

    Raises:
        ValueError: there are none.
    """
    if not submissions:
        raise ValueError(f"{folder} holds no notebooks (*.ipynb).")
    asked = [each for each in submissions if not only or each.student in only]
    if unknown := sorted(set(only) - {submission.student for submission in asked}):
        raise ValueError(f"no submission of {', '.join(map(repr, unknown))} in {folder}.")
    return asked


def _list_in_tables(
    store: "Store", chosen: list[Exercise], students: Iterable[str]
) -> list[Exercise]:
    """Add to what is graded now what the tables hold already of these students."""
    known = store.load_json(TABLES).get("exercises") if students else ()
    stored = (each.exercise for grade in store.load_all(students) for each in grade.exercises)
    ids = {exercise.id for exercise in chosen}.union(known or stored)
    return [exercise for exercise in EXERCISES if exercise.id in ids]


def _list_todo(
    asked: list[Submission],
    chosen: list[Exercise],
    store: "Store | None",
    digests: Mapping[str, str],
    seed: int | None,
) -> list[tuple[Submission, list[Exercise]]]:
    """List submissions with the exercises that have no up-to-date grade in the store."""
    todo = []
    for submission in asked:
        now = digests[submission.student]
        current = {
            each.exercise
            for grade in (store.load_all([submission.student]) if store else ())
            for each in grade.exercises
            if each.digest == now and each.reason != "grader" and seed in (None, each.seed)
        }
        if own := [exercise for exercise in chosen if exercise.id not in current]:
            todo.append((submission, own))
    return todo


def _refuse_choices(folder: Path, out: Path, polish: float, jobs: int) -> None:
    """Raise ValueError for options and folders that make no sense."""
    if not 0 <= polish <= 0.25:
        raise ValueError(f"polish must be 0 to 25 percent of the points (got {100 * polish:g}).")
    if jobs < 1:
        raise ValueError(f"jobs must be 1 or more (got {jobs}).")
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder; name the folder with the returned notebooks.")
    folder, out = folder.resolve(), out.resolve()
    # grades could be taken for submissions, or be written over them
    if out.is_relative_to(folder) or any(folder.is_relative_to(out / name) for name in FOLDERS):
        raise ValueError(
            f"--out must lie outside the submissions, and they outside it (got {out} for "
            f"{folder}); use for example {folder.parent / 'grades'}."
        )


def _find_graded(
    store: "Store", digests: Mapping[str, str], graded: set[str], ids: set[str], flags: dict
) -> tuple[list[str], int]:
    """List the students with a grade and count those who wait; add flags where a grade is old."""
    students, num_pending = list[str](), 0
    for student, digest_now in digests.items():
        grade = store.load(student)
        known = grade.limit_to(ids).exercises if grade else []
        students += [student] if known else []
        stale = [each.exercise for each in known if each.digest != digest_now]
        num_pending += student not in graded and (bool(stale) or len(known) < len(ids))
        if stale:
            flag = Flag("stale", f"{', '.join(stale)}: {STALE}")
            flags[student] = [*flags.get(student, ()), flag]
    return students, num_pending


def _read_class(
    submissions: list[Submission], files: Files, parts: Parts, store: "Store", jobs: int
) -> tuple[Counter[str], set[str], dict[str, list[Flag]], dict[str, Any]]:
    """Read the submissions of a class and compare them.

    What that finds out is stored with a hash of all files and versions, so that the same command
    again reads no notebook. A fault in reading leaves a submission out: ``grade_submission`` tries
    again and reports it. A fault in comparing is logged and changes no grade.

    Returns:
        Notebook of the course -> number of submissions with it; exercises that were not assigned;
        student -> flags from comparing; student -> from ``Parts.extract``, empty if nothing had to
        be read.
    """
    key, known = digest(sorted(files.items())), store.load_json(CLASS)
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
        known = {"key": "", "flags": {}}
        known["notebooks"] = Counter(n for each in extractions.values() for n in each.notebooks)
        given = Counter(id for each in extractions.values() for id in each.given)
        known["given"] = [i for i, n in given.items() if 2 * n > known["notebooks"][find(i).stem]]
        with catch_faults(store.log, "the class", "comparing answers"):
            found = parts.compare({s: each.answers for s, each in extractions.items()})
            for student, flag in _compare_files(files, extractions):
                found[student] = [*found.get(student, ()), flag]
            known |= {"key": key, "flags": {s: list(map(asdict, own)) for s, own in found.items()}}
        store.write_json(CLASS, known)
    flags = from_plain(dict[str, list[Flag]], known["flags"])
    return Counter(known["notebooks"]), set(known.get("given", ())), flags, extractions


def _compare_files(files: Files, extractions: dict[str, Any]) -> Iterator[tuple[str, Flag]]:
    """Flag students who handed in one file, with answers that are not the course's own text."""
    owners: dict[str, set[str]] = defaultdict(set)
    for student, extraction in extractions.items():
        own = {answer.notebook for answer in extraction.answers.values() if answer.tokens}
        for name, content in files[student]:
            if clean_name(name) in own:
                owners["" if content.startswith(UNREADABLE) else content].add(student)
    owners.pop("", None)
    for students in filter(lambda students: len(students) > 1, owners.values()):
        for student in students:
            others = ", ".join(sorted(students - {student})[:PARTNERS])
            yield student, Flag("similar", f"handed in the same file as {others}")


def _grade_all(
    todo: list,
    parts: Parts,
    box: Any,
    store: "Store",
    digests: Mapping[str, str],
    extractions: Mapping[str, Any],
    jobs: int,
    class_seed: int | None,
    polish: float,
) -> None:
    """Grade in threads that wait for the workers of the box; store each grade when it is ready."""
    bar, stop = ProgressBar(total=len(todo)), threading.Event()

    def work(submission: Submission, exercises: list[Exercise]) -> None:
        if stop.is_set():
            return
        student, seed, asked = submission.student, class_seed, exercises
        if seed is None:
            seed = store.class_secret() * SPLIT + secrets.randbelow(SPLIT)
        settings: dict[str, Any] = {"seed": seed, "polish": polish, "log": store.log}
        settings["extraction"] = extractions.get(student)
        twins = next((flag for flag in submission.flags if flag.kind == AMBIGUOUS), None)
        grade = grade_submission(submission, [] if twins else asked, parts, box, **settings)
        if twins:
            grade.exercises = [not_gradable(each, AMBIGUOUS, twins.message) for each in asked]
        old = store.load(student)
        try:
            store.save(_merge(old, grade, digests[student]))
        except (ValueError, TypeError) as error:  # not valid JSON: a fault of the grader
            store.log(f"{ascii(student)}, writing: {type(error).__name__}: {error}")
            detail = f"{type(error).__name__} in the grader; grader.log has the lines"
            grades = [not_gradable(exercise, "grader", detail) for exercise in asked]
            grade = replace(grade, exercises=grades, flags=[])
            store.save(_merge(old, grade, digests[student]))

    with ThreadPoolExecutor(min(jobs, len(todo)), thread_name_prefix="grade") as pool:
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
    fresh = {each.exercise: replace(each, digest=digest, seed=new.seed) for each in new.exercises}
    kept = (
        {each.exercise: each for each in old.exercises if each.exercise not in fresh} if old else {}
    )
    levels = [*(old.isolation.split("; ") if old and kept else ()), new.isolation]
    both = kept | fresh
    return replace(
        new,
        digest=digest,
        isolation="; ".join(dict.fromkeys(levels)),
        exercises=[both[exercise.id] for exercise in EXERCISES if exercise.id in both],
    )


def choose_exercises(
    words: Sequence[str],
    notebook: str | None,
    counts: Mapping[str, int],
    *,
    core: bool = False,
    given: Container[str] = (),
) -> list[Exercise]:
    """Decide what is graded: the exercises named, or a notebook, or those that the class handed in.

    Args:
        words: ids, numbers or ranges of numbers; see ``vitedu.exercises.select``.
        notebook: stem of a notebook.
        counts: notebook -> number of submissions with it. A rare notebook is left out: a stray
            file, or one with marks of all chapters, must not add points that all others miss.
        core: whether only core exercises are graded.
        given: exercises that most of the class got with the course's answer (``vitedu assign``);
            they are graded only if they are named.

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
        if (exercise.stem in names or (words and not notebook)) and (exercise.core or not core)
        if words or exercise.id not in given
    ]
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
        if len(group) == 1:
            result += group
            continue
        places = [ascii(each.place or number) for number, each in enumerate(group, 1)]
        flag = Flag(AMBIGUOUS, f"these bear one name: {', '.join(places)}; rename one, grade again")
        for submission, place in zip(group, places, strict=True):
            flags, name = (*submission.flags, flag), f"{submission.student} [{place}]"
            result.append(replace(submission, student=name, flags=flags))
    return result


def cores() -> int:
    """Count the cores that this process may use."""
    on_linux = sys.platform == "linux"
    return len(os.sched_getaffinity(0)) if on_linux else os.cpu_count() or 1


# --- is a grade up to date? ----------------------------------------------------------------------


def digest_files(submission: Submission) -> list[tuple[str, str]]:
    """Return name and hash of each file that was handed in; of an unreadable one, why it is so."""
    pairs = []
    for path in submission.files:
        try:
            with open_regular(path) as file:
                total = hashlib.file_digest(file, "sha256")  # type: ignore[arg-type]
            pairs.append((path.name, total.hexdigest()))
        except (OSError, Unreadable) as error:
            pairs.append((path.name, f"{UNREADABLE}: {getattr(error, 'errno', error)}"))
    return pairs


def digest(files: Any, *options: Any) -> str:
    """Hash all that the grade of an exercise depends on: files (as hashed), versions, options."""
    return hashlib.sha256(ascii([files, options, sorted(versions().items())]).encode()).hexdigest()


# --- the output folder ---------------------------------------------------------------------------


class Store:
    """The output folder, locked by one grader at a time. Its files are whole or do not exist."""

    def __init__(self, out: Path):
        self.out = Path(out)
        self._stack = ExitStack()
        self._secret_lock = threading.Lock()

    def __enter__(self) -> "Store":
        with self._explain(self.out):
            for folder in FOLDERS[:2]:
                (self.out / folder).mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            if not stack.enter_context(file_lock(self.out / ".lock", 0)):
                words = f"another grader is at work in {self.out}"
                raise OSError(f"{words}; wait for it, or choose another --out.")
            for place in (self.out, *(self.out / folder for folder in FOLDERS)):
                for path in place.glob(f".*{UNFINISHED}"):
                    path.unlink(missing_ok=True)  # left by a run that was killed
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_) -> None:
        self._stack.close()

    def path(self, student: str) -> Path:
        """Return the path of a student's JSON file."""
        return self.out / "submissions" / f"{safe_name(student)}.json"

    def load(self, student: str) -> SubmissionGrade | None:
        """Read a grade; None if there is no valid one."""
        try:
            grade = from_plain(SubmissionGrade, json.loads(self.path(student).read_bytes()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        return grade if grade.student == student else None

    def load_all(self, students: Iterable[str]) -> Iterator[SubmissionGrade]:
        """Read grades one at a time, so that the whole class is never in memory."""
        return filter(None, map(self.load, students))

    def save(self, grade: SubmissionGrade) -> None:
        """Write a grade in one step."""
        text = json.dumps(asdict(grade), indent=1, allow_nan=False)
        self._replace(self.path(grade.student), text.encode())

    def write(self, name: str, text: str | bytes) -> None:
        """Write a file, text as UTF-8, in one step, unless its content would stay the same."""
        path = self.out / name
        content = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
        with suppress(OSError):
            if path.read_bytes() == content:
                return
        self._replace(path, content)

    def remove_others(self, folder: str, ending: str, students: Iterable[str]) -> None:
        """Remove files of students who are no longer in the class; files of other names stay."""
        known = {safe_name(student) for student in students}
        for path in (self.out / folder).glob(f"*{ending}"):
            if SAFE_NAME.fullmatch(path.stem) and path.stem not in known:
                with self._explain(path):
                    path.unlink(missing_ok=True)

    def load_json(self, name: str) -> dict:
        """Read a JSON object; an empty dict if there is none. A damaged file is kept beside it."""
        path = self.out / name
        try:
            data = json.loads(path.read_bytes())
        except OSError:
            return {}
        except (ValueError, RecursionError):
            data = None
        if isinstance(data, dict):
            return data
        with suppress(OSError):  # what a person decided may stand in it
            os.replace(path, f"{path}.damaged")
            self.log(f"{name} is not JSON object; it is kept as {name}.damaged")
        return {}

    def write_json(self, name: str, data: dict) -> None:
        """Write a JSON object; see ``write``."""
        self.write(name, json.dumps(data, indent=1, sort_keys=True))

    def class_secret(self) -> int:
        """Return the secret seed of this class's input sizes, which is drawn once and stored."""
        with self._secret_lock:
            sizes = self.load_json(SECRET).get("sizes")
            if type(sizes) is not int or not 0 < sizes < SPLIT:
                sizes = 1 + secrets.randbelow(SPLIT - 1)
                self.write_json(SECRET, {"sizes": sizes})
            return sizes

    def log(self, text: str) -> None:
        """Add lines to ``grader.log``; do nothing if it cannot be written."""
        path = self.out / "grader.log"
        with suppress(OSError), path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(text.rstrip() + "\n")

    def _replace(self, path: Path, content: bytes) -> None:
        with self._explain(path):
            path.parent.mkdir(exist_ok=True)
            write_whole(path, content)

    @contextmanager
    def _explain(self, path: Path) -> Iterator[None]:
        """Name the file that cannot be written, and the remedy."""
        try:
            yield
        except OSError as error:
            raise OSError(
                f"{path} cannot be written ({error.strerror or error}). Every grade in "
                f"{self.out / 'submissions'} is whole; make room or choose another --out and give "
                "the same command again: it goes on where it stopped."
            ) from None
