"""The canary: at the start it tries in a real worker what a hostile answer would try.

Role: ``main``, which the fork server runs in the box instead of a worker. It reports what it
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
    attempts = {
        "needs": lambda: find_unreadable(plan["needed"]),
        "files": lambda: find_readable(plan["files"]),
        "references": lambda: find_readable(plan["references"]),
        "network": lambda: connect_port(plan["port"]),
        "write": lambda: find_writable(plan["folders"]) or find_changeable(plan["files"]),
        "signal": lambda: find_signal_targets(plan["parent"]),
        "disk": lambda: fill_disk(plan["tmp_mb"]),
        "processes": lambda: fork_many(64),
    }
    results = {}
    for name, attempt in attempts.items():
        try:
            results[name] = attempt()
        except (OSError, ValueError, AttributeError):
            results[name] = ""
    send_reply(replies, results)
    os.read(requests, 1)
    send_reply(replies, {"memory": allocate_memory(plan["memory_mb"])})


def send_reply(fd: int, data: dict) -> None:
    """Send one frame."""
    text = json.dumps(data).encode()
    os.write(fd, len(text).to_bytes(8, "little") + text)


def find_readable(paths: list[str]) -> str:
    """List the files that can be read."""
    readable = []
    for path in paths:
        try:
            with open(path, "rb") as file:
                file.read(1)
        except OSError:
            continue
        readable.append(path)
    return ", ".join(readable)


def find_unreadable(paths: list[str]) -> str:
    """List the files that cannot be read."""
    readable = find_readable(paths).split(", ")
    return ", ".join(path for path in paths if path not in readable)


def connect_port(port: int) -> str:
    """Connect to the parent's port."""
    with socket.create_connection(("127.0.0.1", port), timeout=2):
        return f"port {port} of the grader"


def find_writable(folders: list[str]) -> str:
    """List the folders in which a file can be created."""
    writable = []
    name = f"vitedu-canary-{os.getpid()}"
    for folder in [*folders, "/", "/dev/shm", "/var/tmp", *sys.path]:
        path = os.path.join(folder, name)
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError:
            continue
        writable.append(folder)
        try:
            os.unlink(path)
        except OSError:
            pass
    return ", ".join(writable)


def find_changeable(paths: list[str]) -> str:
    """List the files whose mode or times can be set; each is set to what it is."""
    changeable = []
    for path in paths:
        for change in (set_same_mode, set_same_times):
            try:
                change(path)
            except OSError:
                continue
            changeable.append(f"{change.__name__.removeprefix('set_same_')} of {path}")
    return ", ".join(changeable)


def set_same_mode(path: str) -> None:
    """Set the mode of a file to what it is."""
    os.chmod(path, stat.S_IMODE(os.stat(path).st_mode))


def set_same_times(path: str) -> None:
    """Set the times of a file to what they are."""
    now = os.stat(path)
    os.utime(path, ns=(now.st_atime_ns, now.st_mtime_ns))


def find_signal_targets(parent: int) -> str:
    """List the processes that can be signalled: the grader, the parent of this one, all."""
    targets = []
    others = {parent, os.getppid(), -1} - {os.getpid(), 0}
    for pid in sorted(others):
        try:
            os.kill(pid, 0)
        except OSError:
            continue
        targets.append("all others" if pid == -1 else f"process {pid}")
    return ", ".join(targets)


def fill_disk(tmp_mb: int) -> str:
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


def fork_many(count: int) -> str:
    """Start processes that try to outlive this one; they keep its pipes open."""
    started = 0
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
        started += 1
    return str(started) if started else ""


def allocate_memory(memory_mb: int) -> str:
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
