"""Say "Run all above" where a NameError misses a name, and which answer is no Python.

Role: after a restart of the kernel no name is defined. ``watch`` lets the notebook print one line
below the traceback of a NameError, which itself stays as it is. Jupyter and VS Code say which file
is open, so the line is printed only if a cell above binds the name. Colab does not say it: there
the line says "if".
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

_broken: dict[str, str] = {}  # name -> the error of the cell that should define it


def find_shell() -> Any:
    """Return the running IPython, or None."""
    loaded = sys.modules.get("IPython")
    return loaded.get_ipython() if loaded else None


def watch() -> None:
    """Print the line after every cell of a notebook that needs it."""
    if hasattr(shell := find_shell(), "kernel"):
        shell.events.register("post_run_cell", _print_advice)


def _print_advice(result: Any) -> None:
    _name_broken_answers(result)
    error = result.error_in_exec
    if type(error) is not NameError or not error.name:
        return
    found = is_defined_above(error.name)
    if found:
        print(f"Run all above: a cell above defines {error.name} and has not run yet ({menu()}).")
    elif found is None:
        print(f"If a cell above defines {error.name}, run all above ({menu()}).")


def _name_broken_answers(result: Any) -> None:
    """Below a check, say that the answer's cell is no Python, so that something else was judged."""
    source, error = getattr(result.info, "raw_cell", None) or "", result.error_before_exec
    for name in re.findall(r"^(?:def|class)\s+(\w+)", source, re.M):
        _broken.pop(name, None)
        if isinstance(error, SyntaxError):
            _broken[name] = f"SyntaxError in line {error.lineno}: {error.msg}"
    for name in _broken.keys() & set(re.findall(r"\bcheck\((\w+)", source)):
        print(f"Your cell of {name} is not Python ({_broken[name]}), so it was not checked.")


def is_defined_above(name: str) -> bool | None:
    """Tell whether a cell above the running one binds a name.

    Returns:
        None if the notebook's file is not known. An exercise of the course counts as defined then,
        in a notebook.
    """
    from vitedu.exercises import BY_ID

    if not hasattr(shell := find_shell(), "kernel"):
        return False
    path = shell.user_ns.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME", "")
    try:
        cells = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (OSError, ValueError, LookupError, TypeError):
        return True if name in BY_ID else None
    running = shell.history_manager.input_hist_raw[-1]
    above = sources[: sources.index(running)] if running in sources else sources
    return any(_binds(source, name) for source in above)


def _binds(cell: str, name: str) -> bool:
    from vitedu.course.parsing import global_names, strip_magics

    try:
        return name in cell and name in global_names(strip_magics(cell))[1]
    except (SyntaxError, ValueError):  # unfinished
        return False


def menu() -> str:
    """Say where the command is."""
    if "google.colab" in sys.modules:
        return "Runtime > Run before"
    if "__vsc_ipynb_file__" in find_shell().user_ns:
        return "Execute Above Cells, at the top right of this cell"
    return "Run > Run All Above Selected Cell"
