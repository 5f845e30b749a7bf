"""Read what a student handed in, in a process that may die.

Role: ``read_submission``, and submissions and extractions as data that JSON can hold. ``reader``
has the process; ``extraction`` and ``similarity`` do the work.
"""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from vitedu.exercises import EXERCISES
from vitedu.grading.box.names import Statement
from vitedu.grading.grades import Answer, Flag, Program, Submission
from vitedu.grading.intake import reader
from vitedu.grading.intake.extraction import Extraction, extract
from vitedu.grading.intake.similarity import token_runs
from vitedu.grading.intake.submissions import notebook_of


def read_submission(submission: Submission) -> Extraction:
    """Find a student's answers. Never raises because of what was handed in.

    Raises:
        RuntimeError: a fault of the grader, with the lines of the other process.
    """
    try:
        return unpack_extraction(reader.call(extract_plain, asdict(submission)))
    except reader.ReaderDied as death:
        words = f"reading what was handed in {death}"
        notebooks = {notebook_of(path.name) for path in submission.files} - {""}
        problems = {exercise.id: ("unreadable", words) for exercise in EXERCISES}
        return Extraction({}, problems, [*submission.flags, Flag("unreadable", words)], notebooks)


def extract_plain(data: dict) -> dict:
    """Find the answers of a submission, as data for JSON, with what compares them."""
    found = extract(unpack_submission(data))
    for exercise, answer in found.answers.items():
        found.answers[exercise] = replace(answer, runs=token_runs(answer))
    return pack_extraction(found)


# --- as plain data -------------------------------------------------------------------------------


def unpack_submission(data: dict) -> Submission:
    """Read a submission from its fields, of which the paths are texts."""
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
