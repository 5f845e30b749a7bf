"""Processes that the later runs of one student's answers share.

Role: ``SharedBox``. The first run of an answer, whose report counts, always has a process of its own. The second and third
run only confirm it. A process costs more than a run, so one process confirms all exercises of a submission. Once a run
does not agree with the first, this student's answers meet no more: all further runs have a process each (``judge``).

What that gives up: in these runs the answers of one student meet each other, never those of another student. An answer
gains nothing there, since it has to pass alone first, and one that disagrees has to pass alone once more than usual. Not
shared are exercises that forbid functions or hide references: what is taken out of a process stays out. So no more than
two processes wait at a time, with whatever memory an answer has left in them.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from vitedu.grading.box.protocol import AnyBox, AnyWorker


class SharedBox:
    """A box as one submission sees it. A context manager that ends the shared processes.

    It is an ``AnyBox`` for all but ``repeat``. One thread at a time may use it.

    Attributes:
        is_shared: false once an answer has behaved otherwise beside others than alone.
    """

    is_shared = True

    def __init__(self, box: AnyBox):
        self._box = box
        self._idle: dict[int, AnyWorker] = {}
        self.level, self.limits = box.level, box.limits
        self.events = getattr(box, "events", [])

    def __enter__(self) -> "SharedBox":
        return self

    def __exit__(self, *_) -> None:
        for worker in self._idle.values():
            worker.__exit__(None, None, None)
        self._idle.clear()

    def worker(self) -> AnyWorker:
        """Give a fresh worker; see ``AnyBox``."""
        return self._box.worker()

    def apart(self) -> AbstractContextManager[AnyBox]:
        """Open a box for one answer; see ``AnyBox``."""
        return self._box.apart()

    @contextmanager
    def repeat(self, number: int) -> Iterator[AnyWorker]:
        """Lend the worker for the run of this number; after an error it is ended, and the next one is fresh."""
        worker = self._idle.pop(number, None) or self._box.worker().__enter__()
        try:
            yield worker
        except BaseException:
            worker.__exit__(None, None, None)
            raise
        self._idle[number] = worker
