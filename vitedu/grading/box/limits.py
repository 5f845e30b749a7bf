"""What one worker may use: seconds, memory, bytes; as numbers, and as limits of its process.

Role: ``Limits``, and ``apply`` for the forked worker. Standard library alone, inside the box and outside. What the parent
measures itself (deadlines, reply and output lengths) is only named here.
"""

import math
import resource
import time
from dataclasses import dataclass

MB = 1 << 20
OUT_OF_MEMORY = 86  # exit status of a worker that could not go on for want of memory


@dataclass(frozen=True)
class Limits:
    """The limits of one worker, which answers for one exercise.

    Raises:
        ValueError: a limit is not positive.
    """

    load_seconds: float = 10.0  # wall clock until the answer's code has run once
    call_seconds: float = 20.0  # wall clock of one later request
    worker_seconds: float = 40.0  # wall clock of all requests to one worker together
    cpu_seconds: int = 60  # computing time of the worker in all, a net under the deadlines
    memory_mb: int = 1024  # address space beyond what the preloaded process has
    reply_mb: int = 8  # length of one reply, as long as a frame may be (``wire.MAX_FRAME``)
    output_kb: int = 8  # of prints that are kept; the rest is read and dropped
    tmp_mb: int = 32  # of files, in a folder of its own that ends with it
    processes: int = 32  # threads; processes are refused where they can be
    files: int = 1024  # open at a time

    def __post_init__(self):
        for name, value in vars(self).items():
            if not value > 0:
                raise ValueError(f"{name} must be positive (got {value}).")

    def apply(self, *, own_user: bool) -> list[str]:
        """Set the limits of this process; give the names of those that this platform takes.

        Memory counts from what is mapped now: torch alone maps gigabytes of library. The address
        space (AS) holds shared mappings too, but could be won back by unmapping libraries; that is
        what DATA is for. Threads are counted a user, so they are limited only where the worker has
        a user of its own.
        """
        spent = math.ceil(time.process_time())  # by a worker that had to load for itself
        wanted = {
            "CORE": (0, 0),
            "CPU": (
                spent + self.cpu_seconds,
                spent + self.cpu_seconds + 1,
            ),  # SIGXCPU, then SIGKILL
            "FSIZE": (self.tmp_mb * MB,) * 2,
            "NOFILE": (self.files,) * 2,
        }
        for name, mapped in mapped_bytes().items():
            wanted[name] = (mapped + self.memory_mb * MB,) * 2
        if own_user:
            wanted["NPROC"] = (self.processes,) * 2
        held = []
        for name, (soft, hard) in wanted.items():
            try:
                resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (soft, hard))
            except (AttributeError, OSError, ValueError):
                continue  # not on this platform, or already lower: the canary sees what it means
            held.append(name)
        return held


def mapped_bytes() -> dict[str, int]:
    """Give the size of this process's address space and of its data; nothing where it is not told."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = file.read().split()
    except OSError:
        return {}
    size = resource.getpagesize()
    return {"AS": int(pages[0]) * size, "DATA": int(pages[5]) * size}
