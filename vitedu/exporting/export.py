"""What is written, and where: ``keep`` after a check that passed, ``export_model`` on demand.

Role: reads the stored texts, gives up those that do not work, and writes the file unless somebody
edited it. The last line of the file holds a digest of the rest, so an edited file is recognised
wherever it lies.
"""

import hashlib
import os
import re
import sys
from pathlib import Path
from typing import Any

from vitedu.course import results
from vitedu.exercises import BY_ID
from vitedu.exporting.importing import find_file, remember
from vitedu.exporting.parts import ExportError, Part, assemble, make_parts
from vitedu.exporting.source import Unreadable, collect
from vitedu.exporting.trial import find_fault, find_idle
from vitedu.files import data_folder, file_lock, write_whole

__all__ = ["ExportError", "export_model", "keep"]

SEAL = "# written by vitedu, and not edited since: "
NOT_KEPT = "its text is not stored: check it again"
_accepted: dict[tuple[Path, str], Any] = {}  # (folder of results, id) -> the answer that passed
_told: set[str] = set()


def export_model(path: str | Path | None = None, *, force: bool = False) -> Path:
    """Write the model as one file: your parts that passed, and the reference's in place of others.

    Args:
        path: default ``my_vit.py`` where it stands already, or in this folder.
        force: write over a file that somebody edited.

    Returns:
        The path of the file.

    Raises:
        ExportError: two of your parts use one name for two things; the message says which.
        FileExistsError: the file was edited.
        OSError: it cannot be written.
    """
    place = find_file() if path is None else Path(path)
    if place.is_dir():
        place /= "my_vit.py"
    if _is_edited(place) and not force:
        raise FileExistsError(
            f"{place} was edited and stays as it is; name another file, or write over it with "
            "--force (export_model(force=True) in Python)."
        )
    text, parts = _settle()
    _write(place, text)
    if path is None:
        remember(place)
    print(f"{place}: {_count(parts)}")
    return place


def keep(answer: Any, exercise: str) -> None:
    """Store the text of an answer that passed, and write ``my_vit.py`` anew.

    Nothing here changes a verdict: what goes wrong is one line. ``VITEDU_KEEP_SOURCES=0`` leaves
    everything as it is.
    """
    if os.environ.get("VITEDU_KEEP_SOURCES") == "0" or BY_ID[exercise].kind == "value":
        return
    try:
        _accepted[data_folder(), exercise] = answer
        try:
            source = {"text": collect(answer, exercise, _is_accepted)}
        except Unreadable as error:
            source = {"reason": str(error)}
        results.record_source(exercise, source)
        if BY_ID[exercise].part:
            _write_anew(exercise)
    except Exception as error:
        reason = error if isinstance(error, ValueError | OSError) else repr(error)[:200]
        print(f"my_vit.py stays as it was: {reason}")


def _write_anew(exercise: str) -> None:
    # so that of two kernels the later one has read what the other stored
    with file_lock(data_folder() / "my_vit.lock", 5.0):
        parts = _replace()
    if not parts[exercise].is_yours:
        print(f"my_vit.py keeps the reference's {exercise}: {parts[exercise].notes[0]}.")


def _replace() -> dict[str, Part]:
    """Write the file, or a new one beside it, and say so the first time."""
    text, parts = _settle()
    place, is_new = find_file(), False
    if _is_edited(place):
        beside = place.with_name("my_vit_new.py")
        if _is_edited(beside):
            raise FileExistsError(f"you edited {place.name} and {beside.name}; rename one of them.")
        line = f"You edited {place.name}, so it stays as it is. The new one is {beside.name}."
        place = beside
    else:
        is_new = not place.exists()
        line = f"Your own model now stands in {place}: {_count(parts)}"
        remember(place)
    _write(place, text)
    if is_new or (place.name == "my_vit_new.py" and line not in _told):
        _told.add(line)
        print(line)
    return parts


def _is_accepted(name: str, value: Any) -> bool:
    """Tell whether an object is the part that passed, the reference, or of ``my_vit.py``."""
    home = (getattr(value, "__module__", None) or "").split(".")[0]
    is_ours = home in ("vitedu", "my_vit") and getattr(value, "__name__", "") == name
    return is_ours or _accepted.get((data_folder(), name), _accepted) is value


def _settle() -> tuple[str, dict[str, Part]]:
    """Read what is stored and give (text of the file, its parts): it works, and the marks are true.

    Raises:
        ExportError: the texts do not make one file.
    """
    answers, reasons = {}, {}
    for name, entry in results.load().items():
        if name in BY_ID and BY_ID[name].part and entry.get("best", {}).get("status") == "passed":
            source = entry.get("source", {})
            if "text" in source:
                answers[name] = source["text"]
            else:
                reasons[name] = source.get("reason", NOT_KEPT)
    parts = make_parts(answers, reasons)
    if fault := find_fault(parts):
        if find_fault(make_parts({}, {})):
            raise ExportError(f"it cannot be tried here, even without your parts: {fault}.")
        for name in answers:
            if alone := find_fault(make_parts({name: answers[name]}, {})):
                reasons[name] = alone
        parts = make_parts(answers, reasons)
        if fault := find_fault(parts):
            raise ExportError(f"your parts work one by one, but not together: {fault}.")
    for name, why in find_idle(parts).items():
        parts[name].notes.append(f"not called: {why}")
    return assemble(parts), parts


def _count(parts: dict[str, Part]) -> str:
    counts = []
    for half in ("model", "training"):
        own = [part.is_yours for part in parts.values() if part.exercise.part == half]
        counts.append(f"{sum(own)} of {len(own)} parts of the {half}")
    return f"{' and '.join(counts)} are yours."


def _write(place: Path, text: str) -> None:
    """Write the file with its seal, and let the next import read it."""
    content = f"{text}{SEAL}{_digest(text)}\n"
    if not place.exists() or place.read_text(encoding="utf-8", errors="replace") != content:
        write_whole(place, content.encode())
    sys.modules.pop("my_vit", None)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _is_edited(place: Path) -> bool:
    """Tell whether a file is there that is not as it was written."""
    if not place.exists():
        return False
    text = place.read_text(encoding="utf-8", errors="replace")
    before, seal, digest = text.rpartition(SEAL)
    return not seal or not re.fullmatch(rf"{_digest(before)}\n?", digest)
