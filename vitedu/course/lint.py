"""Rules that keep notebooks, references and syllabus consistent, and what they mend themselves.

Role: ``lint`` lists the problems of one notebook: the place, and what to do. ``fix_notebook``
writes what a notebook takes from its references: an author marks a cell with its exercise and
writes the TODO lines. Nothing is run and no reference is imported. Not here: checkers
(``proof.inspection``); names and imports, which ruff checks; links, and budgets of time and length
(``tests/test_core.py``).
"""

import ast
import copy
import re
import warnings
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from vitedu.course import colab
from vitedu.course.notebooks import NBVAL_TAG, exercise_cells, read, without_outputs, write
from vitedu.course.parsing import parse
from vitedu.course.references import check_lines, stub_text
from vitedu.exercises import BY_ID, Exercise, in_file


def lint(path: Path) -> list[str]:
    """List what is wrong with one notebook of the course.

    Args:
        path: the student variant, named as in the syllabus.

    Returns:
        Sentences that name file, cell and remedy; an empty list if nothing is wrong.

    Raises:
        ValueError: the file is not a notebook, or an exercise has no reference.
    """
    notebook = read(path)
    problems = [
        *_lint_file(notebook),
        *_lint_exercises(notebook, path.stem),
        *colab.find_problems(notebook, path.stem),
    ]
    return [f"{path.name}, {problem}" for problem in problems]


def fix_notebook(path: Path) -> bool:
    """Write the stubs of cells that hold TODO lines alone, and check cells; clear what a run left.

    A stub that is there stays: ``lint`` says where it differs from its reference.

    Returns:
        Whether the file has changed.
    """
    before = read(path)
    notebook = without_outputs(before, NBVAL_TAG)
    cells = notebook.cells
    for index, name in reversed([*exercise_cells(notebook)]):
        if (exercise := BY_ID.get(name)) is None:
            continue
        lines = [line for line in cells[index].source.splitlines() if line.strip()]
        if all(line.startswith("#") for line in lines):
            cells[index].source = stub_text(exercise, "\n".join(lines))
        if not any(c.source.startswith("report = check(") for c in cells[index + 1 : index + 2]):
            own = f"{exercise.id.replace('_', '-')}-check"
            cells.insert(index + 1, new_code_cell("\n".join(check_lines(exercise)), id=own))
    notebook.metadata.pop("widgets", None)
    if notebook != before:
        write(notebook, path)
    return notebook != before


def _lint_file(notebook: NotebookNode) -> Iterator[str]:
    """Rule: valid nbformat, unique cell ids, and outputs only where nbval compares them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # that a cell has no id, or that of another one
        try:
            nbformat.validate(copy.deepcopy(notebook))
        except (nbformat.ValidationError, Warning) as error:
            fault = str(error).splitlines()[0]
            yield f"file: not valid nbformat ({fault}); give each cell an id of its own, and save."
    cleared = without_outputs(notebook, NBVAL_TAG).cells
    if count := sum(old != new for old, new in zip(notebook.cells, cleared, strict=True)):
        yield (
            f"file: {count} cells hold an output or a count that nothing compares; `vitedu lint "
            f"--fix` clears them. Or tag a cell {NBVAL_TAG}."
        )


def _lint_exercises(notebook: NotebookNode, stem: str) -> Iterator[str]:
    """Rule: every exercise of this notebook has one stub, in order, with its check below."""
    places, own = list(exercise_cells(notebook)), [exercise.id for exercise in in_file(stem)]
    for name, expected in zip_longest((name for _, name in places), own, fillvalue="nothing"):
        if name != expected:
            yield (
                f"file: has the stub of {name} where vitedu/course/exercises.toml has {expected}; "
                'mark one cell for each exercise, in order, with {"vitedu": {"exercise": its id}}.'
            )
            break
    for index, name in places:
        if name in own:
            place = f"cell {notebook.cells[index].get('id', index)!r}"
            problems = _lint_stub(notebook, index, BY_ID[name])
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
