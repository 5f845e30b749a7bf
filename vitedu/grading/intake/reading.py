"""Read a stranger's files in a process that may die, so that no text can stop a class.

Role: ``read_submission`` and ``read_student_name`` have a task done by a child of the *reader*, a
process that loads the modules of this room once, without torch. Every task gets a fork of its own
with little time and memory, and answers with JSON. If it dies, that is a finding of its submission.
Not here: what the tasks do (``extraction``, ``notebook_file``, ``scan``, ``similarity``).
"""

import atexit
import json
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from vitedu.exercises import EXERCISES
from vitedu.grading.box.limits import MB, mapped_bytes
from vitedu.grading.box.names import Statement
from vitedu.grading.grades import Answer, Flag, Program, Submission
from vitedu.grading.intake import scan
from vitedu.grading.intake.extraction import Extraction, extract
from vitedu.grading.intake.notebook_file import read_notebook
from vitedu.grading.intake.similarity import token_runs
from vitedu.grading.intake.submissions import notebook_of

CPU_SECONDS = 20  # of one submission; the solved course takes 2 s
WALL_SECONDS = 300.0  # on a crowded machine
MEMORY_MB = 1024  # beyond what the reader has mapped; the solved course takes 40 MB
MAX_REPLY = 64 * MB  # bytes
MAX_NAME = 200  # characters of a student's name in a notebook


class ReaderDied(Exception):
    """A task ended its process; the message says how."""


def read_submission(submission: Submission) -> Extraction:
    """Find a student's answers, in another process. Never raises because of what was handed in.

    Raises:
        RuntimeError: a fault of the grader, with the traceback of the other process.
    """
    try:
        return unpack_extraction(READER.call("extract", pack_submission(submission)))
    except ReaderDied as death:
        words = f"reading what was handed in {death}"
        names = {notebook_of(path.name) for path in submission.files} - {""}
        problems = {exercise.id: ("unreadable", words) for exercise in EXERCISES}
        return Extraction({}, problems, [*submission.flags, Flag("unreadable", words)], names)


def read_student_name(path: Path) -> str:
    """Read the name that a notebook's metadata give, in another process; "" if there is none."""
    try:
        return READER.call("student_name", str(path))
    except ReaderDied:
        return ""


# --- as plain data -------------------------------------------------------------------------------


def pack_submission(submission: Submission) -> dict:
    """Write a submission as data for JSON."""
    return asdict(submission) | {"files": [str(path) for path in submission.files]}


def unpack_submission(data: dict) -> Submission:
    """Read what ``pack_submission`` wrote."""
    files, flags = tuple(map(Path, data["files"])), tuple(Flag(**f) for f in data["flags"])
    return Submission(**data | {"files": files, "flags": flags})


def pack_extraction(found: Extraction) -> dict:
    """Write what was found as data for JSON; the statements, which all answers share, once."""
    programs = [answer.program for answer in found.answers.values() if answer.program]
    spaces = programs[0].spaces if programs else {}
    bare = {
        exercise: replace(answer, program=answer.program and replace(answer.program, spaces={}))
        for exercise, answer in found.answers.items()
    }
    return asdict(replace(found, answers=bare)) | {
        "notebooks": sorted(found.notebooks),
        "spaces": [[name, list(places.values())] for name, places in spaces.items()],
    }


def unpack_extraction(data: dict) -> Extraction:
    """Read what ``pack_extraction`` wrote."""
    answers = {}
    spaces = {
        name: {place: Statement(*each) for place, each in enumerate(statements)}
        for name, statements in data["spaces"]
    }
    for exercise, own in data["answers"].items():
        known: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in own.items()}
        known["flags"] = tuple(Flag(**flag) for flag in own["flags"])
        if program := own["program"]:
            targets = [tuple(target) for target in program["targets"]]
            known["program"] = Program(**program | {"spaces": spaces, "targets": targets})
        answers[exercise] = Answer(**known)
    problems = {exercise: tuple(words) for exercise, words in data["problems"].items()}
    flags = [Flag(**flag) for flag in data["flags"]]
    return Extraction(answers, problems, flags, set(data["notebooks"]))


# --- the tasks, inside ---------------------------------------------------------------------------


def _extract(data: dict) -> dict:
    found = extract(unpack_submission(data))
    for exercise, answer in found.answers.items():
        found.answers[exercise] = replace(answer, runs=token_runs(answer))
    return pack_extraction(found)


def _find_student_name(path: str) -> str:
    metadata = read_notebook(Path(path)).metadata
    own, authors = metadata.get("vitedu"), metadata.get("authors")
    names = [own.get("student") if isinstance(own, dict) else None]
    if isinstance(authors, list) and authors and isinstance(authors[0], dict):
        names.append(authors[0].get("name"))
    return next((n[:MAX_NAME] for n in names if isinstance(n, str) and n[:MAX_NAME].strip()), "")


TASKS: dict[str, Callable[[Any], Any]] = {"extract": _extract, "student_name": _find_student_name}


# --- the reader ----------------------------------------------------------------------------------


class Reader:
    """The reader, which starts with its first task and ends with this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen | None = None

    def call(self, task: str, data: Any) -> Any:
        """Have a task done; several threads may call.

        Raises:
            ReaderDied: it ended its process or went beyond a limit.
            RuntimeError: it raised, which is a fault of the grader.
        """
        limits = {"cpu": CPU_SECONDS, "wall": WALL_SECONDS, "memory": MEMORY_MB, "reply": MAX_REPLY}
        line = json.dumps({"task": task, "data": data, **limits}).encode() + b"\n"
        with self._lock:
            reply = self._send(line) or self._send(line)  # a reader that was killed starts again
        result = json.loads(reply or '{"fault": "the reader ended twice"}')
        if "died" in result:
            raise ReaderDied(result["died"])
        if "fault" in result:
            raise RuntimeError(result["fault"])
        return result["done"]

    def _send(self, line: bytes) -> bytes:
        """Return the reader's reply; "" if it ended."""
        if self._process is None:
            # -P: a file beside the submissions is no module
            code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve()"
            words, pipe = [sys.executable, "-P", "-c", code], subprocess.PIPE
            self._process = subprocess.Popen(words, stdin=pipe, stdout=pipe, start_new_session=True)
            names = {each.id: scan.checker_names(each.id) for each in EXERCISES}
            line = json.dumps(names).encode() + b"\n" + line
        requests, replies, reply = self._process.stdin, self._process.stdout, b""
        assert requests and replies
        try:
            with suppress(BrokenPipeError):
                requests.write(line)
                requests.flush()
                reply = replies.readline()
        finally:
            if not reply.endswith(b"\n"):  # it ended, or this process was interrupted
                self.close()
        return reply if reply.endswith(b"\n") else b""

    def close(self) -> None:
        """End the reader; the next task starts another one."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


READER = Reader()
atexit.register(READER.close)


def serve() -> None:
    """Do the tasks that the lines of the input name, until the parent ends."""
    scan.NAMES.update(json.loads(sys.stdin.buffer.readline()))
    with suppress(BrokenPipeError):
        while line := sys.stdin.buffer.readline():
            sys.stdout.buffer.write(_fork(json.loads(line)) + b"\n")
            sys.stdout.buffer.flush()


def _fork(request: dict) -> bytes:
    """Do one task in a fork; return its result, or how it died."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read_end)
        _work(request, write_end)
    os.close(write_end)
    result, death, deadline = b"", "", time.monotonic() + request["wall"]
    while not death:
        ready, _, _ = select.select([read_end, 0], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            death = f"took more than {request['wall']:g} s"
        elif 0 in ready:  # the parent has ended, because it sends nothing before it has a reply
            death = "was given up"
        elif piece := os.read(read_end, MB):
            result += piece
            death = "gave more than can be kept" if len(result) > request["reply"] else ""
        else:
            break
    os.close(read_end)
    if death:
        os.kill(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status == -signal.SIGXCPU:
        death = f"took more than {request['cpu']} s of computing time"
    elif status:
        death = death or f"ended its process ({status})"
    return json.dumps({"died": death}).encode() if death else result


def _work(request: dict, fd: int) -> None:
    """Do a task within its limits, write the result, and end this process."""
    os.dup2(os.open(os.devnull, os.O_RDWR), 2)  # a message of Python's end is nobody's to read
    try:
        spent = int(time.process_time()) + request["cpu"]
        limits = {name: size + request["memory"] * MB for name, size in mapped_bytes().items()}
        for name, limit in {**limits, "CPU": spent, "CORE": 0, "FSIZE": 0}.items():
            with suppress(AttributeError, OSError, ValueError):  # unknown here, or already lower
                resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (limit, limit + 1))
        result = {"done": TASKS[request["task"]](request["data"])}
    except MemoryError:
        result = {"died": f"needed more than {request['memory']} MB of memory"}
    except RecursionError:
        result = {"died": "went too deep"}
    except BaseException:
        result = {"fault": traceback.format_exc(limit=-12)[-4000:]}
    with os.fdopen(fd, "wb") as file:
        file.write(json.dumps(result).encode())
        file.flush()
    os._exit(0)
