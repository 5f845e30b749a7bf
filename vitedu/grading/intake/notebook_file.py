"""Read a notebook file of any size and quality into cells.

Role: turns bytes into cells, which are text. Nothing is run or trusted, and ``Unreadable`` is the
only exception that a content causes. ``extraction`` decides which cell answers what.

A file of more than ``MAX_FILE`` bytes is refused unread. A smaller one may take four times its size
while it is parsed, so ``reading`` calls this where memory and time are limited.
"""

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

MAX_FILE = 256 * 2**20  # bytes; a larger file is not read
MAX_CELLS = 5_000
MAX_OUTPUTS, MAX_SAID = 20, 2_000  # of a cell: outputs and characters that are looked at
MAX_MODULES, MAX_MODULE = 20, 10**6  # Python files beside a notebook, and bytes of one


@dataclass(frozen=True)
class Cell:
    """One cell, as far as grading needs it."""

    kind: str  # "code", "markdown", "raw"
    source: str  # newlines are \n
    exercise: str = ""  # the exercise in its metadata, unchecked
    count: int | None = None  # when it ran last
    said: str = ""  # the beginning of what it showed


class Unreadable(ValueError):
    """The file cannot be read; the message says why."""


def read_notebook(path: Path) -> tuple[list[Cell], list[str]]:
    """Read the cells of a notebook, and the faults that did not prevent it.

    Raises:
        Unreadable: nothing can be read, whatever the file is or holds.
    """
    try:
        return _read_cells(_parse_json(path))
    except Unreadable:
        raise
    except RecursionError:
        words = "brackets are nested too deep to be a notebook"
    except MemoryError:
        words = "it needs more memory than there is; clear its outputs"
    except OSError as error:
        words = f"it cannot be opened: {error.strerror or error}"
    except ValueError as error:
        words = f"it is not JSON: {str(error)[:200]}"
    raise Unreadable(words)


def open_regular(path: Path) -> BinaryIO:
    """Open a file, but no link, no pipe and none of more than ``MAX_FILE`` bytes.

    Raises:
        Unreadable: it is not a regular file, or too large.
        OSError: it cannot be opened.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    file = open(os.open(path, flags | getattr(os, "O_BINARY", 0)), "rb", buffering=0)
    status = os.fstat(file.fileno())
    problem = "" if stat.S_ISREG(status.st_mode) else "it is not a regular file"
    if status.st_size > MAX_FILE:
        mb, limit = status.st_size / 2**20, MAX_FILE / 2**20
        problem = f"{mb:.0f} MB, more than the {limit:.0f} MB that are read; clear its outputs"
    if problem:
        file.close()
        raise Unreadable(problem)
    return file


def _parse_json(path: Path) -> Any:
    with open_regular(path) as file:
        content = file.read(MAX_FILE)
    if not content:
        raise Unreadable("the file is empty")
    text = content.decode(json.detect_encoding(content), "replace")
    del content
    # a huge number would take minutes
    return json.loads(text, parse_int=lambda digits: int(digits) if len(digits) < 20 else 0)


def _read_cells(content: Any) -> tuple[list[Cell], list[str]]:
    """Find the cells of nbformat 4. Malformed ones are left out and listed as oddities."""
    if not isinstance(content, dict):
        raise Unreadable(f"it is JSON, but a {type(content).__name__} and no notebook")
    raw_cells = content.get("cells")
    if not isinstance(raw_cells, list):
        raise Unreadable("it is JSON, but has no list of cells")
    oddities, cells = [], []
    if content.get("nbformat") != 4:
        oddities.append(f"format {str(content.get('nbformat'))[:20]}, read as 4")
    if len(raw_cells) > MAX_CELLS:
        oddities.append(f"{len(raw_cells)} cells, only the last {MAX_CELLS} are read")
        raw_cells = raw_cells[-MAX_CELLS:]
    for raw in raw_cells:
        source = _join(raw.get("source", "")) if isinstance(raw, dict) else None
        if source is None:
            continue
        metadata = raw.get("metadata")
        marked = metadata.get("vitedu") if isinstance(metadata, dict) else None
        exercise = marked.get("exercise") if isinstance(marked, dict) else None
        kind = raw.get("cell_type")
        count = raw.get("execution_count")
        count = count if type(count) is int else None
        cells.append(Cell(_word(kind), source, _word(exercise), count, _said(raw.get("outputs"))))
    if num_broken := len(raw_cells) - len(cells):
        oddities.append(f"{num_broken} cells are malformed and left out")
    return cells, oddities


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _said(outputs: Any) -> str:
    """Return the beginning of the texts in a cell's outputs."""
    texts = []
    for output in outputs[:MAX_OUTPUTS] if isinstance(outputs, list) else ():
        if isinstance(output, dict):
            data = output.get("data")
            data = data if isinstance(data, dict) else {}
            for text in (output.get("text"), data.get("text/plain")):
                lines = text if isinstance(text, list) else [text]
                texts += [line[:MAX_SAID] for line in lines[:MAX_OUTPUTS] if isinstance(line, str)]
    return "".join(texts)[:MAX_SAID]


def _join(source: Any) -> str | None:
    """Return the source of a cell as one text; None if it is no text."""
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        return None
    source = source.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
    return source.encode("utf-8", "replace").decode("utf-8")  # replaces lone surrogates


def read_modules(folder: Path) -> dict[str, str]:
    """Read the Python files of a student's folder: path in it -> text."""
    modules: dict[str, str] = {}
    for path in sorted(folder.rglob("*.py"))[:MAX_MODULES]:
        try:
            with open_regular(path) as file:
                content = file.read(MAX_MODULE + 1)
        except (OSError, Unreadable):
            continue
        if len(content) <= MAX_MODULE:
            modules[path.relative_to(folder).as_posix()] = content.decode("utf-8", "replace")
    return modules
