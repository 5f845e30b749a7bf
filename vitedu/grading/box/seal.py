"""Restore what an answer has changed in torch, in Python and in the probes.

Role: ``Seal``. The probes look up functions when they need them: ``torch.equal``,
``nn.Module.named_modules``, their own helpers. An answer runs in the same process and could replace
any of them by one that lies. The seal therefore stores all of them before an answer is loaded, and
restores them each time after its code has run. For the worker, so with the standard library and
torch only.

Not covered: changes in objects that are passed to an answer, and an answer that finds the seal
itself. The scan of the source looks for such code.
"""

import builtins
import sys
import types
from typing import Any

import torch
from torch import nn

# Modules of the probes. Names that an answer adds to them are removed as well.
OURS = ("vitedu.checks", "vitedu.grading")
THEIRS = ("torch", "torch.nn", "torch.nn.functional", "torch.autograd", "torch.utils._pytree")
ALSO = ("builtins", "math", "copy", "numbers", "contextlib", "zlib", "signal", "numpy")


class Seal:
    """The present state of everything that the probes use."""

    def __init__(self) -> None:
        named = [sys.modules[name] for name in (*THEIRS, *ALSO) if name in sys.modules]
        own = [m for n, m in list(sys.modules.items()) if m is not None and n.startswith(OURS)]
        spaces = [vars(module) for module in (*named, *own)]
        self._kept = [(space, dict(space)) for space in spaces]
        self._closed = [(vars(module), dict(vars(module))) for module in own]
        self._tables = [
            (value, dict(value))
            for module in own
            for name, value in vars(module).items()
            if type(value) is dict and not name.startswith("__")
        ]
        self._own = {each for m in own for each in vars(m).values() if type(each) is type}
        self._own -= {each for each in self._own if not each.__module__.startswith(OURS)}
        kinds = {torch.Tensor, nn.Parameter, nn.Module, nn.Linear, nn.Sequential, nn.BatchNorm1d}
        kinds |= self._own
        self._classes = [(kind, dict(vars(kind))) for kind in kinds]
        found = [*(f for _, kept in self._closed for f in kept.values())]
        found += [
            f for kind, kept in self._classes for f in kept.values() if kind is not torch.Tensor
        ]
        self._code = [
            (f, f.__code__, f.__defaults__, f.__kwdefaults__)
            for f in {id(f): f for f in found if type(f) is types.FunctionType}.values()
        ]
        # bound now, because an answer could replace what is looked up later
        self._set, self._drop, self._update = type.__setattr__, type.__delattr__, dict.update
        self._builtins, self._real = vars(builtins), dict(vars(builtins))

    @staticmethod
    def _hides(kind: type, name: str) -> bool:
        """Tell whether an attribute of a class overrides an inherited one or a special name."""
        for base in kind.__mro__[1:]:
            if name in base.__dict__:
                return True
        return name[:2] == "__"

    def restore(self) -> None:
        """Restore everything."""
        update, put, drop = self._update, self._set, self._drop
        update(self._builtins, self._real)
        for space, kept in self._kept:
            update(space, kept)
        for space, kept in self._closed:
            if len(space) != len(kept):
                for name in [name for name in space if name not in kept]:
                    del space[name]
        for table, kept in self._tables:
            table.clear()
            update(table, kept)
        for kind, kept in self._classes:
            now = kind.__dict__
            for name, value in kept.items():
                if name not in now or now[name] is not value:
                    if name not in _OF_PYTHON:
                        put(kind, name, value)
            if len(now) != len(kept):
                for name in [name for name in now if name not in kept and name not in _OF_PYTHON]:
                    # a method that a student adds to a class of torch may stay if it hides none
                    if kind in self._own or self._hides(kind, name):
                        drop(kind, name)
        for function, code, defaults, keywords in self._code:
            if function.__code__ is not code:
                function.__code__ = code
            if function.__defaults__ is not defaults:
                function.__defaults__ = defaults
            if function.__kwdefaults__ is not keywords:
                function.__kwdefaults__ = keywords


# attributes of classes that Python itself changes
_OF_PYTHON: set[Any] = {
    "__dict__",
    "__weakref__",
    "__doc__",
    "__abstractmethods__",
    "_abc_impl",
    "__annotations__",
    "__slotnames__",
}
