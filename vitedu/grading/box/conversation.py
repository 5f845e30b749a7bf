"""The conversation with one worker: a request, a reply, and one deadline for both.

Role: ``Worker`` and ``WorkerTrouble``. Nothing waits without a deadline, keeps bytes without a
limit, or trusts a length before it is checked. Printed output is always read, and dropped beyond
its limit. ``wire`` defines the frames, and ``isolation`` starts workers.
"""

import json
import os
import select
import signal
import socket
import time
from contextlib import suppress

from vitedu.grading.box.limits import MB, OUT_OF_MEMORY, Limits

PREFIX = 8  # bytes at the start of a frame with the length of the rest, little endian
CHUNK = 1 << 18  # bytes of one read
GRACE = 1.0  # seconds to wait, after a pipe closed, for the message how the process ended


class WorkerTrouble(Exception):
    """A worker gave no usable reply.

    Attributes:
        reason: a key of ``grades.REASONS``.
        detail: the evidence, in one sentence.
        server_ended: whether the fork server ended with all its workers; another answer may be
            the cause.
    """

    def __init__(self, reason: str, detail: str, *, server_ended: bool = False):
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail, self.server_ended = reason, detail, server_ended


class Worker:
    """A process in the box that takes requests. As a context manager it ends with all it started.

    Attributes:
        restrictions: of the process.
        missing: restriction that this machine refused -> why.
        cpu: CPU seconds that the process had used before the answer.
        has_survivors: after ``close``: whether a process still held the worker's pipes.
        is_abandoned: whether the fork server is being ended, so that this one's end is no fault
            of the answer.
    """

    def __init__(self, fds: dict[str, int], status: socket.socket, limits: Limits, registry: set):
        self.fds, self.status, self.limits = fds, status, limits
        self._registry = registry
        registry.add(self)
        self.restrictions: list[str] = []
        self.missing: dict[str, str] = {}
        self.cpu = 0.0
        self.has_survivors = self.is_abandoned = False
        self._status_line = b""  # the beginning of a message on the status socket
        self._start: dict | None = None  # the message how it started
        self._end: dict | None = None  # the message how it ended
        self._rest = memoryview(b"")  # what is left to send
        self._reply = bytearray()
        self._output = bytearray()
        self._excess = 0
        self._pipes = {"request", "reply", "output", "status"}
        self._is_closed = False
        self._trouble: WorkerTrouble | None = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def output(self) -> str:
        """The beginning of what was printed, and how much was dropped."""
        text = self._output.decode("utf-8", "replace")
        return text + (f"\n[{self._excess} more bytes]" if self._excess else "")

    def wait_for_start(self, seconds: float) -> None:
        """Wait until the worker says which restrictions it has.

        Raises:
            WorkerTrouble: with reason ``grader``, because no answer has run yet.
        """
        deadline = time.monotonic() + seconds
        while not self._start and not self._end:
            seconds_left = deadline - time.monotonic()
            if "status" not in self._pipes:
                raise WorkerTrouble("grader", "the preloaded process has ended.")
            if seconds_left <= 0:
                raise WorkerTrouble("grader", f"no worker started within {seconds:g} s.")
            self._exchange(seconds_left)
        start = self._start or self._end or {}
        if "restrictions" not in start:
            raise WorkerTrouble("grader", f"no worker could be started: {start}")
        self.restrictions, self.missing = start["restrictions"], start["missing"]
        self.cpu = start["cpu"]

    def ask(self, frame: bytes, seconds: float) -> bytes:
        """Send one frame and wait for the reply.

        Args:
            frame: the request, with its prefix.
            seconds: wall-clock limit for both directions together.

        Returns:
            The reply, with its prefix.

        Raises:
            WorkerTrouble: there is none. The worker is killed, and every later call raises the
                same.
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
                self._drain()
                if self._reply_length() != len(self._reply):
                    raise self._explain_end()
            elif "reply" not in self._pipes or (self._rest and "request" not in self._pipes):
                self._wait_for_end()
                if not self._has_ended:
                    raise WorkerTrouble("protocol", "the worker closed its pipe and went on.")
            elif time.monotonic() < deadline:
                self._exchange(deadline - time.monotonic())
            else:
                words = f"no reply within {seconds:g} s"
                if self._rest:
                    words += f"; {len(self._rest)} of {len(frame)} bytes were never read"
                raise WorkerTrouble("timeout", f"{words}.")
        if self._rest:
            raise WorkerTrouble("protocol", "the worker replied before it had read all.")
        reply, self._reply = bytes(self._reply), bytearray()
        self._exchange(0)  # read what it printed last
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
        elif name == "output":
            room = self.limits.output_kb * 1024 - len(self._output)
            self._output += data[: max(room, 0)]
            self._excess += len(data) - min(len(data), max(room, 0))
        elif name == "reply":
            self._reply += data
            self._reply_length()
        else:
            *lines, self._status_line = (self._status_line + data).split(b"\n")
            for message in map(json.loads, lines):
                if "ended" in message:
                    self._end = message
                else:
                    self._start = message

    def _reply_length(self) -> int | None:
        """Return the length of the whole reply; None until its prefix has arrived.

        Raises:
            WorkerTrouble: the reply is too long, or longer than it announced.
        """
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
        return self._end is not None or "status" not in self._pipes

    def _drain(self) -> None:
        """Read what is left in the pipes of a dead worker; a process it left may still write."""
        for _ in range(64):
            if not self._exchange(0):
                return

    def _wait_for_end(self) -> None:
        deadline = time.monotonic() + GRACE
        while not self._has_ended and time.monotonic() < deadline:
            self._exchange(deadline - time.monotonic())

    def _explain_end(self) -> WorkerTrouble:
        if self._end is None or self.is_abandoned:
            words = "the preloaded process ended, and its workers with it."
            return WorkerTrouble("grader", words, server_ended=True)
        code, cpu, limits = self._end["ended"], self._end["cpu"] - self.cpu, self.limits
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
            # read until both pipes are closed; if they stay open, some process still holds them
            deadline = time.monotonic() + 0.5
            self._pipes.discard("status")
            while self._pipes and time.monotonic() < deadline:
                self._reply.clear()
                self._exchange(0.05)
            self.has_survivors = bool(self._pipes)
        self.status.close()
        for name, fd in self.fds.items():
            if name != "status":
                os.close(fd)
        self._registry.discard(self)
