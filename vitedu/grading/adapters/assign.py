"""Write the notebooks as assignments: copies for students, or source notebooks for nbgrader.

Role: ``assign`` and ``assign_nbgrader``. Of a notebook that is assigned in part, ``limit_notebook``
gives the rest: an exercise that is left out imports the reference, so that later cells run.

In an nbgrader source notebook the reference stands below the stub, between nbgrader's marks, and
``generate_assignment`` removes it again. The cell that checks an exercise becomes its autograded
test: it is locked and ends in ``report.points``, which nbgrader reads as partial credit. nbgrader
runs the notebook and trusts its output, so a student can forge these points. ``vitedu grade`` does
not trust it, and can read nbgrader's ``submitted/``.
"""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from nbformat import NotebookNode

from vitedu.course.notebooks import (
    exercise_cells,
    find_notebooks,
    read,
    refuse_sources,
    shelf_path,
    without_outputs,
    write,
)
from vitedu.course.references import solution_source
from vitedu.course.workspace import PAGES, find_sources
from vitedu.exercises import BY_ID, EXERCISES, Exercise, find

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
GIVEN = "# This exercise is not assigned. Here is the course's own answer, for the cells below."
SCHEMA_VERSION = 3
TEMPLATES = Path(__file__).with_name("templates")


def assign(
    out: Path, notebooks: Path = Path("notebooks"), exercises: Sequence[Exercise] = EXERCISES
) -> list[Path]:
    """Copy notebooks for students, without outputs, with a README and the pages beside them.

    Args:
        out: a folder.
        notebooks: one of the course's, or a folder of them.
        exercises: what is assigned; a notebook without any is left out.

    Returns:
        The files that were written.
    """
    sources = _read_sources(out, notebooks, exercises)
    paths, rows = [], ["| notebook | exercises | points |", "|---|---|---|"]
    for source, notebook in sources:
        paths.append(write(notebook, out / shelf_path(source.name)))
        own = [BY_ID[id] for _, id in exercise_cells(notebook) if id in BY_ID]
        numbers = ", ".join(exercise.number for exercise in own)
        rows.append(f"| {shelf_path(source.name)} | {numbers} | {sum(e.points for e in own)} |")
    numbers = " ".join(exercise.number for exercise in exercises)
    choice = "" if len(exercises) == len(EXERCISES) else f" --exercises {numbers}"
    text = read_template("assigned.md").format(table="\n".join(rows), choice=choice)
    (out / "README.md").write_text(text, encoding="utf-8")
    folder = find_sources()[0].parent
    pages = [shutil.copyfile(folder / name, out / name) for name in PAGES]
    return [*paths, *pages, out / "README.md"]


def assign_nbgrader(
    out: Path, notebooks: Path = Path("notebooks"), exercises: Sequence[Exercise] = EXERCISES
) -> list[Path]:
    """Write an nbgrader course: ``source/<notebook>/<notebook>.ipynb`` and ``nbgrader_config.py``.

    Returns:
        The files that were written. An existing configuration is not changed.
    """
    read_sources = _read_sources(out, notebooks, exercises)
    sources = [(source, source_notebook(notebook)) for source, notebook in read_sources]
    paths = [write(each, out / "source" / source.stem / source.name) for source, each in sources]
    config = out / "nbgrader_config.py"
    if not config.exists():
        config.write_text(read_template("nbgrader_config.txt"), encoding="utf-8")
        paths.append(config)
    return paths


def limit_notebook(notebook: NotebookNode, exercises: Sequence[Exercise]) -> NotebookNode:
    """Return a student's notebook in which some of its exercises are assigned.

    The stub of another exercise becomes the import of its reference, or the value, and the cell
    that checks it goes.
    """
    result, chosen = without_outputs(notebook), {exercise.id for exercise in exercises}
    for index, id in reversed([each for each in exercise_cells(result) if each[1] not in chosen]):
        exercise, stub = BY_ID[id], result.cells[index]
        given = f"from {exercise.module} import {id}"
        stub.source = f"{GIVEN}\n{solution_source(exercise) if exercise.kind == 'value' else given}"
        del stub.metadata["vitedu"]
        result.cells[index + 1 :] = [c for c in result.cells[index + 1 :] if not _checks(c, id)]
    return result


def source_notebook(notebook: NotebookNode) -> NotebookNode:
    """Turn a student's notebook into a source notebook of nbgrader."""
    result = without_outputs(notebook)
    for index, id in exercise_cells(notebook):
        stub = result.cells[index]
        stub.source = "\n".join([stub.source, BEGIN, solution_source(find(id)), END])
        stub.metadata["nbgrader"] = _grading_metadata(id, solution=True)
        check = next((cell for cell in result.cells[index + 1 :] if _checks(cell, id)), None)
        if check is None:
            raise ValueError(f"no cell below the stub of {id} says check({id}).")
        check.source = f"{check.source.rstrip()}\nreport.points  # nbgrader's partial credit"
        check.metadata["nbgrader"] = _grading_metadata(f"{id}-points", points=BY_ID[id].points)
    return result


def read_template(name: str) -> str:
    """Read a text that is written beside notebooks."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _checks(cell: NotebookNode, id: str) -> bool:
    check = re.search(rf"^report = check\({id}\b", cell.source, re.M)
    return cell.cell_type == "code" and check is not None


def _grading_metadata(grade_id: str, **own) -> dict:
    """Write what nbgrader knows about a cell; one with points is a locked test."""
    kind = {"solution": False, "task": False, "schema_version": SCHEMA_VERSION}
    is_test = "points" in own
    return kind | {"grade_id": grade_id, "grade": is_test, "locked": is_test} | own


def _read_sources(
    out: Path, notebooks: Path, exercises: Sequence[Exercise]
) -> list[tuple[Path, NotebookNode]]:
    """Read the notebooks that hold exercises, and create the output folder, which is another."""
    sources = find_notebooks(notebooks)
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file; name a folder.")
    refuse_sources(sources, out)
    stems = {exercise.stem for exercise in exercises}
    chosen = [source for source in sources if source.stem in stems]
    limited = [(source, limit_notebook(read(source), exercises)) for source in chosen]
    if not limited:
        raise ValueError(f"no notebook in {notebooks} holds one of these exercises.")
    out.mkdir(parents=True, exist_ok=True)
    return limited
