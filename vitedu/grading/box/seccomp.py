"""A filter of the Linux kernel for the system calls that an answer may not make.

Role: translates the table of refused calls, ``calls.txt``, into the kernel's filter language
(classic BPF), and ``install``s it in the forked worker, because its parent must be able to fork.
Standard library only. The canary makes every refused call. The table has columns for two
architectures; on any other ``install`` raises, and the level says so.

Why no library: libseccomp's Python binding is not on PyPI, and would have to be inside the box on
every machine. Why no list of allowed calls: torch, OpenMP and libc differ too much between
versions. Refused are calls that make a process, a connection or a namespace, affect another process
or a file outside, hold memory outside the address space, or belong to a large and rarely used part
of the kernel. Calls newer than the table fail with ENOSYS, as on an older kernel.

Reference: the manual page of seccomp; the call numbers of arch/x86 and include/uapi/asm-generic of
Linux.
"""

import ctypes
import os
import struct
from pathlib import Path
from typing import Any

from vitedu.grading.box.linux import call

EPERM, ENOSYS = 1, 38
NEWEST = 462  # mseal, Linux 6.10; the numbers above 423 are common to all architectures
# machine -> (column of the table, the kernel's number of the architecture)
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

_TABLE = Path(__file__).with_name("calls.txt").read_text("utf-8").splitlines()
_ROWS = [row.split() for line in _TABLE if line[0] != "#" for row in line.rstrip(",").split(",")]
# call -> its number on x86-64 and on aarch64
REFUSED_CALLS = {n: (int(x), None if arm == "-" else int(arm)) for n, x, arm in _ROWS}

# Decided by a pointer to a structure, which no filter can read. Libraries then use an older call.
OLD_FORM = {"clone3": (435, 435), "openat2": (437, 437)}
PID = "pid"  # the number of the filtered process, the only one that it may signal
NUMBER, ARCHITECTURE, FIRST, SECOND, THIRD, FOURTH = 0, 4, 16, 24, 32, 40  # places in a call's data
ALL_BITS = 0xFFFFFFFF
# Calls that an argument decides: (numbers, place of the argument, its bits that count, values,
# whether exactly these are allowed or refused)
DECIDED: dict[str, tuple[Any, int, int, list, bool]] = {
    # threads, but no processes
    "clone": ((56, 220), FIRST, 0x10000, [0x10000], True),
    "kill": ((62, 129), FIRST, ALL_BITS, [PID], True),
    "tgkill": ((234, 131), FIRST, ALL_BITS, [PID], True),
    "prlimit64": ((302, 261), FIRST, ALL_BITS, [0, PID], True),
    # signals to another process (8, 15); a lease, which blocks others that open the file (1024)
    "fcntl": ((72, 25), SECOND, ALL_BITS, [8, 15, 1024, 1026], False),
    "prctl": ((157, 167), FIRST, ALL_BITS, [1], False),  # to outlive the parent
    # reading that truncates, before Linux 6.2
    "open": ((2, None), SECOND, 0x203, [0x200], False),
    "openat": ((257, 56), THIRD, 0x203, [0x200], False),
    # attributes of files; terminals, to which the harmless ones belong, are not in the box
    "ioctl": ((16, 29), SECOND, 0xFF00, [0x5400], True),
    # memory that does not count as this process's data: shared (0x21) or growing down (0x100)
    "mmap": ((9, 222), FOURTH, 0x121, [0x21, 0x100, 0x101, 0x120, 0x121], False),
}

LOAD, AND, EQUAL, ABOVE, RETURN = 0x20, 0x54, 0x15, 0x25, 0x06
KILL_PROCESS, ERROR, ALLOW = 0x80000000, 0x00050000, 0x7FFF0000


def assemble_filter(machine: str, pid: int) -> bytes:
    """Assemble the filter.

    Args:
        machine: as in ``os.uname().machine``.
        pid: of the filtered process, the only one that it may signal.
    """
    if machine not in MACHINES:
        known = " and ".join(MACHINES)
        raise OSError(ENOSYS, f"the call table knows {known} (got {machine})")
    column, architecture = MACHINES[machine]
    lines: list[tuple[int, int, int, int]] = []  # code, lines to skip if true, if false, operand

    def add(code, operand, if_true=0, if_false=0):
        lines.append((code, if_true, if_false, operand))

    refusal = ERROR | EPERM
    add(LOAD, ARCHITECTURE)
    add(EQUAL, architecture, 1, 0)
    add(RETURN, KILL_PROCESS)
    add(LOAD, NUMBER)
    add(ABOVE, NEWEST, 0, 1)  # includes the x32 calls of x86-64
    add(RETURN, ERROR | ENOSYS)
    simple: list[tuple[Any, int]] = [(pair, ERROR | ENOSYS) for pair in OLD_FORM.values()]
    simple += [(numbers, refusal) for numbers in REFUSED_CALLS.values()]
    for numbers, verdict in simple:
        if numbers[column] is not None:
            add(EQUAL, numbers[column], 0, 1)
            add(RETURN, verdict)
    for numbers, place, mask, values, are_allowed in DECIDED.values():
        if numbers[column] is None:
            continue
        add(EQUAL, numbers[column], 0, len(values) + 4)
        add(LOAD, place)
        add(AND, mask)
        for i, value in enumerate(values):  # if equal: skip the other values and the next line
            add(EQUAL, pid if value == PID else value, len(values) - i)
        add(RETURN, refusal if are_allowed else ALLOW)
        add(RETURN, ALLOW if are_allowed else refusal)
    add(RETURN, ALLOW)
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def install() -> None:
    """Apply the filter to this thread for good; threads that it starts later inherit it."""
    code = assemble_filter(os.uname().machine, os.getpid())
    buffer = ctypes.create_string_buffer(code, len(code))
    head = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))  # struct sock_fprog
    zero = ctypes.c_ulong(0)
    call("prctl", ctypes.c_int(22), ctypes.c_ulong(2), head, zero, zero)  # PR_SET_SECCOMP, filter
