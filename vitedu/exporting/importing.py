"""``from my_vit import softmax`` in any notebook, wherever the file stands.

Role: a finder for this one name. It compiles the text itself, because Python takes an old compiled
copy if a file of equal size was written within the same second. Each version of the text has a name
of its own, so that a traceback shows the lines that ran. Loads neither torch nor numpy.
"""

import contextlib
import hashlib
import linecache
import re
import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType

from vitedu.files import data_folder, write_whole


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


class Finder:
    """Finds and loads ``my_vit``."""

    @classmethod
    def find_spec(cls, name: str, path=None, target=None) -> ModuleSpec | None:
        """Return a spec for ``my_vit`` if its file is there."""
        place = find_file() if name == "my_vit" else None
        if place is None or not place.is_file():
            return None
        return spec_from_loader(name, cls(), origin=str(place))  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python make an ordinary module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the text as it is now, and say whose parts it holds."""
        place = Path(module.__spec__.origin)  # type: ignore[union-attr, arg-type]
        text = place.read_text(encoding="utf-8")
        version = hashlib.sha256(text.encode()).hexdigest()[:8]
        name = f"{place} (version {version})"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        module.__file__ = str(place)
        exec(compile(text, name, "exec", dont_inherit=True), vars(module))
        whose = []
        for owner, words in (("yours", "your"), ("the reference's", "the reference's")):
            numbers = re.findall(rf"^# (\d+\.\d+), {owner}", text, flags=re.M)
            whose += [f"{words} {', '.join(numbers)}"] * bool(numbers)
        print(f"{place} holds {' and '.join(whose) or 'no marks'}.")


def install() -> None:
    """Put the finder in front, once."""
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)
