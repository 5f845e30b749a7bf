"""Run notebooks without a browser: the tour of the solved course, and a student's file.

Role: executes a notebook in a fresh kernel of this Python, with a store of results that is not the
user's, and reports what its ``check`` cells stored. A Python file is judged in the same way, by a
notebook that is made for it. nbval is run by ``tests/test_notebooks.py``.
"""

import os
import shutil
import tempfile
import time
import tokenize
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from vitedu.course import results
from vitedu.course.notebooks import exercise_cells, find_notebooks, read, solve_notebook
from vitedu.course.parsing import parse
from vitedu.course.references import defined_names
from vitedu.exercises import BY_ID, EXERCISES, in_file


def execute(
    notebook: NotebookNode,
    folder: Path,
    *,
    seconds: float,
    keep_going: bool = False,
    home: Path | None = None,
) -> tuple[str | None, dict[str, dict]]:
    """Run a notebook from top to bottom, with the quick profile unless ``VITEDU_PROFILE`` is set.

    Args:
        notebook: it is filled with outputs, in place.
        folder: the kernel's working folder.
        seconds: time limit of one cell.
        keep_going: continue after a cell that raises or runs out of time.
        home: the folder of a store that several notebooks share, so that ``progress()`` in a later
            one shows what the earlier ones stored; by default a new store for this run alone.

    Returns:
        Why it stopped early, in one line, or None; what its store holds then (``results.load``).
    """
    this_python = KernelSpecManager(kernel_dirs=[])  # whatever kernels the machine has registered
    client = NotebookClient(
        notebook,
        km=AsyncKernelManager(kernel_name="python3", kernel_spec_manager=this_python),
        timeout=seconds,
        interrupt_on_timeout=keep_going,
        allow_errors=keep_going,
        extra_arguments=["--log-level=ERROR"],  # hides warnings that a reader cannot act on
        resources={"metadata": {"path": str(folder)}},
    )
    environment = {**os.environ, "VITEDU_PROFILE": profile_name(), "VITEDU_STILL": "1"}
    environment["VITEDU_KEEP_SOURCES"] = "0"  # no my_vit.py beside a notebook that is only judged
    environment.pop("MPLBACKEND", None)  # the kernel's default shows figures in the notebook
    problem = None
    with tempfile.TemporaryDirectory(prefix="vitedu-") as own:
        home = Path(home or own).resolve()  # the kernel works in another folder
        try:
            client.execute(env={**environment, "VITEDU_HOME": str(home)}, cleanup_kc=True)
        except CellExecutionError as error:
            problem = f"{error.ename}: {error.evalue}".splitlines()[0]
        except CellTimeoutError:
            problem = f"a cell ran for more than {seconds:g} seconds"
        except DeadKernelError:
            problem = "the kernel died; perhaps for want of memory"
        return problem, results.load(home)


def profile_name() -> str:
    """Give the profile in which ``execute`` runs."""
    return os.environ.get("VITEDU_PROFILE", "quick")


def tour(path: Path, out: Path, *, again: bool = True) -> bool:
    """Run every solved notebook, and store each with its outputs in the folder ``out``.

    Prints a table: notebook, code cells, seconds, result. All share one store of results, so that
    ``progress()`` shows those before as solved. One that ran to its end gets the name of its
    profile as a mark; ``vitedu site`` makes pages of it.

    Args:
        path: a notebook of the course, or a folder of them.
        out: a folder.
        again: run also what lies there with the same cells and the same profile.

    Returns:
        True if every notebook ran to its end and every exercise in it passed.

    Raises:
        FileNotFoundError, ValueError: as ``find_notebooks`` and ``solve_notebook``.
    """
    paths = find_notebooks(path)
    if again:
        shutil.rmtree(out / "results", ignore_errors=True)  # what passes, passes in this tour
    out.mkdir(parents=True, exist_ok=True)
    print(f"{'notebook':<20}{'cells':>6}{'seconds':>9}  result", flush=True)
    all_passed = True
    for each in paths:
        solved = solve_notebook(read(each))
        if not again and _has_run(solved, out / each.name):
            print(f"{each.stem:<20} its run lies in {out}")
            continue
        start = time.perf_counter()
        fault, entries = execute(solved, each.resolve().parent, seconds=3600, home=out / "results")
        seconds = time.perf_counter() - start
        if not fault:
            solved.metadata["vitedu_profile"] = profile_name()
        nbformat.write(solved, out / each.name)
        ids = [name for _, name in exercise_cells(solved)]
        left = [name for name in ids if not results.is_passed(BY_ID[name], entries)]
        problem = fault or (f"not passed: {', '.join(left)}" if left else "")
        result = f"FAILED: {problem}" if problem else "every exercise passed"
        all_passed &= not problem
        cells = sum(cell.cell_type == "code" for cell in solved.cells)
        print(f"{each.stem:<20}{cells:>6}{seconds:>9.1f}  {result}", flush=True)
    print(f"{len(paths)} notebooks in {out}")
    return all_passed


def _has_run(solved: NotebookNode, path: Path) -> bool:
    """Tell whether a file holds a notebook with outputs of this profile, and these cells."""
    if not path.exists():
        return False
    ran = nbformat.read(path, as_version=4)
    same = [cell.source for cell in solved.cells] == [cell.source for cell in ran.cells]
    return same and ran.metadata.get("vitedu_profile") == profile_name()


class CheckedFile(NamedTuple):
    """What the checks say about a student's file."""

    text: str  # a table, with the full report of each exercise that did not pass
    rows: list[dict[str, Any]]  # for each exercise, as ``vitedu check --json`` prints it
    problem: str | None  # why it stopped early, in one line


def check_file(
    path: Path, *, seconds: float = 600, owners: Mapping[str, str] | None = None
) -> CheckedFile:
    """Run a copy of a student's notebook or Python file and collect what the checks say.

    The file and the student's store of results do not change.

    Args:
        path: of a notebook of the course, under any name, or of a Python file whose top-level
            definitions are named like exercises.
        seconds: time limit of one cell; a Python file is one cell.
        owners: of a Python file, exercise -> whose its part is, where it is not the student's and
            so not judged.

    Raises:
        FileNotFoundError: the path does not exist.
        ValueError: it is neither, or the Python file cannot be run.
    """
    is_python = path.suffix == ".py"
    notebook = _notebook_of(path) if is_python else read(find_notebooks(path)[0])
    stubs = {exercise_id: index for index, exercise_id in exercise_cells(notebook)}
    files = {BY_ID[name].stem for name in stubs if name in BY_ID}
    if not is_python and len(files) != 1:
        raise ValueError(f"{path} is not one notebook of this course.")
    folder = path.resolve().parent
    problem, entries = execute(notebook, folder, seconds=seconds, keep_going=not is_python)
    if is_python and problem and not entries:
        raise ValueError(f"{path} cannot be run: {problem}")
    owners = owners or {}
    ids = stubs.keys() | owners.keys() if is_python else {e.id for e in in_file(files.pop())}
    lines, rows = [], []
    for exercise in (exercise for exercise in EXERCISES if exercise.id in ids):
        owner = owners.get(exercise.id)
        entry: dict = {"status": "not_attempted"} if owner else entries.get(exercise.id, {})
        row = {
            "exercise": exercise.id,
            "status": entry.get("status", "not_checked"),
            "points": entry.get("points", 0),
            "max_points": exercise.points,
            "remarks": entry.get("remarks") or [],
            "mistakes": entry.get("misconceptions") or [],
            "seconds": entry.get("seconds") or 0.0,
        }
        if is_python:
            row |= {"whose": owner or "yours"}
        rows.append(row)
        status = owner or row["status"].replace("_", " ")
        lines.append(
            f"{exercise.number:<5}{exercise.id:<31}{row['points']:>5g}/{exercise.points}  {status}"
        )
        if status == "passed":
            lines += [f"       remark: {r['part']}: {r['message']}" for r in row["remarks"]]
        elif exercise.id in stubs and row["status"] != "not_attempted":
            lines += [f"       {line}" for line in _read_printed(notebook, stubs[exercise.id])]
    if problem:
        lines.append(f"stopped early: {problem}")
    return CheckedFile("\n".join(lines), rows, problem)


# runs the text as it is now, whatever compiled copy of it lies around, and not as a command
RUN_FILE = """import runpy, types
from vitedu import check
answers = types.SimpleNamespace(**runpy.run_path({path!r}, run_name="answers"))"""


def _notebook_of(path: Path) -> NotebookNode:
    """Make a notebook that runs a Python file and checks what it defines, in the course's order.

    Raises:
        ValueError: the file cannot be read as Python, or defines no exercise.
    """
    try:
        with tokenize.open(path) as file:
            names = {name for node in parse(file.read()).body for name in defined_names(node)}
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        place = f"{path}, line {line}" if line else path
        raise ValueError(f"{place}: {getattr(error, 'msg', error)}.") from error
    cells = [new_code_cell(RUN_FILE.format(path=str(path.resolve())))]
    for exercise in EXERCISES:
        if exercise.id in names:
            metadata = {"vitedu": {"exercise": exercise.id}}
            cells.append(new_code_cell(f"answer = answers.{exercise.id}", metadata=metadata))
            cells.append(new_code_cell(f'report = check(answer, "{exercise.id}")'))
    if len(cells) == 1:
        raise ValueError(f"{path} defines no exercise; `vitedu list` shows their names.")
    return new_notebook(cells=cells)


def _read_printed(notebook: NotebookNode, stub: int) -> list[str]:
    """Return what a stub and the check after it printed, line by line; an error as one line."""
    lines = []
    for cell in notebook.cells[stub : stub + 2]:
        for output in cell.get("outputs", ()):
            if output.output_type == "error":
                lines.append(f"{output.ename}: {output.evalue}")
            else:
                text = output.get("text") or output.get("data", {}).get("text/plain", "")
                lines += text.splitlines()
    return lines
