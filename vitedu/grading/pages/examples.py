"""Pages without names: the examples of each mistake, and what ``--anonymous`` writes.

Role: ``examples_page`` collects an answer or two for each recognised mistake, to be discussed in
the next session. ``without_name`` gives students numbers in place of names. A name that a student
wrote into the answer itself stays: look at a page before you show it.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256

from vitedu.course.parsing import parse
from vitedu.exercises import EXERCISES
from vitedu.grading.grades import ExerciseGrade, SubmissionGrade
from vitedu.grading.pages.class_report import explain_mistake
from vitedu.grading.pages.skeleton import render

MAX_EXAMPLES = 2  # of a mistake


def number_students(students: Iterable[str], secret: int) -> dict[str, str]:
    """Give each student a number in place of the name, in an order that a secret decides."""
    mixed = sorted(students, key=lambda name: sha256(f"{secret} {name}".encode()).digest())
    return {name: f"student {place:03}" for place, name in enumerate(mixed, 1)}


def without_name(grade: SubmissionGrade, number: str) -> SubmissionGrade:
    """Return a grade with a number in place of the name, without what may name a student.

    Flags name others, and what could not be read is named by its file.
    """
    exercises = [replace(each, place="", detail="", flags=[]) for each in grade.exercises]
    own = {"student": number, "files": ["a file"], "identity": {}, "flags": []}
    return replace(grade, exercises=exercises, **own)


def examples_page(grades: Iterable[SubmissionGrade], students: Iterable[str]) -> str:
    """Write the page of the mistakes that were recognised, the most frequent of an exercise first.

    Args:
        grades: of the class.
        students: an answer in which one of these names stands is no example.
    """
    names = re.compile("|".join(map(re.escape, sorted(students))) or "(?!)", re.IGNORECASE)
    found: dict[tuple[str, str], list[tuple[ExerciseGrade, str]]] = defaultdict(list)
    for grade in grades:
        for each in grade.exercises:
            for mistake in each.misconceptions:
                code = _bare(each.code)
                found[each.exercise, mistake].append((each, "" if names.search(code) else code))
    parts = []
    for exercise in EXERCISES:
        own = {mistake: rows for (id, mistake), rows in found.items() if id == exercise.id}
        if own:
            rows = sorted(own.items(), key=lambda item: (-len(item[1]), item[0]))
            parts.append((exercise, [_describe(exercise.id, *row) for row in rows]))
    return render("examples.html", title="Mistakes to talk about", parts=parts)


def _describe(exercise: str, mistake: str, rows: list[tuple[ExerciseGrade, str]]) -> dict:
    name, why, _ = explain_mistake(exercise, mistake)
    codes = {code: grade for grade, code in rows if code}
    chosen = sorted(codes, key=lambda code: (len(code), code))[:MAX_EXAMPLES]
    examples = [(code, codes[code].lines) for code in chosen]
    return {"students": len(rows), "name": name, "why": why, "examples": examples}


def _bare(code: str) -> str:
    """Write an answer without comments, which may name its author; "" if it is no Python."""
    try:
        return ast.unparse(parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
