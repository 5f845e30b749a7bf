"""Run each section of a notebook after its set-up alone: ``python tests/alone.py NOTEBOOK``.

What stands before the first section runs once. Then each section runs in a fork of that process,
solved, so none sees what another made. Without fork, as on Windows, one section runs.
"""

import os
import re
import sys
import time
import traceback
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from vitedu.course.notebooks import read, solve_notebook

START = re.compile(r"(?m)^## (.+)")


def parts(path: Path) -> dict[str, list[str]]:
    """Give the code of a solved notebook by section; what stands before them is called ""."""
    found: dict[str, list[str]] = {"": []}
    for cell in solve_notebook(read(path)).cells:
        if cell.cell_type == "markdown" and (heading := START.search(cell.source)):
            found[heading[1]] = []
        elif cell.cell_type == "code":
            found[list(found)[-1]].append(cell.source)
    return found


def run(shell: InteractiveShell, sources: list[str]) -> int:
    """Run cells as Jupyter does, up to the first error, and give the exit status."""
    for source in sources:
        try:
            shell.run_cell(source, store_history=False).raise_error()
        except Exception:  # the shell has shown it
            print(f"in the cell that begins\n{source[:200]}", flush=True)
            return 1
    return 0


def main(path: Path) -> int:
    """Run all sections; print the seconds of each, and give how many failed."""
    config = Config({"HistoryManager": {"enabled": False}})
    shell = InteractiveShell.instance(config=config, colors="nocolor")
    shell.display_formatter.active_types = ["text/plain"]  # no figure is rendered
    setup, *sections = parts(path).items()
    began, failed = time.perf_counter(), 0
    if run(shell, setup[1]):
        return 1
    print(f"{time.perf_counter() - began:5.1f} s  set-up", flush=True)
    if not hasattr(os, "fork"):
        return run(shell, sections[0][1])
    for heading, sources in sections:
        began = time.perf_counter()
        if not (child := os.fork()):
            status = 1
            try:
                status = run(shell, sources)
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
            os._exit(status)
        wrong = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        failed += bool(wrong)
        mark = f"   FAILED ({wrong})" if wrong else ""
        print(f"{time.perf_counter() - began:5.1f} s  {heading}{mark}", flush=True)
    return failed


if __name__ == "__main__":
    raise SystemExit(min(main(Path(sys.argv[1])), 100))
