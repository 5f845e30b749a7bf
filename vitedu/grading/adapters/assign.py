"""Write the notebooks as assignments: copies for students, or source notebooks for nbgrader.

Role: ``assign`` and ``assign_nbgrader``.

In an nbgrader source notebook the stub contains the reference between nbgrader's marks, which
``generate_assignment`` removes again. The cell that checks an exercise becomes its autograded test:
it is locked and ends in ``report.points``, which nbgrader reads as partial credit. nbgrader runs
the notebook and trusts its output, so a student can forge these points. ``vitedu grade`` does not
trust it, and can read nbgrader's ``submitted/``.
"""

import ast
import json
import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from vitedu.course.notebooks import exercise_cells, find_notebooks, read
from vitedu.course.parsing import parse
from vitedu.course.references import solution_source
from vitedu.exercises import BY_ID

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
SCHEMA_VERSION = 3
CELL_SECONDS = 600  # time limit of one cell; nbgrader's default of 30 is too short for training

README = """\
# Notebooks for students

{table}

Hand these out; they hold stubs, no solutions and no outputs. \
Students need the package too: `pip install` it, then
`jupyter lab`. Returned notebooks in one folder are graded with `vitedu grade FOLDER --out GRADES`.
"""

CONFIG = f'''\
"""nbgrader, for the course's notebooks. Written by `vitedu assign --nbgrader`."""

import os

os.environ.setdefault("VITEDU_PROFILE", "quick")  # kernels inherit it: training takes seconds

c = get_config()  # noqa: F821 - nbgrader gives it
c.CourseDirectory.course_id = "vitedu"
c.Execute.timeout = {CELL_SECONDS}
c.ClearSolutions.code_stub = {{"python": "# your code here\\nraise NotImplementedError"}}
'''


def assign(out: Path, notebooks: Path = Path("notebooks")) -> list[Path]:
    """Copy notebooks for students, without outputs and with a README.

    Returns:
        The files that were written.

    Raises:
        FileNotFoundError, ValueError: as ``find_notebooks``; or ``out`` is the notebooks' folder.
    """
    sources = find_notebooks(notebooks)
    out = _make_folder(out, sources)
    paths, rows = [], ["| notebook | exercises | points |", "|---|---|---|"]
    for source in sources:
        notebook = _clear_outputs(read(source))
        paths.append(_write(notebook, out / source.name))
        own = [BY_ID[id] for _, id in exercise_cells(notebook) if id in BY_ID]
        rows.append(f"| {source.name} | {len(own)} | {sum(e.points for e in own)} |")
    readme = out / "README.md"
    readme.write_text(README.format(table="\n".join(rows)), encoding="utf-8")
    return [*paths, readme]


def assign_nbgrader(out: Path, notebooks: Path = Path("notebooks")) -> list[Path]:
    """Write an nbgrader course: ``source/<notebook>/<notebook>.ipynb`` and ``nbgrader_config.py``.

    Returns:
        The files that were written. An existing configuration is not changed.

    Raises:
        FileNotFoundError, ValueError: as ``find_notebooks`` and ``source_notebook``.
    """
    sources = find_notebooks(notebooks)
    out = _make_folder(out, sources)
    pairs = [(source, source_notebook(read(source))) for source in sources]
    paths = []
    for source, notebook in pairs:
        folder = out / "source" / source.stem
        folder.mkdir(parents=True, exist_ok=True)
        paths.append(_write(notebook, folder / source.name))
    config = out / "nbgrader_config.py"
    if not config.exists():
        config.write_text(CONFIG, encoding="utf-8")
        paths.append(config)
    return paths


def source_notebook(notebook: NotebookNode) -> NotebookNode:
    """Turn a student's notebook into a source notebook of nbgrader.

    Raises:
        ValueError: an exercise is unknown, its stub leaves nothing open, or no cell checks it.
    """
    result = _clear_outputs(notebook)
    for index, id in exercise_cells(notebook):
        if id not in BY_ID:
            raise ValueError(f"cell {index} has the stub of an unknown exercise {id!r}.")
        stub = result.cells[index]
        stub.source = insert_solution(stub.source, solution_source(BY_ID[id]), id)
        stub.metadata["nbgrader"] = _grading_metadata(id, solution=True)
        check = next((cell for cell in result.cells[index + 1 :] if _checks(cell, id)), None)
        if check is None:
            raise ValueError(f"no cell below the stub of {id} says check({id}).")
        check.source = f"{check.source.rstrip()}\nreport.points  # nbgrader's partial credit"
        check.metadata["nbgrader"] = _grading_metadata(f"{id}-points", points=BY_ID[id].points)
    return result


def insert_solution(stub: str, reference: str, name: str) -> str:
    """Put the reference's code into a stub, between nbgrader's marks.

    The rest of the stub stays: signature, docstring, TODO comments, given methods.

    Raises:
        ValueError: the stub leaves nothing open, or the reference has no such method.

    Example:
        >>> print(insert_solution("x = None  # TODO", "x = 3", "x"))
        x = None  # TODO
        ### BEGIN SOLUTION
        x = 3
        ### END SOLUTION
    """
    lines, solutions = stub.split("\n"), _find_functions(reference)
    open_functions = [
        (place, node)
        for place, node in _find_functions(stub).items()
        if isinstance(node.body[-1], ast.Raise)
        and "NotImplementedError" in ast.unparse(node.body[-1])
    ]
    for place, node in sorted(open_functions, key=lambda item: -item[1].lineno):
        if place not in solutions:
            raise ValueError(f"{name}: the reference has no {'.'.join(place)}.")
        last = node.body[-1]
        margin = " " * last.col_offset
        body = _body_lines(solutions[place], reference)
        lines[last.lineno - 1 : last.end_lineno] = [f"{margin}{BEGIN}", *body, f"{margin}{END}"]
    if not open_functions:
        if _find_functions(stub):
            raise ValueError(f"{name}: the stub leaves nothing open.")
        lines += [BEGIN, *reference.split("\n"), END]
    return "\n".join(lines)


def _find_functions(source: str) -> dict[tuple[str, ...], ast.FunctionDef]:
    """Return the functions of a source and the methods of its classes, by name."""
    functions: dict[tuple[str, ...], ast.FunctionDef] = {}
    for node in parse(source).body:
        if isinstance(node, ast.FunctionDef):
            functions[(node.name,)] = node
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    functions[(node.name, inner.name)] = inner
    return functions


def _body_lines(function: ast.FunctionDef, source: str) -> list[str]:
    """Return the lines of a function below its docstring, with comments."""
    first, lines = function.body[0], source.split("\n")
    start = function.body[0].lineno - 1
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        start = first.end_lineno or start
    return lines[start : function.end_lineno]


def _checks(cell: NotebookNode, id: str) -> bool:
    """Tell whether a cell checks an exercise."""
    return cell.cell_type == "code" and bool(
        re.search(rf"^report = check\({id}\b", cell.source, re.M)
    )


def _grading_metadata(grade_id: str, *, solution: bool = False, points: int | None = None) -> dict:
    """Make nbgrader's metadata of a cell."""
    fields = {} if points is None else {"points": points}
    return {
        "grade": points is not None,
        "grade_id": grade_id,
        "locked": points is not None,
        "schema_version": SCHEMA_VERSION,
        "solution": solution,
        "task": False,
        **fields,
    }


def _clear_outputs(notebook: NotebookNode) -> NotebookNode:
    result = nbformat.from_dict(json.loads(json.dumps(notebook)))
    for cell in result.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return result


def _make_folder(out: Path, sources: list[Path]) -> Path:
    """Create the output folder, which must not be the folder of the notebooks."""
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file; name a folder.")
    if out.resolve() == sources[0].parent.resolve():
        raise ValueError(f"{out} holds the notebooks themselves; write to another folder.")
    out.mkdir(parents=True, exist_ok=True)
    return out


def _write(notebook: NotebookNode, path: Path) -> Path:
    path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    return path
