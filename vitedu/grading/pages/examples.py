"""Pages without names: the examples of each mistake, and what ``--anonymous`` writes.

Role: ``examples_page`` collects an answer or two for each recognised mistake, to be discussed in
the next session. ``Hide`` gives students numbers in place of names. A name that a student wrote
into the answer itself is not found by ``Hide``: look at a page before you show it.
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


class Hide:
    """Takes the names of a class out of its grades."""

    def __init__(self, students: Iterable[str], secret: int):
        mixed = sorted(students, key=lambda name: sha256(f"{secret} {name}".encode()).digest())
        self._names = {name: f"student {place:03}" for place, name in enumerate(mixed, 1)}
        words = sorted(map(re.escape, mixed), key=len, reverse=True)
        self._pattern = re.compile(rf"(?<!\w)(?:{'|'.join(words) or '(?!)'})(?!\w)")

    def name(self, student: str) -> str:
        """Give a student's number."""
        return self._names[student]

    def table(self) -> list[tuple[str, str]]:
        """List numbers and names, for the instructor."""
        return [(number, student) for student, number in self._names.items()]

    def text(self, words: str, files: Iterable[str] = ()) -> str:
        """Put numbers in the place of names."""
        for file in files:
            words = words.replace(file, "a file")
        return self._pattern.sub(lambda found: self._names[found[0]], words)

    def grade(self, grade: SubmissionGrade) -> SubmissionGrade:
        """Return a grade whose student, files and flags bear no name."""

        def hide(each):
            flags = [replace(f, message=self.text(f.message, grade.files)) for f in each.flags]
            return replace(each, flags=flags)

        exercises = [
            hide(replace(each, place="", detail=self.text(each.detail, grade.files)))
            for each in grade.exercises
        ]
        own = {"student": self.name(grade.student), "files": ["a file"], "identity": {}}
        return replace(hide(grade), exercises=exercises, **own)


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
