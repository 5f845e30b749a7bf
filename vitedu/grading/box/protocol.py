"""The interfaces of a box and of a worker.

Role: ``AnyBox`` and ``AnyWorker``. ``isolation.Box`` and ``conversation.Worker`` implement them,
and so do the benchmark of the grader (``make bench-grade``) and the tests.
"""

from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from vitedu.grading.box.limits import Limits


class AnyWorker(Protocol):
    """A process that runs answers, as a context manager."""

    @property
    def output(self) -> str:
        """The beginning of what was printed."""

    def ask(self, frame: bytes, seconds: float) -> bytes:
        """Send one frame and wait for the reply, for at most ``seconds``.

        Raises:
            WorkerTrouble: there is no usable reply.
        """

    def __enter__(self) -> "AnyWorker": ...

    def __exit__(self, *_) -> None: ...


@runtime_checkable
class AnyBox(Protocol):
    """A place where answers run.

    Attributes:
        level: ``full``, ``partial: ...`` or ``none``.
        limits: of each worker.
        events: what happened to the box, in words, for the log.
    """

    level: str
    limits: Limits
    events: list[str]

    def worker(self) -> AnyWorker:
        """Start a fresh worker.

        Raises:
            WorkerTrouble: none could be started.
        """

    def open_separate(self) -> AbstractContextManager["AnyBox"]:
        """Open a box of the same kind for one answer, in which no other answer runs."""
