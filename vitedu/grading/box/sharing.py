"""Processes that the later runs of one student's answers share.

Role: ``SharedBox``. The first run of an answer decides its report and always has its own process.
The second and third run only confirm it. Starting a process costs more than a run, so one process
runs all exercises of a submission. A run that disagrees with the first is repeated in its own
process (``judge``).

In shared runs the answers of one student can influence each other, but never those of another
student. They gain nothing by it, because each must first pass alone. Exercises that forbid
different functions share no process, because a forbidden function cannot be restored. Nor do
exercises that hide different references.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from vitedu.grading.box.protocol import AnyBox, AnyWorker


class SharedBox:
    """A box for one submission, as a context manager that ends the shared processes.

    It is an ``AnyBox`` with one more method, ``repeat``. Only one thread may use it at a time.
    """

    def __init__(self, box: AnyBox):
        self._box = box
        self._idle: dict[tuple, AnyWorker] = {}
        self.level, self.limits = box.level, box.limits
        self.events = getattr(box, "events", [])

    def __enter__(self) -> "SharedBox":
        return self

    def __exit__(self, *_) -> None:
        for worker in self._idle.values():
            worker.__exit__(None, None, None)
        self._idle.clear()

    def worker(self) -> AnyWorker:
        """Start a fresh worker; see ``AnyBox``."""
        return self._box.worker()

    def apart(self) -> AbstractContextManager[AnyBox]:
        """Open a box for one answer; see ``AnyBox``."""
        return self._box.apart()

    @contextmanager
    def repeat(self, *kind) -> Iterator[AnyWorker]:
        """Lend a shared worker of a kind. After an error it is ended, and the next one is fresh.

        Args:
            kind: what must be equal for answers to share a process, such as the number of the run.
        """
        worker = self._idle.pop(kind, None) or self._box.worker().__enter__()
        try:
            yield worker
        except BaseException:
            worker.__exit__(None, None, None)
            raise
        self._idle[kind] = worker
