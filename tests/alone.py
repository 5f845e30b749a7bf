"""Run notebooks of the second shelf by sections: ``python tests/alone.py STEP NOTEBOOK ...``.

They run as committed, every STEP-th section after the set-up alone. This process imports what the
set-ups import. A fork of it runs a set-up, which stands before the first section, and a fork of
that each section: none sees what another made. Where frameworks do not survive a fork, each
notebook has a process and runs one section.
"""

import ast
import importlib
import io
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from nbformat import NotebookNode
from traitlets.config import Config

from vitedu.course import results
from vitedu.course.notebooks import read

FORKS = sys.platform == "linux"
PROCESSES: Any = multiprocessing.get_context("fork" if FORKS else "spawn")
CONFIG = Config({"HistoryManager": {"enabled": False}})


def shell() -> InteractiveShell:
    """Give this process's shell, which renders no figure. It takes the place of ``__main__``."""
    one = InteractiveShell.instance(config=CONFIG, colors="nocolor")
    one.display_formatter.active_types = ["text/plain"]
    return one


def parts(path: Path) -> dict[str, list[NotebookNode]]:
    """Give the code cells by section, and those before the first."""
    found: dict[str, list[NotebookNode]] = {"set-up": []}
    for cell in read(path).cells:
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            found[cell.source.splitlines()[0]] = []
        elif cell.cell_type == "code":
            found[next(reversed(found))].append(cell)
    return found


def import_all(paths: list[Path]) -> None:
    """Import what set-ups import, but for the student's own file, and what sections load late."""
    sources = [cell.source for path in paths for cell in parts(path)["set-up"]]
    for node in ast.parse("\n".join(map(shell().transform_cell, sources))).body:
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        if is_import and getattr(node, "module", "") != "my_vit":
            exec(ast.unparse(node), {})
    if "torch" in sys.modules:
        for name in ("ipywidgets", "torch._dynamo"):  # the second for an optimizer's first step
            importlib.import_module(name)


def run(name: str, cells: list[NotebookNode]) -> int:
    """Run cells as Jupyter does; print the seconds of CPU, or which cell failed and why."""
    said = io.StringIO()
    for cell in cells:
        with redirect_stdout(said), redirect_stderr(said):
            done = shell().run_cell(cell.source, store_history=False)
        if not done.success:
            print(f"FAILED: {name}, cell {cell.id!r}\n{said.getvalue()[-3000:]}", flush=True)
            return 1
    print(f"{sum(os.times()[:4]):5.1f} s  {name}", flush=True)
    return 0


def leave(work: Callable[..., int], *words: Any) -> None:
    """End this process with what a function gives."""
    sys.exit(work(*words))


def start(work: Callable[..., int], *words: Any) -> Any:
    """Start a function in a process of its own, which ends with what it gives."""
    process = PROCESSES.Process(target=leave, args=(work, *words))
    process.start()
    return process


def fails_apart(work: Callable[..., int], *words: Any) -> bool:
    """Run a function in a process of its own; tell whether it gave, raised or left a fault."""
    process = start(work, *words)
    process.join()
    return process.exitcode != 0


def run_notebooks(step: int, paths: list[Path]) -> int:
    """Run one notebook after the other; give how many went wrong."""
    return sum(fails_apart(run_notebook, step, path) for path in paths)


def run_notebook(step: int, path: Path) -> int:
    """Run the set-up and the sections in a folder of their own; give how much went wrong."""
    setup, *sections = ((f"{path.stem}, {name}", cells) for name, cells in parts(path).items())
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        os.environ["VITEDU_HOME"] = str(Path(folder, "store"))
        if run(*setup):
            return 1
        alone = sections[::step] if FORKS else sections[:1]
        failed = sum(fails_apart(run, *each) if FORKS else run(*each) for each in alone)
        left = {name: each.get("status") for name, each in results.load().items()}
    for name, status in left.items():
        if status not in ("not_attempted", None):  # None: a challenge alone
            print(f"FAILED: {path.stem}, {name} is {status}", flush=True)
            failed += 1
    return failed


if __name__ == "__main__":
    STEP, PATHS = int(sys.argv[1]), [Path(word).resolve() for word in sys.argv[2:]]
    if FORKS:
        import_all(PATHS)
    LANES = [start(run_notebooks, STEP, PATHS[k::2]) for k in range(2)]  # two at a time
    for lane in LANES:
        lane.join()
    print(f"{sum(os.times()[:4]):5.1f} s  in all")
    sys.exit(sum(lane.exitcode != 0 for lane in LANES))
