"""The isolation level of a box, measured by the canary.

Role: ``measure_isolation`` runs the canary in a worker of a box and returns an ``Isolation`` with
what it could do. The level follows from that alone, never from how the box was configured:

* ``full``: the canary could do nothing that is forbidden.
* ``partial: ...``: it could do what is named, but could change nothing outside.
* ``none``: it could write files of the grader or signal its processes.
"""

import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vitedu.grading.box.conversation import Worker, WorkerTrouble
from vitedu.grading.box.limits import Limits

PACKAGE = Path(__file__).parents[2]
HOME = os.path.expanduser("~")
CANARY_SECONDS = 60.0
# what the canary could do -> its description in the level
BREACHES = {
    "write": "files outside can be written",
    "signal": "other processes can be signalled",
    "references": "the references can be read",
    "files": "other files can be read",
    "network": "no network isolation",
    "processes": "processes that it starts are not ended",
    "memory": "no limit on memory",
    "disk": "no limit on temporary files",
}
SEVERE_BREACHES = ("write", "signal")


class IsolationError(RuntimeError):
    """No box can be opened, or its level is too low."""


@dataclass(frozen=True)
class Isolation:
    """What the canary found out about one method."""

    breaches: dict[str, str]  # what it could do -> evidence
    restrictions: tuple[str, ...]  # restrictions that each worker has
    missing: dict[str, str]  # restriction that does not work on this machine -> why

    @property
    def level(self) -> str:
        """``full``, ``partial: ...`` or ``none``."""
        if not self.breaches:
            return "full"
        if any(name in self.breaches for name in SEVERE_BREACHES):
            return "none"
        return "partial: " + "; ".join(BREACHES[name] for name in self.breaches)


def measure_isolation(start: Callable[[], Worker], limits: Limits, needed: list[str]) -> Isolation:
    """Run the canary in a box and collect what it could do.

    Args:
        start: starts a worker that runs the canary.
        limits: of that worker.
        needed: files that a worker must be able to read.

    Raises:
        IsolationError: a worker cannot read a needed file, or the canary does not reply.
        WorkerTrouble: no worker could be started.
    """
    with ProbeTargets() as targets, start() as canary:
        plan = {**targets.plan(), "needed": needed}
        plan |= {"tmp_mb": limits.tmp_mb, "memory_mb": limits.memory_mb}
        try:
            reply = read_frame(canary.ask(write_frame(plan), CANARY_SECONDS))
        except WorkerTrouble as trouble:
            line = (canary.output.strip().splitlines() or ["it printed nothing"])[-1]
            raise IsolationError(f"the canary did not reply: {trouble}; {line}") from None
        try:
            reply |= read_frame(canary.ask(b"!", CANARY_SECONDS))
        except WorkerTrouble as trouble:  # the memory limit killed it, as it should
            if trouble.reason == "grader":
                raise
        canary.close()
        forks = int(reply.pop("processes", "") or 0)
        if canary.has_survivors or forks >= 64:
            reply["processes"] = f"{forks} processes"
        if forks and "control group" not in canary.restrictions:
            reply["memory"] = reply.get("memory") or f"{forks} processes, each with its own limit"
        restrictions, missing = tuple(canary.restrictions), dict(canary.missing)
    if unreadable := reply.pop("needs", ""):
        raise IsolationError(
            f"{unreadable} cannot be read by the user that answers run as; open it with: "
            f"chmod -R o+rX {sys.base_prefix} {sys.prefix}"
        )
    breaches = {name: reply[name] for name in BREACHES if reply.get(name)}
    return Isolation(breaches, restrictions, missing)


class ProbeTargets:
    """Files and a port that only the grader should be able to reach."""

    def __enter__(self):
        self.folders = []
        for place in (None, HOME):
            try:
                self.folders.append(tempfile.TemporaryDirectory(prefix=".vitedu-probe-", dir=place))
            except OSError:
                continue
        for folder in self.folders:
            Path(folder.name).chmod(0o755)
            (Path(folder.name) / "grades.json").write_text("{}")
        self.listener = socket.create_server(("127.0.0.1", 0))
        return self

    def __exit__(self, *_):
        self.listener.close()
        for folder in self.folders:
            folder.cleanup()

    def plan(self) -> dict:
        """Return what the canary should try to reach."""
        folders = [folder.name for folder in self.folders]
        return {
            "files": [os.path.join(folder, "grades.json") for folder in folders],
            "references": [str(PACKAGE / f"{name}.py") for name in ("patches", "attention")],
            "port": self.listener.getsockname()[1],
            "folders": [*folders, str(PACKAGE), HOME, os.getcwd()],
            "parent": os.getpid(),
        }


def severity(isolation: Isolation) -> tuple[bool, int]:
    """Return a key that sorts trials from good to bad: grave breaches, then their number."""
    return isolation.level == "none", len(isolation.breaches)


def remedy() -> str:
    """Say how to raise the level on this machine."""
    if sys.platform == "linux":
        if shutil.which("bwrap") is None:
            return "Install bubblewrap: apt install bubblewrap, dnf install bubblewrap."
        return (
            "bubblewrap is there but may not make namespaces. On Ubuntu 24.04 and newer allow it "
            "in\n"
            "AppArmor; in a container, start that with --security-opt seccomp=unconfined, or "
            "grade\n"
            "outside it."
        )
    return "Grade on Linux, or in a Linux container or virtual machine, with bubblewrap."


def write_frame(data: dict) -> bytes:
    """Make a frame of plain data."""
    text = json.dumps(data).encode()
    return len(text).to_bytes(8, "little") + text


def read_frame(data: bytes) -> dict:
    """Read a frame of plain data."""
    return json.loads(data[8:])
