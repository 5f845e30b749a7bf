"""Notebooks as data: the exercises in them, and the solved variant.

Role: finds stubs by their cell metadata ``{"vitedu": {"exercise": "patchify"}}`` and replaces each
by the source of its reference. Rules for notebooks are in ``vitedu.course.lint``, running them is
in ``vitedu.course.tour``.
"""

import copy
import json
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from vitedu.course.references import solution_source
from vitedu.exercises import MORE, find
from vitedu.ground.files import write_whole

NBVAL_TAG = "nbval-check-output"  # the tag of a cell whose stored output nbval compares


def find_notebooks(path: Path) -> list[Path]:
    """List the notebooks at a path: the file itself, or those of the folder, then of its ``more``.

    Raises:
        FileNotFoundError: the path does not exist.
        ValueError: it is not a notebook, or a folder without notebooks.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no {path}.")
    if path.is_dir():
        paths = sorted(path.glob("*.ipynb")) + sorted(path.glob(f"{MORE}/*_{MORE}.ipynb"))
        if not paths:
            raise ValueError(f"no notebook (.ipynb) in the folder {path}.")
        return paths
    if path.suffix != ".ipynb":
        raise ValueError(f"{path} is not a notebook: its name does not end in .ipynb.")
    return [path]


def shelf_path(file: str) -> str:
    """Give the path of a notebook's file in a folder of notebooks.

    Example:
        >>> shelf_path("01_patches.ipynb"), shelf_path("01_patches_more.ipynb")
        ('01_patches.ipynb', 'more/01_patches_more.ipynb')
    """
    return f"{MORE}/{file}" if file.endswith(f"_{MORE}.ipynb") else file


def read(path: Path) -> NotebookNode:
    """Read a notebook in format 4.

    Raises:
        ValueError: the file is not a notebook of that format; the message names it.
    """
    try:
        notebook = nbformat.from_dict(json.loads(path.read_text(encoding="utf-8")))
        if notebook.nbformat != 4:
            raise ValueError(f"{path} has format {notebook.nbformat}; save it in Jupyter as 4.")
        for cell in notebook.cells:
            cell.source = "".join(cell.source)  # a list of lines, or a text
            cell.metadata, cell.cell_type  # noqa: B018 - an AttributeError if one is missing
        return notebook
    except (json.JSONDecodeError, UnicodeDecodeError, AttributeError, TypeError) as error:
        raise ValueError(f"{path} cannot be read as a notebook: {error!r}.") from error


def write(notebook: NotebookNode, path: Path) -> Path:
    """Write a notebook as Jupyter does, with the folder that it needs, and give its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, f"{nbformat.writes(notebook)}\n".encode())
    return path


def without_outputs(notebook: NotebookNode, keep: str = "") -> NotebookNode:
    """Return a copy without outputs: one below an open exercise would give its answer away.

    Args:
        notebook: the original.
        keep: the tag of cells that keep theirs, such as ``NBVAL_TAG``.
    """
    result = copy.deepcopy(notebook)
    for cell in result.cells:
        if cell.cell_type == "code" and keep not in cell.metadata.get("tags", ()):
            cell.outputs, cell.execution_count = [], None
    return result


def exercise_cells(notebook: NotebookNode) -> Iterator[tuple[int, str]]:
    """Yield the index of the cell and the exercise id of every stub, in order."""
    for index, cell in enumerate(notebook.cells):
        if name := cell.metadata.get("vitedu", {}).get("exercise"):
            yield index, name


def solve_notebook(notebook: NotebookNode) -> NotebookNode:
    """Return a copy in which every stub is replaced by the source of its reference.

    Outputs are cleared, except those that nbval compares: right answers do not change them.

    Raises:
        ValueError: a stub names an exercise that the syllabus does not have, or its reference is
            missing.
    """
    result = without_outputs(notebook, NBVAL_TAG)
    for index, exercise_id in exercise_cells(result):
        result.cells[index].source = solution_source(find(exercise_id))
    return result


def refuse_sources(sources: list[Path], out: Path) -> None:
    """Raise ValueError if notebooks written into a folder would lie among, or be, their sources."""
    for source in sources:
        place = (out / shelf_path(source.name)).resolve()
        if place == source.resolve() or out.resolve() == source.parent.resolve():
            raise ValueError(f"{out} holds the notebooks themselves; write to another folder.")


def solve(path: Path, out: Path) -> list[Path]:
    """Write the solved variant of a notebook, or of a folder of them, into the folder ``out``.

    Returns:
        The files that were written.

    Raises:
        FileNotFoundError, ValueError: as ``find_notebooks`` and ``solve_notebook``; or ``out`` is
            the folder of the notebooks, which would overwrite them.
    """
    sources = find_notebooks(path)
    refuse_sources(sources, out)
    return [write(solve_notebook(read(each)), out / shelf_path(each.name)) for each in sources]
