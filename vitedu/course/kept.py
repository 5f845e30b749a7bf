"""Measurements of a student's own, kept beside the results, so that a later cell shows them again.

Role: one file of JSON in the student's folder. Nothing here is judged.
"""

import contextlib
import json
from collections.abc import Callable

from vitedu.files import data_folder, file_lock, write_whole

FILE = "measurements.json"


def keep(notebook: str, name: str, value: float) -> None:
    """Store a number under a name; a later number of this name replaces it.

    A folder that cannot be written is one printed line, and no error.
    """
    _change(lambda found: found.setdefault(notebook, {}).update({name: value}))


def forget(notebook: str, name: str) -> None:
    """Remove a number, such as that of a run that went wrong; an unknown name changes nothing."""
    _change(lambda found: found.get(notebook, {}).pop(name, None))


def _change(change: Callable[[dict], object]) -> None:
    path = data_folder() / FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(path.with_suffix(".lock"), 5.0):
            found = _read()
            change(found)
            write_whole(path, json.dumps(found, indent=1).encode())
    except OSError as error:
        print(f"{path} cannot be written ({error.strerror or error}); nothing is changed there.")


def kept(notebook: str) -> dict[str, float]:
    """Give the numbers of a notebook by their names, in the order in which they first came."""
    return _read().get(notebook, {})


def _read() -> dict[str, dict[str, float]]:
    with contextlib.suppress(OSError, ValueError):
        return json.loads((data_folder() / FILE).read_text(encoding="utf-8"))
    return {}
