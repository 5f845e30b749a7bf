"""The box: a fork server in the strongest isolation of this machine, which forks workers.

Role: ``open_box`` tries ``isolation_methods``, the strongest first. In each a canary tries what a
hostile answer would try, and the level follows from what it could do (``levels``). A box of level
``none`` opens only with ``allow_unsafe``.

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
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from errno import ENOSPC, EROFS
from functools import partial
from pathlib import Path

from vitedu.grading.box import cgroups
from vitedu.grading.box.conversation import Worker, WorkerTrouble
from vitedu.grading.box.isolation_methods import USERS, available_methods, plan_launch
from vitedu.grading.box.levels import (
    BREACHES,
    PACKAGE,
    Isolation,
    IsolationError,
    measure_isolation,
    remedy,
    severity,
)
from vitedu.grading.box.limits import Limits
from vitedu.grading.box.sharing import SharedBox

# modules of this folder that are needed inside the box
BOX_MODULES = ("canary", "confinement", "limits", "linux", "fork_server", "seccomp")
LOAD_SECONDS = 120.0  # for importing torch from a slow disk
START_SECONDS = 20.0  # for a fork on a busy machine
# restrictions that a worker may lack if it has the filter of system calls
OPTIONAL_RESTRICTIONS = {"control group", "dies first"}


class Box:
    """A fork server, restarted if it dies, and its workers. Use as a context manager.

    Several threads may use it. Everything in it ends when it is closed or this process ends.

    Attributes:
        method: a name of ``isolation_methods.METHODS``.
        level: ``full``, ``partial: ...`` or ``none``.
        isolation: what the canary found.
        events: what happened to the fork server, in words.

    Raises:
        IsolationError: this method does not work on this machine, and why.
    """

    def __init__(
        self, method: str, limits: Limits, files: dict[str, str], *, other: "Box | None" = None
    ):
        self.method, self.limits, self._files = method, limits, files
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
        first = random.SystemRandom().randrange(USERS[1])
        # decides a worker's user; consecutive workers have different ones
        self._numbers: Iterator[int] = other._numbers if other else itertools.count(first)
        self._launches = 0
        self._is_closed = False
        self._workers: set[Worker] = set()
        self._groups = cgroups.find_folders()
        cgroups.remove_stale_groups(self._groups)
        remove_stale_folders(Path(self._folder.name).parent)
        try:
            folder = Path(self._folder.name)
            folder.chmod(0o755)
            (folder / "tmp").mkdir(mode=0o711)
            write_view(folder / "view", files)
            self._plan = plan_launch(method, limits, folder / "view", folder / "tmp")
            self._launch()
            start, needed = partial(self._fork_worker, "canary"), self._plan.required
            self.isolation: Isolation
            self.isolation = other.isolation if other else measure_isolation(start, limits, needed)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError) and error.errno in (ENOSPC, EROFS):
                words = f"{self._folder.name} cannot be written ({error.strerror})"
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
        for attempts_left in (2, 1, 0):
            launches = self._launches
            try:
                worker = self._fork_worker("worker")
                break
            except WorkerTrouble as trouble:
                if not attempts_left or self._is_closed:
                    raise
                with self._lock:  # unless another thread has already restarted it
                    dead = self._process is None or self._process.poll() is not None
                    if launches == self._launches and (dead or attempts_left == 1):
                        self._relaunch(trouble.detail)
        missing = set(self.isolation.restrictions) - set(worker.restrictions)
        if "seccomp" in worker.restrictions:
            missing -= OPTIONAL_RESTRICTIONS
        if missing:
            worker.close()
            raise WorkerTrouble("grader", f"a worker came without {', '.join(sorted(missing))}.")
        return worker

    def open_separate(self) -> "Box":
        """Open a box of the same kind for one answer.

        If its fork server ends, no other answer can be the cause.

        Raises:
            IsolationError: it cannot be opened.
        """
        self.events.append("an answer is run again by a preloaded process of its own")
        return type(self)(self.method, self.limits, self._files, other=self)

    def open_shared(self) -> SharedBox:
        """Return a box for one submission, in which later runs share processes."""
        return SharedBox(self)

    def close(self) -> None:
        """End the fork server with all its workers, and remove its folder."""
        with self._lock:
            self._is_closed = True
            for worker in list(self._workers):
                worker.close()
            self._stop()
            self._launcher.shutdown()
            self._folder.cleanup()

    # --- the fork server ------------------------------------------------------------------------

    def _relaunch(self, why: str) -> None:
        """Restart the fork server after it died or did not answer."""
        self.events.append(f"the preloaded process was started again: {why}")
        try:
            self._launch()
        except (IsolationError, OSError) as error:
            raise WorkerTrouble("grader", f"it cannot be started again: {error}") from error

    def _launch(self) -> None:
        """Start the fork server."""
        self._stop()
        self._launches += 1
        control, child_end = socket.socketpair()
        messages = Path(self._folder.name) / "messages.txt"

        def popen():
            with messages.open("wb") as file:
                return subprocess.Popen(
                    [*self._plan.command, "serve", str(child_end.fileno())],
                    env=self._plan.environment,
                    pass_fds=[child_end.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=file,
                    start_new_session=True,
                )

        with child_end:
            self._process, self._control = self._launcher.submit(popen).result(), control
        try:
            hello = self._send_setup(control)
        except OSError as error:
            self._stop()
            errors = messages.read_text("utf-8", "replace").strip().splitlines()
            raise IsolationError(errors[-1] if errors else f"it did not start: {error}") from None
        self._verify_versions(hello)

    def _send_setup(self, control: socket.socket) -> dict:
        """Send the set-up and wait until everything is loaded."""
        control.settimeout(LOAD_SECONDS)
        control.sendall(json.dumps(self._plan.setup).encode() + b"\n")
        line = b""
        while not line.endswith(b"\n"):
            piece = control.recv(1 << 16)
            if not piece:
                raise OSError("the preloaded process ended")
            line += piece
        control.settimeout(START_SECONDS)
        return json.loads(line)["hello"]

    def _verify_versions(self, hello: dict) -> None:
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
            os.path.realpath(self._plan.required[-1]),
        )
        if inside != outside:
            raise IsolationError(f"another Python or torch runs inside: {inside}, not {outside}.")
        if (hello["threads"] or 1) != 1:
            raise IsolationError(f"the preloaded process has {hello['threads']} threads, not 1.")

    def _stop(self) -> None:
        """End the fork server. It kills its workers first, or bubblewrap does."""
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

    # --- workers --------------------------------------------------------------------------------

    def _fork_worker(self, task: str) -> Worker:
        """Have a worker forked and connect it to new pipes.

        Raises:
            WorkerTrouble: with reason ``grader``, if it did not start.
        """
        setup = self._plan.setup
        with self._lock:
            if self._is_closed or self._control is None:
                subject = "box is closed" if self._is_closed else "preloaded process has ended"
                raise WorkerTrouble("grader", f"this {subject}.")
            worker, child_fds = self._connect_worker()
            groups = worker.group.fds if worker.group else []
            message = {"task": task, "number": next(self._numbers) % USERS[1]}
            try:
                try:
                    line = json.dumps(message).encode() + b"\n"
                    socket.send_fds(self._control, [line], [*child_fds, *groups])
                finally:
                    for fd in child_fds:
                        os.close(fd)
                # without preloading, the worker is a new Python that has to load torch first
                status = worker.read_status(START_SECONDS if setup["forks"] else LOAD_SECONDS)
                if "restrictions" not in status:
                    raise WorkerTrouble("grader", f"no worker could be started: {status}")
            except (OSError, WorkerTrouble) as error:
                worker.close()
                detail = getattr(error, "detail", f"the preloaded process has ended: {error}")
                raise WorkerTrouble("grader", detail) from error
        worker.restrictions, worker.missing = status["restrictions"], status["missing"]
        worker.cpu = status["cpu"]
        return worker

    def _connect_worker(self) -> tuple[Worker, list[int]]:
        """Make a worker's pipes; return the ``Worker`` with our ends, and the other ends."""
        group = None
        try:
            group = cgroups.Group(self._groups, self.limits) if self._groups else None
        except OSError as error:
            self._groups = {}
            self.events.append(f"no control group: {error}")
        fds, child_fds = {}, []
        for name, own_end in (("request", 1), ("reply", 0), ("output", 0)):
            pair = os.pipe()
            fds[name] = pair[own_end]
            child_fds.append(pair[1 - own_end])
            os.set_blocking(pair[own_end], False)
        status, child_status = socket.socketpair()
        status.setblocking(False)
        fds["status"] = status.fileno()
        worker = Worker(fds, status, self.limits, group, self._workers)
        return worker, [*child_fds, child_status.detach()]


def open_box(
    limits: Limits | None = None,
    *,
    allow_unsafe: bool = False,
    files: dict[str, str] | None = None,
    methods: tuple[str, ...] | None = None,
) -> Box:
    """Open the strongest box of this machine.

    Args:
        limits: of each worker; default: ``Limits()``.
        allow_unsafe: whether a box of level ``none`` may be opened.
        files: the package's files in the box, path -> text; default ``package_view.base_files()``.
        methods: the methods to try, in order; default: those of this platform.

    Raises:
        IsolationError: no box can be opened; the message has the remedy.
    """
    if files is None:
        from vitedu.grading.box import package_view

        files = package_view.base_files()
    best: Box | None = None
    problems = []
    for method in methods or available_methods():
        try:
            box = Box(method, limits or Limits(), files)
        except IsolationError as error:
            problems.append(f"{method}: {error}")
            continue
        if best is None or severity(box.isolation) < severity(best.isolation):
            best, box = box, best
        if box is not None:
            problems.append(f"{box.method}: {box.level}")
            box.close()
        if best.level == "full":
            break
    if best is not None:
        best.events += problems
        if best.level != "none" or allow_unsafe:
            return best
        for name, why in best.isolation.breaches.items():
            problems.append(f"{best.method}: {BREACHES[name]} ({why})")
        best.close()
    problem_list = "\n  ".join(problems)
    raise IsolationError(
        f"this machine isolates no answer well enough:\n  {problem_list}\n{remedy()}\n"
        "To grade all the same notebooks that you trust: --allow-unsafe."
    )


def write_view(folder: Path, files: dict[str, str]) -> None:
    """Write the package's files for the box into a folder, readable by everyone."""
    names = [f"grading/box/{name}.py" for name in BOX_MODULES]
    texts = {**files, **{f"vitedu/{name}": (PACKAGE / name).read_text("utf-8") for name in names}}
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def remove_stale_folders(folder: Path) -> None:
    """Remove the folders of graders that were killed."""
    for box_folder in folder.glob("vitedu-box-*-*"):
        if not pid_lives(int(box_folder.name.split("-")[2])):
            shutil.rmtree(box_folder, ignore_errors=True)


def pid_lives(pid: int) -> bool:
    """Tell whether a process with this number exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
