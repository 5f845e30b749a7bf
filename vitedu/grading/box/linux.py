"""Linux calls that Python does not offer: namespaces, mounts, capabilities, Landlock.

Role: thin wrappers over libc by ctypes. Each raises ``OSError`` with the name of the call. Standard
library only; they run inside the box before any answer. ``fork_server`` and ``confinement`` use
them.

Reference: the manual pages of unshare, setns, mount, prctl, capabilities and landlock.
"""

import ctypes
import functools
import os
import struct

NEW_MOUNTS, NEW_UTS, NEW_IPC = 0x00020000, 0x04000000, 0x08000000
NEW_PIDS, NEW_NETWORK = 0x20000000, 0x40000000

READ_ONLY, NO_SUID, NO_DEVICES, REMOUNT, RECURSIVE, PRIVATE = 1, 2, 4, 32, 16384, 1 << 18
BIND = 4096

COLLAPSE = 25  # advice of madvise: use huge pages, at once

DEATH_SIGNAL, DUMPABLE, DROP_FROM_BOUND, NO_NEW_PRIVILEGES = 1, 4, 24, 38  # options of prctl

# Landlock: kinds of access
READ_FILE, READ_FOLDER, WRITE_FILE, TRUNCATE = 1 << 2, 1 << 3, 1 << 1, 1 << 14
OLDEST_ACCESSES = (1 << 13) - 1  # all accesses of version 1: execute, write, read, remove, make
FILE_ACCESSES = 1 | WRITE_FILE | READ_FILE | TRUNCATE  # accesses that a rule for one file may have
# the last number is making and removing
OWN_FOLDER_ACCESSES = READ_FILE | READ_FOLDER | WRITE_FILE | TRUNCATE | 0b1_0001_1011_0000
SCOPES = 0b11  # no abstract sockets and no signals to processes outside, since version 6


def call(name: str, *arguments) -> int:
    """Call a function of libc.

    Raises:
        OSError: it returned -1, or this libc does not have the function.
    """
    libc = _libc()
    if not hasattr(libc, name):
        raise OSError(38, f"{name} is not in this libc")
    result = getattr(libc, name)(*arguments)
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


@functools.cache
def _libc() -> ctypes.CDLL:
    """Load libc once, before the fork."""
    return ctypes.CDLL(None, use_errno=True)


def unshare(namespaces: int) -> None:
    """Move this process into new namespaces, given by the flags."""
    call("unshare", ctypes.c_int(namespaces))


def fork_into_new_pids() -> int:
    """Fork as ``os.fork`` does, but the child is the first process of a new pid namespace.

    The child cannot address any process outside, and all processes inside end with it.
    """
    own_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY)
    try:
        unshare(NEW_PIDS)
        child = os.fork()
        if child:  # later children get the parent's namespace again
            call("setns", ctypes.c_int(own_namespace), ctypes.c_int(NEW_PIDS))
        return child
    finally:
        os.close(own_namespace)


def use_huge_pages() -> int:
    """Move this process's private memory into huge pages where the kernel can.

    A fork copies one table entry for each page. With some 300 MB of small pages that is most of its
    cost. Kernels before 6.1 refuse, which does no harm.

    Returns:
        The number of bytes for which it was requested.
    """
    num_bytes = 0
    with open("/proc/self/maps", encoding="ascii", errors="replace") as file:
        maps = [line.split(None, 5) for line in file]
    for place, access, _, _, _, *name in maps:
        is_file = name and not name[0].startswith("[heap]")
        if is_file or "w" not in access or "s" in access:
            continue
        start, end = (int(number, 16) for number in place.split("-"))
        try:
            call("madvise", ctypes.c_void_p(start), ctypes.c_size_t(end - start), COLLAPSE)
        except OSError:  # smaller than a huge page, or the kernel does not know the advice
            continue
        num_bytes += end - start
    return num_bytes


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Mount a file system."""
    words = [word.encode() for word in (source, target, kind)]
    call("mount", *words, ctypes.c_ulong(flags), options.encode())


def mask_path(path: str) -> None:
    """Mount something empty over a file or folder, so that nobody in this namespace can read it."""
    flags = NO_SUID | NO_DEVICES
    if os.path.isdir(path):
        mount("tmpfs", path, "tmpfs", flags | READ_ONLY, "size=4096")
    else:
        mount(os.devnull, path, "", BIND)


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process."""
    zero = ctypes.c_ulong(0)
    call("prctl", ctypes.c_int(option), ctypes.c_ulong(value), zero, zero, zero)


def drop_capabilities() -> None:
    """Give up every capability for good."""
    for capability in range(64):
        try:
            prctl(DROP_FROM_BOUND, capability)
        except OSError:  # past the last capability, or there is none to drop
            break
    header = struct.pack("=Ii", 0x20080522, 0)  # version 3, this process
    call("capset", header, bytes(24))


class Landlock:
    """Rules for what may be read and written. All other access to files is refused.

    Args:
        scopes: what is refused outside of this process and those that it forks.

    Raises:
        OSError: this kernel has no Landlock.
    """

    def __init__(self, scopes: int = SCOPES):
        none = ctypes.c_void_p(None)
        create = ctypes.c_long(444)
        self.version = call("syscall", create, none, ctypes.c_size_t(0), ctypes.c_uint(1))
        self.accesses = OLDEST_ACCESSES
        self.accesses |= 1 << 13 if self.version >= 2 else 0  # move between folders
        self.accesses |= TRUNCATE if self.version >= 3 else 0
        words = [self.accesses]
        words += [0b11] if self.version >= 4 else []  # TCP: bind and connect
        words += [scopes] if self.version >= 6 else []
        ruleset = struct.pack(f"={len(words)}Q", *words)
        size = ctypes.c_size_t(len(ruleset))
        self.fd = call("syscall", create, ruleset, size, ctypes.c_uint(0))

    def allow(self, path: str, accesses: int) -> None:
        """Allow accesses below a path; ignore a path that does not exist."""
        try:
            place = os.open(path, getattr(os, "O_PATH", 0) | os.O_CLOEXEC)
        except OSError:
            return
        try:
            if not os.path.isdir(path):
                accesses &= FILE_ACCESSES
            rule = struct.pack("=Qi", accesses & self.accesses, place)
            add = ctypes.c_long(445)
            call("syscall", add, ctypes.c_int(self.fd), ctypes.c_int(1), rule, ctypes.c_uint(0))
        finally:
            os.close(place)

    def allow_reading(self, path: str) -> None:
        """Allow reading files and folders below a path."""
        self.allow(path, READ_FILE | READ_FOLDER)

    def enforce(self) -> None:
        """Apply the rules to this process for good. ``NO_NEW_PRIVILEGES`` must be set before."""
        call("syscall", ctypes.c_long(446), ctypes.c_int(self.fd), ctypes.c_uint(0))
        os.close(self.fd)
