"""What the judge needs of a box and of a worker, whichever kind they are.

Role: ``AnyBox`` and ``AnyWorker``, which ``isolation.Box`` and ``conversation.Worker`` fulfil, and which a clock around them
(``vitedu.bench.grade``) or a box of a test may fulfil as well.
"""

from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from vitedu.grading.box.limits import Limits


class AnyWorker(Protocol):
    """A process that runs one answer. It is entered before it is asked and ends when it is left."""

    @property
    def output(self) -> str:
        """The first characters of all that was printed."""

    def ask(self, frame: bytes, seconds: float) -> bytes:
        """Send one frame and wait for one.

        Raises:
            WorkerTrouble: there is none in time.
        """

    def __enter__(self) -> "AnyWorker": ...

    def __exit__(self, *_) -> None: ...


@runtime_checkable
class AnyBox(Protocol):
    """A place where answers run.

    Attributes:
        level: ``full``, ``partial: ...`` or ``none``.
        limits: of each worker.
        events: what happened to it, in words; for the log.
    """

    level: str
    limits: Limits
    events: list[str]

    def worker(self) -> AnyWorker:
        """Give a fresh worker.

        Raises:
            WorkerTrouble: none could be started.
        """

    def apart(self) -> AbstractContextManager["AnyBox"]:
        """Open a box of the same kind for one answer, in which no other answer runs."""
