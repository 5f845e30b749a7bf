"""Grade a class on several machines: ``vitedu grade --dask tcp://HOST:PORT``.

Role: ``Cluster`` replaces the box in ``batch``. It sends whole submissions to dask workers, each of
which opens the strongest box of its own machine. Only the parent writes grades.

Security: parent, scheduler and workers must trust each other, because dask pickles functions,
arguments and results between them. Whoever reaches the scheduler's port can run code on all of
them, so it needs a private network or TLS. What students wrote is sent as bytes of JSON only, in
both directions, and the parent reads it strictly. No object made by a student's code is pickled,
and that code runs in a box without a network. A worker's machine in other hands is not covered.
"""

import atexit
import json
import threading
import time
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from vitedu.exercises import find
from vitedu.grading.fingerprint import versions
from vitedu.grading.grades import Submission, SubmissionGrade
from vitedu.grading.intake.extraction import Extraction
from vitedu.grading.intake.reading import (
    pack_extraction,
    pack_submission,
    unpack_extraction,
    unpack_submission,
)
from vitedu.grading.student import grade_submission, not_gradable, real_parts

CONNECT_SECONDS = 20.0  # until the scheduler must answer
OPEN_SECONDS = 300.0  # for loading torch and opening a box on a worker
ALONE_SECONDS = 60.0  # without any worker, until grading stops
ATTEMPTS = 3  # invalid replies of workers until a submission is given up


class Cluster(AbstractContextManager):
    """The workers of a dask scheduler, as a context manager. ``batch`` uses it in place of a box.

    ``level`` names the isolation of the workers' boxes, with their numbers. ``jobs`` submissions
    are sent at a time: one a thread, and one waiting a worker. A ValueError says that no scheduler
    answers, it has no workers, or one has other versions or cannot isolate answers.
    """

    def __init__(self, address: str, *, allow_unsafe: bool = False):
        try:
            import distributed
        except ImportError:
            raise ValueError("--dask needs distributed: pip install 'vitedu[dask]'.") from None
        self.address, self.wanted, self.alone_since = address, (versions(), allow_unsafe), 0.0
        try:
            self.client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ValueError(f"no dask scheduler answers at {address}: {error}") from None
        try:
            workers = self.client.scheduler_info(n_workers=-1)["workers"]
            if not workers:
                raise ValueError(f"the scheduler at {address} has no workers; start `dask worker`.")
            levels = [self.level_of(worker) for worker in workers]
        except BaseException:
            self.client.close()
            raise
        kinds = dict.fromkeys(levels)
        self.level = "; ".join(f"{kind} ({levels.count(kind)} workers)" for kind in kinds)
        self.jobs = sum(known["nthreads"] for known in workers.values()) + len(workers)

    def __exit__(self, *_):
        self.client.close()  # the cluster keeps running

    def grade_submission(
        self, submission, exercises, parts, box, *, seed, runs, log, extraction, polish=None
    ):
        """Have one student graded by a worker, as ``student.grade_submission`` does.

        If it is lost, another one takes its submissions, as often as the scheduler allows (dask's
        ``allowed-failures``, 3); then each exercise is ``not_gradable`` for the reason ``grader``.
        An OSError says that the whole cluster is gone; stored grades stay.
        """
        if extraction is None:  # the submission could not be read, which is reported as usual
            return grade_submission(
                submission, exercises, parts, box, seed=seed, runs=runs, polish=polish, log=log
            )
        how = {"seed": seed, "runs": runs, "polish": polish}
        task, trouble = pack_task(submission, extraction, exercises, how), ""
        for _ in range(ATTEMPTS):
            try:
                grade, lines = read_result(self.result(task), submission, exercises, seed)
            except (LookupError, ValueError) as error:
                trouble = f"{error}"[:300]
                if isinstance(error, LookupError):
                    break
            else:
                for line in lines:
                    log(line)
                return grade
        log(f"{ascii(submission.student)}, {self.address}: {trouble}")
        lost = [not_gradable(exercise, "grader", trouble) for exercise in exercises]
        files = [path.name for path in submission.files]
        known = list(submission.flags), dict(submission.identity), versions()
        return SubmissionGrade(submission.student, files, "", seed, "none", lost, *known)

    def result(self, task: bytes) -> bytes:
        """Have a task done, and wait as long as there are workers; a LookupError if it is lost."""
        from distributed import CancelledError

        try:
            future = self.client.submit(grade_bytes, task, *self.wanted, pure=False)
            while True:
                try:
                    return future.result(timeout=5.0)
                except TimeoutError:
                    now, known = time.monotonic(), self.client.scheduler_info(n_workers=-1)
                    self.alone_since = 0.0 if known["workers"] else self.alone_since or now
                    if self.alone_since and now - self.alone_since > ALONE_SECONDS:
                        raise OSError(f"no workers for {ALONE_SECONDS:g} s") from None
        except Unfit as error:
            raise OSError(f"a worker of {self.address}: {error}") from None
        except (CancelledError, OSError) as error:
            raise OSError(
                f"the cluster at {self.address} is gone ({type(error).__name__}: {error}). Every "
                "grade so far is written; give the same command again to grade the rest."
            ) from None
        except Exception as error:  # dask raises any error of the worker here, also that it died
            raise LookupError(f"{type(error).__name__} on a worker: {error}") from None

    def level_of(self, worker: str) -> str:
        """Have a worker open its box, and give the level."""
        future = self.client.submit(grade_bytes, None, *self.wanted, workers=[worker], pure=False)
        try:
            return future.result(timeout=OPEN_SECONDS).decode()
        except Exception as error:
            words = str(error) or type(error).__name__
            raise ValueError(f"the worker {worker} cannot grade: {words}") from None


class Unfit(Exception):
    """This worker must not grade: its versions differ, or it cannot isolate answers."""


def pack_task(submission: Submission, found: Extraction, exercises, how: dict) -> bytes:
    """Write all that a worker needs as JSON: answers as text, without the notebooks' outputs."""
    ids = [exercise.id for exercise in exercises]
    found = replace(found, answers={id: found.answers[id] for id in ids if id in found.answers})
    named = replace(submission, files=tuple(Path(path.name) for path in submission.files))
    task = {"submission": pack_submission(named), "found": pack_extraction(found)}
    return json.dumps({**task, "exercises": ids, "how": how}).encode()


def read_result(result: bytes, submission: Submission, exercises, seed: int) -> tuple:
    """Read the grade and the lines for the log that a worker returned; a ValueError if no such."""
    try:
        data = json.loads(result)
        grade, lines = SubmissionGrade.from_dict(data["grade"]), [str(line) for line in data["log"]]
        points = [(each.exercise, each.max_points) for each in grade.exercises]
    except (KeyError, TypeError, AttributeError, RecursionError, ValueError) as error:
        raise ValueError(f"a worker's grade cannot be read: {error!r}") from None
    if (grade.student, grade.seed) != (submission.student, seed):
        raise ValueError("a worker's grade is one of another submission")
    if points != [(each.id, float(each.points)) for each in exercises]:
        raise ValueError("a worker's grade is one of other exercises")
    if any(g.points is not None and not 0 <= g.points <= g.max_points for g in grade.exercises):
        raise ValueError("a worker's grade has points that no exercise gives")
    return grade, lines


OPEN_BOXES: list = []  # on a worker: the box of this process, once it is open
OPENING = threading.Lock()


def grade_bytes(task: bytes | None, wanted: dict[str, str], allow_unsafe: bool) -> bytes:
    """Grade a packed submission on a worker, in the box of its process, opened once.

    Gives JSON, the grade and lines for the log; without a task, the box's level.
    """
    for name, version in wanted.items():
        if (own := versions().get(name)) != version:
            raise Unfit(f"{name} is {own} there and {version} here; install the same versions")
    with OPENING:
        if not OPEN_BOXES:
            try:
                OPEN_BOXES.append(real_parts().open_box(allow_unsafe=allow_unsafe))
            except ValueError as error:
                raise Unfit(str(error)) from None
            atexit.register(OPEN_BOXES[0].close)
    box, lines = OPEN_BOXES[0], list[str]()
    if box.level == "none" and not allow_unsafe:  # opened by a task that allowed it
        raise Unfit("its box isolates nothing; --allow-unsafe grades all the same")
    if task is None:
        return box.level.encode()
    head = json.loads(task)
    submission, found = unpack_submission(head["submission"]), unpack_extraction(head["found"])
    how = head["how"] | {"extraction": found, "log": lines.append}
    exercises = [find(id) for id in head["exercises"]]
    grade = grade_submission(submission, exercises, real_parts(), box, **how)
    return json.dumps({"grade": grade.to_dict(), "log": lines}, allow_nan=False).encode()
