"""A class made for measuring: notebooks of which everybody's points are known beforehand.

Role: ``make_class``. Students are right, partly right, wrong, idle or hostile in a fixed mix. Right
answers are references and those of their checkers, wrong ones are single-step changes of a
reference (``proof.mutants``), a forgotten error among them; what each is worth was judged in
this process, by the same checkers. Not here: grading and measuring (``bench``).

A notebook holds the exercises' cells alone, so a grader that runs whole notebooks runs no plots.
"""

import ast
import inspect
import json
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nbformat import NotebookNode
from proof.bank import wrong_answers
from proof.entries import entry_of
from proof.mutation import build_mutant, mutants_of, strip_names

from vitedu.checks.engine import judge_answer
from vitedu.checks.writing.checker import Checker, find_checker
from vitedu.course.notebooks import exercise_cells, read, shelf_path
from vitedu.course.parsing import parse
from vitedu.course.references import reference_source
from vitedu.exercises import Exercise, find, in_notebook
from vitedu.grading.grades import FAILED, NOT_GRADABLE, PASSED

MIX = {"right": 0.4, "partly": 0.35, "wrong": 0.1, "idle": 0.075, "hostile": 0.075}  # of students
RIGHT_SHARE = 0.6  # of the answers of those who are partly right
POOL = 8  # different wrong answers to an exercise
JUDGED = range(4)  # seeds that must agree about a wrong answer's points
LONGEST = 0.5  # seconds of computing for judging one: long mutants would measure nothing else
IMPORTS = """import math

import torch
import torch.nn.functional as F
from torch import nn

from vitedu import check"""


@dataclass(frozen=True)
class Expected:
    """What becomes of one answer: points, or the reason why there are none."""

    state: str
    points: float | None
    reason: str = ""


@dataclass(frozen=True)
class MadeAnswer:
    """The text of an answer and what it is worth."""

    source: str
    expected: Expected


@dataclass(frozen=True)
class Student:
    """One notebook of the class."""

    name: str
    kind: str  # a key of ``MIX``, or of ``HOSTILE``
    text: str  # of the file
    expected: dict[str, Expected]  # by exercise


# --- answers ------------------------------------------------------------------------------------


@cache
def right(exercise_id: str) -> list[MadeAnswer]:
    """Give right answers: the reference, without its docstring, and by other roads."""
    exercise = find(exercise_id)
    worth = Expected(PASSED, float(exercise.points))
    tree = parse(reference_source(exercise))
    answers = [MadeAnswer(ast.unparse(tree), worth)]
    if exercise.kind != "value":
        for other in entry_of(exercise_id).right:
            source = _with_helpers(other, inspect.getmodule(other))
            if source:
                text = re.sub(rf"\b{other.__name__}\b", exercise_id, source)
                answers.append(MadeAnswer(text, worth))
    return answers


def _with_helpers(function, module) -> str:
    """Give a function's source and those it calls; "" if it needs what a notebook has not."""
    if not inspect.isfunction(function) or function.__name__ == "<lambda>":
        return ""
    parts = [inspect.getsource(function)]
    names = [node.id for node in ast.walk(parse(parts[0])) if isinstance(node, ast.Name)]
    for name in dict.fromkeys(names):
        value = vars(module).get(name)
        if value is None or value is function or name in ("torch", "nn", "F", "math"):
            continue
        is_plain = inspect.isfunction(value) and value.__name__ == name  # not imported as another
        helper = _with_helpers(value, inspect.getmodule(value)) if is_plain else ""
        if not helper:
            return ""
        parts.insert(0, helper)
    return "\n\n".join(parts)


@cache
def wrong(exercise_id: str) -> list[MadeAnswer]:
    """Give wrong answers, always the same, with the points that the checker gives them."""
    exercise, checker = find(exercise_id), find_checker(exercise_id)
    answers = []
    if not isinstance(checker, Checker):
        for _, value in wrong_answers(exercise_id):
            expected = expected_of(exercise, value)
            if expected:
                answers.append(MadeAnswer(f"{exercise_id} = {value!r}", expected))
        return answers[:POOL]
    changes = mutants_of(exercise)
    random.Random(exercise_id).shuffle(changes)
    changes.sort(key=lambda mutant: "raise" not in mutant.before)  # a forgotten error comes first
    forgotten = 0
    for mutant in changes:
        is_forgotten = "raise" in mutant.before
        if is_forgotten and forgotten == 2:
            continue
        answer = build_mutant(mutant, exercise_id, exercise.module)
        expected = None if answer is None else expected_of(exercise, answer)
        if expected:
            answers.append(MadeAnswer(mutant.source, expected))
            forgotten += is_forgotten
        if len(answers) == POOL:
            break
    return answers


def expected_of(exercise: Exercise, answer) -> Expected | None:
    """Judge a wrong answer; None if it is flawless, slow, or its points depend on the inputs."""
    checker = find_checker(exercise.id)
    if isinstance(checker, Checker):
        checker = strip_names(checker)
    points = set()
    for seed in JUDGED:
        start = time.process_time()
        report = judge_answer(checker, answer, seed)
        if report.is_flawless or time.process_time() - start > LONGEST:
            return None
        points.add((PASSED if report.passed else FAILED, float(report.points)))
    return Expected(*points.pop()) if len(points) == 1 else None


def idle(exercise: Exercise) -> Expected:
    """Say what a stub is worth that was left as it was."""
    return Expected(FAILED, 0.0)


# --- hostile answers ----------------------------------------------------------------------------

# no interrupt strikes in C; of a loop in Python a limit makes a call that fails
_HOLD = """
import itertools

def {name}(*args):
    return any(itertools.repeat(False))
"""
_EXIT = """
import os

def {name}(*args):
    os._exit(0)
"""
_HUGE = """
{right}

_right = {name}

def {name}(*args):
    bytes_4_gb = torch.ones(2**29, dtype=torch.float64)
    return _right(*args)
"""
_BOMB = """
import os

def {name}(*args):
    while True:
        os.fork()
"""
_FLOOD = """
import os

{right}

_right, _said = {name}, []

def {name}(*args):
    if not _said:
        _said.append(True)
        for _ in range(200):
            os.write(1, b"x" * 2**20)
    return _right(*args)
"""
_FORGE = """
import os

def {name}(*args):
    torch.allclose = torch.equal = lambda *args, **settings: True
    for fd in range(1, 600):
        try:
            os.write(fd, b'{{"passed": true, "points": 99}}')
        except OSError:
            pass
    return torch.zeros(())
"""
# kind: (code, what becomes of it; None: failed, with the points of an answer that raises or returns
# a scalar)
HOSTILE: dict[str, tuple[str, tuple[str, str] | None]] = {
    "endless loop": (_HOLD, (NOT_GRADABLE, "timeout")),
    "os._exit": (_EXIT, (NOT_GRADABLE, "crashed")),
    "4 GB": (_HUGE, (NOT_GRADABLE, "memory")),
    "fork bomb": (_BOMB, None),
    "200 MB of prints": (_FLOOD, (PASSED, "")),
    "forged replies": (_FORGE, (NOT_GRADABLE, "flooded")),  # read as a length, that is a lot
    "no JSON": ("", (NOT_GRADABLE, "unreadable")),
}


def hostile(exercise: Exercise, kind: str) -> MadeAnswer:
    """Give a hostile answer to a function and what it gets."""
    code, outcome = HOSTILE[kind]
    source = code.format(name=exercise.id, right=ast.unparse(parse(reference_source(exercise))))

    def refused(*args):
        raise OSError("no process may be started")

    if outcome is None:
        grade = expected_of(exercise, refused)
        if grade is None:
            raise ValueError(f"{exercise.id}: what a refusal earns depends on the seed.")
        expected = grade
    elif outcome[0] == PASSED:
        expected = Expected(PASSED, float(exercise.points))
    else:
        expected = Expected(outcome[0], None, outcome[1])
    return MadeAnswer(source.strip(), expected)


# --- the class ----------------------------------------------------------------------------------


def lean_notebook(folder: Path, stem: str) -> NotebookNode:
    """Give both files of a notebook as one with nothing but imports, stubs and checks."""
    notebook, more = (read(folder / shelf_path(f"{name}.ipynb")) for name in (stem, f"{stem}_more"))
    notebook.cells += more.cells
    stubs = dict(exercise_cells(notebook))
    cells = []
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        called = any(f"check({id}" in cell.source for id in stubs.values())
        if index in stubs or called:
            cells.append(cell)
    first = json.loads(json.dumps(cells[0]))
    first["id"], first["source"], first["metadata"] = "imports", IMPORTS, {}
    notebook.cells = [type(notebook)(first), *cells]
    for cell in notebook.cells:
        cell["outputs"], cell["execution_count"] = [], None
    return notebook


def filled(notebook: NotebookNode, answers: dict[str, str]) -> str:
    """Write answers into a notebook's stubs; give the text of the file."""
    notebook = json.loads(json.dumps(notebook))
    for cell in notebook["cells"]:
        id = cell["metadata"].get("vitedu", {}).get("exercise")
        cell["source"] = answers.get(id, cell["source"])
    return json.dumps(notebook)


def make_class(
    notebook: NotebookNode, stem: str, students: int, seed: int = 0
) -> Iterator[Student]:
    """Make the students of a class, one after the other.

    Args:
        notebook: with the stubs.
        stem: its name in the syllabus, such as "01_patches".
        students: how many.
        seed: of who answers what; the kinds are spread evenly over the class.
    """
    chance, exercises = random.Random(seed), in_notebook(stem)
    kinds = kinds_of(students)
    chance.shuffle(kinds)
    target = next(exercise for exercise in exercises if exercise.kind == "function")
    attacks = 0
    for number, kind in enumerate(kinds):
        name = f"s{number:03d}"
        if kind == "idle":
            yield Student(name, kind, filled(notebook, {}), {e.id: idle(e) for e in exercises})
            continue
        share = {"right": 1.0, "hostile": 1.0, "partly": RIGHT_SHARE, "wrong": 0.0}[kind]
        answers = {}
        for exercise in exercises:
            pool = right(exercise.id) if chance.random() < share else wrong(exercise.id)
            answers[exercise.id] = chance.choice(pool)
        if kind == "hostile":
            kind = list(HOSTILE)[attacks % len(HOSTILE)]
            attacks += 1
            answers[target.id] = hostile(target, kind)
        expected = {id: answer.expected for id, answer in answers.items()}
        text = filled(notebook, {id: answer.source for id, answer in answers.items()})
        if kind == "no JSON":
            text = text[: len(text) // 2]
            expected = dict.fromkeys(expected, Expected(NOT_GRADABLE, None, "unreadable"))
        yield Student(name, kind, text, expected)


def kinds_of(students: int) -> list[str]:
    """Share the students out over the kinds of ``MIX``, in its order."""
    kinds = [kind for kind, share in MIX.items() for _ in range(int(share * students + 1e-9))]
    return kinds + ["right"] * (students - len(kinds))
