"""The process that has torch loaded and forks a worker for each request.

Role: ``serve``, the loop of that process, and ``become_worker``, what a forked child gives up before the first line of an
answer runs. It holds no expected value, no reference and no other student's answer, never reads what
an answer writes, and ends when its control socket does. It runs inside the box: standard library, torch and numpy alone.

Conversation, one JSON line each way at a time: the parent sends the set-up and gets ``hello``; then it sends a task with
the worker's descriptors (requests, replies, output, status, and files of control groups). On the status socket
it then reads what the worker gave up (``parts``) or why it did not start, and last how it ended. A byte on that socket, or its end, kills the worker.

The order in ``become_worker`` matters: a mount needs a capability, leaving the user needs another, the control
group needs /proc, and the filter of system calls comes last since it refuses most of the others.
"""

import gc
import importlib
import json
import os
import resource
import select
import shutil
import signal
import socket
import sys
import traceback
from pathlib import Path

from vitedu.grading import linux, seccomp
from vitedu.grading.limits import MB, OUT_OF_MEMORY, Limits

LONGEST_LINE = 1 << 16
TASKS = {"worker": "vitedu.grading.worker", "canary": "vitedu.grading.canary"}


def serve(control_fd: str) -> None:
    """Load, say hello, and fork workers until the parent closes the control socket."""
    control = socket.socket(fileno=int(control_fd))
    if sys.platform == "linux":
        linux.prctl(linux.DEATH_SIGNAL, signal.SIGKILL)
    setup, _ = receive(control)
    if setup is None:
        return
    if setup["shared"]:
        linux.unshare(linux.NEW_MOUNTS | linux.NEW_NETWORK | linux.NEW_IPC | linux.NEW_UTS)
        linux.mount("none", "/", "", linux.RECURSIVE | linux.PRIVATE)
    hello = load() if setup["forks"] else {}
    send(control, {"hello": hello})
    Nursery(setup, control).run()


def load() -> dict:
    """Import what every worker needs, and say which Python and which torch it was."""
    import numpy
    import torch

    for name in TASKS.values():
        importlib.import_module(name)
    importlib.import_module("numpy.random")
    torch.set_num_threads(1)
    torch.ones(2, 2) @ torch.ones(2, 2)  # the first product of a process sets up its library
    gc.collect()
    gc.freeze()  # a collection in a worker then touches none of these pages
    tasks = Path("/proc/self/task")
    return {
        "prefix": sys.base_prefix,
        "python": list(sys.version_info[:3]),
        "torch": torch.__version__,
        "torch_file": torch.__file__,
        "numpy": numpy.__version__,
        "threads": len(list(tasks.iterdir())) if tasks.exists() else None,
    }


class Nursery:
    """The workers that live, by process id, each with its status socket and its folder."""

    def __init__(self, setup: dict, control: socket.socket):
        self.setup, self.control = setup, control
        self.living: dict[int, tuple[socket.socket, Path]] = {}
        self.born = 0

    def run(self) -> None:
        """Serve requests, kills and deaths until the control socket ends; then kill the rest."""
        bell, ring = os.pipe()
        for fd in (bell, ring):
            os.set_blocking(fd, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
        while True:
            poll = select.poll()
            by_fd = {status.fileno(): pid for pid, (status, _) in self.living.items()}
            for fd in (self.control.fileno(), bell, *by_fd):
                poll.register(fd, select.POLLIN)
            for fd, _ in poll.poll():
                if fd == self.control.fileno():
                    message, fds = receive(self.control)
                    if message is None:
                        return self.end()
                    self.give_birth(message, fds)
                elif fd == bell:
                    os.read(bell, 4096)
                elif by_fd[fd] in self.living:
                    self.kill(by_fd[fd])
            self.reap()

    def give_birth(self, message: dict, fds: list[int]) -> None:
        """Start a worker on the descriptors of a request, and close them here."""
        self.born += 1
        number = message["number"]
        status = socket.socket(fileno=fds[3])
        folder = Path(self.setup["tmp"])
        if not self.setup["mounts"]:  # no file system of its own: at least a folder
            folder = folder / f"worker-{os.getpid()}-{self.born}"
            folder.mkdir(mode=0o700)
        try:
            pid = self.start(message["task"], number, fds, folder)
        except OSError as error:
            send(status, {"failed": str(error)})
            status.close()
        else:
            self.living[pid] = (status, folder)
        for fd in (*fds[:3], *fds[4:]):
            os.close(fd)

    def start(self, task: str, number: int, fds: list[int], folder: Path) -> int:
        """Fork a worker, or where a loaded process can not fork safely, start a fresh Python."""
        own_pids = self.setup["own_pids"]
        pid = linux.fork_into_new_pids() if own_pids else os.fork()
        if pid:
            return pid
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            if self.setup["forks"]:
                become_worker(self.setup, task, number, fds, folder)
            for fd in fds:
                os.set_inheritable(fd, True)
            words = json.dumps([self.setup, task, number, fds, str(folder)])
            os.execv(self.setup["python"][0], [*self.setup["python"], "begin", words])
        except BaseException as error:  # nothing of an answer has run yet
            tell(fds[3], {"failed": f"{type(error).__name__}: {error}"})
        finally:
            os._exit(1)

    def kill(self, pid: int) -> None:
        """Kill a worker and the group of processes that it leads."""
        for kill in (os.killpg, os.kill):
            try:
                kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        self.reap(pid)

    def reap(self, pid: int = -1) -> None:
        """Tell the parent of each worker that has ended, how, and remove its folder.

        Args:
            pid: wait for this one; else take those that have ended already.
        """
        while self.living:
            try:
                ended, status, used = os.wait4(pid, 0 if pid > 0 else os.WNOHANG)
            except ChildProcessError:
                return
            if not ended:
                return
            if ended in self.living:
                line, folder = self.living.pop(ended)
                cpu = used.ru_utime + used.ru_stime
                send(line, {"ended": os.waitstatus_to_exitcode(status), "cpu": cpu})
                line.close()
                if not self.setup["mounts"]:
                    shutil.rmtree(folder, ignore_errors=True)
            if pid > 0:
                return

    def end(self) -> None:
        """Leave nobody behind."""
        for pid in list(self.living):
            self.kill(pid)


def begin(words: str) -> None:
    """Be the fresh Python that ``Nursery.start`` made."""
    setup, task, number, fds, folder = json.loads(words)
    load()
    become_worker(setup, task, number, fds, Path(folder))


def become_worker(setup: dict, task: str, number: int, fds: list[int], folder: Path) -> None:
    """Give up everything that an answer does not need, run the task, and end the process."""
    requests, replies, output, status, *groups = fds
    parts, missing = [], {}

    def attempt(name, action, *arguments):
        try:
            action(*arguments)
        except (OSError, AttributeError, ValueError) as error:
            missing[name] = str(error)
        else:
            parts.append(name)

    if setup["own_pids"]:
        parts.append("own process numbers")
    for group in groups:
        attempt("control group", os.write, group, b"0")
    wire_up(keep={requests, replies, status}, output=output)
    if sys.platform == "linux":
        attempt("dies first", Path("/proc/self/oom_score_adj").write_text, "1000")
    limits = Limits(**setup["limits"])
    held = limits.apply(own_user=bool(setup["uid"]))  # while /proc can be read
    parts.append("limits " + " ".join(sorted(held)))
    if setup["mounts"]:
        attempt("own files", own_files, str(folder), limits)
    if setup["uid"]:
        attempt("own user", change_user, setup["uid"] + number, folder)
    if sys.platform == "linux":
        attempt("no capabilities", linux.drop_capabilities)
        attempt("no new privileges", linux.prctl, linux.NO_NEW_PRIVILEGES, 1)
        attempt("not to be traced", linux.prctl, linux.DUMPABLE, 0)
        attempt("dies with its parent", linux.prctl, linux.DEATH_SIGNAL, signal.SIGKILL)
        attempt("landlock", confine, setup["readable"], folder)
    settle(folder)
    if sys.platform == "linux":
        attempt("seccomp", seccomp.install)
    module = importlib.import_module(TASKS[task])
    tell(status, {"parts": parts, "missing": missing})
    os.close(status)
    code = 1
    try:
        module.main(requests, replies)
        code = 0
    except MemoryError:
        code = OUT_OF_MEMORY
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code & 0xFF)


def wire_up(*, keep: set[int], output: int) -> None:
    """Point stdin to nothing and both outputs to the pipe; close what belongs to others."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    start = 3
    for fd in sorted(keep):
        os.closerange(start, fd)
        start = fd + 1
    os.closerange(start, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def own_files(folder: str, limits: Limits) -> None:
    """Mount an empty file system over the temporary folder, and nothing over /proc."""
    linux.unshare(linux.NEW_MOUNTS | linux.NEW_IPC)
    linux.mount("none", "/", "", linux.RECURSIVE | linux.PRIVATE)
    safe = linux.NO_SUID | linux.NO_DEVICES
    size = f"size={limits.tmp_mb * MB},nr_inodes=1024,mode=0700"
    linux.mount("tmpfs", folder, "tmpfs", safe, size)
    linux.mount("tmpfs", "/proc", "tmpfs", safe | linux.READ_ONLY, "size=4096")


def change_user(uid: int, folder: Path) -> None:
    """Become a user that owns nothing but the temporary folder."""
    os.chown(folder, uid, uid)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def confine(readable: list[str], folder: Path) -> None:
    """Let Landlock refuse all files but the libraries and the temporary folder."""
    rules = linux.Landlock()
    for path in readable:
        rules.read(path)
    for device in ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"):
        rules.allow(device, linux.ON_FILES & ~1)
    rules.allow(str(folder), linux.OLDEST & ~1 | linux.TRUNCATE)
    rules.enforce()


def settle(folder: Path) -> None:
    """Move into the temporary folder, and draw fresh random numbers.

    All workers are copies of one process: without new seeds, each would draw the same numbers, and
    an answer that is right by luck would be right three times.
    """
    import random

    import numpy
    import torch

    os.chdir(folder)
    os.umask(0o077)
    if hasattr(os, "setsid") and os.getsid(0) != os.getpid():
        os.setsid()
    for name in ("TMPDIR", "HOME", "MPLCONFIGDIR"):
        os.environ[name] = str(folder)
    seed = int.from_bytes(os.urandom(4), "little")
    random.seed(seed)
    numpy.random.seed(seed)  # noqa: NPY002 - the generator that an answer may use
    torch.manual_seed(seed)


# --- the line to the parent ------------------------------------------------------------------------


def send(line: socket.socket, message: dict) -> None:
    """Send one line; a parent that has gone needs none."""
    try:
        line.sendall(json.dumps(message).encode() + b"\n")
    except OSError:
        pass


def tell(status: int, message: dict) -> None:
    """Write one line to a socket; the filter of system calls leaves only ``write`` for that."""
    os.write(status, json.dumps(message).encode() + b"\n")


def receive(line: socket.socket) -> tuple[dict | None, list[int]]:
    """Receive one line and the descriptors that came with it; None at the end."""
    text, fds = b"", []
    while not text.endswith(b"\n"):
        try:
            piece, new, _, _ = socket.recv_fds(line, LONGEST_LINE, 16)
        except OSError:
            piece, new = b"", []
        fds += new
        text += piece
        if not piece:
            return None, fds
    return json.loads(text), fds
