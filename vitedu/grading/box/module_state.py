"""Restore what an answer has changed in torch, in Python and in the probes.

Role: ``ModuleState``. The probes look up functions when they need them: ``torch.equal``,
``nn.Module.named_modules``, their own helpers. An answer runs in the same process and could replace
any of them by one that lies. ``ModuleState`` therefore stores all of them before an answer is
loaded, and restores them each time after its code has run. For the worker, so with the standard
library and torch only.

Not covered: changes in objects that are passed to an answer, and an answer that finds the stored
state itself. The scan of the source looks for such code.
"""

import builtins
import json
import sys
import types
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

# Modules of the probes. Names that an answer adds to them are removed as well.
OWN = ("vitedu.checks", "vitedu.grading")
TORCH = ("torch", "torch.nn", "torch.nn.functional", "torch.autograd", "torch.utils._pytree")
OTHERS = tuple("builtins math copy numbers contextlib zlib signal numpy json json.encoder".split())


class ModuleState:
    """The present state of everything that the probes use."""

    def __init__(self) -> None:
        others = [sys.modules[name] for name in (*TORCH, *OTHERS) if name in sys.modules]
        own = [m for n, m in list(sys.modules.items()) if m is not None and n.startswith(OWN)]
        tables = {  # each once, although several modules may import it
            id(value): value
            for module in own
            for name, value in vars(module).items()
            if type(value) is dict and not name.startswith("__")
        }
        classes = {each for m in own for each in vars(m).values() if type(each) is type}
        self._classes = {each for each in classes if each.__module__.startswith(OWN)}
        kinds = {torch.Tensor, nn.Parameter, nn.Module, nn.Linear, nn.Sequential, nn.BatchNorm1d}
        kinds |= {TorchDispatchMode, TorchFunctionMode, json.JSONEncoder}
        values = [f for module in own for f in vars(module).values()]
        values += [f for k in (kinds | self._classes) - {torch.Tensor} for f in vars(k).values()]
        # what a decorator has wrapped
        values += [
            vars(f)["__wrapped__"] for f in values if "__wrapped__" in getattr(f, "__dict__", ())
        ]
        functions = {id(f): f for f in values if type(f) is types.FunctionType}.values()
        # bound now, because an answer could replace what is looked up later
        self._set, self._drop, self._update = type.__setattr__, type.__delattr__, dict.update
        targets: list[tuple[Callable[..., None], Any]] = [
            # new names may stay there
            *((self._update, vars(module)) for module in (builtins, *others)),
            *((self._restore_own_module, vars(module)) for module in own),
            *((self._restore_table, table) for table in tables.values()),
            *((self._restore_class, kind) for kind in kinds | self._classes),
        ]
        # [how to restore, what, its entries]
        self._records: list[tuple[Callable[..., None], Any, Any]] = [
            (restore, target, dict(vars(target) if isinstance(target, type) else target))
            for restore, target in targets
        ]
        self._functions = [(f, f.__code__, f.__defaults__, f.__kwdefaults__) for f in functions]
        self.restore()

    def restore(self) -> None:
        """Restore everything."""
        for restore, target, entries in self._records:
            restore(target, entries)
        for function, code, defaults, keywords in self._functions:  # in line, as there are many
            if function.__code__ is not code:
                function.__code__ = code
            if function.__defaults__ is not defaults:
                function.__defaults__ = defaults
            if function.__kwdefaults__ is not keywords:
                function.__kwdefaults__ = keywords

    def _restore_own_module(self, space: dict, entries: dict) -> None:
        self._update(space, entries)
        if len(space) != len(entries):
            for name in [name for name in space if name not in entries]:
                del space[name]

    def _restore_table(self, table: dict, entries: dict) -> None:
        table.clear()
        self._update(table, entries)

    def _restore_class(self, kind: type, entries: dict) -> None:
        now = kind.__dict__
        for name, value in entries.items():
            if name not in now or now[name] is not value:
                if name not in _MANAGED:
                    self._set(kind, name, value)
        if len(now) != len(entries):
            for name in [name for name in now if name not in entries and name not in _MANAGED]:
                # a method that a student adds to a class of torch may stay if it hides none
                hides = any(name in base.__dict__ for base in kind.__mro__[1:])
                if kind in self._classes or hides or name[:2] == "__":
                    self._drop(kind, name)


# attributes of classes that Python itself changes
_MANAGED: frozenset[Any] = frozenset(
    "__dict__ __weakref__ __doc__ __abstractmethods__ _abc_impl __annotations__ "
    "__slotnames__".split()
)
