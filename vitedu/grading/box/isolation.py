"""The box: a preloaded process in the strongest isolation of this machine, which forks workers.

Role: ``open_box`` tries the ways of ``ways``, the strongest first. In each a canary tries what a
hostile answer would try, and the level follows from what it could do (``levels``). A box of level
``none`` opens only with ``allow_unsafe``.

No level covers faults of the kernel, or workers that communicate by timing. Nor does it cover
answers that recognise the preloaded process: all workers are its copies, with the same hash seed
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
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from vitedu.grading.box import cgroups
from vitedu.grading.box.conversation import Worker, WorkerTrouble
from vitedu.grading.box.levels import (
    BREACHES,
    PACKAGE,
    IsolationError,
    Trial,
    badness,
    examine,
    remedy,
)
from vitedu.grading.box.limits import Limits
from vitedu.grading.box.sharing import SharedBox
from vitedu.grading.box.ways import USERS, possible, prepare

# modules of this folder that are needed inside the box
OWN = ("canary", "confinement", "limits", "linux", "preloaded", "seccomp")
LOAD_SECONDS = 120.0  # for importing torch from a slow disk
START_SECONDS = 20.0  # for a fork on a busy machine
# restrictions that a worker may lack if it has the filter of system calls
NETS = {"control group", "dies first"}


class Box:
    """A preloaded process, restarted if it dies, and its workers. Use as a context manager.

    Several threads may use it. Everything in it ends when it is closed or this process ends.

    Attributes:
        way: a name of ``ways.WAYS``.
        level: ``full``, ``partial: ...`` or ``none``.
        trial: what the canary found.
        events: what happened to the preloaded process, in words.

    Raises:
        IsolationError: this way does not work on this machine, and why.
    """

    def __init__(
        self, way: str, limits: Limits, files: dict[str, str], *, like: "Box | None" = None
    ):
        self.way, self.limits, self._files = way, limits, files
        self.events: list[str] = []
        self._lock = threading.RLock()
        # The preloaded process dies with the thread that started it, so one thread starts it and
        # stays until the box is closed.
        self._launcher = ThreadPoolExecutor(1, "box")
        self._folder = tempfile.TemporaryDirectory(
            prefix=f"vitedu-box-{os.getpid()}-", ignore_cleanup_errors=True
        )
        self._process: subprocess.Popen | None = None
        self._control: socket.socket | None = None
        first = random.SystemRandom().randrange(USERS[1])
        # decides a worker's user; consecutive workers have different ones
        self._numbers: Iterator[int] = like._numbers if like else itertools.count(first)
        self._launches = 0
        self._closed = False
        self._workers: set[Worker] = set()
        self._groups = cgroups.find()
        cgroups.sweep(self._groups)
        sweep(Path(self._folder.name).parent)
        try:
            folder = Path(self._folder.name)
            folder.chmod(0o755)
            (folder / "tmp").mkdir(mode=0o711)
            write_view(folder / "view", files)
            self._start = prepare(way, limits, folder / "view", folder / "tmp")
            self._launch()
            release = partial(self._worker, "canary")
            needed = self._start.needed
            self.trial: Trial = like.trial if like else examine(release, limits, needed)
        except BaseException as error:
            self.close()
            if isinstance(error, (OSError, WorkerTrouble)):
                raise IsolationError(str(error)) from error
            raise
        self.level = self.trial.level

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def worker(self) -> Worker:
        """Start a fresh worker.

        Raises:
            WorkerTrouble: with reason ``grader``, if even a new preloaded process starts none.
        """
        for attempts_left in (2, 1, 0):
            launches = self._launches
            try:
                worker = self._worker("worker")
                break
            except WorkerTrouble as trouble:
                if not attempts_left or self._closed:
                    raise
                with self._lock:  # unless another thread has already restarted it
                    dead = self._process is None or self._process.poll() is not None
                    if launches == self._launches and (dead or attempts_left == 1):
                        self._launch_again(trouble.detail)
        lost = set(self.trial.parts) - set(worker.parts)
        if "seccomp" in worker.parts:
            lost -= NETS
        if lost:
            worker.close()
            raise WorkerTrouble("grader", f"a worker came without {', '.join(sorted(lost))}.")
        return worker

    def apart(self) -> "Box":
        """Open a box of the same kind for one answer.

        If its preloaded process ends, no other answer can be the cause.

        Raises:
            IsolationError: it cannot be opened.
        """
        self.events.append("an answer is run again by a preloaded process of its own")
        return type(self)(self.way, self.limits, self._files, like=self)

    def shared(self) -> SharedBox:
        """Return a box for one submission, in which later runs share processes."""
        return SharedBox(self)

    def close(self) -> None:
        """End the preloaded process with all its workers, and remove its folder."""
        with self._lock:
            self._closed = True
            for worker in list(self._workers):
                worker.close()
            self._stop()
            self._launcher.shutdown()
            self._folder.cleanup()

    # --- the preloaded process ------------------------------------------------------------------

    def _launch_again(self, why: str) -> None:
        """Restart the preloaded process after it died or did not answer."""
        self.events.append(f"the preloaded process was started again: {why}")
        try:
            self._launch()
        except (IsolationError, OSError) as error:
            raise WorkerTrouble("grader", f"it cannot be started again: {error}") from error

    def _launch(self) -> None:
        """Start the preloaded process."""
        self._stop()
        self._launches += 1
        control, theirs = socket.socketpair()
        messages = Path(self._folder.name) / "messages.txt"

        def popen():
            with messages.open("wb") as file:
                return subprocess.Popen(
                    [*self._start.command, "serve", str(theirs.fileno())],
                    env=self._start.environment,
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=file,
                    start_new_session=True,
                )

        with theirs:
            self._process, self._control = self._launcher.submit(popen).result(), control
        try:
            hello = self._say_hello(control)
        except OSError as error:
            self._stop()
            said = messages.read_text("utf-8", "replace").strip().splitlines()
            raise IsolationError(said[-1] if said else f"it did not start: {error}") from None
        self._verify(hello)

    def _say_hello(self, control: socket.socket) -> dict:
        """Send the set-up and wait until everything is loaded."""
        control.settimeout(LOAD_SECONDS)
        control.sendall(json.dumps(self._start.setup).encode() + b"\n")
        line = b""
        while not line.endswith(b"\n"):
            piece = control.recv(1 << 16)
            if not piece:
                raise OSError("the preloaded process ended")
            line += piece
        control.settimeout(START_SECONDS)
        return json.loads(line)["hello"]

    def _verify(self, hello: dict) -> None:
        """Compare the Python and the torch inside with those outside.

        Raises:
            IsolationError: they differ; or there are threads, which a fork would lose.
        """
        if not hello:
            return  # nothing is loaded before the fork
        inside = (hello["prefix"], hello["python"], os.path.realpath(hello["torch_file"]))
        outside = (
            sys.base_prefix,
            list(sys.version_info[:3]),
            os.path.realpath(self._start.needed[-1]),
        )
        if inside != outside:
            raise IsolationError(f"another Python or torch runs inside: {inside}, not {outside}.")
        if (hello["threads"] or 1) != 1:
            raise IsolationError(f"the preloaded process has {hello['threads']} threads, not 1.")

    def _stop(self) -> None:
        """End the preloaded process. It kills its workers first, or bubblewrap does."""
        for worker in list(self._workers):
            worker.given_up = True  # so that its end is not taken for the answer's doing
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

    # --- workers --------------------------------------------------------------------------------

    def _worker(self, task: str) -> Worker:
        """Have a worker forked and connect it to new pipes.

        Raises:
            WorkerTrouble: with reason ``grader``, if it did not start.
        """
        setup = self._start.setup
        with self._lock:
            if self._closed or self._control is None:
                what = "box is closed" if self._closed else "preloaded process has ended"
                raise WorkerTrouble("grader", f"this {what}.")
            worker, theirs = self._wired()
            groups = worker.group.fds if worker.group else []
            message = {"task": task, "number": next(self._numbers) % USERS[1]}
            try:
                try:
                    line = json.dumps(message).encode() + b"\n"
                    socket.send_fds(self._control, [line], [*theirs, *groups])
                finally:
                    for fd in theirs:
                        os.close(fd)
                # without preloading, the worker is a new Python that has to load torch first
                said = worker.hear(START_SECONDS if setup["forks"] else LOAD_SECONDS)
                if "parts" not in said:
                    raise WorkerTrouble("grader", f"no worker could be started: {said}")
            except (OSError, WorkerTrouble) as error:
                worker.close()
                detail = getattr(error, "detail", f"the preloaded process has ended: {error}")
                raise WorkerTrouble("grader", detail) from error
        worker.parts, worker.missing, worker.cpu = said["parts"], said["missing"], said["cpu"]
        return worker

    def _wired(self) -> tuple[Worker, list[int]]:
        """Make a worker's pipes; return the ``Worker`` with our ends, and the other ends."""
        group = None
        try:
            group = cgroups.Group(self._groups, self.limits) if self._groups else None
        except OSError as error:
            self._groups = {}
            self.events.append(f"no control group: {error}")
        fds, theirs = {}, []
        for name, ours in (("request", 1), ("reply", 0), ("output", 0)):
            pair = os.pipe()
            fds[name] = pair[ours]
            theirs.append(pair[1 - ours])
            os.set_blocking(pair[ours], False)
        status, their_status = socket.socketpair()
        status.setblocking(False)
        fds["status"] = status.fileno()
        worker = Worker(fds, status, self.limits, group, self._workers)
        return worker, [*theirs, their_status.detach()]


def open_box(
    limits: Limits | None = None,
    *,
    allow_unsafe: bool = False,
    files: dict[str, str] | None = None,
    ways: tuple[str, ...] | None = None,
) -> Box:
    """Open the strongest box of this machine.

    Args:
        limits: of each worker; default: ``Limits()``.
        allow_unsafe: whether a box of level ``none`` may be opened.
        files: the package's files in the box, path -> text; default ``package_view.base_files()``.
        ways: the ways to try, in order; default: those of this platform.

    Raises:
        IsolationError: no box can be opened; the message has the remedy.
    """
    if files is None:
        from vitedu.grading.box import package_view

        files = package_view.base_files()
    best: Box | None = None
    refused = []
    for way in ways or possible():
        try:
            box = Box(way, limits or Limits(), files)
        except IsolationError as error:
            refused.append(f"{way}: {error}")
            continue
        if best is None or badness(box.trial) < badness(best.trial):
            best, box = box, best
        if box is not None:
            refused.append(f"{box.way}: {box.level}")
            box.close()
        if best.level == "full":
            break
    if best is not None:
        best.events += refused
        if best.level != "none" or allow_unsafe:
            return best
        refused += [
            f"{best.way}: {BREACHES[name]} ({why})" for name, why in best.trial.breaches.items()
        ]
        best.close()
    seen = "\n  ".join(refused)
    raise IsolationError(
        f"this machine isolates no answer well enough:\n  {seen}\n{remedy()}\n"
        "To grade all the same notebooks that you trust: --allow-unsafe."
    )


def write_view(folder: Path, files: dict[str, str]) -> None:
    """Write the package's files for the box into a folder, readable by everyone."""
    own = {f"vitedu/grading/box/{name}.py": PACKAGE / "grading/box" / f"{name}.py" for name in OWN}
    texts = {**files, **{name: path.read_text("utf-8") for name, path in own.items()}}
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def sweep(folder: Path) -> None:
    """Remove the folders of graders that were killed."""
    for left in folder.glob("vitedu-box-*-*"):
        if not pid_lives(int(left.name.split("-")[2])):
            shutil.rmtree(left, ignore_errors=True)


def pid_lives(pid: int) -> bool:
    """Tell whether a process with this number exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
