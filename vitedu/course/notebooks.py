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
from vitedu.exercises import BY_ID, MORE

NBVAL_TAG = "nbval-check-output"  # the tag of a cell whose stored output nbval compares


def find_notebooks(path: Path) -> list[Path]:
    """List the notebooks at a path: the file itself, or those of the folder, then of its ``more``.

    Raises:
        FileNotFoundError: the path does not exist.
        ValueError: it is not a notebook, or a folder without notebooks.
    """
    path = Path(path)
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
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        if content["nbformat"] != 4:
            raise ValueError(f"{path} has format {content['nbformat']}; save it in Jupyter as 4.")
        for cell in content["cells"]:
            if isinstance(cell["source"], list):
                cell["source"] = "".join(cell["source"])
            cell["metadata"], cell["cell_type"]  # noqa: B018 - a KeyError if one is missing
        return nbformat.from_dict(content)
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} cannot be read as a notebook: {error!r}.") from error


def clear_outputs(cells: list[dict]) -> int:
    """Drop what runs left in cells, but for outputs that nbval compares; count what changed."""
    changed = 0
    for cell in (cell for cell in cells if cell["cell_type"] == "code"):
        if NBVAL_TAG not in cell["metadata"].get("tags", ()):
            changed += bool(cell.get("outputs") or cell.get("execution_count"))
            cell.update(execution_count=None, outputs=[])
    return changed


def without_outputs(notebook: NotebookNode) -> NotebookNode:
    """Return a copy for a student: an output below an open exercise would give its answer away."""
    result = copy.deepcopy(notebook)
    for cell in result.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return result


def exercise_cells(notebook: NotebookNode) -> Iterator[tuple[int, str]]:
    """Yield the index of the cell and the exercise id of every stub, in order."""
    for index, cell in enumerate(notebook.cells):
        tags = cell.metadata.get("vitedu", {})
        if "exercise" in tags:
            yield index, tags["exercise"]


def solve_notebook(notebook: NotebookNode) -> NotebookNode:
    """Return a copy in which every stub is replaced by the source of its reference.

    Outputs are cleared, except those that nbval compares: right answers do not change them.

    Raises:
        ValueError: a stub names an exercise that the syllabus does not have, or its reference is
            missing.
    """
    result = copy.deepcopy(notebook)
    for index, exercise_id in exercise_cells(result):
        if exercise_id not in BY_ID:
            raise ValueError(f"cell {index} has the stub of an unknown exercise {exercise_id!r}.")
        result.cells[index].source = solution_source(BY_ID[exercise_id])
    clear_outputs(result.cells)
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
    out = Path(out)
    refuse_sources(sources, out)
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    for source in sources:
        try:
            text = nbformat.writes(solve_notebook(read(source)))
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from error
        paths.append(out / shelf_path(source.name))
        paths[-1].parent.mkdir(exist_ok=True)
        paths[-1].write_text(text + "\n", encoding="utf-8")
    return paths
