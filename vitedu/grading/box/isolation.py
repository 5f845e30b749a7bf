"""The box: a fork server, which forks isolated workers, and what its isolation is worth.

Role: ``open_box``. At its start ``measure_isolation`` runs the canary, which tries what a hostile
answer would try. The level follows from what it could do, never from how the box was configured:

* ``full``: the canary could do nothing that is forbidden.
* ``partial: ...``: it could do what is named, but could change nothing outside.
* ``none``: it could write files of the grader or reach its processes. Such a box opens only with
  ``allow_unsafe``.

``confinement`` says how a worker is isolated.

No level covers faults of the kernel, or workers that communicate by timing. Nor does it cover
answers that recognise the fork server: all workers are its copies, with the same hash seed
and addresses.
"""

import itertools
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from errno import ENOSPC, EROFS
from functools import partial
from pathlib import Path
from typing import Any

from vitedu.grading.box.canary import write_frame
from vitedu.grading.box.conversation import Worker, WorkerTrouble
from vitedu.grading.box.fork_server import receive, send
from vitedu.grading.box.launch import USERS, plan_launch
from vitedu.grading.box.limits import Limits
from vitedu.grading.box.package_view import base_files
from vitedu.ground import words

USUAL = Limits()
DECOY = "decoy.txt"  # a file in the box that the canary tries to change
LOAD_SECONDS = 120.0  # for importing torch from a slow disk
START_SECONDS = 20.0  # for a fork on a busy machine
PACKAGE = Path(__file__).parents[2]
HOME = os.path.expanduser("~")
CANARY_SECONDS = 60.0
MANY = 1000  # threads that the canary tries to start
MOST = 8  # findings of one kind that it reports
_WORDS = words.read(PACKAGE / "grading/words.toml")
BREACHES = _WORDS["breaches"]  # what the canary could do -> its description in the level
SEVERE_BREACHES = ("write", "processes")
REMEDIES = _WORDS["remedies"]  # restriction that is missing -> what would help


class IsolationError(ValueError):
    """No box can be opened, or its level is too low."""


@dataclass(frozen=True)
class Isolation:
    """What the canary found out about a box."""

    breaches: dict[str, str]  # what it could do -> evidence
    restrictions: tuple[str, ...]  # restrictions that each worker has
    missing: dict[str, str]  # restriction that does not work on this machine -> why
    count: int = 0  # what the canary tried

    @property
    def level(self) -> str:
        """``full``, ``partial: ...`` or ``none``."""
        if not self.breaches:
            return "full"
        if any(name in self.breaches for name in SEVERE_BREACHES):
            return "none"
        return "partial: " + "; ".join(BREACHES[name] for name in self.breaches)

    def explain(self) -> list[str]:
        """Say what the canary could do, what this machine lacks, and what would help."""
        lines = [f"{BREACHES[name]}: {evidence}" for name, evidence in self.breaches.items()]
        lines += [f"no {name}: {why}" for name, why in self.missing.items()]
        return lines + [text for name, text in REMEDIES.items() if name in self.missing]


def measure_isolation(
    start: Callable[[], Worker], limits: Limits, needed: list[str], decoy: str
) -> Isolation:
    """Run the canary in a box and collect what it could do.

    Args:
        start: starts a worker that runs the canary.
        limits: of that worker.
        needed: files that a worker must be able to read.
        decoy: a file of the grader that a worker can read.
    """
    with probe_targets(needed, decoy, limits.memory_mb) as plan, start() as canary:
        try:
            reply = json.loads(canary.ask(write_frame(plan), CANARY_SECONDS)[8:])
        except WorkerTrouble as trouble:
            raise IsolationError(f"the canary did not reply: {trouble}") from None
        try:
            reply |= json.loads(canary.ask(b"!", CANARY_SECONDS)[8:])
        except WorkerTrouble as trouble:  # the memory limit killed it, as it should
            if trouble.reason != "memory" and "SIGKILL" not in trouble.detail:
                raise
        restrictions, missing = tuple(canary.restrictions), dict(canary.missing)
    if unreadable := reply.pop("needs", ""):
        raise IsolationError(
            f"{unreadable} cannot be read by the user that answers run as; open it with: "
            f"chmod -R o+rX {sys.base_prefix} {sys.prefix}"
        )
    breaches = {name: reply[name] for name in BREACHES if reply.get(name)}
    return Isolation(breaches, restrictions, missing, int(reply["count"]))


@contextmanager
def probe_targets(needed: list[str], decoy: str, memory_mb: int) -> Iterator[dict]:
    """Make files, a port and a socket that only the grader should be able to reach.

    Yields the plan of the canary, which may have ``memory_mb``: what to try, and how much.
    """
    with ExitStack() as stack:
        folders = []
        for place in (None, HOME):
            with suppress(OSError):
                made = tempfile.TemporaryDirectory(prefix=".vitedu-probe-", dir=place)
                folders.append(stack.enter_context(made))
        files = [os.path.join(folder, "grades.json") for folder in folders]
        for folder, file in zip(folders, files, strict=True):
            os.chmod(folder, 0o755)
            Path(file).write_text("{}")
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind("")  # a socket without a file
        listener.listen()
        process = f"/proc/{os.getpid()}/"
        secrets = [process + name for name in ("environ", "maps", "mem", "cmdline")]
        targets = {
            "readable": [*files, *secrets, "/etc/passwd", "/proc/self/maps"],
            "links": [process + name for name in ("exe", "cwd", "root")],
            "folders": [*folders, str(PACKAGE), HOME, os.getcwd(), "/"],
            "private": [*folders, HOME, "/", "/proc"],
            "references": [str(PACKAGE / f"{name}.py") for name in ("patches", "attention")],
            "ports": [server.getsockname()[1]],
            "sockets": [listener.getsockname().decode()],
            "needed": needed,
            "worthless": [*files, decoy],
            "changeable": [*files, decoy, *needed],
        }
        sizes = {"memory_mb": memory_mb, "many": MANY, "most": MOST}
        yield {"targets": targets, "parent": os.getpid(), **sizes}


class Box(AbstractContextManager):
    """A fork server, restarted if it dies, and its workers. Use as a context manager.

    Several threads may use it. Everything in it ends when it is closed or this process ends.

    Attributes:
        level: ``full``, ``partial: ...`` or ``none``.
        isolation: what the canary found.
    """

    def __init__(
        self, limits: Limits, files: Mapping[str, str], *, isolation: Isolation | None = None
    ):
        self.limits, self._files = limits, files
        self._lock = threading.RLock()
        self._folder = tempfile.TemporaryDirectory(
            prefix=f"vitedu-box-{os.getpid()}-", ignore_cleanup_errors=True
        )
        self._process: subprocess.Popen | None = None
        self._control: socket.socket | None = None
        # decides a worker's user; consecutive workers have different ones
        self._numbers = itertools.count(random.SystemRandom().randrange(USERS[1]))
        self._is_closed = False
        self._workers: set[Worker] = set()
        folder = Path(self._folder.name)
        remove_stale_folders(folder.parent)
        try:
            folder.chmod(0o755)
            make_empty_folder(folder / "empty")
            write_view(folder / "view", files)
            self._plan = plan_launch(limits, folder / "view", folder / "empty")
            self._launch()
            start, decoy = partial(self._fork_worker, "canary"), str(folder / "view" / DECOY)
            self.isolation = isolation or measure_isolation(
                start, limits, self._plan.required, decoy
            )
        except BaseException as error:
            self.close()
            if isinstance(error, OSError) and error.errno in (ENOSPC, EROFS):
                words = f"{folder} cannot be written ({error.strerror})"
                raise OSError(f"{words}; make room, or set TMPDIR to another folder.") from None
            if isinstance(error, (OSError, WorkerTrouble)):
                raise IsolationError(str(error)) from error
            raise
        self.level = self.isolation.level

    def __exit__(self, *_):
        self.close()

    def worker(self) -> Worker:
        """Start a fresh worker.

        Raises:
            WorkerTrouble: with reason ``grader``, if even a new fork server starts none.
        """
        with self._lock:
            try:
                worker = self._fork_worker("worker")
            except WorkerTrouble:
                if self._is_closed:
                    raise
                try:
                    self._launch()
                except (IsolationError, OSError) as error:
                    raise WorkerTrouble("grader", f"it cannot be started again: {error}") from error
                worker = self._fork_worker("worker")
        missing = set(self.isolation.restrictions) - set(worker.restrictions)
        if missing:
            worker.close()
            raise WorkerTrouble("grader", f"a worker came without {', '.join(sorted(missing))}.")
        return worker

    def open_separate(self) -> "Box":
        """Open a box of the same kind for one answer.

        If its fork server ends, no other answer can be the cause.
        """
        return type(self)(self.limits, self._files, isolation=self.isolation)

    def close(self) -> None:
        """End the fork server with all its workers, and remove its folder."""
        with self._lock:
            self._is_closed = True
            for worker in list(self._workers):
                worker.close()
            self._stop()
            self._folder.cleanup()

    def _launch(self) -> None:
        self._stop()
        control, child_end = socket.socketpair()
        messages = Path(self._folder.name) / "messages.txt"

        with child_end, messages.open("wb") as file:
            number = child_end.fileno()
            silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": file}
            how: dict[str, Any] = silent | {"pass_fds": [number], "start_new_session": True}
            command, environment = [*self._plan.command, str(number)], self._plan.environment
            self._process = subprocess.Popen(command, env=environment, **how)
        self._control = control
        control.settimeout(LOAD_SECONDS)
        send(control, self._plan.setup)
        loaded, _ = receive(control)
        control.settimeout(START_SECONDS)
        if loaded is None:
            self._stop()
            errors = messages.read_text("utf-8", "replace").strip().splitlines()
            raise IsolationError(errors[-1] if errors else "the preloaded process did not start")
        if loaded["threads"] > 1:  # a fork would lose them
            raise IsolationError(f"the preloaded process has {loaded['threads']} threads, not 1.")

    def _stop(self) -> None:
        """End the fork server. It kills its workers first, or they die with it."""
        for worker in list(self._workers):
            worker.is_abandoned = True  # so that its end is not taken for the answer's doing
        if self._control is not None:
            self._control.close()  # the process notices it and kills its workers
            self._control = None
        if self._process is not None:
            try:
                self._process.wait(2.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def _fork_worker(self, task: str) -> Worker:
        """Have a worker forked and connect it to new pipes."""
        with self._lock:
            if self._is_closed or self._control is None:
                subject = "box is closed" if self._is_closed else "preloaded process has ended"
                raise WorkerTrouble("grader", f"this {subject}.")
            worker, child_fds = self._connect_worker()
            message = {"task": task, "number": next(self._numbers) % USERS[1]}
            try:
                line = json.dumps(message).encode() + b"\n"
                try:
                    socket.send_fds(self._control, [line], child_fds)
                finally:
                    for fd in child_fds:
                        os.close(fd)
                worker.wait_for_start(START_SECONDS)
            except (OSError, WorkerTrouble) as error:
                worker.close()
                detail = getattr(error, "detail", f"the preloaded process has ended: {error}")
                raise WorkerTrouble("grader", detail) from error
        return worker

    def _connect_worker(self) -> tuple[Worker, list[int]]:
        """Make a worker's pipes; return the ``Worker`` with our ends, and the other ends."""
        fds, child_fds = {}, []
        for name, own_end in (("request", 1), ("reply", 0)):
            pair = os.pipe()
            fds[name] = pair[own_end]
            child_fds.append(pair[1 - own_end])
            os.set_blocking(pair[own_end], False)
        status, child_status = socket.socketpair()
        status.setblocking(False)
        fds["status"] = status.fileno()
        worker = Worker(fds, status, self.limits, self._workers)
        return worker, [*child_fds, child_status.detach()]


def open_box(
    limits: Limits = USUAL, *, allow_unsafe: bool = False, files: Mapping[str, str] = {}
) -> Box:
    """Open a box.

    Args:
        limits: of each worker.
        allow_unsafe: whether a box of level ``none`` may be opened.
        files: what takes the place of ``package_view.base_files()``, path -> text; for tests.

    Raises:
        IsolationError: no box can be opened; the message has the remedy.
    """
    box = Box(limits, files)
    if box.level != "none" or allow_unsafe:
        return box
    box.close()
    lines = "\n  ".join(box.isolation.explain())
    raise IsolationError(
        f"this machine isolates no answer well enough:\n  {lines}\n"
        "To grade all the same notebooks that you trust: --allow-unsafe."
    )


def make_empty_folder(folder: Path) -> None:
    """Make the folder in which workers run.

    To some libraries, such as Matplotlib, it has to look as if a file could be made in it.
    """
    folder.mkdir()
    if os.geteuid() == 0:
        os.chown(folder, 0, USERS[0])
        folder.chmod(0o775)


def write_view(folder: Path, files: Mapping[str, str]) -> None:
    """Write the package's files for the box into a folder, readable by everyone."""
    for name, text in {DECOY: "", **base_files(), **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def remove_stale_folders(folder: Path) -> None:
    """Remove the folders of graders that were killed."""
    for box_folder in folder.glob("vitedu-box-*-*"):
        try:
            os.kill(int(box_folder.name.split("-")[2]), 0)
        except ProcessLookupError:
            shutil.rmtree(box_folder, ignore_errors=True)
        except PermissionError:
            pass  # of another user
