"""Do work on a stranger's text in a process that may die, so that no text can stop a class.

Role: ``call`` has a function done by a child of the *reader*, a process without torch that starts
with the first call and ends with this process. Every call gets a fork of its own with little time
and memory, and answers with JSON. Not here: what is done (``reading``, ``submissions``).
"""

import atexit
import importlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from vitedu.grading.box.limits import MB, mapped_bytes

CPU_SECONDS = 20  # of one call; reading the solved course takes 0.8 s
WALL_SECONDS = 300.0  # on a crowded machine
MEMORY_MB = 1024  # beyond what the reader has mapped; a file may take four times its size
MAX_REPLY = 32 * MB  # bytes


class ReaderDied(RuntimeError):
    """A call ended its process; the message says how."""


def call(function: Callable[[Any], Any], data: Any) -> Any:
    """Return what a function of a module returns, computed in a process of its own.

    Args:
        function: takes and returns data that JSON can hold.
        data: its argument.

    Raises:
        ReaderDied: it ended its process or went beyond a limit.
        RuntimeError: it raised, which is a fault of the grader; with the lines.
    """
    limits = {"cpu": CPU_SECONDS, "wall": WALL_SECONDS, "memory": MEMORY_MB, "reply": MAX_REPLY}
    request = {"module": function.__module__, "name": function.__name__, "data": data, **limits}
    result = json.loads(READER.ask(json.dumps(request).encode() + b"\n"))
    if "died" in result:
        raise ReaderDied(result["died"])
    if "fault" in result:
        raise RuntimeError(result["fault"])
    return result["done"]


class Reader:
    """The process; several threads may ask it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen | None = None

    def ask(self, line: bytes) -> bytes:
        """Return the reply to a request; a reader that was killed starts again, but once."""
        with self._lock:
            return self._send(line) or self._send(line) or b'{"fault": "the reader ended twice"}'

    def _send(self, line: bytes) -> bytes:
        """Return the reply; "" if the reader ended."""
        if self._process is None:
            # -P: a file beside the submissions is no module
            code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve()"
            words, pipe = [sys.executable, "-P", "-c", code], subprocess.PIPE
            self._process = subprocess.Popen(words, stdin=pipe, stdout=pipe, start_new_session=True)
        requests, replies, reply = self._process.stdin, self._process.stdout, b""
        assert requests and replies
        try:
            with suppress(BrokenPipeError):
                requests.write(line)
                requests.flush()
                reply = replies.readline()
        finally:
            if not reply.endswith(b"\n"):  # it ended, or this process was interrupted
                self.close()
        return reply if reply.endswith(b"\n") else b""

    def close(self) -> None:
        """End the reader, which gives up its work; the next request starts another one."""
        if self._process is not None:
            self._process.communicate()
            self._process = None


READER = Reader()
atexit.register(READER.close)


def serve() -> None:
    """Call the functions that the lines of the input name, until the parent ends."""
    with suppress(BrokenPipeError):
        while line := sys.stdin.buffer.readline():
            request = json.loads(line)
            importlib.import_module(request["module"])  # here, so that each fork has it
            sys.stdout.buffer.write(_fork(request) + b"\n")
            sys.stdout.buffer.flush()


def _fork(request: dict) -> bytes:
    """Call one function in a fork; return its result, or how it died."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read_end)
        _work(request, write_end)
    os.close(write_end)
    result, death, deadline = b"", "", time.monotonic() + request["wall"]
    while not death:
        ready, _, _ = select.select([read_end, 0], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            death = f"took more than {request['wall']:g} s"
        elif 0 in ready:  # the parent has ended, because it sends nothing before it has a reply
            death = "was given up"
        elif piece := os.read(read_end, MB):
            result += piece
            death = "gave more than can be kept" if len(result) > request["reply"] else ""
        else:
            break
    os.close(read_end)
    if death:
        os.kill(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status == -signal.SIGXCPU:
        death = f"took more than {request['cpu']} s of computing time"
    elif status:
        death = death or f"ended its process ({status})"
    return json.dumps({"died": death}).encode() if death else result


def _work(request: dict, fd: int) -> None:
    """Call a function within limits, write the result, and end this process."""
    os.dup2(os.open(os.devnull, os.O_RDWR), 2)  # a message of Python's end is nobody's to read
    try:
        spent = int(time.process_time()) + request["cpu"]
        limits = {name: size + request["memory"] * MB for name, size in mapped_bytes().items()}
        for name, limit in {**limits, "CPU": spent, "CORE": 0, "FSIZE": 0}.items():
            with suppress(AttributeError, OSError, ValueError):  # unknown here, or already lower
                resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (limit, limit + 1))
        function = getattr(sys.modules[request["module"]], request["name"])
        result = {"done": function(request["data"])}
    except MemoryError:
        result = {"died": f"needed more than {request['memory']} MB of memory"}
    except RecursionError:
        result = {"died": "went too deep"}
    except BaseException:
        result = {"fault": traceback.format_exc(limit=-12)[-4000:]}
    with os.fdopen(fd, "wb") as file:
        file.write(json.dumps(result).encode())
        file.flush()
    os._exit(0)
