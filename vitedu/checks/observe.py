"""Observe an answer: run it on a case, whatever it does, and write down what happened.

For the grader's worker, so with the standard library, numpy and torch only.
"""

import zlib
from typing import Any

from vitedu.checks import second_call  # noqa: F401  (it registers a driver)
from vitedu.checks.accelerator import on_accelerator
from vitedu.checks.case import Case
from vitedu.checks.drivers import run_driver
from vitedu.checks.errors import describe
from vitedu.checks.limits import TimeUp, quiet, time_limit
from vitedu.checks.observation import Observation
from vitedu.checks.settings import neutral_settings


def observe(answer: Any, case: Case, seconds: float = 10.0) -> Observation:
    """Run one case on an answer, a function or a class, for at most ``seconds`` of wall-clock time.

    Never raises because of the answer, and leaves no setting changed.
    """
    seen = Observation()
    with quiet() as sink, neutral_settings():
        try:
            with time_limit(seconds):
                if case.on_accelerator:
                    on_accelerator(answer, case, seen)
                else:
                    run_driver(answer, case, zlib.crc32(case.name.encode()), seen)
        except BaseException as error:  # the student's code may raise anything at all
            seen.error = describe(error)
            if isinstance(error, TimeUp):
                seen.seconds = seconds
    seen.live.clear()
    seen.printed = (
        sink.head
        if sink.written == len(sink.head)
        else f"{sink.head}…\n({sink.written:,} characters in all)"
    )
    return seen
