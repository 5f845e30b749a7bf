"""Read what a student handed in, in a process that may die, so that no text can stop a class.

Role: ``read_submission``. ``call`` has a function done by a Python of its own, without torch, with
little time and memory, which answers with JSON. ``extraction`` does the work.
"""

import importlib
import json
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from typing import Any

from vitedu.exercises import EXERCISES
from vitedu.grading.box import linux
from vitedu.grading.box.limits import MB, mapped_bytes
from vitedu.grading.grades import Flag, Submission, from_plain
from vitedu.grading.intake.extraction import Extraction, digest_cell, extract
from vitedu.grading.intake.submissions import stem_of

CPU_SECONDS = 20  # of one call; reading the solved course takes 0.8 s
WALL_SECONDS = 300.0  # on a crowded machine
MEMORY_MB = 1024  # beyond what is mapped at first; a file may take four times its size
MAX_REPLY = 32 * MB  # bytes


class ReaderDied(RuntimeError):
    """A call ended its process; the message says how."""


@cache
def course_cells() -> list[str]:
    """Return the digests of the course's own cells; none where its notebooks are not here."""
    from vitedu.course.workspace import find_sources

    with suppress(ValueError, OSError):
        contents = [json.loads(path.read_text("utf-8")) for path in find_sources()]
        cells = [cell for content in contents for cell in content["cells"]]
        return [digest_cell("".join(cell["source"])) for cell in cells]
    return []


def read_submission(submission: Submission) -> Extraction:
    """Read a student's notebooks. Never raises because of what was handed in.

    Raises:
        RuntimeError: a fault of the grader, with the lines of the other process.
    """
    try:
        found = call(extract_plain, [asdict(submission), course_cells()])
    except ReaderDied as death:
        words = f"reading what was handed in {death}"
        stems = {stem_of(path.name) for path in submission.files} - {""}
        problems = {exercise.id: ("unreadable", words) for exercise in EXERCISES}
        flags = [*submission.flags, Flag("unreadable", words)]
        return Extraction({}, problems, flags, stems)
    return from_plain(Extraction, found)


def extract_plain(data: list) -> dict:
    """Read a submission, as plain data: its fields, and the digests of the course's cells."""
    return asdict(extract(from_plain(Submission, data[0]), frozenset(data[1])))


def call(function: Callable[[Any], Any], data: Any) -> Any:
    """Return what a function of a module returns, computed in a process of its own.

    Args:
        function: takes and returns data that JSON can hold; paths become texts, and sets lists.
        data: its argument.

    Raises:
        ReaderDied: it ended its process or went beyond a limit.
        RuntimeError: it raised, which is a fault of the grader; with the lines.
    """
    request = {"module": function.__module__, "name": function.__name__, "data": data}
    request |= {"cpu": CPU_SECONDS, "memory": MEMORY_MB, "reply": MAX_REPLY}
    # -P: a file beside the submissions is no module
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import work; work()"
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", code],
            input=json.dumps(request, default=str).encode(),
            capture_output=True,
            timeout=WALL_SECONDS,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise ReaderDied(f"took more than {WALL_SECONDS:g} s") from None
    if done.returncode == -signal.SIGXCPU:
        raise ReaderDied(f"took more than {CPU_SECONDS} s of computing time")
    if done.returncode < 0:
        raise ReaderDied(f"ended its process ({done.returncode})")
    if done.returncode:
        raise RuntimeError(done.stderr.decode("utf-8", "replace")[-4000:])
    result = json.loads(done.stdout)
    if "died" in result:
        raise ReaderDied(result["died"])
    return result["done"]


def work() -> None:
    """Call the function that the input names, within its limits, and write the result."""
    if sys.platform == "linux":
        linux.prctl(linux.DEATH_SIGNAL, signal.SIGKILL)
    request = json.load(sys.stdin)
    function = getattr(importlib.import_module(request["module"]), request["name"])
    spent = int(time.process_time()) + request["cpu"]
    limits = {name: size + request["memory"] * MB for name, size in mapped_bytes().items()}
    for name, limit in {**limits, "CPU": spent, "CORE": 0, "FSIZE": 0}.items():
        with suppress(AttributeError, OSError, ValueError):  # unknown here, or already lower
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (limit, limit + 1))
    try:
        text = json.dumps({"done": function(request["data"])}, default=list)
    except (MemoryError, RecursionError) as error:
        word = "went too deep"
        if isinstance(error, MemoryError):
            word = f"needed more than {request['memory']} MB of memory"
        text = json.dumps({"died": word})
    if len(text) > request["reply"]:
        text = json.dumps({"died": "gave more than can be kept"})
    print(text, flush=True)
