"""The canary: at the start it tries in a real worker what a hostile answer would try.

Role: ``main``, which the fork server runs in the box instead of a worker. It reports what it
could do, with evidence; ``levels`` turns that into the level. A successful try does no damage:
files of the grader stay as they are, those made to be tried are worthless, and signals have number
0. Standard library only.
"""

import array
import ctypes
import errno
import fcntl
import json
import mmap
import os
import resource
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator

from vitedu.grading.box import linux, seccomp
from vitedu.grading.box.limits import MB

REFUSALS = (errno.EPERM, errno.EACCES, errno.ENOSYS)
UNSAFE = {"fork", "vfork", "vhangup"}  # calls that do something whatever their arguments are
GET_FLAGS, SET_FLAGS = 0x80086601, 0x40086602  # attributes of a file, such as "cannot be changed"
LEASE, GROWS_DOWN, NAMELESS = 1024, 0x100, 0x410001
THREAD, STACK = 0x50F00, 16384  # what a thread shares with its process; bytes of its stack
NUM_CHILDREN = 64
TRIED: list[str] = []
KEPT: dict[str, object] = {}  # memory that threads use

Tries = Iterator[tuple]  # what is tried, an action, its arguments


def main(requests: int, replies: int) -> None:
    """Read what to try and reply with what worked; then try to take too much memory, and reply."""
    length = int.from_bytes(os.read(requests, 8), "little")
    plan = json.loads(os.read(requests, length))
    results = {"needs": ", ".join(path for path in plan["needed"] if not works(path, read, path))}
    for name, list_tries in TRIES.items():
        results[name] = ", ".join(
            [what for what, *action in list_tries(plan) if works(what, *action)][:8]
        )
    results["kernel"] = ", ".join(find_open_calls()[:8])
    results["threads"] = start_threads(plan["many"])
    results["count"] = len(TRIED)
    send_reply(replies, results)
    os.read(requests, 1)
    send_reply(replies, {"memory": take_memory(plan["memory_mb"])})


def works(what: str, action: Callable, *arguments) -> bool:
    """Try an action; tell whether it was possible."""
    TRIED.append(what)
    try:
        action(*arguments)
    except (OSError, ValueError, AttributeError, RuntimeError):
        return False
    return True


def send_reply(fd: int, data: dict) -> None:
    """Send one frame."""
    text = json.dumps(data).encode()
    os.write(fd, len(text).to_bytes(8, "little") + text)


# --- files ----------------------------------------------------------------------------------------


def read_files(plan: dict) -> Tries:
    """Read files of the grader and of its process, and list its folders."""
    process = f"/proc/{plan['parent']}"
    names = [f"{process}/{name}" for name in ("environ", "maps", "mem", "cmdline")]
    for path in (*names, *plan["files"], "/etc/passwd", "/proc/self/maps"):
        yield path, read, path
    for name in ("exe", "cwd", "root"):
        yield f"{process}/{name}", os.readlink, f"{process}/{name}"
    for path in (*plan["folders"], "/", "/proc"):
        yield f"list of {path}", os.listdir, path


def read_references(plan: dict) -> Tries:
    """Read the references."""
    for path in plan["references"]:
        yield path, read, path


def change_files(plan: dict) -> Tries:
    """Make, change and remove files outside; what is not worthless is set to what it is."""
    name = f"vitedu-canary-{os.getpid()}"
    for folder in (*plan["folders"], "/", "/dev/shm", "/var/tmp", *sys.path):
        yield folder, make_file, os.path.join(folder, name)
    worthless = [*plan["files"], plan["decoy"]]
    for path in (*worthless, *plan["needed"]):
        for change in (open_to_write, set_length, set_mode, set_times, set_attributes, take_lease):
            yield f"{change.__name__} {path}", change, path
    for path in worthless:
        other, nowhere = f"{path}-{name}", os.path.join(os.path.dirname(path), name)
        yield f"truncated {path}", open_to_write, path, os.O_RDONLY | os.O_TRUNC
        yield f"owner of {path}", os.chown, path, os.getuid(), os.getgid()
        yield f"extended attribute of {path}", os.setxattr, path, "user.a", b""
        yield f"folder {other}", os.mkdir, other
        yield f"no folder {other}", os.rmdir, other
        yield f"symbolic link {other}", os.symlink, "/", other
        yield f"no link {other}", os.unlink, other
        yield f"link {other}", os.link, path, other
        yield f"new name {nowhere}", os.rename, other, nowhere
        yield f"without {nowhere}", os.unlink, nowhere


def fill_disk(plan: dict) -> Tries:
    """Make files where the worker runs; one is enough, because nothing counts them."""
    for folder in dict.fromkeys([".", *map(os.environ.get, ("TMPDIR", "HOME"))]):
        if folder:
            yield f"a file in {folder}", make_file, os.path.join(folder, "filler")
            yield f"a file without a name in {folder}", open_to_write, folder, NAMELESS
            yield f"a folder in {folder}", make_folder, os.path.join(folder, "filler")


def read(path: str) -> None:
    """Read the beginning of a file."""
    with open(path, "rb") as file:
        file.read(1)


def make_file(path: str) -> None:
    """Make a file, and remove it again."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    os.unlink(path)


def make_folder(path: str) -> None:
    """Make a folder, and remove it again."""
    os.mkdir(path)
    os.rmdir(path)


def open_to_write(path: str, flags: int = os.O_WRONLY) -> None:
    """Open a file and write nothing."""
    os.close(os.open(path, flags, 0o600))


def set_length(path: str) -> None:
    """Cut a file where it ends."""
    os.truncate(path, os.stat(path).st_size)


def set_mode(path: str) -> None:
    """Set the mode of a file to what it is."""
    os.chmod(path, stat.S_IMODE(os.stat(path).st_mode))


def set_times(path: str) -> None:
    """Set the times of a file to what they are."""
    now = os.stat(path)
    os.utime(path, ns=(now.st_atime_ns, now.st_mtime_ns))


def set_attributes(path: str) -> None:
    """Set the attributes of a file, such as that it cannot be changed, to what they are."""
    flags = array.array("l", [0])
    with open(path, "rb") as file:
        fcntl.ioctl(file, GET_FLAGS, flags)
        fcntl.ioctl(file, SET_FLAGS, flags)


def take_lease(path: str) -> None:
    """Let others wait until they may open a file for writing."""
    with open(path, "rb") as file:
        fcntl.fcntl(file, LEASE, fcntl.F_RDLCK)


# --- the network and other processes --------------------------------------------------------------


def reach_network(plan: dict) -> Tries:
    """Reach the grader's port and its socket, and open sockets of other kinds."""
    yield "a port of the grader", connect, "AF_INET", ("127.0.0.1", plan["port"])
    yield "a socket of the grader", connect, "AF_UNIX", plan["socket"].encode()
    for family in ("AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            yield f"a socket {family}", open_socket, family, kind
    yield "a pair of sockets", lambda: [end.close() for end in socket.socketpair()]


def connect(family: str, address: object) -> None:
    """Connect to a socket of the grader."""
    with socket.socket(getattr(socket, family)) as end:
        end.settimeout(2)
        end.connect(address)


def open_socket(family: str, kind: int) -> None:
    """Open a socket."""
    socket.socket(getattr(socket, family), kind).close()


def reach_processes(plan: dict) -> Tries:
    """Reach the grader's process, the parent of this one, and all."""
    others = sorted({plan["parent"], os.getppid()} - {os.getpid(), 0})
    for pid in (*others, -1):
        yield f"signal to {pid}", os.kill, pid, 0
    for pid in others:
        yield f"memory of {pid}", read_memory, pid
        yield f"limits of {pid}", lambda pid=pid: resource.prlimit(pid, resource.RLIMIT_NOFILE)
        yield f"priority of {pid}", set_priority, pid
        yield f"cores of {pid}", set_cores, pid
        yield f"handle of {pid}", open_handle, pid


def read_memory(pid: int) -> None:
    """Read a byte of a process at a place where nothing is; only that may be the error."""
    place = ctypes.create_string_buffer(1)
    here, there = (array.array("L", [at, 1]).tobytes() for at in (ctypes.addressof(place), 1))
    try:
        linux.system_call(find_number("process_vm_readv"), pid, here, 1, there, 1, 0)
    except OSError as error:
        if error.errno != errno.EFAULT:
            raise


def set_priority(pid: int) -> None:
    """Set the priority of a process to what it is."""
    os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid))


def set_cores(pid: int) -> None:
    """Set the cores of a process to what they are."""
    os.sched_setaffinity(pid, os.sched_getaffinity(pid))


def open_handle(pid: int) -> None:
    """Open a handle of a process."""
    os.close(os.pidfd_open(pid))


def start_children(plan: dict) -> Tries:
    """Start processes that try to outlive this one; they keep its pipes open."""
    for _ in range(NUM_CHILDREN):
        yield "a process", fork
    words = [sys.executable, "-c", "0"]
    yield "another program", os.posix_spawn, words[0], words, {}


def fork() -> None:
    """Start a process in a session of its own."""
    if not os.fork():
        os.setsid()
        signal.alarm(20)
        time.sleep(20)
        os._exit(0)


TRIES: dict[str, Callable[[dict], Tries]] = {
    "files": read_files,
    "references": read_references,
    "network": reach_network,
    "write": change_files,
    "processes": reach_processes,
    "children": start_children,
    "disk": fill_disk,
}


# --- the kernel, threads and memory ---------------------------------------------------------------


def find_number(name: str) -> int | None:
    """Return the number of a call on this machine, None if it has no such call.

    Raises:
        OSError: the table of calls has no column for this machine.
    """
    machine = os.uname().machine
    if sys.platform != "linux" or machine not in seccomp.MACHINES:
        raise OSError(errno.ENOSYS, f"the calls of {sys.platform} on {machine} are not known")
    decided = {name: numbers for name, (numbers, *_) in seccomp.DECIDED.items()}
    table = {**seccomp.REFUSED_CALLS, **seccomp.OLD_FORM, **decided}
    return table[name][seccomp.MACHINES[machine][0]]


def find_open_calls() -> list[str]:
    """Make every refused call, with arguments that are never right; list those that get that far.

    A refused call fails as forbidden, another one because its arguments are wrong.
    """
    calls = [(name, name, *[-1] * 6) for name in (*seccomp.REFUSED_CALLS, *seccomp.OLD_FORM)]
    calls += [
        ("io_uring", "io_uring_setup", 0, 0),
        ("a user namespace", "unshare", 1 << 28),
        ("a keyring", "keyctl", 0, -3, 1),
        ("signals to the parent", "fcntl", 0, 8, os.getppid()),
        ("life after the parent", "prctl", 1, 0),
    ]
    try:
        return [
            what for what, name, *words in calls if name not in UNSAFE and is_open(name, *words)
        ]
    except OSError as error:
        return [str(error)]


def is_open(name: str, *words: int) -> bool:
    """Make a call; tell whether the kernel looked at its arguments."""
    number = find_number(name)
    if number is None:
        return False
    TRIED.append(name)
    try:
        linux.system_call(number, *words)
    except OSError as error:
        return error.errno not in REFUSALS
    return True


def start_threads(many: int) -> str:
    """Start threads that wait, each with the least memory, until no more start."""
    TRIED.append("threads")
    libc = ctypes.CDLL(None)
    stack = KEPT["stack"] = ctypes.create_string_buffer(STACK * (many + 1))
    for number in range(many):
        end = ctypes.addressof(stack) + STACK * (number + 1) & -16
        if (
            not hasattr(libc, "clone")
            or libc.clone(libc.pause, ctypes.c_void_p(end), THREAD, 0) < 0
        ):
            return ""
    return f"{many} threads"


def take_memory(memory_mb: int) -> str:
    """Take and touch memory: a page that no limit counts, then more than allowed."""
    size = (memory_mb + 512) * MB
    kinds = [(mmap.MAP_SHARED, mmap.PAGESIZE), (mmap.MAP_PRIVATE | GROWS_DOWN, mmap.PAGESIZE)]
    for kind, num_bytes in (*kinds, (mmap.MAP_SHARED, size), (mmap.MAP_PRIVATE, size)):
        try:
            with mmap.mmap(-1, num_bytes, kind | mmap.MAP_ANONYMOUS) as block:
                for start in range(0, num_bytes, mmap.PAGESIZE):
                    block[start] = 1
        except (OSError, ValueError, MemoryError):
            continue
        return f"{num_bytes} bytes, which no limit counts"
    return ""
