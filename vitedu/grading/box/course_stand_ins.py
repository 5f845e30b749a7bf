"""What a notebook finds of the course in the box: references that it may see, and nothing else.

Role: ``Course`` and ``Absent``. Data are empty, plots show nothing, loops over them end. An
``Absent`` is replaced as soon as what it stands for may be seen. For the worker, so with the
standard library only.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from pathlib import Path
from typing import Any

EXPORT = "my_vit"  # the module that a student's own model is exported to
# Parts of torch that implement forbidden operations in Python. No answer needs them, and importing
# torch does not load them.
CLOSED_MODULES = ("torch.onnx.ops", "torch._inductor", "torch.testing._internal")
PACKAGE = Path(__file__).parents[2]


class Absent:
    """Stands for something of the course that is not here."""

    __place__ = ("", "")  # module and name

    def __init__(self, *args: Any, **settings: Any):
        pass

    uses = 0  # of all of them together

    def __getattr__(self, name):
        Absent.uses += 1
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args, **settings):
        if len(args) == 1 and not settings and isinstance(args[0], types.FunctionType | type):
            return args[0]  # it was a decorator
        return self

    def __iter__(self):
        Absent.uses += 1
        return iter(())

    def __len__(self):
        return 0

    def __bool__(self):
        return False

    def __exit__(self, *rest):
        return False

    def __format__(self, form):
        return ""

    def __index__(self):
        Absent.uses += 1
        return 0

    def __float__(self):
        Absent.uses += 1
        return 0.0

    def _itself(self, *rest):
        Absent.uses += 1
        return self

    def _not(self, *rest):
        Absent.uses += 1
        return False

    def _nothing(self, *rest):
        return None

    __enter__ = __getitem__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = _itself
    __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __matmul__ = _itself
    __rmatmul__ = __neg__ = __pow__ = __or__ = __ror__ = __mod__ = _itself
    __lt__ = __gt__ = __le__ = __ge__ = __contains__ = _not
    __setitem__ = __delitem__ = _nothing


def absent(name: str, module: str = "") -> Any:
    """Stand for a name of the course."""
    if name.startswith("__"):
        raise AttributeError(name)
    found = Absent()
    found.__place__ = module, name
    return found


class Course(importlib.abc.MetaPathFinder, importlib.abc.ExecutionLoader):
    """The course's modules, which exist only in memory; also stands for those that are not here.

    Args:
        places: exercise -> module with its reference.
        modules: module -> source, as far as it may be seen.

    Attributes:
        handed: exercise -> reference that stands in for the student's answer.
        answers: exercise -> the answer that was checked last.
    """

    def __init__(self, places: dict[str, str], modules: dict[str, str]):
        self.places, self.modules = places, modules
        self.handed: dict[str, Any] = {}
        self.answers: dict[str, Any] = {}
        package = sys.modules["vitedu"]
        package.__getattr__ = self._part_of_package  # type: ignore[method-assign]
        sys.meta_path.append(self)
        importlib.import_module(EXPORT)

    def find_spec(self, name: str, path: Any = None, target: Any = None):
        """Find every module of the course that is not on disk."""
        if name in self.modules:
            return importlib.machinery.ModuleSpec(name, self, origin=self.get_filename(name))
        if name == EXPORT or name.startswith("vitedu."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def get_source(self, fullname: str):
        """Return a module's text, which error messages show as well."""
        return self.modules.get(fullname, "")

    def get_filename(self, fullname: str) -> str:
        """Name a file of the package, unlike those of the student's code."""
        return str(PACKAGE.joinpath(*fullname.split(".")[1:]).with_suffix(".py"))

    def exec_module(self, module: types.ModuleType):
        """Run a module, whose other names stand for what it lacks."""
        name = module.__name__
        lacks = self.exported if name == EXPORT else lambda lacked: absent(lacked, name)
        module.__getattr__ = lacks  # type: ignore[method-assign]
        super().exec_module(module)

    def _part_of_package(self, name: str) -> Any:
        if f"vitedu.{name}" in self.modules:
            return importlib.import_module(f"vitedu.{name}")
        return absent(name, "vitedu")

    def show(self, modules: dict[str, str], space: dict[str, Any]) -> None:
        """Make more references visible, also under the names that stand for them in a notebook."""
        for module in self.modules:
            sys.modules.pop(module, None)
            vars(sys.modules["vitedu"]).pop(module.removeprefix("vitedu."), None)
        self.modules = modules
        for name, value in list(space.items()):
            if type(value) is Absent and value.__place__[0]:
                found = self._find(*value.__place__)
                if type(found) is not Absent:
                    space[name] = found

    def _find(self, module: str, name: str) -> Any:
        if module == EXPORT:
            return self.exported(name)
        return getattr(importlib.import_module(module), name)

    def reference(self, exercise: str) -> Any:
        """Return the reference of an exercise; an ``Absent`` if it may not be seen."""
        return getattr(importlib.import_module(self.places[exercise]), exercise)

    def exported(self, name: str) -> Any:
        """Return a name of ``my_vit``: a reference handed out, the student's own, or another."""
        for known in (self.handed, self.answers):
            if name in known:
                return known[name]
        if name in self.places:
            found = self.reference(name)
            if type(found) is not Absent:
                return found
        return absent(name, EXPORT)

    def hides(self, value: Any) -> bool:
        """Tell whether something absent is a reference that may not be seen."""
        return value.__place__[0] in {EXPORT, *self.modules}
