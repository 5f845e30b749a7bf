"""A filter of the Linux kernel for the system calls that an answer may not make.

Role: a table of refused calls, its translation into the kernel's filter language (classic BPF), and
``install``. Standard library only. The filter is installed in the forked worker, because its parent
must be able to fork. The canary makes every refused call. The table has columns for two
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
import functools
import os
import struct
from typing import Any

from vitedu.grading.box.linux import call

EPERM, ENOSYS = 1, 38
NEWEST = 462  # mseal, Linux 6.10; the numbers above 423 are common to all architectures
# machine -> (column of the table, the kernel's number of the architecture)
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

# call, its number on x86-64 and on aarch64 (-: it does not exist there)
CALLS = """
# another process, another program
fork 57 -, vfork 58 -, execve 59 221, execveat 322 281
# connections
socket 41 198, socketpair 53 199, bind 49 200, connect 42 203, listen 50 201, accept 43 202,
accept4 288 242, sendto 44 206, sendmsg 46 211, sendmmsg 307 269
# affecting other processes
ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271, kcmp 312 272, tkill 200 130,
rt_sigqueueinfo 129 138, rt_tgsigqueueinfo 297 240, pidfd_send_signal 424 424, pidfd_open 434 434,
pidfd_getfd 438 438, process_madvise 440 440, process_mrelease 448 448, setpriority 141 140,
ioprio_set 251 30, migrate_pages 256 238, move_pages 279 239, sched_setaffinity 203 122,
sched_setscheduler 144 119, sched_setparam 142 118, sched_setattr 314 274
# its own user, which counts its threads
setuid 105 146, setgid 106 144, setreuid 113 145, setregid 114 143, setresuid 117 147,
setresgid 119 149, setfsuid 122 151, setfsgid 123 152, setgroups 116 159, capset 126 91
# modes, owners and times of files, which Landlock leaves free; lengths, before Linux 6.2
truncate 76 45, inotify_add_watch 254 27, fanotify_init 300 262,
chmod 90 -, fchmod 91 52, fchmodat 268 53, fchmodat2 452 452, chown 92 -, fchown 93 55,
lchown 94 -, fchownat 260 54, utime 132 -, utimes 235 -, futimesat 261 -, utimensat 280 88,
setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7, removexattr 197 14, lremovexattr 198 15,
fremovexattr 199 16
# memory that does not count against this process's limits, or that outlives it
memfd_create 319 279, memfd_secret 447 447, shmget 29 194, shmat 30 196, shmctl 31 195,
semget 64 190, semctl 66 191, msgget 68 186, msgsnd 69 189, msgctl 71 187, mq_open 240 180
# namespaces and mounts
unshare 272 97, setns 308 268, mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51,
open_tree 428 428, move_mount 429 429, fsopen 430 430, fsconfig 431 431, fsmount 432 432,
fspick 433 433, mount_setattr 442 442, name_to_handle_at 303 264, open_by_handle_at 304 265,
statmount 457 457, listmount 458 458
# large parts of the kernel that no answer needs
bpf 321 280, perf_event_open 298 241, userfaultfd 323 282, io_uring_setup 425 425,
io_uring_enter 426 426, io_uring_register 427 427, add_key 248 217, request_key 249 218,
keyctl 250 219, init_module 175 105, finit_module 313 273, delete_module 176 106,
kexec_load 246 104, kexec_file_load 320 294, reboot 169 142, swapon 167 224, swapoff 168 225,
acct 163 89, quotactl 179 60, quotactl_fd 443 443, settimeofday 164 170, clock_settime 227 112,
adjtimex 159 171, clock_adjtime 305 266, sethostname 170 161, setdomainname 171 162, iopl 172 -,
ioperm 173 -, modify_ldt 154 -, personality 135 92, syslog 103 116, vhangup 153 58
"""
REFUSED_CALLS = {
    name: (int(x86), None if arm == "-" else int(arm))
    for row in CALLS.strip().splitlines()
    if not row.startswith("#")
    for name, x86, arm in map(str.split, row.rstrip(",").split(","))
}

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
ANY_PID = b"pid?"  # no process has this number


def assemble_filter(machine: str, pid: int) -> bytes:
    """Assemble the filter.

    Args:
        machine: as in ``os.uname().machine``.
        pid: of the filtered process, the only one that it may signal.

    Raises:
        OSError: the table has no column for this machine.
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


@functools.cache
def filter_template(machine: str) -> bytes:
    """Assemble the filter with ``ANY_PID`` in place of the process's number, once before a fork."""
    (pid,) = struct.unpack("=I", ANY_PID)
    return assemble_filter(machine, pid)


def install() -> None:
    """Apply the filter to this thread for good; threads that it starts later inherit it.

    Raises:
        OSError: the kernel refuses, or the machine is not in the table.
    """
    code = filter_template(os.uname().machine).replace(ANY_PID, struct.pack("=I", os.getpid()))
    buffer = ctypes.create_string_buffer(code, len(code))
    head = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))  # struct sock_fprog
    zero = ctypes.c_ulong(0)
    call("prctl", ctypes.c_int(22), ctypes.c_ulong(2), head, zero, zero)  # PR_SET_SECCOMP, filter
