"""Run code for a limited time, and keep what it prints.

Role: ``time_limit`` and ``capture_output``. Imports the standard library only, for the grader's
worker. This is no security boundary: the code runs in this process.
"""

import contextlib
import ctypes
import heapq
import io
import itertools
import queue
import signal
import threading
import time
import weakref

MAX_OUTPUT = 400  # the most characters of printed output that a report shows


class TimeUp(BaseException):
    """The time limit is over. It is no ``Exception``, so that ``except Exception`` lets it pass."""


class CapturedOutput(io.TextIOBase):
    """A text file that keeps its first ``MAX_OUTPUT`` characters and counts all of them."""

    def __init__(self):
        self.head, self.length = "", 0

    def writable(self):
        return True

    def write(self, text):
        self.head += text[: max(0, MAX_OUTPUT - len(self.head))]
        self.length += len(text)
        return len(text)


@contextlib.contextmanager
def time_limit(seconds: float):
    """Raise ``TimeUp`` in this thread after so many seconds, and again until the block ends.

    In the main thread of a POSIX system a timer does this; it also interrupts sleeping. Elsewhere a
    second thread sets the exception, which takes effect only while Python code runs.
    """
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():

        def alarm(signum, frame):
            raise TimeUp

        before = signal.signal(signal.SIGALRM, alarm)
        start = time.monotonic()
        pending, interval = signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            if pending:  # a timer of the caller's was running: restart it with the time it has left
                rest = max(1e-3, pending - (time.monotonic() - start))
                signal.setitimer(signal.ITIMER_REAL, rest, interval)
        return

    block = _Block()
    _limit_queue().put((time.monotonic() + seconds, next(_ORDER), weakref.ref(block)))
    try:
        yield
    finally:
        try:
            block.end()
        except TimeUp:  # raised during leave(): the block must still be marked as left
            block.end()
            raise


class _Block:
    """A ``with`` block of this thread that has a time limit."""

    def __init__(self):
        self.owner, self.thread = threading.current_thread(), ctypes.c_ulong(threading.get_ident())
        self.lock, self.has_ended, self.is_interrupted = threading.Lock(), False, False

    def interrupt(self) -> bool:
        """Set the exception in the block's thread and return True, if the block has not ended.

        The thread must be checked too: a new thread may reuse the number of one that has ended.
        """
        with self.lock:
            is_there = not self.has_ended and self.owner.is_alive()
            if is_there:
                self._set_exception()
            return is_there

    def end(self) -> None:
        """Mark the block as left, and catch an exception that was set too late.

        Clearing it would leave a flag of CPython up: in 3.11 every profiler and debugger then waits
        for ever at the next call. So another one takes its place, and ends here.
        """
        with self.lock:
            self.has_ended = True
        if self.is_interrupted:
            with contextlib.suppress(TimeUp):
                self._set_exception()
                while True:
                    pass

    def _set_exception(self) -> None:
        self.is_interrupted = True
        ctypes.pythonapi.PyThreadState_SetAsyncExc(self.thread, ctypes.py_object(TimeUp))


_ORDER = itertools.count()  # decides the order of blocks that end at the same time
_LIMITS: queue.SimpleQueue = queue.SimpleQueue()
_START_LOCK = threading.Lock()
_watcher: threading.Thread | None = None


def _limit_queue() -> queue.SimpleQueue:
    """Return the queue of the thread that watches all limits; start the thread if it does not run.

    It may be missing after a fork. One thread watches all limits, because one thread for each would
    be unsafe. Until a new thread runs, it has the number of the thread that starts it. An exception
    meant for the starter could end the new thread, and the starter would wait for ever.
    """
    global _watcher
    if _watcher is None or not _watcher.is_alive():
        with _START_LOCK:
            if _watcher is None or not _watcher.is_alive():
                _watcher = threading.Thread(target=_watch, name="time limits", daemon=True)
                _watcher.start()
    return _LIMITS


def _watch() -> None:
    """Interrupt blocks whose time is up, every half second until they end."""
    ends: list[tuple[float, int, weakref.ref]] = []
    while True:
        with contextlib.suppress(queue.Empty):
            wait = max(0.0, ends[0][0] - time.monotonic()) if ends else None
            heapq.heappush(ends, _LIMITS.get(timeout=wait))
        while ends and ends[0][0] <= time.monotonic():
            _, _, limit = heapq.heappop(ends)
            if (block := limit()) is not None and block.interrupt():
                heapq.heappush(ends, (time.monotonic() + 0.5, next(_ORDER), limit))
            block = None  # a reference here would keep the block alive


@contextlib.contextmanager
def capture_output():
    """Send what the block prints into a ``CapturedOutput``, which is yielded."""
    output = CapturedOutput()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        yield output
