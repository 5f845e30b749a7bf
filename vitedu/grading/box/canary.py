"""The canary: at the start it tries in a real worker what a hostile answer would try.

Role: ``main``, which the fork server runs in the box instead of a worker. It reports what it
could do, with evidence; ``isolation`` turns that into the level. A successful try does no damage:
what the grader needs is set to what it is, the rest is worthless, and signals have number 0.
Standard library only.
"""

import array
import ctypes
import errno
import fcntl
import json
import mmap
import os
import resource  # noqa: F401 - for TRIES, as stat
import socket
import stat  # noqa: F401
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vitedu.grading.box import linux, seccomp
from vitedu.grading.box.limits import MB

_TRIES = Path(__file__).with_name("tries.txt").read_text("utf-8").splitlines()
TRIES = [(*head.split(", "), code) for head, _, code in (row.partition(": ") for row in _TRIES[2:])]
REFUSALS = (errno.EPERM, errno.EACCES, errno.ENOSYS)
# calls of the table that do something whatever their arguments are
UNSAFE_CALLS = {"fork", "vfork", "vhangup", "sync"}
# what a refused or decided call would do -> its name and arguments
FORBIDDEN = {
    "io_uring": ("io_uring_setup", 0, 0),
    "a user namespace": ("unshare", 1 << 28),
    "a keyring": ("keyctl", 0, -3, 1),
    "shared memory": ("shmget", 0, 0, 0),
    "signals to the grader": ("fcntl", 0, 8, os.getppid()),
    "life after the parent": ("prctl", 1, 0),
}
GET_ATTRIBUTES, SET_ATTRIBUTES, LEASE, GROWS_DOWN = 0x80086601, 0x40086602, 1024, 0x100
THREAD, STACK = 0x50F00, 16384  # what a thread shares with its process; bytes of its stack
KEPT: dict[str, Any] = {}  # memory that threads use

close = os.close


def main(requests: int, replies: int) -> None:
    """Read what to try and reply with what worked; then try to take too much memory, and reply."""
    length = int.from_bytes(os.read(requests, 8), "little")
    plan = json.loads(os.read(requests, length))
    targets = list_targets(plan)
    results: dict[str, list[str]] = {}
    count = 0
    for name, target, text in TRIES:
        code = compile(text, text, "eval")
        for it in targets[target]:
            count += 1
            if works(eval, code, {**globals(), "it": it, "new": f"{it}-new"}):
                results.setdefault(name, []).append(f"{text}, it = {it}")
    results["needs"] = [path for path in targets["needed"] if not works(read, path)]
    open_calls, num_calls = find_open_calls()
    results |= {"kernel": open_calls, "threads": start_threads(plan["many"])}
    reply = {name: "; ".join(found[: plan["most"]]) for name, found in results.items()}
    os.write(replies, write_frame({**reply, "count": count + num_calls + 1}))
    os.read(requests, 1)
    os.write(replies, write_frame({"memory": take_memory(plan["memory_mb"])}))


def list_targets(plan: dict) -> dict[str, list]:
    """Give what each try is made with: the grader's part, and what is tried everywhere."""
    others = sorted({plan["parent"], os.getppid()} - {os.getpid(), 0})
    return plan["targets"] | {
        "once": [0],
        "families": ["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"],
        "places": ["/dev/shm", "/var/tmp", *sys.path],
        "others": others,
        "processes": [*others, -1],
        "children": list(range(64)),
        "own": [".", os.environ.get("TMPDIR", "."), os.environ.get("HOME", ".")],
    }


def works(action: Callable, *arguments: Any) -> bool:
    """Try an action; tell whether it was possible."""
    try:
        action(*arguments)
    except (OSError, ValueError, AttributeError):
        return False
    return True


def write_frame(data: dict) -> bytes:
    """Make a frame of plain data."""
    text = json.dumps(data).encode()
    return len(text).to_bytes(8, "little") + text


def read(path: str) -> None:
    """Read the beginning of a file."""
    with open(path, "rb") as file:
        file.read(1)


def make(path: str) -> None:
    """Make a file, and remove it again."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    os.unlink(path)


def set_attributes(path: str) -> None:
    """Set the attributes of a file, such as that it cannot be changed, to what they are."""
    flags = array.array("l", [0])
    with open(path, "rb") as file:
        fcntl.ioctl(file, GET_ATTRIBUTES, flags)
        fcntl.ioctl(file, SET_ATTRIBUTES, flags)


def take_lease(path: str) -> None:
    """Let others wait until they may open a file for writing."""
    with open(path, "rb") as file:
        fcntl.fcntl(file, LEASE, fcntl.F_RDLCK)


def open_socket(family: str, kind: int = socket.SOCK_STREAM) -> socket.socket:
    """Open a socket."""
    opened = socket.socket(getattr(socket, family), kind)
    opened.settimeout(2)
    return opened


def read_memory(pid: int) -> None:
    """Read a byte of a process at a place where nothing is; only that may be the error."""
    place = ctypes.create_string_buffer(1)
    here, there = (array.array("L", [at, 1]).tobytes() for at in (ctypes.addressof(place), 1))
    try:
        linux.system_call(find_number("process_vm_readv"), pid, here, 1, there, 1, 0)
    except OSError as error:
        if error.errno != errno.EFAULT:
            raise


def fork() -> None:
    """Start a process, which could outlive this one."""
    if not os.fork():
        os._exit(0)


def find_number(name: str) -> Any:
    """Return the number of a call on this machine, None if it has no such call."""
    machine = os.uname().machine
    if machine not in seccomp.MACHINES:
        raise OSError(errno.ENOSYS, f"the calls of {machine} are not known")
    decided = {name: numbers for name, (numbers, *_) in seccomp.DECIDED.items()}
    table = {**seccomp.REFUSED_CALLS, **seccomp.OLD_FORM, **decided}
    return table[name][seccomp.MACHINES[machine][0]]


def find_open_calls() -> tuple[list[str], int]:
    """Make every refused call, with arguments that are never right; list those that get that far.

    A refused call fails as forbidden, another one because its arguments are wrong.

    Returns:
        (names of the open ones, how many were made)
    """
    names = {*seccomp.REFUSED_CALLS, *seccomp.OLD_FORM} - UNSAFE_CALLS
    calls: dict[str, tuple[Any, ...]] = {**{name: (name, *[-1] * 6) for name in names}, **FORBIDDEN}
    try:
        numbers = {what: find_number(name) for what, (name, *_) in calls.items()}
    except OSError as error:
        return [str(error)], 0
    known = [what for what, number in numbers.items() if number is not None]
    return [what for what in known if is_open(numbers[what], *calls[what][1:])], len(known)


def is_open(number: int, *words: int) -> bool:
    """Make a call; tell whether the kernel looked at its arguments."""
    try:
        linux.system_call(number, *words)
    except OSError as error:
        return error.errno not in REFUSALS
    return True


def start_threads(many: int) -> list[str]:
    """Start threads that wait, each with the least memory, until no more start."""
    libc = ctypes.CDLL(None)
    stack = KEPT["stack"] = ctypes.create_string_buffer(STACK * (many + 1))
    for number in range(many):
        end = ctypes.addressof(stack) + STACK * (number + 1) & -16
        if libc.clone(libc.pause, ctypes.c_void_p(end), THREAD, 0) < 0:
            return []
    return [f"{many} threads"]


def take_memory(memory_mb: int) -> str:
    """Take and touch memory: a page that no limit counts, then more than allowed."""
    size, page = (memory_mb + 512) * MB, mmap.PAGESIZE
    shared, private = (kind | mmap.MAP_ANONYMOUS for kind in (mmap.MAP_SHARED, mmap.MAP_PRIVATE))
    kinds = [(shared, page), (private | GROWS_DOWN, page), (shared, size), (private, size)]
    for kind, num_bytes in kinds:
        try:
            with mmap.mmap(-1, num_bytes, kind) as block:
                for start in range(0, num_bytes, page):
                    block[start] = 1
        except (OSError, ValueError, MemoryError):
            continue
        return f"{num_bytes} bytes, which no limit counts"
    return ""
