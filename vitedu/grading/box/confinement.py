"""Restrict a worker after its fork, before any code of an answer runs.

Role: ``become_worker``. A step that this machine refuses is recorded and left out. The canary finds
out what the rest is worth, and the parent accepts no worker with fewer restrictions than the canary
had. Uses the standard library, torch and numpy.

The order matters. The control group and the limits need /proc. A mount and a change of user need
capabilities. Landlock must see the mount. The filter of system calls comes last, because it refuses
most of the other steps.
"""

import importlib
import json
import os
import random
import resource
import signal
import sys
import time
import traceback
from pathlib import Path

from vitedu.grading.box import linux, seccomp
from vitedu.grading.box.limits import MB, OUT_OF_MEMORY, Limits

TASKS = {"worker": "vitedu.grading.box.worker", "canary": "vitedu.grading.box.canary"}
FOLDER_VARIABLES = ("TMPDIR", "HOME", "MPLCONFIGDIR")  # set to the worker's folder


def become_worker(setup: dict, task: str, number: int, fds: list[int], folder: Path) -> None:
    """Apply all restrictions, run the task, and end the process. Never returns."""
    requests, replies, output, status, *groups = fds
    restrictions, missing = [], {}

    def attempt(name, action, *arguments):
        try:
            action(*arguments)
        except (OSError, AttributeError, ValueError) as error:
            missing[name] = str(error)
        else:
            restrictions.append(name)

    if setup["own_pids"]:
        restrictions.append("own process numbers")
    for group in groups:
        attempt("control group", os.write, group, b"0")
    connect_streams(keep={requests, replies, status}, output=output)
    if sys.platform == "linux":
        attempt("dies first", Path("/proc/self/oom_score_adj").write_text, "1000")
    limits = Limits(**setup["limits"])
    limit_names = limits.apply(own_user=bool(setup["uid"]))  # before /proc is hidden
    restrictions.append("limits " + " ".join(sorted(limit_names)))
    if setup["mounts"]:
        attempt("own files", mount_own_files, str(folder), limits)
    if setup["uid"]:
        attempt("own user", change_user, setup["uid"] + number, folder)
    if sys.platform == "linux":
        attempt("no capabilities", linux.drop_capabilities)
        attempt("no new privileges", linux.prctl, linux.NO_NEW_PRIVILEGES, 1)
        attempt("not to be traced", linux.prctl, linux.DUMPABLE, 0)
        attempt("dies with its parent", linux.prctl, linux.DEATH_SIGNAL, signal.SIGKILL)
        attempt("landlock", confine, setup["readable"], folder)
    enter_and_reseed(folder)
    if sys.platform == "linux":
        attempt("seccomp", seccomp.install)
    module = importlib.import_module(TASKS[task])
    report = {"restrictions": restrictions, "missing": missing, "cpu": time.process_time()}
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
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code & 0xFF)


def connect_streams(*, keep: set[int], output: int) -> None:
    """Connect stdin to nothing and both outputs to the pipe; close all other descriptors."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    start = 3
    for fd in sorted(keep):
        os.closerange(start, fd)
        start = fd + 1
    os.closerange(start, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def mount_own_files(folder: str, limits: Limits) -> None:
    """Mount an empty file system over the temporary folder, and another over /proc."""
    linux.unshare(linux.NEW_MOUNTS | linux.NEW_IPC)
    linux.mount("none", "/", "", linux.RECURSIVE | linux.PRIVATE)
    safe = linux.NO_SUID | linux.NO_DEVICES
    size = f"size={limits.tmp_mb * MB},nr_inodes=1024,mode=0700"
    linux.mount("tmpfs", folder, "tmpfs", safe, size)
    linux.mount("tmpfs", "/proc", "tmpfs", safe | linux.READ_ONLY, "size=4096")


def change_user(uid: int, folder: Path) -> None:
    """Become a user that owns nothing but the temporary folder."""
    os.chown(folder, uid, uid)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def confine(readable: list[str], folder: Path, *, is_server: bool = False) -> None:
    """Let Landlock refuse all files except the libraries and the temporary folder.

    Rules add up: a worker may do what both its own rules and those of the fork server allow.
    """
    rules = linux.Landlock(scopes=0 if is_server else linux.SCOPES)
    for path in readable:
        rules.allow_reading(path)
    if is_server:  # the first steps of a worker need /proc
        write_access = linux.WRITE_FILE | linux.TRUNCATE
        rules.allow("/proc", linux.READ_FILE | linux.READ_FOLDER | write_access)
    for device in ("/dev/zero", "/dev/urandom", "/dev/random"):
        rules.allow_reading(device)  # not writable: /dev/zero would be memory that no limit counts
    rules.allow("/dev/null", linux.READ_FILE | linux.WRITE_FILE | linux.TRUNCATE)
    rules.allow(str(folder), linux.OWN_FOLDER_ACCESSES)
    rules.enforce()


def enter_and_reseed(folder: Path) -> None:
    """Change to the temporary folder, and seed the random generators anew.

    All workers are copies of one process. Without new seeds each would draw the same numbers, and
    an answer that is right by luck would be right in all runs.
    """
    import numpy
    import torch

    os.chdir(folder)
    os.umask(0o077)
    if hasattr(os, "setsid") and os.getsid(0) != os.getpid():
        os.setsid()
    for name in FOLDER_VARIABLES:
        os.environ[name] = str(folder)
    seed = int.from_bytes(os.urandom(4), "little")
    random.seed(seed)
    numpy.random.seed(seed)  # noqa: NPY002 - the generator that an answer may use
    torch.default_generator.manual_seed(seed)


def write_status(status: int, message: dict) -> None:
    """Write one line to a socket, with ``write``: the filter of system calls refuses ``sendto``."""
    os.write(status, json.dumps(message).encode() + b"\n")
