"""Judge one answer that a process of the box holds: its observations are judged here.

Role: ``Judge``, and ``Verdict``, what a draw amounts to. The checkers of the notebook decide
(``vitedu.checks.engine``). A ``RemoteAnswer``, our side of the talk with ``box.worker``, replaces
the student's object. Several draws must agree, so that luck earns nothing. An answer that cannot be
judged gets a reason and no points, never an exception.
"""

import hashlib
import itertools
import re
import secrets
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from vitedu.checks.engine import judge_observations, observe_answer
from vitedu.checks.explaining.report import Report
from vitedu.checks.explaining.values import judge_value
from vitedu.checks.observing.answers import MIN_SECONDS, AnswerInfo, Call, PlainValue
from vitedu.checks.observing.case import Case, size_of
from vitedu.checks.observing.errors import RaisedError
from vitedu.checks.observing.observation import Observation
from vitedu.checks.observing.settings import neutral_settings
from vitedu.checks.writing.checker import Checker, find_lenient_checker
from vitedu.grading.box.conversation import Worker
from vitedu.grading.box.course_stand_ins import CLOSED_MODULES
from vitedu.grading.box.limits import Limits
from vitedu.grading.grades import FAILED, NOT_GRADABLE, PASSED, ExerciseGrade
from vitedu.grading.transport.messages import read_fields, write_case, write_observation
from vitedu.grading.transport.wire import WireError, clean, pack, unpack

GRACE = 3.0  # seconds after its time limit until a worker counts as stuck
MAX_BYTES = 24 * 2**20  # the most bytes of all observations of one worker together
PORTION = 2**16  # the most numbers in the cases of one request, because a frame has a limit
DRAWS = 3  # an answer that is right one time in three passes with probability 5 % at most
# Judging changes settings of the whole process for a moment (random state, default dtype), so only
# one thread may do it at a time.
_LOCK = threading.Lock()


class RemoteAnswer:
    """An answer in a worker; an implementation of ``answers.Source``."""

    answer = None

    def __init__(self, worker: Worker, limits: Limits):
        self.worker, self.limits = worker, limits
        self.bytes_left = MAX_BYTES
        # A limit for all requests together: an answer could use up the time of every single one.
        self.budget = limits.call_seconds

    def info(self, calls: list[Call]) -> AnswerInfo:
        """Have the worker describe the answer, and whether its signature accepts these calls."""
        request = {"do": "look", "calls": [[n, list(names)] for n, names in calls]}
        return read_fields(AnswerInfo, self.ask(request))

    def observe_all(self, cases: list[Case], seconds: float) -> Iterator[Observation]:
        """Have the worker run cases on the answer, for at most ``seconds`` together.

        A request has several of them. The worker may leave the last ones to the next request.
        """
        end = time.monotonic() + seconds
        while cases:
            sizes = itertools.accumulate(map(size_of, cases))
            asked = cases[: max(1, sum(size <= PORTION for size in sizes))]
            left = max(MIN_SECONDS, end - time.monotonic())
            request = {"do": "observe", "seconds": left}
            request["cases"] = [write_case(case, "") for case in asked]
            reply = self.ask(request, left + GRACE)
            if not isinstance(reply, list) or not 0 < len(reply) <= len(asked):
                raise WireError("a reply has observations of the cases asked for, or of the first.")
            for data in reply:
                seen = read_fields(Observation, data)
                self.bytes_left -= sum(x.numel() * x.element_size() for x in seen.tensors())
                if self.bytes_left < 0:
                    raise WireError(f"all results together have more than {MAX_BYTES} bytes.")
                yield seen
            cases = cases[len(reply) :]

    def plain(self) -> PlainValue:
        """Have the worker send the answer as a plain value."""
        return read_fields(PlainValue, self.ask({"do": "plain"}))

    def ask(self, request: dict, seconds: float = GRACE) -> Any:
        """Send a request and return what was done."""
        nonce, start = secrets.token_hex(8), time.monotonic()
        frame = pack({**request, "nonce": nonce})
        try:
            reply = unpack(self.worker.ask(frame, max(0.01, min(seconds, self.budget))))
        finally:
            self.budget -= time.monotonic() - start
        if not isinstance(reply, dict) or reply.get("nonce") != nonce:
            raise WireError("the reply does not belong to this request.")
        if set(reply) == {"nonce", "failed"}:
            raise WireError(f"the worker failed: {clean(reply['failed'], 200)}")
        if set(reply) != {"nonce", "done"}:
            raise WireError("a reply has the keys nonce and done.")
        return reply["done"]


@dataclass
class Verdict:
    """What one draw of an answer amounts to."""

    report: Report | None = None  # None: not gradable
    reason: str = ""  # a key of REASONS if not gradable
    detail: str = ""
    is_last: bool = False  # another draw would say the same or take too long, so none follows
    digest: str = ""  # of all observations that every draw makes
    observations: dict[str, Observation] = field(default_factory=dict)  # by name of the case
    is_undecided: bool = False  # its behaviour on another device is not known

    @property
    def state(self) -> str:
        if self.reason:
            return NOT_GRADABLE
        return PASSED if self.report is not None and self.report.passed else FAILED

    @property
    def points(self) -> float | None:
        if self.reason:
            return None
        return float(self.report.points) if self.report is not None else 0.0

    @property
    def is_stub(self) -> bool:
        """Whether nothing was attempted."""
        return self.report is not None and self.report.status == "not_attempted"

    @property
    def outcome(self) -> tuple:
        """What all draws must agree on."""
        mistakes = self.report.misconceptions if self.report is not None else ()
        return self.state, self.points, tuple(mistakes), self.reason


def conclude(draws: list[Verdict]) -> Verdict:
    """Return what all draws of an answer amount to."""
    if len({verdict.outcome for verdict in draws}) == 1:
        return draws[0]
    words = "; ".join(
        each.reason or f"{each.state} with {' '.join([f'{each.points:g}', *each.outcome[2]])}"
        for each in draws
    )
    return Verdict(reason="unstable", detail=f"{len(draws)} draws: {words}")


class Judge:
    """Judges the answers of one student: each on draws of its own.

    Args:
        seed: of the secret inputs; the same seed repeats them.
        polish: the share of the points that polish has at most; ``Checker.most_polish``.
        draws: of each answer; all must agree.
    """

    def __init__(self, seed: int, polish: float, draws: int = DRAWS):
        self.seed, self.polish, self.draws = seed, polish, draws
        self._cases: dict[str, list[Case]] = {}

    def forbidden(self, exercise: str) -> frozenset[str]:
        """Return the names of functions and kernels that an answer may not call."""
        return getattr(find_lenient_checker(exercise, self.polish), "forbidden", frozenset())

    def judge(self, exercise: str, remote: RemoteAnswer, *, refused: bool) -> list[Verdict]:
        """Judge the answer that a process holds, on as many draws as must agree.

        Args:
            exercise: its id.
            remote: the process.
            refused: whether the process refuses what the exercise forbids. If not, another one
                decides, and one draw is enough here.

        Raises:
            WorkerTrouble, WireError: the process gave no usable reply.
        """
        checker, verdicts = find_lenient_checker(exercise, self.polish), list[Verdict]()
        if not isinstance(checker, Checker):
            plain = remote.plain()
            with _LOCK:
                report = judge_value(checker, plain)
            return [Verdict(report, is_last=True)]
        if exercise not in self._cases:
            with _LOCK, neutral_settings():
                self._cases[exercise] = checker.draw(self.seed)
        draws, checkers = self.draws, [checker]
        if checker.forbidden and not refused:  # the other process names mistakes, if it is asked
            draws, checkers = 1, [replace(checker, bank=()), checker]
        # of all calls of a check; the worker has ``GRACE`` more to reply
        seconds = max(1.0, remote.limits.call_seconds - GRACE)
        while len(verdicts) < draws and not (verdicts and verdicts[-1].is_last):
            remote.budget, remote.bytes_left = remote.limits.call_seconds, MAX_BYTES
            # other seeds in each draw, and the mistakes that are replayed have the same
            cases = [replace(e, seed=secrets.randbits(32)) for e in self._cases[exercise]]
            first = verdicts[0].observations if verdicts else {}
            known = {c.name: first[c.name] for c in cases if _runs_once(c) and c.name in first}
            gathered = observe_answer(checker, cases, remote, seconds, known)
            verdicts.append(self._judge_draw(checkers, cases, gathered, verdicts))
        return verdicts

    def _judge_draw(
        self, checkers: list[Checker], cases: list[Case], gathered, earlier: list[Verdict]
    ) -> Verdict:
        """Judge what was gathered. Observations equal to earlier ones get the same verdict.

        The first checker that gives points decides, or the last.
        """
        observations = list(gathered.observations.values())
        errors = [s.error for s in observations if s.error is not None]
        for error in errors:
            if error.raised_by_student:
                continue  # an answer may not make itself not gradable by raising such an error
            if error.kind == "MemoryError" or "allocate memory" in error.message:
                return Verdict(reason="memory", detail=f"{error.kind}: {error.message}"[:300])
            if library := _describe_library(error):
                return Verdict(reason="import", detail=library, is_last=True)
        marks = hashlib.sha256(repr(gathered.info).encode())
        for case in cases:
            if case.name in gathered.observations and not _runs_once(case):
                marks.update(pack(write_observation(gathered.observations[case.name])))
        digest = marks.hexdigest()
        for verdict in earlier:
            if verdict.digest == digest:
                return verdict
        with _LOCK, neutral_settings():
            for checker in checkers:
                report = judge_observations(checker, cases, gathered, self.seed)
                if report.points:
                    break
        timed_out = any(error.kind == "TimeUp" for error in errors)
        return Verdict(
            report,
            # one draw is enough for 0 points, but never for a pass
            is_last=not report.points or (timed_out and not report.passed),
            digest=digest,
            observations=gathered.observations,
            is_undecided=any(observation.undecided for observation in observations),
        )


def _runs_once(case: Case) -> bool:
    """Tell whether a case is left to the first draw: second calls and devices.

    Later draws make sure that values are not right by luck, which these cases do not judge; they
    take about two fifths of a draw's time.
    """
    return case.driver == "second_call" or case.on_accelerator


NEEDS = "Answers of this course need no more than torch, numpy and what Python itself brings."
_OWN_NAME = re.compile(r"(?:'|import of )vitedu\b")  # the package's name, but not inside a path


def _describe_library(error: RaisedError) -> str:
    """Say which library an answer needs that is not in the box, judging by an error; or ""."""
    if "ImportError" not in error.kinds or _OWN_NAME.search(error.message):
        return ""
    if any(name in error.message for name in CLOSED_MODULES):
        return ""  # an import that is forbidden on purpose
    return f"it needs a library that is not here: {error.message}. {NEEDS}"[:300]


def copy_report(grade: ExerciseGrade, report: Report) -> None:
    """Copy into a grade what a report says."""
    grade.attempted = report.status != "not_attempted"
    grade.headline = report.headline if grade.attempted else "not attempted"
    grade.lines = [[label, str(text)] for label, text in report.lines]
    grade.misconceptions, grade.picture = list(report.misconceptions), report.picture
    grade.printed = report.printed or grade.printed
    names = ("name", "passed", "skipped", "message")
    grade.findings = [
        {name: getattr(finding, name) for name in names}
        | {"points": round(finding.points, 2), "max_points": round(finding.max_points, 2)}
        | {"polish": finding.is_polish}
        for finding in report.findings
    ]
