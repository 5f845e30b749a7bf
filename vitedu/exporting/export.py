"""What is written, and where: ``keep`` after a check that passed, ``export_model`` on demand.

Role: reads the stored texts, gives up those that do not work, and writes the file unless somebody
edited it. The last line of the file holds a digest of the rest, so an edited file is recognised
wherever it lies.
"""

import hashlib
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from vitedu import vit
from vitedu.course import results
from vitedu.course.parsing import parse
from vitedu.exercises import BY_ID
from vitedu.exporting.importing import find_file, remember
from vitedu.exporting.parts import (
    PARTS,
    ExportError,
    Part,
    assemble,
    make_parts,
    names_of_template,
)
from vitedu.exporting.source import Unreadable, collect
from vitedu.exporting.trial import find_idle, find_slow, try_parts
from vitedu.ground.files import data_folder, file_lock, write_whole

SEAL = "# written by vitedu, and not edited since: "
NOT_KEPT = "its text is not stored: check it again"
SLOW = "right, and slow: a training step takes over three times that of the reference"
_accepted: dict[tuple[Path, str], Any] = {}  # (folder of results, id) -> the answer that passed
_told: set[str] = set()


def export_model(
    path: str | Path | None = None, *, force: bool = False, complete: bool = False
) -> Path:
    """Write the model as one file: your parts that passed; the others come from the package.

    Args:
        path: default ``my_vit.py`` where it stands already, or in this folder.
        force: write over a file that somebody edited, or that is another one.
        complete: with the text of the references, marked, so that the file runs without vitedu;
            the default path is then ``my_vit_complete.py`` in this folder.

    Returns:
        The path of the file.

    Raises:
        ExportError: two of your parts use one name for two things; the message says which.
        FileExistsError: somebody edited the file, or wrote it.
        OSError: it cannot be written.
    """
    name = "my_vit_complete.py" if complete else "my_vit.py"
    place = Path(path or (name if complete else find_file()))
    if _is_edited(place) and not force:
        raise FileExistsError(
            f"{place} holds what vitedu did not write; name another file, or write over it with "
            "--force (export_model(force=True) in Python)."
        )
    with file_lock(data_folder() / "my_vit.lock", 5.0):
        parts = _write(place, complete)
    if path is None and not complete:
        remember(place)
    print(f"{place}: {_count(parts)}")
    return place


def bring_file(folder: Path) -> None:
    """Write ``my_vit.py`` into a folder that has none; one that was edited elsewhere is copied."""
    place, old = folder / "my_vit.py", find_file()
    if place.exists():
        return
    try:
        if _is_edited(old):
            shutil.copy(old, place)
            print(f"{place}: a copy of {old}, which was edited")
        else:
            export_model(place)
    except (ExportError, OSError) as error:
        print(f"{place} is not written: {error}")


def keep(answer: Any, exercise: str) -> bool:
    """Store the text of an answer that passed, and write ``my_vit.py`` anew.

    Nothing here changes a verdict: what goes wrong is one line. ``VITEDU_KEEP_SOURCES=0`` leaves
    everything as it is.

    Returns:
        Whether the answer is too slow for training runs, which has been said then.
    """
    if os.environ.get("VITEDU_KEEP_SOURCES") == "0" or BY_ID[exercise].kind == "value":
        return False
    is_slow = False
    try:
        _accepted[data_folder(), exercise] = answer
        try:
            source: dict = {"statements": collect(answer, exercise, _is_in_file)}
        except Unreadable as error:
            source = {"reason": str(error)}
        with results.edit("exercises", exercise) as entry:
            entry["source"] = source
        place = find_file()
        if exercise in PARTS and _is_edited(place):
            _say_once(f"You edited {place}, so it stays; vitedu export FILE writes a new one.")
        elif exercise in PARTS:
            # so that of two kernels the later one has read what the other stored
            with file_lock(data_folder() / "my_vit.lock", 5.0):
                is_new, parts = not place.exists(), _write(place)
            remember(place)
            if is_new:
                _say_once(f"Your own model now stands in {place}: {_count(parts)}")
            part = parts[exercise]
            if not part.is_yours:
                print(f"my_vit.py keeps the reference's {exercise}: {part.notes[0]}.")
            elif is_slow := SLOW in part.notes:
                _say_once(f"{exercise} is {SLOW}, which runs here in its place.")
    except Exception as error:
        reason = error if isinstance(error, ValueError | OSError) else repr(error)[:200]
        print(f"my_vit.py stays as it was: {reason}")
    return is_slow


def _is_in_file(name: str, value: Any) -> bool:
    """Tell whether an object is what the file has under a name, or is read as it (``nn.GELU``)."""
    if _accepted.get((data_folder(), name), _accepted) is value:
        return True
    homes = {"vitedu", "my_vit", *["torch"] * (name in ("LayerNorm", "GELU", "gelu"))}
    is_at_home = str(getattr(value, "__module__", "")).split(".")[0] in homes
    is_ours = is_at_home and getattr(value, "__name__", "") == name
    is_ours = is_ours or value is getattr(vit, name, vit)  # BlockWithoutBias, a partial
    return is_ours and name in {**names_of_template(), **PARTS}


def _write(place: Path, complete: bool = False) -> dict[str, Part]:
    """Write what is stored as one file that works, with true marks and a seal.

    Raises:
        ExportError: the texts do not make one file.
        OSError: it cannot be written; the old one is as it was.
    """
    answers, reasons = {}, {}
    entries = results.load()
    for name, exercise in PARTS.items():
        if results.is_passed(exercise, entries):
            source = entries[name].get("source", {})
            try:
                statements = source["statements"]
                parse("\n".join([*statements.values(), statements[name]]))
                answers[name] = statements
            except (KeyError, SyntaxError, TypeError, ValueError):  # of the version before, or bad
                reasons[name] = source.get("reason", NOT_KEPT)
    parts = make_parts(answers, reasons)
    if try_parts(parts).fault:
        alone = {name: try_parts(make_parts({name: answers[name]}, {})).fault for name in answers}
        parts = make_parts(answers, reasons | {name: why for name, why in alone.items() if why})
        if fault := try_parts(parts).fault:
            raise ExportError(f"your parts do not work together: {fault}.")
    for name in find_slow(parts):
        parts[name].notes.insert(0, SLOW)
    for name, why in find_idle(parts).items():
        parts[name].notes.append(f"not called: {why}")
    text = assemble(parts, complete=complete)
    content = f"{text}{SEAL}{_digest(text)}\n".encode()
    try:
        if not place.exists() or place.read_bytes() != content:
            write_whole(place, content)
    except OSError as error:
        reason = error.strerror or error
        line = f"{place} cannot be written ({reason}); vitedu export FILE writes another file."
        raise OSError(line) from None
    sys.modules.pop("my_vit", None)  # the next import reads it
    return parts


def _count(parts: dict[str, Part]) -> str:
    return f"{sum(part.is_yours for part in parts.values())} of its {len(parts)} parts are yours."


def _say_once(line: str) -> None:
    if line not in _told:
        _told.add(line)
        print(line)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _is_edited(place: Path) -> bool:
    """Tell whether a file is there that is not as it was written."""
    if not place.exists():
        return False
    text = place.read_text(encoding="utf-8", errors="replace")
    before, seal, digest = text.rpartition(SEAL)
    return not seal or not re.fullmatch(rf"{_digest(before)}\n?", digest)
