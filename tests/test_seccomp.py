"""The filter refuses what it names on both architectures: read here as the kernel reads it."""

import struct

import pytest

from vitedu.grading.box import seccomp
from vitedu.grading.box.seccomp import ALLOW, EPERM, ERROR, KILL_PROCESS, MACHINES, assemble_filter

PID = 77


def verdict(machine, number, arguments=(), mark=None):
    """Run the filter on one call, by the rules of the kernel's filter language."""
    code = assemble_filter(machine, PID)
    lines = [struct.unpack_from("=HBBI", code, 8 * i) for i in range(len(code) // 8)]
    mark = MACHINES[machine][1] if mark is None else mark
    data = struct.pack("=iIQ6Q", number, mark, 0, *arguments, *[0] * (6 - len(arguments)))
    register = i = 0
    while True:
        operation, if_true, if_false, operand = lines[i]
        i += 1
        if operation == seccomp.RETURN:
            return operand
        if operation == seccomp.LOAD:
            (register,) = struct.unpack_from("=I", data, operand)
        elif operation == seccomp.AND:
            register &= operand
        else:
            tests = {seccomp.EQUAL: register == operand, seccomp.ABOVE: register > operand}
            i += if_true if tests[operation] else if_false


@pytest.mark.parametrize("machine", MACHINES)
def test_every_call_of_the_table_is_refused(machine):
    """Each with EPERM, which Python turns into PermissionError; its neighbours are not harmed."""
    column = MACHINES[machine][0]
    numbers = {pair[column] for pair in seccomp.REFUSED_CALLS.values()} - {None}
    assert {verdict(machine, number) for number in numbers} == {ERROR | EPERM}
    others = set(range(seccomp.NEWEST)) - numbers
    special = [*seccomp.OLD_FORM.values(), *(numbers for numbers, *_ in seccomp.DECIDED.values())]
    others -= {pair[column] for pair in special}
    assert {verdict(machine, number) for number in others} == {ALLOW}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("call", "arguments", "allowed"),
    [
        ("clone", [0x3D0F00], True),  # what libc's threads ask for
        ("clone", [17], False),
        ("clone", [0x4000 | 17], False),
        ("kill", [PID, 9], True),
        ("kill", [PID + 1, 0], False),
        ("kill", [2**64 - 1, 0], False),
        ("tgkill", [PID, 5, 6], True),
        ("tgkill", [1, 5, 6], False),
        ("prlimit64", [0, 7], True),
        ("prlimit64", [PID - 1, 7], False),
        ("fcntl", [3, 3], True),
        ("fcntl", [3, 8], False),
        ("prctl", [15], True),
        ("prctl", [1, 0], False),
        ("mmap", [0, 4096, 3, 0x22], True),
        ("mmap", [0, 4096, 3, 0x01], True),
        ("mmap", [0, 4096, 3, 0x21], False),
        ("mmap", [0, 4096, 3, 0x8021], False),
        ("mmap", [0, 4096, 3, 0x122], False),
        ("fcntl", [3, 1024, 0], False),
        ("open", [0, 0x241, 0o600], True),  # Landlock decides it
        ("open", [0, 0x80200], False),
        ("openat", [3, 0, 0x80000], True),
        ("openat", [3, 0, 0x200], False),
        ("ioctl", [1, 0x5401], True),
        ("ioctl", [1, 0x802C542A], True),
        ("ioctl", [1, 0x40086602], False),
    ],
)
def test_calls_with_two_sides_are_decided_by_their_argument(machine, call, arguments, allowed):
    """Threads, but no processes; signals, but to oneself; memory, but private."""
    number = seccomp.DECIDED[call][0][MACHINES[machine][0]]
    if number is None:
        pytest.skip("this machine has no such call")
    got = verdict(machine, number, arguments)
    assert got == (ALLOW if allowed else ERROR | EPERM)


@pytest.mark.parametrize("machine", MACHINES)
def test_other_doors_into_the_kernel_are_shut(machine):
    """Calls of another architecture end the process; x32 and newer calls do not exist."""
    other = next(mark for name, (_, mark) in MACHINES.items() if name != machine)
    assert verdict(machine, 0, mark=other) == KILL_PROCESS
    assert verdict(machine, 0, mark=0x40000003) == KILL_PROCESS  # i386
    assert verdict(machine, 0x40000000 + 1) == ERROR | seccomp.ENOSYS
    assert verdict(machine, seccomp.NEWEST + 1) == ERROR | seccomp.ENOSYS
    assert {verdict(machine, number) for number in (435, 437)} == {ERROR | seccomp.ENOSYS}


def test_machine_without_a_column_is_an_error():
    """No filter is better than one for the wrong table."""
    with pytest.raises(OSError, match="x86_64 and aarch64 .got riscv64."):
        assemble_filter("riscv64", 1)
