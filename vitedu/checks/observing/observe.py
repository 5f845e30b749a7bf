"""Observe an answer: run it on a case, whatever it does, and write down what happened."""

import zlib
from typing import Any

from vitedu.checks.observing import second_call  # noqa: F401  (it registers a driver)
from vitedu.checks.observing.accelerator import call_on_accelerator
from vitedu.checks.observing.case import Case
from vitedu.checks.observing.drivers import run_driver
from vitedu.checks.observing.errors import describe_error
from vitedu.checks.observing.limits import TimeUp, capture_output, time_limit
from vitedu.checks.observing.observation import Observation
from vitedu.checks.observing.settings import neutral_settings


def observe(
    answer: Any, case: Case, seconds: float = 10.0, waiting: float | None = None
) -> Observation:
    """Run one case on an answer, a function or a class, with the limits of ``time_limit``.

    Never raises because of the answer, and leaves no setting changed.
    """
    seen = Observation()
    with capture_output() as output, neutral_settings():
        try:
            with time_limit(seconds, waiting):
                if case.on_accelerator:
                    call_on_accelerator(answer, case, seen)
                else:
                    seed = zlib.crc32(case.name.encode()) if case.seed is None else case.seed
                    run_driver(answer, case, seed, seen)
        except BaseException as error:  # the student's code may raise anything at all
            seen.error = describe_error(error)
            if isinstance(error, TimeUp):
                seen.seconds = seconds
    seen.snapshots.clear()
    seen.printed = (
        output.head
        if output.length == len(output.head)
        else f"{output.head}…\n({output.length:,} characters in all)"
    )
    return seen
