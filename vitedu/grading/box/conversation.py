"""The conversation with one worker: a request, a reply, and one deadline for both.

Role: ``Worker`` and ``WorkerTrouble``. Nothing waits without a deadline, keeps bytes without a
limit, or trusts a length before it is checked. What a worker prints goes nowhere. ``wire`` defines
the frames, and ``isolation`` starts workers.
"""

import json
import os
import select
import signal
import socket
import time
from contextlib import AbstractContextManager, suppress

from vitedu.grading.box.limits import MB, OUT_OF_MEMORY, Limits

PREFIX = 8  # bytes at the start of a frame with the length of the rest, little endian
CHUNK = 1 << 18  # bytes of one read
GRACE = 1.0  # seconds to wait, after a pipe closed, for the message how the process ended


class WorkerTrouble(Exception):
    """A worker gave no usable reply.

    Attributes:
        reason: a key of ``grades.REASONS``.
        detail: the evidence, in one sentence.
    """

    def __init__(self, reason: str, detail: str):
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


class Worker(AbstractContextManager):
    """A process in the box that takes requests. As a context manager it ends with all it started.

    Attributes:
        restrictions: of the process.
        missing: restriction that this machine refused -> why.
        is_abandoned: whether the fork server is being ended, so that this one's end is no fault
            of the answer.
    """

    def __init__(self, fds: dict[str, int], status: socket.socket, limits: Limits, registry: set):
        self.fds, self.status, self.limits = fds, status, limits
        self._registry = registry
        registry.add(self)
        self.restrictions: list[str] = []
        self.missing: dict[str, str] = {}
        self.is_abandoned = self._is_closed = False
        self._status_line = b""  # the beginning of a message on the status socket
        self._told: dict = {}  # how it started, and how it ended
        self._rest = memoryview(b"")  # what is left to send
        self._reply = bytearray()
        self._pipes = {"request", "reply", "status"}
        self._trouble: WorkerTrouble | None = None

    def __exit__(self, *_):
        self.close()

    def wait_for_start(self, seconds: float) -> None:
        """Wait until the worker says which restrictions it has."""
        deadline = time.monotonic() + seconds
        while not self._told:
            seconds_left = deadline - time.monotonic()
            if "status" not in self._pipes:
                raise WorkerTrouble("grader", "the preloaded process has ended.")
            if seconds_left <= 0:
                raise WorkerTrouble("grader", f"no worker started within {seconds:g} s.")
            self._exchange(seconds_left)
        if "restrictions" not in self._told:
            raise WorkerTrouble("grader", f"no worker could be started: {self._told}")
        self.restrictions, self.missing = self._told["restrictions"], self._told["missing"]

    def ask(self, frame: bytes, seconds: float) -> bytes:
        """Send one frame and return the reply, both with their prefix.

        Args:
            frame: the request.
            seconds: wall-clock limit for both directions together.

        Raises:
            WorkerTrouble: there is none. The worker is killed, and later calls raise the same.
        """
        if self._trouble:
            raise self._trouble
        try:
            return self._ask(frame, seconds)
        except WorkerTrouble as trouble:
            self._trouble = trouble
            self.close()
            raise

    def _ask(self, frame: bytes, seconds: float) -> bytes:
        deadline = time.monotonic() + seconds
        self._exchange(0)
        if self._reply:
            raise WorkerTrouble("protocol", "the worker spoke before it was asked.")
        self._rest = memoryview(frame)
        while self._reply_length() != len(self._reply):
            if self._has_ended:
                for _ in range(64):  # read what is left; a process that it left may still write
                    if not self._exchange(0):
                        break
                if self._reply_length() != len(self._reply):
                    raise self._explain_end()
            elif "reply" not in self._pipes or (self._rest and "request" not in self._pipes):
                self._wait_for_end()
                if not self._has_ended:
                    raise WorkerTrouble("protocol", "the worker closed its pipe and went on.")
            elif time.monotonic() < deadline:
                self._exchange(deadline - time.monotonic())
            else:
                unread = f"; {len(self._rest)} of {len(frame)} bytes were never read"
                words = f"no reply within {seconds:g} s{unread if self._rest else ''}."
                raise WorkerTrouble("timeout", words)
        if self._rest:
            raise WorkerTrouble("protocol", "the worker replied before it had read all.")
        reply, self._reply = bytes(self._reply), bytearray()
        return reply

    def _exchange(self, seconds: float) -> bool:
        """Read and write once, waiting at most ``seconds``; tell whether a pipe was ready."""
        poll, names = select.poll(), {self.fds[name]: name for name in self._pipes}
        for fd, name in names.items():
            if name != "request":
                poll.register(fd, select.POLLIN)
            elif self._rest:
                poll.register(fd, select.POLLOUT)
        ready = poll.poll(max(0.0, seconds) * 1000)
        for fd, _ in ready:
            name = names[fd]
            try:
                if name == "request":
                    self._rest = self._rest[os.write(fd, self._rest[:CHUNK]) :]
                else:
                    self._store(name, os.read(fd, CHUNK))
            except BlockingIOError:
                continue
            except OSError:  # the other end is closed
                self._pipes.discard(name)
        return bool(ready)

    def _store(self, name: str, data: bytes) -> None:
        if not data:
            self._pipes.discard(name)
        elif name == "reply":
            self._reply += data
            self._reply_length()
        else:
            *lines, self._status_line = (self._status_line + data).split(b"\n")
            for line in lines:
                self._told |= json.loads(line)

    def _reply_length(self) -> int | None:
        """Return the length of the whole reply; None until its prefix has arrived."""
        if len(self._reply) < PREFIX:
            return None
        length = PREFIX + int.from_bytes(self._reply[:PREFIX], "little")
        if length - PREFIX > self.limits.reply_mb * MB:
            limit = f"a reply may have {self.limits.reply_mb} MB"
            raise WorkerTrouble("flooded", f"{limit} (announced: {length - PREFIX} bytes).")
        if len(self._reply) > length:
            raise WorkerTrouble("protocol", f"more than the announced {length - PREFIX} bytes.")
        return length

    @property
    def _has_ended(self) -> bool:
        return "ended" in self._told or "status" not in self._pipes

    def _wait_for_end(self) -> None:
        deadline = time.monotonic() + GRACE
        while not self._has_ended and time.monotonic() < deadline:
            self._exchange(deadline - time.monotonic())

    def _explain_end(self) -> WorkerTrouble:
        if "ended" not in self._told or self.is_abandoned:
            return WorkerTrouble("grader", "the preloaded process ended, and its workers with it.")
        code, cpu, limits = self._told["ended"], self._told["used"], self.limits
        if code == OUT_OF_MEMORY:
            return WorkerTrouble("memory", f"more than {limits.memory_mb} MB were asked for.")
        if code == -signal.SIGXCPU or (code < 0 and cpu >= limits.cpu_seconds - 0.5):
            return WorkerTrouble("timeout", f"it computed for {cpu:.0f} s.")
        if code < 0:
            name = {each: each.name for each in signal.Signals}.get(-code, f"signal {-code}")
            why = "; this machine may lack memory" if code == -signal.SIGKILL else ""
            return WorkerTrouble("crashed", f"the process was ended by {name}{why}.")
        return WorkerTrouble("crashed", f"the process ended itself with status {code}.")

    def close(self) -> None:
        """Kill the worker with everything that it started, and wait for its end."""
        if self._is_closed:
            return
        self._is_closed = True
        self._trouble = self._trouble or WorkerTrouble("grader", "this worker is closed.")
        self._pipes.discard("request")
        with suppress(OSError):
            self.status.send(b"k")
        with suppress(WorkerTrouble):  # its last reply was too long
            self._wait_for_end()
        self.status.close()
        for name, fd in self.fds.items():
            if name != "status":
                os.close(fd)
        self._registry.discard(self)
