"""Rules that keep notebooks, references and syllabus consistent.

Role: reads one notebook as data and lists its problems: the place, and what to do. Nothing is run
and no reference is imported. Not here: checkers (``proof.inspection``); names and imports,
which ruff checks; links, and budgets of time and length (``tests/test_core.py``).
"""

import ast
import copy
import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from vitedu.course import colab
from vitedu.course.notebooks import NBVAL_TAG, clear_outputs, exercise_cells, read
from vitedu.course.parsing import parse
from vitedu.course.stub_text import check_lines, stub_text
from vitedu.exercises import BY_ID, Exercise, in_file


def lint(path: Path) -> list[str]:
    """List what is wrong with one notebook of the course.

    Args:
        path: the student variant, named as in the syllabus.

    Returns:
        Sentences that name file, cell and remedy; an empty list if nothing is wrong.

    Raises:
        ValueError: the file is not a notebook.
    """
    path = Path(path)
    notebook = read(path)
    problems = [
        *_lint_format(notebook),
        *_lint_exercises(notebook, path.stem),
        *_lint_outputs(notebook),
        *colab.find_problems(notebook, path.stem),
    ]
    return [f"{path.name}, {problem}" for problem in problems]


# --- the file -----------------------------------------------------------------------------------


def _lint_format(notebook: NotebookNode) -> Iterator[str]:
    """Rule: valid nbformat, with unique cell ids."""
    ids = [cell.get("id") for cell in notebook.cells]
    faults = {name for name in ids if name is None or ids.count(name) > 1}
    for name in faults:
        yield f"cell {name!r}: {ids.count(name)} cells have this id; give each its own."
    if not faults:
        try:
            nbformat.validate(notebook)
        except nbformat.ValidationError as error:
            yield f"file: not valid nbformat ({error.message}); save it in Jupyter again."


def _lint_outputs(notebook: NotebookNode) -> Iterator[str]:
    """Rule: outputs are stored only where nbval compares them."""
    if count := clear_outputs(copy.deepcopy(notebook.cells)):
        yield (
            f"file: {count} cells hold an output or a count that nothing compares; `vitedu lint "
            f"--fix` clears them. Or tag a cell {NBVAL_TAG}."
        )


# --- the exercises ------------------------------------------------------------------------------


def _lint_exercises(notebook: NotebookNode, stem: str) -> Iterator[str]:
    """Rule: every exercise of this notebook has one stub, in order, with its check below."""
    places = list(exercise_cells(notebook))
    found, own = [name for _, name in places], [exercise.id for exercise in in_file(stem)]
    if not own:
        yield "file: the syllabus has no exercises in a notebook of this name; rename it."
    for name, expected in zip_longest(found, own, fillvalue="nothing"):
        if name != expected:
            yield (
                f"file: has the stub of {name} where vitedu/course/exercises.toml has {expected}; "
                'mark one cell for each exercise, in order, with {"vitedu": {"exercise": its id}}.'
            )
            break
    for index, name in places:
        if name in own:
            try:
                problems = [*_lint_stub(notebook, index, BY_ID[name])]
            except ValueError as error:  # there is no reference
                problems = [str(error)]
            place = f"cell {notebook.cells[index].get('id', index)!r}"
            yield from (f"{place}: {problem}" for problem in problems)


def _lint_stub(notebook: NotebookNode, index: int, exercise: Exercise) -> Iterator[str]:
    """Rule: a cell holds the stub of its reference and nothing else, the next one its check."""
    source = notebook.cells[index].source
    if not re.search(rf"# TODO {re.escape(exercise.number)}\b", source):
        yield f"the stub has no comment '# TODO {exercise.number}: ...'; say what to do."
    try:
        own = ast.unparse(parse(source)).splitlines()
    except SyntaxError as error:
        yield f"the stub is not valid Python ({error.msg}, line {error.lineno}); correct it."
        return
    wanted = ast.unparse(parse(stub_text(exercise, ""))).splitlines()
    for line, given in zip_longest(own, wanted, fillvalue=""):
        if line != given:
            yield (
                f"the stub of {exercise.id} has {line.strip()!r}, its reference gives "
                f"{given.strip()!r}; delete all but its TODO lines, and run `vitedu lint --fix`."
            )
            break
    first, second = check_lines(exercise)
    following = notebook.cells[index + 1 : index + 2]
    if [line for cell in following for line in cell.source.splitlines()[:2]] != [first, second]:
        yield f"the next cell must begin with the lines '{first}' and '{second}'."
