"""Grade a class on several machines: ``vitedu grade --dask tcp://HOST:PORT``.

Role: ``Cluster`` replaces the box in ``batch``. It sends whole submissions to dask workers. Each
opens the strongest box of its own machine and calls the same ``grade_submission``. Only the parent
writes grades. Needs ``pip install vitedu[dask]``.

Security: parent, scheduler and workers must trust each other, because dask pickles functions,
arguments and results between them. Whoever reaches the scheduler's port can run code on all of
them, so it needs a private network or TLS. What students wrote is sent as bytes of JSON only, in
both directions, and the parent reads it strictly. No object made by a student's code is ever
pickled, and that code runs in a box without a network. A worker's machine that has been taken over
is not covered.
"""

import atexit
import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vitedu.exercises import Exercise, find
from vitedu.grading.fingerprint import versions
from vitedu.grading.grades import Answer, Flag, Submission, SubmissionGrade
from vitedu.grading.intake.extraction import Extraction
from vitedu.grading.student import Parts, grade_submission, not_gradable, real_parts

CONNECT_SECONDS = 20.0  # until the scheduler must answer
OPEN_SECONDS = 300.0  # for loading torch and opening a box on a worker
ALONE_SECONDS = 60.0  # without any worker, until grading stops
ATTEMPTS = 3  # invalid replies of workers until a submission is given up


class Cluster:
    """The workers of a dask scheduler, as a context manager. ``batch`` uses it in place of a box.

    Attributes:
        level: the isolation levels of the workers' boxes, with their numbers. A grade states the
            level of its own worker.
        jobs: submissions sent at the same time: one for each thread, and one waiting per worker.

    Raises:
        ValueError: no scheduler answers, it has no workers, a worker's versions differ from the
            parent's, or a worker cannot isolate answers.
    """

    def __init__(self, address: str, *, allow_unsafe: bool = False):
        try:
            import distributed
        except ImportError:
            raise ValueError("--dask needs distributed: pip install 'vitedu[dask]'.") from None
        self.address, self.allow_unsafe = address, allow_unsafe
        self.events: list[str] = []
        self._alone_since: float | None = None
        try:
            self.client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ValueError(f"no dask scheduler answers at {address}: {error}") from None
        try:
            workers = self._workers()
            if not workers:
                raise ValueError(f"the scheduler at {address} has no workers; start `dask worker`.")
            levels = [self._open(worker) for worker in workers]
        except BaseException:
            self.close()
            raise
        self.level = "; ".join(
            f"{level} ({levels.count(level)} workers)" for level in dict.fromkeys(levels)
        )
        self.jobs = sum(known["nthreads"] for known in workers.values()) + len(workers)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self) -> None:
        """Disconnect from the cluster, which keeps running."""
        self.client.close()

    def grade_submission(
        self,
        submission: Submission,
        exercises: Sequence[Exercise],
        parts: Parts,
        box: Any,
        *,
        seed: int,
        runs: int,
        log: Callable[[str], None],
        extraction: Extraction | None = None,
    ) -> SubmissionGrade:
        """Have one student graded by a worker; see ``student.grade_submission``.

        If a worker is lost, another one grades its submissions, as often as the scheduler allows
        (dask's ``allowed-failures``, 3). After that each exercise is ``not_gradable`` for the
        reason ``grader``.

        Raises:
            OSError: the whole cluster is gone; stored grades stay.
        """
        if extraction is None:  # the submission could not be read, which is reported as usual
            return grade_submission(
                submission, exercises, parts, box, seed=seed, runs=runs, log=log
            )
        task, trouble = pack_submission(submission, extraction, exercises, seed, runs), ""
        for _ in range(ATTEMPTS):
            try:
                grade, lines = read_result(self._result(task), submission, exercises, seed)
            except (_Lost, ValueError) as error:
                trouble = f"{error}"[:300]
                if isinstance(error, _Lost):
                    break
                continue
            for line in lines:
                log(line)
            return grade
        log(f"{ascii(submission.student)}, {self.address}: {trouble}")
        lost = [not_gradable(exercise, "grader", trouble) for exercise in exercises]
        names = [path.name for path in submission.files]
        return SubmissionGrade(
            submission.student,
            names,
            "",
            seed,
            "none",
            lost,
            list(submission.flags),
            dict(submission.identity),
            versions(),
        )

    def _result(self, task: bytes) -> bytes:
        """Have a task done, and wait as long as there are workers."""
        from distributed import CancelledError, KilledWorker
        from distributed.comm import CommClosedError

        try:
            future = self.client.submit(
                grade_bytes, task, versions(), self.allow_unsafe, pure=False
            )
            while True:
                try:
                    return future.result(timeout=5.0)
                except TimeoutError:
                    self._still_there()
        except KilledWorker as error:
            raise _Lost(f"every worker that took it was lost: {error}"[:300]) from None
        except Unfit as error:
            raise OSError(f"a worker of {self.address}: {error}") from None
        except (CancelledError, CommClosedError, OSError) as error:
            raise OSError(
                f"the cluster at {self.address} is gone ({type(error).__name__}: {error}). Every "
                "grade so far is written; give the same command again to grade the rest."
            ) from None
        except Exception as error:  # dask raises any error of the worker here
            raise _Lost(f"{type(error).__name__} on a worker: {error}") from None

    def _still_there(self) -> None:
        """Check that the scheduler still has workers.

        Raises:
            OSError: it has had none for ``ALONE_SECONDS``.
        """
        if self._workers():
            self._alone_since = None
            return
        self._alone_since = self._alone_since or time.monotonic()
        if time.monotonic() - self._alone_since > ALONE_SECONDS:
            raise OSError(f"no workers for {ALONE_SECONDS:g} s")

    def _workers(self) -> dict[str, dict]:
        return self.client.scheduler_info(n_workers=-1)["workers"]

    def _open(self, worker: str) -> str:
        """Have a worker open its box; return the level."""
        future = self.client.submit(
            ready, versions(), self.allow_unsafe, workers=[worker], pure=False
        )
        try:
            return future.result(timeout=OPEN_SECONDS)
        except Exception as error:
            words = str(error) or type(error).__name__
            raise ValueError(f"the worker {worker} cannot grade: {words}") from None


class _Lost(Exception):
    """No worker returned a grade."""


# --- tasks and results --------------------------------------------------------------------------


def pack_submission(
    submission: Submission, found: Extraction, exercises: Sequence[Exercise], seed: int, runs: int
) -> bytes:
    """Write everything that a worker needs about a submission as JSON, with the answers as text.

    The notebooks are read by the parent, which also compares the class. Their outputs, which may be
    large, are not sent.
    """
    answers = [found.answers[each.id] for each in exercises if each.id in found.answers]
    head = {
        "student": submission.student,
        "identity": submission.identity,
        "files": [path.name for path in submission.files],
        "answers": [asdict(answer) for answer in answers],
        "problems": found.problems,
        "flags": [asdict(flag) for flag in found.flags],
        "exercises": [exercise.id for exercise in exercises],
        "seed": seed,
        "runs": runs,
    }
    return json.dumps(head).encode()


def unpack_submission(task: bytes) -> tuple[Submission, Extraction, dict[str, Any]]:
    """Read what ``pack_submission`` wrote: the submission, its answers, and the whole JSON data."""
    head = json.loads(task)
    answers = {}
    for each in head["answers"]:
        flags = tuple(Flag(**flag) for flag in each["flags"])
        answers[each["exercise"]] = Answer(
            **{**each, "flags": flags, "bound": tuple(each["bound"])}
        )
    problems = {id: tuple(problem) for id, problem in head["problems"].items()}
    found = Extraction(answers, problems, [Flag(**flag) for flag in head["flags"]])
    files = tuple(Path(name) for name in head["files"])
    return Submission(head["student"], files, head["identity"]), found, head


def read_result(
    result: bytes, submission: Submission, exercises: Sequence[Exercise], seed: int
) -> tuple[SubmissionGrade, list[str]]:
    """Read what a worker returned.

    Returns:
        The grade, and lines for the log.

    Raises:
        ValueError: it is no valid grade of this submission.
    """
    try:
        data = json.loads(result)
        grade = SubmissionGrade.from_dict(data["grade"])
        lines = [str(line) for line in data["log"]]
        points = [(each.exercise, each.max_points) for each in grade.exercises]
    except (KeyError, TypeError, AttributeError, RecursionError, ValueError) as error:
        raise ValueError(
            f"a worker's grade cannot be read: {type(error).__name__}: {error}"
        ) from None
    if (grade.student, grade.seed) != (submission.student, seed):
        raise ValueError("a worker's grade is one of another submission")
    if points != [(each.id, float(each.points)) for each in exercises]:
        raise ValueError("a worker's grade is one of other exercises")
    if any(g.points is not None and not 0 <= g.points <= g.max_points for g in grade.exercises):
        raise ValueError("a worker's grade has points that no exercise gives")
    return grade, lines


# --- on a worker --------------------------------------------------------------------------------


class Unfit(Exception):
    """This worker must not grade: its versions differ, or it cannot isolate answers."""


_BOX: list = []  # the box of this process, once it is open
_OPENING = threading.Lock()


def ready(wanted: dict[str, str], allow_unsafe: bool) -> str:
    """Open the box of this process and return its level.

    Raises:
        Unfit: a version differs from the parent's, or the machine cannot isolate answers.
    """
    return _box(wanted, allow_unsafe).level


def grade_bytes(task: bytes, wanted: dict[str, str], allow_unsafe: bool) -> bytes:
    """Grade a packed submission in this process.

    Returns:
        JSON: the grade as plain data, and lines for the log.

    Raises:
        Unfit: as ``ready``.
    """
    box = _box(wanted, allow_unsafe)
    lines: list[str] = []
    submission, found, head = unpack_submission(task)
    grade = grade_submission(
        submission,
        [find(id) for id in head["exercises"]],
        real_parts(),
        box,
        seed=head["seed"],
        runs=head["runs"],
        extraction=found,
        log=lines.append,
    )
    return json.dumps({"grade": grade.to_dict(), "log": lines}, allow_nan=False).encode()


def _box(wanted: dict[str, str], allow_unsafe: bool):
    own = versions()
    for name, version in wanted.items():
        if own.get(name) != version:
            raise Unfit(
                f"{name} is {own.get(name)} there and {version} here; install the same versions"
            )
    with _OPENING:
        if not _BOX:
            try:
                box = real_parts().open_box(allow_unsafe=allow_unsafe)
            except ValueError as error:
                raise Unfit(str(error)) from None
            _BOX.append(box)
            atexit.register(box.close)
    if _BOX[0].level == "none" and not allow_unsafe:  # opened by an earlier task that allowed it
        raise Unfit("its box isolates nothing; --allow-unsafe grades all the same")
    return _BOX[0]
