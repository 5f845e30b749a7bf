"""Judge one answer that a process of the box holds: its observations are judged here.

Role: ``Judge``, and ``Verdict``, what a draw amounts to. The checkers of the notebook decide
(``vitedu.checks.engine``). A ``RemoteAnswer`` replaces the student's object, and only
``observe_answer`` uses it. Several draws must agree, so that luck earns nothing. An answer that
cannot be judged gets a reason and no points, never an exception.
"""

import hashlib
import re
import secrets
import threading
from dataclasses import dataclass, field, replace

from vitedu.checks.engine import judge_observations, observe_answer
from vitedu.checks.explaining.report import Report
from vitedu.checks.explaining.values import judge_value
from vitedu.checks.observing.case import Case
from vitedu.checks.observing.errors import RaisedError
from vitedu.checks.observing.observation import Observation
from vitedu.checks.observing.settings import neutral_settings
from vitedu.checks.writing.checker import Checker, find_lenient_checker
from vitedu.grading.box.course_stand_ins import CLOSED_MODULES
from vitedu.grading.grades import FAILED, NOT_GRADABLE, PASSED, ExerciseGrade
from vitedu.grading.transport.messages import write_observation
from vitedu.grading.transport.remote_answer import MAX_BYTES, RemoteAnswer
from vitedu.grading.transport.wire import pack

DRAWS = 3  # an answer that is right one time in three passes with probability 5 % at most
# Judging changes settings of the whole process for a moment (random state, default dtype), so only
# one thread may do it at a time.
_LOCK = threading.Lock()


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

    def describe(self) -> str:
        """Describe it, for a list of draws that disagree."""
        mistakes = ", ".join(self.outcome[2])
        return self.reason or f"{self.state} with {self.points:g}" + (mistakes and f" ({mistakes})")


def conclude(draws: list[Verdict]) -> Verdict:
    """Return what all draws of an answer amount to."""
    if len({verdict.outcome for verdict in draws}) == 1:
        return draws[0]
    words = "; ".join(verdict.describe() for verdict in draws)
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
        draws = 1 if checker.forbidden and not refused else self.draws
        while len(verdicts) < draws and not (verdicts and verdicts[-1].is_last):
            remote.budget, remote.bytes_left = remote.limits.call_seconds, MAX_BYTES
            # other seeds in each draw, and the mistakes that are replayed have the same
            cases = [replace(e, seed=secrets.randbits(32)) for e in self._cases[exercise]]
            first = verdicts[0].observations if verdicts else {}
            known = {c.name: first[c.name] for c in cases if _runs_once(c) and c.name in first}
            gathered = observe_answer(checker, cases, remote, remote.seconds, known)
            verdicts.append(self._judge_draw(checker, cases, gathered, verdicts))
        return verdicts

    def _judge_draw(
        self, checker: Checker, cases: list[Case], gathered, earlier: list[Verdict]
    ) -> Verdict:
        """Judge what was gathered. Observations equal to earlier ones get the same verdict."""
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
            report = judge_observations(checker, cases, gathered, self.seed)
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
_MODULE = re.compile(r"No module named '([\w.]+)")
_OWN_NAME = re.compile(r"(?:'|import of )vitedu\b")  # the package's name, but not inside a path


def _describe_library(error: RaisedError) -> str:
    """Say which library an answer needs that is not in the box, judging by an error; or ""."""
    if "ImportError" not in error.kinds or _OWN_NAME.search(error.message):
        return ""
    if any(name in error.message for name in CLOSED_MODULES):
        return ""  # an import that is forbidden on purpose
    if match := _MODULE.search(error.message):
        return f"it imports {match[1]}, which is not here. {NEEDS}"[:300]
    return f"it needs a library that is not here: {error.message}. {NEEDS}"[:300]


def copy_report(grade: ExerciseGrade, report: Report) -> None:
    """Copy into a grade what a report says."""
    grade.attempted = report.status != "not_attempted"
    grade.headline = report.headline if grade.attempted else "not attempted"
    grade.lines = [[label, str(text)] for label, text in report.lines]
    grade.misconceptions, grade.picture = list(report.misconceptions), report.picture
    grade.printed = report.printed or grade.printed
    grade.findings = [
        {
            "name": finding.name,
            "passed": finding.passed,
            "skipped": finding.skipped,
            "polish": finding.is_polish,
            "points": round(finding.points, 2),
            "max_points": round(finding.max_points, 2),
            "message": finding.message,
        }
        for finding in report.findings
    ]
