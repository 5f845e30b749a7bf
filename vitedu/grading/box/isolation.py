"""The box: a fork server, which forks isolated workers.

Role: ``open_box``. At its start a canary tries what a hostile answer would try, and the level
follows from what it could do (``levels``). A box of level ``none`` opens only with
``allow_unsafe``. ``confinement`` says how a worker is isolated.

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
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from errno import ENOSPC, EROFS
from functools import partial
from pathlib import Path

from vitedu.grading.box.conversation import Worker, WorkerTrouble
from vitedu.grading.box.fork_server import receive, send
from vitedu.grading.box.launch import USERS, plan_launch
from vitedu.grading.box.levels import Isolation, IsolationError, measure_isolation
from vitedu.grading.box.limits import Limits
from vitedu.grading.box.package_view import base_files

USUAL = Limits()
DECOY = "decoy.txt"  # a file in the box that the canary tries to change
LOAD_SECONDS = 120.0  # for importing torch from a slow disk
START_SECONDS = 20.0  # for a fork on a busy machine


class Box:
    """A fork server, restarted if it dies, and its workers. Use as a context manager.

    Several threads may use it. Everything in it ends when it is closed or this process ends.

    Attributes:
        level: ``full``, ``partial: ...`` or ``none``.
        isolation: what the canary found.
        events: what happened to the fork server, in words.
    """

    def __init__(
        self, limits: Limits, files: Mapping[str, str], *, isolation: Isolation | None = None
    ):
        self.limits, self._files = limits, files
        self.events: list[str] = []
        self._lock = threading.RLock()
        # The fork server dies with the thread that started it, so one thread starts it and stays
        # until the box is closed.
        self._launcher = ThreadPoolExecutor(1, "box")
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

    def __enter__(self):
        return self

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
            except WorkerTrouble as trouble:
                if self._is_closed:
                    raise
                self.events.append(f"the preloaded process was started again: {trouble.detail}")
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
        self.events.append("an answer is run again by a preloaded process of its own")
        return type(self)(self.limits, self._files, isolation=self.isolation)

    def close(self) -> None:
        """End the fork server with all its workers, and remove its folder."""
        with self._lock:
            self._is_closed = True
            for worker in list(self._workers):
                worker.close()
            self._stop()
            self._launcher.shutdown()
            self._folder.cleanup()

    def _launch(self) -> None:
        self._stop()
        control, child_end = socket.socketpair()
        messages = Path(self._folder.name) / "messages.txt"

        with child_end, messages.open("wb") as file:
            number = child_end.fileno()
            silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": file}
            how = silent | {"pass_fds": [number], "start_new_session": True}
            command, environment = [*self._plan.command, str(number)], self._plan.environment
            start = partial(subprocess.Popen, command, env=environment, **how)
            self._process, self._control = self._launcher.submit(start).result(), control
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
