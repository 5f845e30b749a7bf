"""The limits of one worker: seconds, memory, bytes.

Role: ``Limits``, and its ``apply``, which a forked worker calls. The parent itself enforces the
deadlines and the lengths of replies. Standard library only, for the box and the parent.
"""

import resource
import threading
from contextlib import suppress
from dataclasses import dataclass

MB = 1 << 20
OUT_OF_MEMORY = 86  # exit status of a worker that ran out of memory


@dataclass(frozen=True)
class Limits:
    """The limits of one worker."""

    load_seconds: float = 8.0  # wall-clock time of one cell
    call_seconds: float = 18.0  # wall-clock time of one draw of an answer
    cpu_seconds: int = 60  # CPU time of the worker, in case the deadlines fail
    memory_mb: int = 1024  # address space beyond that of the fork server
    reply_mb: int = 8  # length of one reply; equals ``wire.MAX_FRAME``
    threads: int = 32
    files: int = 1024  # open files

    def apply(self, *, mapped: dict[str, int], user_threads: int) -> None:
        """Set the limits of this process; the canary tests the effect.

        Memory is counted from what is mapped now, because torch's libraries alone map gigabytes.
        The limit on the address space (AS) includes shared mappings, but unmapping libraries would
        evade it, so DATA is limited too. FSIZE is 0: no file can grow.

        Args:
            mapped: of this process, from ``mapped_bytes``.
            user_threads: of this process's user, which share the limit on threads; 0 if it has its
                own user.
        """
        limits = {
            "CORE": (0, 0),
            # SIGXCPU at the first number, SIGKILL at the second
            "CPU": (self.cpu_seconds, self.cpu_seconds + 1),
            "FSIZE": (0, 0),
            "NOFILE": (self.files,) * 2,
            # several workers, and whatever else the user starts, share a limit
            "NPROC": (user_threads + 16 * self.threads if user_threads else self.threads,) * 2,
        }
        for name, size in mapped.items():
            limits[name] = (size + self.memory_mb * MB,) * 2
        for name, pair in limits.items():
            with suppress(AttributeError, OSError, ValueError):  # unknown here, or already lower
                resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), pair)


def count_user_threads() -> int:
    """Count the threads of this process's user, as the kernel does: also those in containers.

    Below the greatest limit under which no thread starts there is no room.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    count, step = 0, 1 << 20
    while step := step // 2:
        try:
            resource.setrlimit(resource.RLIMIT_NPROC, (count + step, hard))
            thread = threading.Thread(target=int)
            thread.start()
            thread.join()
        except RuntimeError:
            count += step
        except ValueError:  # above the hard limit
            continue
    resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))
    return count


def mapped_bytes() -> dict[str, int]:
    """Return the bytes of this process's address space and data; {} if they are not known."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = file.read().split()
    except OSError:  # who reads notebooks may be on another system
        return {}
    size = resource.getpagesize()
    return {"AS": int(pages[0]) * size, "DATA": int(pages[5]) * size}
