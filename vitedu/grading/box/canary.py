"""The canary: at the start it tries in a real worker what a hostile answer would try.

Role: ``main``, which the preloaded process runs in the box instead of a worker. It reports what it
could do, with evidence; ``levels`` turns that into the level. A successful try does no damage:
files outside are empty and removed again, and signals have number 0. Standard library only.
"""

import json
import mmap
import os
import signal
import socket
import stat
import sys
import time

from vitedu.grading.box.limits import MB


def main(requests: int, replies: int) -> None:
    """Read what to try and reply with what worked; then try to take too much memory, and reply."""
    length = int.from_bytes(os.read(requests, 8), "little")
    plan = json.loads(os.read(requests, length))
    tries = {
        "needs": lambda: unreadable(plan["needed"]),
        "files": lambda: readable(plan["files"]),
        "references": lambda: readable(plan["references"]),
        "network": lambda: connect(plan["port"]),
        "write": lambda: writable(plan["folders"]) or changeable(plan["files"]),
        "signal": lambda: signalled(plan["parent"]),
        "disk": lambda: filled(plan["tmp_mb"]),
        "processes": lambda: forked(64),
    }
    found = {}
    for name, attempt in tries.items():
        try:
            found[name] = attempt()
        except (OSError, ValueError, AttributeError):
            found[name] = ""
    reply(replies, found)
    os.read(requests, 1)
    reply(replies, {"memory": allocated(plan["memory_mb"])})


def reply(fd: int, data: dict) -> None:
    """Send one frame."""
    text = json.dumps(data).encode()
    os.write(fd, len(text).to_bytes(8, "little") + text)


def readable(paths: list[str]) -> str:
    """List the files that can be read."""
    could = []
    for path in paths:
        try:
            with open(path, "rb") as file:
                file.read(1)
        except OSError:
            continue
        could.append(path)
    return ", ".join(could)


def unreadable(paths: list[str]) -> str:
    """List the files that cannot be read."""
    could = readable(paths).split(", ")
    return ", ".join(path for path in paths if path not in could)


def connect(port: int) -> str:
    """Connect to the parent's port."""
    with socket.create_connection(("127.0.0.1", port), timeout=2):
        return f"port {port} of the grader"


def writable(folders: list[str]) -> str:
    """List the folders in which a file can be created."""
    could = []
    name = f"vitedu-canary-{os.getpid()}"
    for folder in [*folders, "/", "/dev/shm", "/var/tmp", *sys.path]:
        path = os.path.join(folder, name)
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError:
            continue
        could.append(folder)
        try:
            os.unlink(path)
        except OSError:
            pass
    return ", ".join(could)


def changeable(paths: list[str]) -> str:
    """List the files whose mode or times can be set; each is set to what it is."""
    could = []
    for path in paths:
        for change in (same_mode, same_times):
            try:
                change(path)
            except OSError:
                continue
            could.append(f"{change.__name__.removeprefix('same_')} of {path}")
    return ", ".join(could)


def same_mode(path: str) -> None:
    """Set the mode of a file to what it is."""
    os.chmod(path, stat.S_IMODE(os.stat(path).st_mode))


def same_times(path: str) -> None:
    """Set the times of a file to what they are."""
    now = os.stat(path)
    os.utime(path, ns=(now.st_atime_ns, now.st_mtime_ns))


def signalled(parent: int) -> str:
    """List the processes that can be signalled: the grader, the parent of this one, all."""
    could = []
    others = {parent, os.getppid(), -1} - {os.getpid(), 0}
    for pid in sorted(others):
        try:
            os.kill(pid, 0)
        except OSError:
            continue
        could.append("all others" if pid == -1 else f"process {pid}")
    return ", ".join(could)


def filled(tmp_mb: int) -> str:
    """Write more temporary files than allowed."""
    block, written = bytes(MB), 0
    names = []
    try:
        for number in range(3):
            names.append(f"filler-{number}")
            with open(names[-1], "wb", buffering=0) as file:
                for _ in range(tmp_mb // 2 + 1):
                    written += file.write(block)
    except OSError:
        pass
    for name in names:
        os.unlink(name)
    return f"{written // MB} MB of {tmp_mb}" if written > tmp_mb * MB else ""


def forked(count: int) -> str:
    """Start processes that try to outlive this one; they keep its pipes open."""
    made = 0
    for _ in range(count):
        try:
            child = os.fork()
        except OSError:
            break
        if not child:
            os.setsid()
            signal.alarm(20)
            time.sleep(20)
            os._exit(0)
        made += 1
    return str(made) if made else ""


def allocated(memory_mb: int) -> str:
    """Take and touch more memory than allowed: shared with other processes, then alone."""
    size = (memory_mb + 512) * MB
    for kind in (mmap.MAP_SHARED, mmap.MAP_PRIVATE):
        try:
            with mmap.mmap(-1, size, kind | mmap.MAP_ANONYMOUS) as block:
                for start in range(0, size, mmap.PAGESIZE):
                    block[start] = 1
        except (OSError, ValueError, MemoryError):
            continue
        return f"{size // MB} MB"
    return ""
