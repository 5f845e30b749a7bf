"""Restrict a process before any code of an answer runs.

Role: ``prepare`` applies what all workers inherit, once, to the fork server; ``become_worker``
applies the rest after the fork. A step that this machine refuses is recorded and left out. The
canary finds out what the rest is worth, and the parent accepts no worker with fewer restrictions
than the canary had.

A worker can read the libraries and its part of this package, and can write nothing. It can reach no
file, process or network outside, and cannot start a process. Landlock hides files, the filter of
system calls does the rest, and limits bound what it can use up. Nobody hides what files are called,
how large they are, and when they were changed, from an answer that knows their place.
"""

import importlib
import json
import os
import random
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vitedu.grading.box import linux, seccomp
from vitedu.grading.box.limits import OUT_OF_MEMORY, Limits, count_user_threads, mapped_bytes

TASKS = {"worker": "vitedu.grading.box.notebook", "canary": "vitedu.grading.box.canary"}


def attempt(report: dict, name: str, action: Callable, *arguments: Any) -> None:
    """Apply one restriction; note in a report that it holds, or why this machine refused it."""
    try:
        action(*arguments)
    except (OSError, AttributeError, ValueError) as error:
        report["missing"][name] = str(error)
    else:
        report["restrictions"].append(name)


def prepare(setup: dict) -> None:
    """Apply to this process what its workers inherit, and note in ``setup`` what they need."""
    report = setup["report"] = {"restrictions": [], "missing": {}}
    setup["mapped"] = mapped_bytes()
    setup["user_threads"] = 0 if setup["uid"] else count_user_threads()
    attempt(report, "dies first", Path("/proc/self/oom_score_adj").write_text, "1000")
    attempt(report, "no new privileges", linux.prctl, linux.NO_NEW_PRIVILEGES, 1)
    attempt(report, "landlock", hide_files, setup)


def become_worker(setup: dict, task: str, number: int, fds: list[int]) -> None:
    """Apply all restrictions, run the task, and end the process. Never returns."""
    requests, replies, status = fds
    report = setup["report"]
    connect_streams(keep=set(fds))
    limits = Limits(**setup["limits"])
    limits.apply(mapped=setup["mapped"], user_threads=setup["user_threads"])
    if setup["uid"]:
        attempt(report, "own user", change_user, setup["uid"], number, setup["is_private"])
    attempt(report, "no capabilities", linux.drop_capabilities)
    attempt(report, "not to be traced", linux.prctl, linux.DUMPABLE, 0)
    attempt(report, "dies with its parent", linux.prctl, linux.DEATH_SIGNAL, signal.SIGKILL)
    leave_and_reseed(setup["empty"])
    attempt(report, "seccomp", seccomp.install)  # last, because it refuses most of the other steps
    module = importlib.import_module(TASKS[task])
    write_status(status, report)
    os.close(status)
    code = 1
    try:
        module.main(requests, replies)
        code = 0
    except MemoryError:
        code = OUT_OF_MEMORY
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    finally:
        os._exit(code & 0xFF)


def connect_streams(*, keep: set[int]) -> None:
    """Connect stdin and both outputs to nothing; close all other descriptors."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    start = 3
    for fd in sorted(keep):
        os.closerange(start, fd)
        start = fd + 1
    os.closerange(start, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def change_user(first: int, number: int, is_private: bool) -> None:
    """Become a user of its own, which owns nothing and whose threads are counted alone.

    Args:
        first: the first of the workers' users, and their group.
        number: of the user.
        is_private: only root can read this Python. Then root's name stays for access to files, and
            Landlock alone decides which.
    """
    uid, other = first + number, 0 if is_private else first + number
    os.setgroups([])
    os.setresgid(first, first, first)
    os.setresuid(uid, other, other)


def hide_files(setup: dict) -> None:
    """Let Landlock refuse all files except reading what is visible.

    Python lists a folder again after a change, and finds no module in one that it cannot list.
    """
    read = linux.READ_FILE | linux.READ_FOLDER
    allowed = dict.fromkeys(setup["listed_folders"], linux.READ_FOLDER)
    # no other device can be written: /dev/zero would be memory that no limit counts
    for path in [*setup["visible_paths"], "/dev/zero", "/dev/urandom", "/dev/random"]:
        allowed[path] = read
    allowed[os.devnull] = read | linux.WRITE_FILE | linux.TRUNCATE
    linux.restrict_files(allowed, setup["newest_landlock"])


def leave_and_reseed(folder: str) -> None:
    """Change to an empty folder and a session of its own, and seed the random generators anew.

    All workers are copies of one process. Without new seeds each would draw the same numbers, and
    an answer that is right by luck would be right in all runs.
    """
    import numpy
    import torch

    os.chdir(folder)
    os.setsid()
    seed = int.from_bytes(os.urandom(4), "little")
    random.seed(seed)
    numpy.random.seed(seed)  # noqa: NPY002 - the generator that an answer may use
    torch.default_generator.manual_seed(seed)


def write_status(status: int, message: dict) -> None:
    """Write one line to a socket, with ``write``: the filter of system calls refuses ``sendto``."""
    os.write(status, json.dumps(message).encode() + b"\n")
