"""A folder of the student's own: the notebooks, with the answers that passed in their cells.

Role: ``lay_notebooks``, behind ``vitedu start``. No work of the student's is overwritten: a new
version takes the place of a notebook that nobody touched, and is laid beside one that somebody did.
A record in the folder says which cells were laid. Not here: ``my_vit.py`` (``exporting.export``).
"""

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from nbformat import NotebookNode

from vitedu import __version__
from vitedu.course import results
from vitedu.course.colab import CELLS
from vitedu.course.notebooks import (
    exercise_cells,
    find_notebooks,
    read,
    shelf_path,
    without_outputs,
    write,
)
from vitedu.exercises import BY_ID, STEMS
from vitedu.ground.files import write_whole

RECORD = ".vitedu.json"
PAGES = ("AGENTS.md", "words.md")  # that belong beside the notebooks


def lay_notebooks(folder: Path) -> tuple[str, str]:
    """Lay the notebooks that a folder does not have in their present version.

    Args:
        folder: a new or empty one, or one that was laid before.

    Returns:
        Lines that say what was laid, and the file of the first notebook in its newest version.

    Raises:
        ValueError: the folder holds something else, or no notebooks are installed.
        OSError: it cannot be written; the message says what to do.
    """
    sources, record = find_sources(), _read_record(folder)
    entries, laid, replaced, answers = results.load(), 0, 0, 0
    lines: list[str] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for source in sources:
            notebook, known = without_outputs(read(source)), record.get(source.stem, {"cells": {}})
            before, cells = known["cells"], _digests(notebook)
            place = folder / known.get("file", shelf_path(source.name))
            if before == cells and place.is_file():
                continue
            laid, answers = laid + 1, answers + _fill_in(notebook, entries)
            untouched = _digests_of(place) == known.get("laid", before)
            new = _free_place(folder / shelf_path(source.name), place if untouched else None)
            write(notebook, new)
            replaced += untouched
            if untouched and place != new:
                place.unlink()
            elif place != new:
                lines.append(f"{new} is the new version of {place.name}.")
            file = new.relative_to(folder).as_posix()
            record[source.stem] = {"file": file, "cells": cells, "laid": _digests(notebook)}
            write_whole(folder / RECORD, json.dumps(record).encode())
        _lay_pages(sources[0].parent, folder, record)
    except OSError as error:
        reason = f"{folder} cannot be written ({error.strerror or error})"
        raise OSError(f"{reason}; name another folder: vitedu start FOLDER") from None
    instead = f", {replaced} of them in place of one that nobody touched" if replaced else ""
    done = f"{laid} notebooks laid{instead}, {answers} of your answers in them"
    lines.append(f"{folder}: {done if laid else 'as you left it'}.")
    return "\n".join(lines), record[sources[0].stem]["file"]


def _lay_pages(source: Path, folder: Path, record: dict[str, dict]) -> None:
    """Lay the pages, and renew those that nobody changed."""
    for name in PAGES:
        page, new = folder / name, (source / name).read_bytes()
        before = record.get(name, {}).get("laid")
        now = page.read_bytes() if page.exists() else None
        if now is None or (hashlib.sha256(now).hexdigest() == before and now != new):
            write_whole(page, new)
            record[name] = {"laid": hashlib.sha256(new).hexdigest()}
            write_whole(folder / RECORD, json.dumps(record).encode())


def find_answered(folder: Path) -> tuple[list[Path], list[str]]:
    """List the files of a folder with an answer in them, and the names of untouched notebooks."""
    sources = map(read, find_sources())
    stubs = {(id, each.cells[i].source) for each in sources for i, id in exercise_cells(each)}
    answered, untouched = [], []
    for path in find_notebooks(folder):
        notebook = read(path)
        cells = {(id, notebook.cells[index].source) for index, id in exercise_cells(notebook)}
        if cells - stubs:
            answered.append(path)
        elif cells:
            untouched.append(path.name)
    return [*answered, *folder.glob("my_vit.py")], untouched


def find_sources() -> list[Path]:
    """List the notebooks of the course: those of the clone, else those that the wheel brought.

    Raises:
        ValueError: there are none.
    """
    parents = Path(__file__).parents[2:]
    # a wheel's data lie in the folder share of the environment, or of pip's --user or --target
    folders = [parents[0] / "notebooks", *(p / "share" / "vitedu" / "notebooks" for p in parents)]
    for folder in folders:
        sources = [folder / shelf_path(f"{stem}.ipynb") for stem in STEMS]
        if all(path.is_file() for path in sources):
            return sources
    raise ValueError("this installation has no notebooks; install vitedu anew.")


def _read_record(folder: Path) -> dict[str, dict]:
    """Read what was laid into a folder; a damaged record counts as empty, so all is laid anew."""
    if not (folder / RECORD).is_file():
        if folder.exists() and (not folder.is_dir() or any(folder.glob("[!.]*"))):
            raise ValueError(
                f"{folder} holds something else than vitedu start laid there; name a new folder: "
                "vitedu start FOLDER"
            )
        return {}
    try:
        return dict(json.loads((folder / RECORD).read_text(encoding="utf-8")))
    except (TypeError, ValueError):
        return {}


def _free_place(path: Path, replaced: Path | None) -> Path:
    """Give the path itself, or one beside it, where nothing is or what is to be replaced."""
    versions = ["", f"_v{__version__}", *(f"_v{__version__}_{n}" for n in range(2, 99))]
    places = [path.with_stem(path.stem + version) for version in versions]
    return next(place for place in places if place == replaced or not place.exists())


def _digests(notebook: NotebookNode) -> dict[str, str]:
    """Give cell id -> digest of its text; the cells for Colab name the version and do not count."""
    cells = [cell for cell in notebook.cells if cell.id not in CELLS]
    return {cell.id: hashlib.sha256(cell.source.encode()).hexdigest()[:12] for cell in cells}


def _digests_of(path: Path) -> dict[str, str] | None:
    """Give those of a student's file, None where it cannot be read or two cells share an id."""
    with suppress(AttributeError, OSError, ValueError):
        notebook = read(path)
        if len({cell.id for cell in notebook.cells}) == len(notebook.cells):
            return _digests(notebook)
    return None


def _fill_in(notebook: NotebookNode, entries: dict[str, dict]) -> int:
    """Write the stored answers into the cells of their exercises, and count them."""
    count = 0
    for index, name in exercise_cells(notebook):
        above = "\n".join(["", *(cell.source for cell in notebook.cells[:index]), ""])
        if results.is_passed(BY_ID[name], entries):
            statements = entries[name].get("source", {}).get("statements", {})
            if texts := [text for text in statements.values() if f"\n{text}\n" not in above]:
                notebook.cells[index].source = "\n\n\n".join(texts)
                count += 1
    return count
