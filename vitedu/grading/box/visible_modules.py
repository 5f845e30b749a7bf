"""Modules that exist only in memory: the part of the package that an answer may use.

Role: ``install`` the sources that the judge sent, so that ``from vitedu.patches import patchify``
works without such a file. For the worker, so with the standard library only.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from pathlib import Path

# Parts of torch that implement forbidden operations in Python. No answer needs them, and importing
# torch does not load them.
CLOSED_MODULES = ("torch.onnx.ops", "torch._inductor", "torch.testing._internal")


class _SourceFinder(importlib.abc.MetaPathFinder, importlib.abc.ExecutionLoader):
    """Finds and loads modules from a dict of sources."""

    def __init__(self, sources: dict[str, str]):
        self.sources = sources
        self.folder = Path(__file__).parents[2]

    def find_spec(self, fullname, path=None, target=None):
        """Find a module by its full name."""
        if fullname not in self.sources:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, origin=self.get_filename(fullname))

    def get_source(self, fullname):
        """Return a module's text, which error messages show as well."""
        return self.sources[fullname]

    def get_filename(self, fullname: str) -> str:
        """Name a file of the package, unlike those of the student's code."""
        return str(self.folder.joinpath(*fullname.split(".")[1:]).with_suffix(".py"))


def install(sources: dict[str, str]) -> None:
    """Make modules importable by full name, and remove those of an earlier call.

    A module is executed when it is first imported.
    """
    for finder in [finder for finder in sys.meta_path if isinstance(finder, _SourceFinder)]:
        sys.meta_path.remove(finder)
        for name in finder.sources:
            sys.modules.pop(name, None)
            package, _, last = name.rpartition(".")
            vars(sys.modules[package]).pop(last, None)
    sys.meta_path.insert(0, _SourceFinder(sources))
