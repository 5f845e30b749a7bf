"""Files of a notebook that exist only in memory, because nothing can be written in the box.

Role: ``MemoryFiles``. What a notebook writes can be read again: ``open``, ``torch.save``,
``%%writefile``, and modules that stand beside it. For the worker, so with the standard library and
torch only.
"""

import builtins
import importlib.abc
import importlib.machinery
import io
import os
import sys
from typing import Any

import torch

MAX_BYTES = 32 << 20  # of all files together

_open, _save = io.open, torch.save
_exists, _is_file = os.path.exists, os.path.isfile


class MemoryFiles(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Files by their path, relative to the folder of the notebook; also finds modules in them."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        self.sources: dict[str, str] = {}  # module -> file

    def install(self) -> None:
        """Let Python and torch open these files."""
        builtins.open = io.open = self.open
        torch.save = self.save  # type: ignore[assignment]
        os.path.exists = lambda path: self.holds(path) or _exists(path)
        os.path.isfile = lambda path: self.holds(path) or _is_file(path)

    def write(self, name: str, content: bytes) -> None:
        """Store a file; a module that was imported from it is forgotten.

        Raises:
            OSError: all files together have more than ``MAX_BYTES``.
        """
        if sum(map(len, self.contents.values())) + len(content) > MAX_BYTES:
            raise OSError(28, "No space left on device")
        self.contents[name] = content
        sys.modules.pop(name.removesuffix(".py").replace("/", "."), None)

    def holds(self, path: Any) -> bool:
        """Tell whether a path names one of these files."""
        return not isinstance(path, int) and name_of(path) in self.contents

    def open(self, file: Any, mode: str = "r", *rest: Any, **settings: Any):
        """Do as Python's ``open``."""
        if isinstance(file, int):
            return _open(file, mode, *rest, **settings)
        name = name_of(file)
        if set("wax+") & set(mode):
            keeps = "a" in mode or "r" in mode
            raw: io.BytesIO = _WrittenFile(self, name, self.contents.get(name, b"") * keeps)
        elif name in self.contents:
            raw = io.BytesIO(self.contents[name])
        else:
            return _open(file, mode, *rest, **settings)
        if "b" in mode:
            return raw
        encoding = settings.get("encoding") or "utf-8"
        return io.TextIOWrapper(raw, encoding=encoding, write_through=True)

    def save(self, value: Any, file: Any, *rest: Any, **settings: Any):
        """Do as ``torch.save``."""
        if not isinstance(file, str | os.PathLike):
            return _save(value, file, *rest, **settings)
        with self.open(file, "wb") as target:
            return _save(value, target, *rest, **settings)

    def find_spec(self, name: str, path: Any = None, target: Any = None):
        """Find a module, or a folder with modules, among these files."""
        for folder in dict.fromkeys((".", *map(name_of, sys.path))):
            base = os.path.normpath(f"{folder}/{name.replace('.', '/')}")
            for file in (f"{base}.py", f"{base}/__init__.py"):
                if file in self.contents:
                    is_package = file.endswith("__init__.py")
                    spec = importlib.machinery.ModuleSpec(name, self, is_package=is_package)
                    spec.origin = self.sources[name] = file
                    return spec
            if any(each.startswith(f"{base}/") and each.endswith(".py") for each in self.contents):
                return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def get_source(self, name: str):
        """Return the text of a module; a folder without one is empty."""
        return self.contents.get(self.sources.get(name, ""), b"").decode()


class _WrittenFile(io.BytesIO):
    """A file that is being written."""

    def __init__(self, files: MemoryFiles, name: str, start: bytes):
        super().__init__()
        self.files, self.name = files, name
        self.write(start)
        self.flush()

    def flush(self):
        if not self.closed:
            self.files.write(self.name, self.getvalue())

    def close(self):
        self.flush()
        super().close()


def name_of(path: Any) -> str:
    """Name a path, relative to the folder in which the notebook runs."""
    return os.path.relpath(os.path.abspath(os.fspath(path)))
