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
from pathlib import Path

from vitedu.grading.box.cgroups import Group
from vitedu.grading.box.limits import MB, OUT_OF_MEMORY, Limits

PREFIX = 8  # bytes at the start of a frame with the length of the rest, little endian
CHUNK = 1 << 18  # bytes of one read
GRACE = 1.0  # seconds to wait, after a pipe closed, for the message how the process ended


class WorkerTrouble(Exception):
    """A worker gave no usable reply.

    Attributes:
        reason: a key of ``grades.REASONS``.
        detail: the evidence, in one sentence.
        ended_all: whether the preloaded process ended with all its workers; another answer may be
            the cause.
    """

    def __init__(self, reason: str, detail: str, *, ended_all: bool = False):
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail, self.ended_all = reason, detail, ended_all


class Worker:
    """A process in the box that takes requests. As a context manager it ends with all it started.

    Attributes:
        parts: the restrictions of the process.
        missing: restriction that this machine refused -> why.
        cpu: CPU seconds that the process had used before the answer.
        survived: after ``close``: whether a process still held the worker's pipes.
        given_up: whether the preloaded process is being ended, so that this one's end is no fault
            of the answer.
    """

    def __init__(
        self,
        fds: dict[str, int],
        status: socket.socket,
        limits: Limits,
        group: Group | None,
        living: set,
    ):
        self.fds, self.status, self.limits, self.group = fds, status, limits, group
        self._living = living
        living.add(self)
        self.parts: list[str] = []
        self.missing: dict[str, str] = {}
        self.cpu = 0.0
        self.survived = self.given_up = False
        self._heard = b""  # bytes read from the status socket
        self._ended: dict | None = None  # the message how it ended
        self._reply = bytearray()
        self._printed = bytearray()
        self._dropped = 0
        self._open = {"request", "reply", "output", "status"}
        self._closed = False
        self._kills = machine_kills()
        self._trouble: WorkerTrouble | None = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def output(self) -> str:
        """The beginning of what was printed, and how much was dropped."""
        text = self._printed.decode("utf-8", "replace")
        return text + (f"\n[{self._dropped} more bytes]" if self._dropped else "")

    def hear(self, seconds: float) -> dict:
        """Wait for the next line about this worker from the preloaded process.

        Raises:
            WorkerTrouble: with reason ``grader``, because no answer has run yet.
        """
        deadline = time.monotonic() + seconds
        while b"\n" not in self._heard:
            left = deadline - time.monotonic()
            if "status" not in self._open:
                raise WorkerTrouble("grader", "the preloaded process has ended.")
            if left <= 0:
                raise WorkerTrouble("grader", f"no worker started within {seconds:g} s.")
            self._turn(left, b"")
        line, _, self._heard = self._heard.partition(b"\n")
        return json.loads(line)

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
            return self._ask(frame, time.monotonic() + seconds, seconds)
        except WorkerTrouble as trouble:
            self._trouble = trouble
            self.close()
            raise

    def _ask(self, frame: bytes, deadline: float, seconds: float) -> bytes:
        rest = memoryview(frame)
        self._turn(0, b"")
        if self._reply:
            raise WorkerTrouble("protocol", "the worker spoke before it was asked.")
        while True:
            reply = self._whole_reply()
            if reply is not None:
                if rest:
                    raise WorkerTrouble("protocol", "the worker replied before it had read all.")
                self._turn(0, b"")  # read what it printed last
                return reply
            if self._ended is not None or "status" not in self._open:
                self._drain()
                if (reply := self._whole_reply()) is not None and not rest:
                    return reply
                raise self._how_it_ended()
            if "reply" not in self._open or (rest and "request" not in self._open):
                self._wait_for_end()
                if self._ended is not None or "status" not in self._open:
                    continue
                raise WorkerTrouble("protocol", "the worker closed its pipe and went on.")
            left = deadline - time.monotonic()
            if left <= 0:
                sent = "" if not rest else f"; {len(rest)} of {len(frame)} bytes were never read"
                raise WorkerTrouble("timeout", f"no reply within {seconds:g} s{sent}.")
            rest = self._turn(left, rest)

    def _turn(self, seconds: float, rest):
        """Read and write once, waiting at most ``seconds``; return what is left to send."""
        poll = select.poll()
        names = {self.fds[name]: name for name in self._open if name in self.fds}
        for fd, name in names.items():
            if name == "request":
                if len(rest):
                    poll.register(fd, select.POLLOUT)
            else:
                poll.register(fd, select.POLLIN)
        for fd, _ in poll.poll(seconds * 1000):
            name = names[fd]
            try:
                if name == "request":
                    rest = rest[os.write(fd, rest[:CHUNK]) :]
                else:
                    self._take(name, os.read(fd, CHUNK))
            except BlockingIOError:
                continue
            except OSError:  # the other end is closed
                self._open.discard(name)
        return rest

    def _take(self, name: str, data: bytes) -> None:
        """Store what was read from a pipe, up to its limit."""
        if not data:
            self._open.discard(name)
        elif name == "output":
            room = self.limits.output_kb * 1024 - len(self._printed)
            self._printed += data[: max(room, 0)]
            self._dropped += len(data) - min(len(data), max(room, 0))
        elif name == "reply":
            self._reply += data
            self._announced()
        else:
            self._heard += data
            for line in self._heard.splitlines():
                if line.startswith(b'{"ended"') and line.endswith(b"}"):
                    self._ended = json.loads(line)

    def _announced(self) -> int | None:
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

    def _whole_reply(self) -> bytes | None:
        if self._announced() != len(self._reply):
            return None
        reply, self._reply = bytes(self._reply), bytearray()
        return reply

    def _drain(self) -> None:
        """Read what is left in the pipes of a dead worker."""
        for _ in range(64):
            before = len(self._reply), len(self._printed), self._dropped
            self._turn(0, b"")
            if before == (len(self._reply), len(self._printed), self._dropped):
                return

    def _wait_for_end(self) -> None:
        deadline = time.monotonic() + GRACE
        while self._ended is None and "status" in self._open and time.monotonic() < deadline:
            self._turn(deadline - time.monotonic(), b"")

    def _how_it_ended(self) -> WorkerTrouble:
        """Find out from the evidence why a worker died."""
        if self._ended is None or self.given_up:
            words = "the preloaded process ended, and its workers with it."
            return WorkerTrouble("grader", words, ended_all=True)
        code, cpu, limits = self._ended["ended"], self._ended["cpu"] - self.cpu, self.limits
        killed_for_memory = bool(self.group and self.group.kills())
        if code == -signal.SIGKILL and not killed_for_memory and cpu < limits.cpu_seconds - 0.5:
            killed_for_memory = machine_kills() > self._kills
        if code == OUT_OF_MEMORY or killed_for_memory:
            return WorkerTrouble("memory", f"more than {limits.memory_mb} MB were asked for.")
        if code == -signal.SIGXCPU or (code < 0 and cpu >= limits.cpu_seconds - 0.5):
            return WorkerTrouble("timeout", f"it computed for {cpu:.0f} s.")
        if code < 0:
            return WorkerTrouble("crashed", f"the process was ended by {signal_name(-code)}.")
        return WorkerTrouble("crashed", f"the process ended itself with status {code}.")

    def close(self) -> None:
        """Kill the worker with everything that it started, and wait for its end."""
        if self._closed:
            return
        self._closed = True
        if self._trouble is None:
            self._trouble = WorkerTrouble("grader", "this worker is closed.")
        try:
            self.status.send(b"k")
        except OSError:
            pass
        try:
            self._wait_for_end()
            self._drain_to_the_end()
        except WorkerTrouble:
            pass  # its last reply was too long
        self.status.close()
        for name, fd in self.fds.items():
            if name != "status":
                os.close(fd)
        if self.group:
            self.group.close()
        self._living.discard(self)

    def _drain_to_the_end(self) -> None:
        """Read until both pipes are closed. If they stay open, some process still holds them."""
        deadline = time.monotonic() + 0.5
        self._open -= {"request", "status"}
        while self._open and time.monotonic() < deadline:
            self._reply.clear()
            self._turn(0.05, b"")
        self.survived = bool(self._open)


def signal_name(number: int) -> str:
    """Return the name of a signal, such as ``SIGSEGV``."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def machine_kills() -> int:
    """Count the processes that this machine has killed because memory ran out, since it started."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
