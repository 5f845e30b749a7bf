"""``from my_vit import softmax`` in any notebook, wherever the file stands, and before it is there.

Role: a finder for this one name, and ``load_file``. The text is compiled here, because Python takes
an old compiled copy if a file of equal size was written within the same second. Each version of it
has a name of its own, so that a traceback shows the lines that ran. Loads neither torch nor numpy.
"""

import contextlib
import hashlib
import importlib
import linecache
import re
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

from vitedu.exercises import BY_ID, Exercise
from vitedu.ground.files import data_folder, write_whole

YOURS, COURSE, OPEN = "yours", "the course's", "open"


def find_file() -> Path:
    """Return the path of ``my_vit.py``: in this folder, else where it was last written."""
    here = Path.cwd() / "my_vit.py"
    if not here.exists():
        with contextlib.suppress(OSError, ValueError):
            place = Path((data_folder() / "my_vit.path").read_text(encoding="utf-8"))
            if place.is_file():
                return place
    return here


def remember(place: Path) -> None:
    """Note where the file stands, for notebooks in other folders."""
    with contextlib.suppress(OSError):
        data_folder().mkdir(parents=True, exist_ok=True)
        write_whole(data_folder() / "my_vit.path", str(place.resolve()).encode())


def load_file(place: Path, module: ModuleType | None = None) -> ModuleType:
    """Run a file such as ``my_vit.py`` as it is now, and say whose parts it holds.

    For a part that is marked as slow the package's reference stands in the module.

    Args:
        place: of the file. For an import there need be none yet: then all is the reference's.
        module: becomes what the file defines; default: a new one that is called ``my_vit``.

    Raises:
        Exception: whatever its text raises.
    """
    is_missing = module is not None and not place.is_file()
    text = _references() if is_missing else place.read_text(encoding="utf-8")
    module = module or ModuleType("my_vit")
    sys.modules["my_vit"] = module  # dataclasses look it up
    name = f"{place} (version {hashlib.sha256(text.encode()).hexdigest()[:8]})"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    module.__file__ = str(place)
    exec(compile(text, name, "exec", dont_inherit=True), vars(module))
    owners = find_owners(text)
    mine = [BY_ID[name] for name, owner in owners.items() if owner == YOURS]
    theirs = [BY_ID[name] for name, owner in owners.items() if owner != YOURS]
    slow = _marked(text, "yours; right, and slow")
    file = "my_vit.py, which is not there yet" if is_missing else place
    line = f"{file}: {len(mine)} of its {len(mine + theirs)} parts are yours"
    line += f" ({_numbers(mine)})" if mine and theirs else ""
    line += f"; {_numbers(slow)} slow, so the reference's runs here" if slow else ""
    print(f"{line}.")
    for exercise in slow:
        reference = getattr(importlib.import_module(exercise.module), exercise.id)
        setattr(module, exercise.id, reference)
    vars(module)["_references"] = {exercise.id for exercise in (*theirs, *slow)}
    return module


def _marked(text: str, mark: str) -> list[Exercise]:
    """Find the parts below such marks; each is the last that is defined before the next mark.

    The number in a mark does not count: another version gave it to another exercise.
    """
    found = []
    for words, body in re.findall(r"(?ms)^# \d+\.\d+, (.*?\n)(.*?)(?=^# \d+\.\d+, |\Z)", text):
        names = [n for n in re.findall(r"(?m)^(?:def|class) (\w+)", body) if n in BY_ID]
        found += [BY_ID[name] for name in names[-1:] if words.startswith(mark)]
    return found


def find_owners(text: str) -> dict[str, str]:
    """Say whose each part of a file such as ``my_vit.py`` is: ``YOURS``, ``COURSE`` or ``OPEN``.

    Files of version 0.2 hold the text of the references, below a mark.
    """
    lines = r"(?m)^(?:from vitedu\.\w+ import (\w+)|(\w+) = course_part\(.*?\))(.*)$"
    owners = {
        name: OPEN if OPEN in comment else COURSE
        for *names, comment in re.findall(lines, text)
        if (name := "".join(names)) in BY_ID
    }
    for mark, owner in (("yours", YOURS), ("the ref", COURSE), ("the reference's: still", OPEN)):
        owners |= {exercise.id: owner for exercise in _marked(text, mark)}
    return {name: owners[name] for name in BY_ID if name in owners}


def _numbers(exercises: list[Exercise]) -> str:
    return ", ".join(exercise.number for exercise in exercises)


def _references() -> str:
    """Give the text of the file where no answer has passed."""
    from vitedu.exporting.parts import assemble, make_parts

    return assemble(make_parts({}, {}))


class Finder(MetaPathFinder, Loader):
    """Finds and loads ``my_vit``."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return a spec for ``my_vit``."""
        return spec_from_loader(name, self, origin=str(find_file())) if name == "my_vit" else None

    def exec_module(self, module: ModuleType) -> None:
        """Run the file, or what it will be."""
        load_file(Path(str(getattr(module.__spec__, "origin", ""))), module)


def install() -> None:
    """Put the finder in front, once."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
