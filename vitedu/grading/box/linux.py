"""Linux calls that Python does not offer: attributes of a process, capabilities, Landlock.

Role: thin wrappers over libc by ctypes. Each raises ``OSError`` with the name of the call. Standard
library only; they run inside the box before any answer.

Reference: the manual pages of prctl, capabilities, madvise and landlock.
"""

import ctypes
import functools
import os
import struct
from contextlib import suppress
from typing import Any

DEATH_SIGNAL, DUMPABLE, NO_NEW_PRIVILEGES = 1, 4, 38  # options of prctl
COLLAPSE = 25  # advice of madvise: use huge pages, at once

# Landlock: kinds of access
WRITE_FILE, READ_FILE, READ_FOLDER, TRUNCATE = 1 << 1, 1 << 2, 1 << 3, 1 << 14
# version of Landlock -> the kinds of access to files and folders that it adds
FILE_ACCESSES = {1: (1 << 13) - 1, 2: 1 << 13, 3: TRUNCATE, 5: 1 << 15}
ONE_FILE = 1 | WRITE_FILE | READ_FILE | TRUNCATE | 1 << 15  # what a rule for one file may allow
NEWEST_LANDLOCK = 6


def call(name: str, *arguments: Any) -> int:
    """Call a function of libc."""
    result = getattr(_libc(), name)(*arguments)
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def system_call(number: int, *arguments: int | bytes | None) -> int:
    """Make a system call by its number; see ``call``."""
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    return call("syscall", ctypes.c_long(number), *words)


@functools.cache
def _libc() -> ctypes.CDLL:
    """Load libc once, before the fork."""
    return ctypes.CDLL(None, use_errno=True)


def use_huge_pages() -> None:
    """Move this process's private memory into huge pages where the kernel can.

    A fork copies one table entry for each page. With some 300 MB of small pages that is most of its
    cost. Kernels before 6.1 refuse, which does no harm.
    """
    with open("/proc/self/maps", encoding="ascii", errors="replace") as file:
        maps = [line.split(None, 5) for line in file]
    for place, access, _, _, _, *name in maps:
        is_file = name and not name[0].startswith("[heap]")
        if is_file or "w" not in access or "s" in access:
            continue
        start, end = (int(number, 16) for number in place.split("-"))
        with suppress(OSError):  # smaller than a huge page, or the kernel does not know the advice
            call("madvise", ctypes.c_void_p(start), ctypes.c_size_t(end - start), COLLAPSE)


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process."""
    zero = ctypes.c_ulong(0)
    call("prctl", ctypes.c_int(option), ctypes.c_ulong(value), zero, zero, zero)


def drop_capabilities() -> None:
    """Give up every capability; only another program could have one again."""
    header = struct.pack("=Ii", 0x20080522, 0)  # version 3, this process
    call("capset", header, bytes(24))


def restrict_files(allowed: dict[str, int], newest: int) -> None:
    """Let Landlock refuse all access to files except what is allowed, for good.

    ``NO_NEW_PRIVILEGES`` must be set before.

    Args:
        allowed: path -> kinds of access below it. A path that does not exist is ignored.
        newest: the newest version to use, to try what older kernels refuse.
    """
    version = min(newest, system_call(444, None, 0, 1))
    known = sum(bits for number, bits in FILE_ACCESSES.items() if number <= version)
    rules = system_call(444, struct.pack("=Q", known), 8, 0)
    for path, accesses in allowed.items():
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        if not os.path.isdir(path):
            accesses &= ONE_FILE
        system_call(445, rules, 1, struct.pack("=Qi", accesses & known, place), 0)
        os.close(place)
    system_call(446, rules, 0)
    os.close(rules)
