"""Challenges: a student writes the test, and the known mistakes try to get past it.

Role: ``hold_challenge`` runs a student's test on the reference and on broken parts, which are the
reference with one mistake of its bank each, and says in a ``Challenge`` which of them it stops.
Nothing is shown or stored here: see ``vitedu.checks.api``. A challenge gives no points, and the
grader knows nothing of it.

A test is a function of one argument, the implementation: a function or a class. It stops an
implementation if it raises anything (``assert`` does), returns something false, such as ``False``,
or does not come to an end. If it returns ``None`` or something true, it lets it pass.
"""

import time
from collections.abc import Callable
from typing import Any

from vitedu import exercises
from vitedu.checks.explaining.diagnose import PARTS_WITHOUT_REPLAY, REPLAY_SECONDS
from vitedu.checks.explaining.report import Report
from vitedu.checks.judging.findings import is_polish
from vitedu.checks.judging.judge import error_text
from vitedu.checks.observing.errors import describe_error
from vitedu.checks.observing.limits import capture_output, time_budget, time_limit
from vitedu.checks.observing.settings import neutral_settings, seed_everything
from vitedu.checks.writing.checker import Checker, find_checker
from vitedu.checks.writing.mistakes import Mistake

AIM = 0.75  # the share of broken parts that a good test stops


class Challenge(Report):
    """What a student's test stops.

    Attributes:
        total: the number of broken parts; 0 if the challenge could not begin.
        stopped: how many of them the test stops; 0 if it rejects the right part.
        slipped: the first broken part that it lets pass, to be called and looked at, or None.
    """

    def __init__(self, exercise: str):
        super().__init__(exercise)
        self.title, self.max_points = f"challenge {self.title}", 0
        self.total = self.stopped = 0
        self.slipped: Any = None


def hold_challenge(exercise: str, test: Any) -> Challenge:
    """Run a test on the right part and, if it lets this pass, on every broken one.

    Raises:
        KeyboardInterrupt: the student stopped it. Nothing else that a test raises comes out.
    """
    report = Challenge(exercise)
    try:
        kind = exercises.find(exercise).kind
    except ValueError as error:
        return report.end("error", str(error))
    if kind == "value":
        return report.end("error", "its answer is a value; choose a function or a class to test")
    if not callable(test):
        how = f'write challenge("{exercise}", my_test), where my_test takes the implementation'
        words = f"the test must be a function, not a value of type {type(test).__name__}; {how}"
        return report.end("error", words)
    checker, broken = find_checker(exercise), broken_parts(exercise)
    start = time.monotonic()
    got, report.printed = _run(test, checker.reference, time_budget())
    seconds = min(time_budget(), max(REPLAY_SECONDS, 10 * (time.monotonic() - start)))
    report.total = len(broken)
    if got:
        step = f"let the right one pass; the {report.total} broken ones come after it"
        return report.end("failed", "your test rejects the right one", ("got", got), ("try", step))
    slips = []
    for mistake in broken:
        part = checker.combine([mistake])
        if not _run(test, part, seconds)[0]:
            slips.append(mistake)
            report.slipped = report.slipped or part
    report.stopped = report.total - len(slips)
    if not slips:
        words = f"your test lets the right one pass and stops all {report.total} broken ones"
        return report.end("passed", words)
    words = f"your test stops {report.stopped} of {report.total}; this one slips through: "
    lines = (("expected", slips[0].expected), ("why", slips[0].why))
    status = "passed" if report.stopped >= AIM * report.total else "failed"
    return report.end(status, words + slips[0].name, *(line for line in lines if line[1]))


def broken_parts(exercise: str) -> list[Mistake]:
    """List the mistakes of a bank that show in what an ordinary call gives.

    Those that show in the text of an error, on another device or in gradients alone are left out,
    and those that cost no more than a remark.
    """
    checker: Checker = find_checker(exercise)
    return [
        mistake
        for mistake in checker.bank
        if mistake.part not in PARTS_WITHOUT_REPLAY and not is_polish(checker, mistake.part)
    ]


def _run(test: Callable[[Any], Any], part: Any, seconds: float) -> tuple[str, str]:
    """Run a test on one part; say how it stopped the part, or "", and what it printed."""
    got = advice = ""
    with capture_output() as output, neutral_settings():
        seed_everything(0)  # the same random inputs for every part
        try:
            with time_limit(seconds):
                result = test(part)
                advice = "; return True, False or nothing"
                if result is not None and not result:
                    got = f"it returned {result!r}"[:80]
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # the student's code may raise anything at all
            got = error_text(describe_error(error), seconds) + advice
    return got, output.head.rstrip()
