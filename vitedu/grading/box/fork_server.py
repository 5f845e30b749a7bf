"""The fork server: a preloaded process that has torch loaded and forks a worker for each request.

Role: ``serve``, the loop of that process. It holds no expected value, reference or answer, never
reads what an answer writes, and ends when its control socket is closed. It runs with the standard
library, torch and numpy only. ``confinement`` restricts it, and a forked worker further, before an
answer runs.

Protocol, with one JSON line each way at a time: the parent sends the set-up and receives how many
threads there are. For each worker it then sends a task with the worker's descriptors (requests,
replies and status). On the status socket it reads which restrictions the worker has
(``restrictions``) or why it did not start, and at last how it ended. A byte on that socket, or
closing it, kills the worker.
"""

import contextlib
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import sys
from importlib.machinery import PathFinder

from vitedu.grading.box import linux
from vitedu.grading.box.confinement import TASKS, become_worker, prepare, write_status

MAX_LINE = 1 << 16
MAX_FILES = 4096  # descriptors of this process; a worker closes all except its own


def serve(control_fd: str) -> None:
    """Load torch, say so, and fork workers until the parent closes the control socket."""
    control = socket.socket(fileno=int(control_fd))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    max_files = MAX_FILES if hard == resource.RLIM_INFINITY else min(MAX_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max_files, hard))
    setup, _ = receive(control)
    if setup is None:
        return
    threads = load_libraries(setup["hidden_libraries"])
    prepare(setup)
    send(control, {"threads": threads})
    ForkServer(setup, control).run()


def load_libraries(hidden_libraries: list[str]) -> int:
    """Import what every worker needs, and return the number of threads."""
    search = PathFinder.find_spec  # hidden libraries are to it as if they were not installed
    PathFinder.find_spec = lambda name, *rest: (  # type: ignore[method-assign]
        None if name.split(".")[0] in hidden_libraries else search(name, *rest)
    )
    import torch

    for name in (*TASKS.values(), "numpy.random"):
        importlib.import_module(name)
    torch.set_num_threads(1)
    torch.ones(2, 2) @ torch.ones(2, 2)  # the first product initialises the library
    for name in TASKS.values():
        getattr(sys.modules[name], "warm_up", lambda: None)()
    gc.collect()
    gc.freeze()  # a collection in a worker then does not copy these pages
    linux.use_huge_pages()
    return len(os.listdir("/proc/self/task"))


class ForkServer:
    """The living workers: process id -> status socket and descriptor of the process."""

    def __init__(self, setup: dict, control: socket.socket):
        self.setup, self.control = setup, control
        self.workers: dict[int, tuple[socket.socket, int]] = {}

    def run(self) -> None:
        """Handle requests, kills and ended workers until the control socket closes."""
        while True:
            poll, by_fd = select.poll(), dict[int, int]()
            for pid, (status, process) in self.workers.items():
                by_fd |= {status.fileno(): pid, process: pid}
            for fd in (self.control.fileno(), *by_fd):
                poll.register(fd, select.POLLIN)
            for fd, _ in poll.poll():
                if fd == self.control.fileno():
                    message, fds = receive(self.control)
                    if message is None:
                        for pid in list(self.workers):
                            self.end(pid)
                        return
                    self.spawn(message, fds)
                elif by_fd[fd] in self.workers:
                    self.end(by_fd[fd])

    def spawn(self, message: dict, fds: list[int]) -> None:
        """Start a worker on the descriptors of a request, and close them here."""
        status = socket.socket(fileno=fds[2])
        try:
            pid = self.fork_worker(message["task"], message["number"], fds)
            self.workers[pid] = status, os.pidfd_open(pid)
        except OSError as error:
            send(status, {"failed": str(error)})
            status.close()
        for fd in fds[:2]:
            os.close(fd)

    def fork_worker(self, task: str, number: int, fds: list[int]) -> int:
        """Fork a worker."""
        if pid := os.fork():
            return pid
        try:
            become_worker(self.setup, task, number, fds)
        except BaseException as error:  # no code of an answer has run yet
            write_status(fds[2], {"failed": f"{type(error).__name__}: {error}"})
        finally:
            os._exit(1)

    def end(self, pid: int) -> None:
        """Kill a worker, if it lives, and its process group; tell the parent how it ended."""
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(pid, signal.SIGKILL)
        _, ended, usage = os.wait4(pid, 0)
        status, process = self.workers.pop(pid)
        cpu = usage.ru_utime + usage.ru_stime
        send(status, {"ended": os.waitstatus_to_exitcode(ended), "used": cpu})
        status.close()
        os.close(process)


def send(connection: socket.socket, message: dict) -> None:
    """Send one line; do nothing if the parent has gone."""
    with contextlib.suppress(OSError):
        connection.sendall(json.dumps(message).encode() + b"\n")


def receive(connection: socket.socket) -> tuple[dict | None, list[int]]:
    """Receive one line and the descriptors sent with it; None if the socket is closed."""
    text, fds = b"", []
    with contextlib.suppress(OSError):
        while not text.endswith(b"\n"):
            piece, new, _, _ = socket.recv_fds(connection, MAX_LINE, 16)
            fds += new
            text += piece
            if not piece:
                break
        else:
            return json.loads(text), fds
    return None, fds
