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
from typing import Any

from vitedu.grading.box.visible_modules import install

EXPORT = "my_vit"  # the module that a student's own model is exported to
# a name that a visible module lacks
HOOK = """
def __getattr__(name):
    import sys
    return sys.modules["my_vit"].__absent__(name, __name__)
"""


class Absent:
    """Stands for something of the course that is not here."""

    __place__ = ("", "")  # module and name

    def __init__(self, *args, **settings):
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


class Course(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The course's modules; also finds those that are not here.

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
        install({name: text + HOOK for name, text in modules.items()})

    def find_spec(self, name, path=None, target=None):
        """Find every module of the course that is not here."""
        if name == EXPORT or name.startswith("vitedu."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        """Leave it to Python."""
        return None

    def exec_module(self, module):
        """Give a module names that stand for what it lacks."""
        module.__absent__ = absent
        if module.__name__ == EXPORT:
            module.__getattr__ = self.exported
        else:
            module.__getattr__ = lambda name: absent(name, module.__name__)

    def _part_of_package(self, name: str) -> Any:
        if f"vitedu.{name}" in self.modules:
            return importlib.import_module(f"vitedu.{name}")
        return absent(name, "vitedu")

    def show(self, modules: dict[str, str], space: dict[str, Any]) -> None:
        """Make more references visible, also under the names that stand for them in a notebook."""
        self.modules = modules
        install({name: text + HOOK for name, text in modules.items()})
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
