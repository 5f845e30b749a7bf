"""The isolation level of a box, measured by the canary.

Role: ``measure_isolation`` runs the canary in a worker of a box and returns an ``Isolation`` with
what it could do. The level follows from that alone, never from how the box was configured:

* ``full``: the canary could do nothing that is forbidden.
* ``partial: ...``: it could do what is named, but could change nothing outside.
* ``none``: it could write files of the grader or reach its processes.
"""

import json
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from vitedu.grading.box.canary import write_frame
from vitedu.grading.box.conversation import Worker, WorkerTrouble
from vitedu.grading.box.limits import Limits
from vitedu.ground import words

PACKAGE = Path(__file__).parents[2]
HOME = os.path.expanduser("~")
CANARY_SECONDS = 60.0
MANY = 1000  # threads that the canary tries to start
MOST = 8  # findings of one kind that it reports
_WORDS = words.read(PACKAGE / "grading/words.toml")
BREACHES = _WORDS["breaches"]  # what the canary could do -> its description in the level
SEVERE_BREACHES = ("write", "processes")
REMEDIES = _WORDS["remedies"]  # restriction that is missing -> what would help


class IsolationError(ValueError):
    """No box can be opened, or its level is too low."""


@dataclass(frozen=True)
class Isolation:
    """What the canary found out about a box."""

    breaches: dict[str, str]  # what it could do -> evidence
    restrictions: tuple[str, ...]  # restrictions that each worker has
    missing: dict[str, str]  # restriction that does not work on this machine -> why
    count: int = 0  # what the canary tried

    @property
    def level(self) -> str:
        """``full``, ``partial: ...`` or ``none``."""
        if not self.breaches:
            return "full"
        if any(name in self.breaches for name in SEVERE_BREACHES):
            return "none"
        return "partial: " + "; ".join(BREACHES[name] for name in self.breaches)

    def explain(self) -> list[str]:
        """Say what the canary could do, what this machine lacks, and what would help."""
        lines = [f"{BREACHES[name]}: {evidence}" for name, evidence in self.breaches.items()]
        lines += [f"no {name}: {why}" for name, why in self.missing.items()]
        return lines + [text for name, text in REMEDIES.items() if name in self.missing]


def measure_isolation(
    start: Callable[[], Worker], limits: Limits, needed: list[str], decoy: str
) -> Isolation:
    """Run the canary in a box and collect what it could do.

    Args:
        start: starts a worker that runs the canary.
        limits: of that worker.
        needed: files that a worker must be able to read.
        decoy: a file of the grader that a worker can read.
    """
    with probe_targets(needed, decoy, limits.memory_mb) as plan, start() as canary:
        try:
            reply = json.loads(canary.ask(write_frame(plan), CANARY_SECONDS)[8:])
        except WorkerTrouble as trouble:
            raise IsolationError(f"the canary did not reply: {trouble}") from None
        try:
            reply |= json.loads(canary.ask(b"!", CANARY_SECONDS)[8:])
        except WorkerTrouble as trouble:  # the memory limit killed it, as it should
            if trouble.reason != "memory" and "SIGKILL" not in trouble.detail:
                raise
        canary.close()
        if canary.has_survivors and not reply.get("children"):
            reply["children"] = "one survives"
        restrictions, missing = tuple(canary.restrictions), dict(canary.missing)
    if unreadable := reply.pop("needs", ""):
        raise IsolationError(
            f"{unreadable} cannot be read by the user that answers run as; open it with: "
            f"chmod -R o+rX {sys.base_prefix} {sys.prefix}"
        )
    breaches = {name: reply[name] for name in BREACHES if reply.get(name)}
    return Isolation(breaches, restrictions, missing, int(reply["count"]))


@contextmanager
def probe_targets(needed: list[str], decoy: str, memory_mb: int) -> Iterator[dict]:
    """Make files, a port and a socket that only the grader should be able to reach.

    Yields the plan of the canary, which may have ``memory_mb``: what to try, and how much.
    """
    with ExitStack() as stack:
        folders = []
        for place in (None, HOME):
            with suppress(OSError):
                made = tempfile.TemporaryDirectory(prefix=".vitedu-probe-", dir=place)
                folders.append(stack.enter_context(made))
        files = [os.path.join(folder, "grades.json") for folder in folders]
        for folder, file in zip(folders, files, strict=True):
            os.chmod(folder, 0o755)
            Path(file).write_text("{}")
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind("")  # a socket without a file
        listener.listen()
        process = f"/proc/{os.getpid()}/"
        secrets = [process + name for name in ("environ", "maps", "mem", "cmdline")]
        targets = {
            "readable": [*files, *secrets, "/etc/passwd", "/proc/self/maps"],
            "links": [process + name for name in ("exe", "cwd", "root")],
            "folders": [*folders, str(PACKAGE), HOME, os.getcwd(), "/"],
            "private": [*folders, HOME, "/", "/proc"],
            "references": [str(PACKAGE / f"{name}.py") for name in ("patches", "attention")],
            "ports": [server.getsockname()[1]],
            "sockets": [listener.getsockname().decode()],
            "needed": needed,
            "worthless": [*files, decoy],
            "changeable": [*files, decoy, *needed],
        }
        sizes = {"memory_mb": memory_mb, "many": MANY, "most": MOST}
        yield {"targets": targets, "parent": os.getpid(), **sizes}
