"""Processes that the later runs of one student's answers share.

Role: ``SharedBox``. The first run of an answer decides its report and always has its own process.
The second and third run only confirm it. Starting a process costs more than a run, so one process
runs all exercises of a submission. Once a run disagrees with the first, all further runs of this
student have their own processes, and that answer must agree once more than usual (``judge``).

In shared runs the answers of one student can influence each other, but never those of another
student. They gain nothing by it, because each must first pass alone. Exercises that forbid
functions or hide references are not shared, because a forbidden function cannot be restored. So at
most two processes wait at a time. They keep whatever memory an answer has left in them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vitedu.grading.box.conversation import Worker


class SharedBox:
    """A box for one submission, as a context manager that ends the shared processes.

    It is the box that it is given, with one more method. Only one thread may use it at a time.

    Attributes:
        is_shared: False after an answer behaved differently in a shared run than alone.
    """

    is_shared = True

    def __init__(self, box: Any):
        self._box = box
        self._idle: dict[int, Worker] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._box, name)

    def __enter__(self) -> "SharedBox":
        return self

    def __exit__(self, *_) -> None:
        for worker in self._idle.values():
            worker.__exit__(None, None, None)
        self._idle.clear()

    @contextmanager
    def lend_worker(self, number: int) -> Iterator[Worker]:
        """Lend the shared worker for the run of this number; end it after an error."""
        worker = self._idle.pop(number, None) or self._box.worker().__enter__()
        try:
            yield worker
        except BaseException:
            worker.__exit__(None, None, None)
            raise
        self._idle[number] = worker
