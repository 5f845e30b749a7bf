"""Run code for a limited time, and keep what it prints.

Role: ``time_limit`` and ``capture_output``. Imports the standard library only, for the grader's
worker. This is no security boundary: the code runs in this process.
"""

import contextlib
import io
import os
import signal
import sys
import threading
import time
from types import FrameType

SECONDS = 10.0  # of computing, for a whole check; VITEDU_TIME_LIMIT overrides it
MAX_OUTPUT = 400  # the most characters of printed output that a report shows
WAITING = 60.0  # seconds by the clock after which a block ends that only waits
TICK = 0.1  # seconds between two interrupts when time is up
WAITS = "waits"  # the message of a ``TimeUp`` that ends a block which did not compute


def time_budget() -> float:
    """Read the time limit of a check in seconds."""
    return float(os.environ.get("VITEDU_TIME_LIMIT", SECONDS))


class TimeUp(BaseException):
    """The time limit is over. It is no ``Exception``, so that ``except Exception`` lets it pass."""


class CapturedOutput(io.TextIOBase):
    """A text file that keeps its first ``MAX_OUTPUT`` characters and counts all of them."""

    def __init__(self):
        self.head, self.length = "", 0

    def writable(self):
        return True

    def write(self, text: str) -> int:
        self.head += text[: max(0, MAX_OUTPUT - len(self.head))]
        self.length += len(text)
        return len(text)


@contextlib.contextmanager
def time_limit(seconds: float, waiting: float | None = None):
    """Raise ``TimeUp`` in this thread after so many seconds of computing, until the block ends.

    The seconds are computing time of this thread, so that a busy machine ends no right answer. A
    block that waits, for a lock or for another thread, ends after ``waiting`` seconds by the clock;
    the default is a minute, or six times ``seconds``. The exception never comes where it would do
    harm: in a destructor, which cannot pass it on, and during an import, which would leave half a
    module behind.

    A timer looks at the clocks; it also interrupts sleeping. Where there is none, on Windows and
    outside the main thread, nothing is limited: a cell can be stopped by hand.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not (is_main and hasattr(signal, "setitimer")):
        yield
        return
    waiting = max(WAITING, 6 * seconds) if waiting is None else waiting
    home, strikes = sys._getframe(2), list[str]()
    computed, begun = time.thread_time(), time.monotonic()

    def raise_again(frame, event, argument):
        if event == "line":
            raise TimeUp(strikes[0])
        return raise_again

    def alarm(signum, frame):
        is_late = time.thread_time() - computed >= seconds
        frames = _frames(frame, home)
        if not (is_late or time.monotonic() - begun >= waiting) or not _may_strike(frames):
            return
        strikes.append("computes" if is_late else WAITS)
        if len(strikes) > 1:  # the code catches all: every line of what runs now raises
            sys.settrace(lambda frame, event, argument: None)
            for each in frames:
                each.f_trace = raise_again
        raise TimeUp(strikes[-1])

    before, tracer = signal.signal(signal.SIGALRM, alarm), sys.gettrace()
    pending, interval = signal.setitimer(signal.ITIMER_REAL, min(seconds, waiting), TICK)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if len(strikes) > 1:
            sys.settrace(tracer)
        if pending:  # a timer of the caller's was running: restart it with the time it has left
            rest = max(1e-3, pending - (time.monotonic() - begun))
            signal.setitimer(signal.ITIMER_REAL, rest, interval)


def _frames(frame: FrameType | None, home: FrameType) -> list[FrameType]:
    """List the frames that the block has called, the innermost first."""
    frames = []
    while frame is not None and frame is not home:
        frames.append(frame)
        frame = frame.f_back
    return frames


def _may_strike(frames: list[FrameType]) -> bool:
    """Tell whether an exception may be raised where a thread is now."""
    if frames and frames[-1].f_globals.get("__name__") == "contextlib":
        return False  # the block is being entered or left
    return not any(
        frame.f_code.co_name == "__del__"
        or frame.f_code.co_filename.startswith("<frozen importlib")
        for frame in frames
    )


@contextlib.contextmanager
def capture_output():
    """Send what the block prints into a ``CapturedOutput``, which is yielded."""
    output = CapturedOutput()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        yield output
