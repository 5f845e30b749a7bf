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
        # bound now, because an answer could replace what is looked up later
        self._set, self._drop, self._update = type.__setattr__, type.__delattr__, dict.update
        others = list(filter(None, map(sys.modules.get, (*TORCH, *OTHERS))))
        own = [m for n, m in list(sys.modules.items()) if m is not None and n.startswith(OWN)]
        values = [value for module in own for value in vars(module).items()]
        tables = {id(v): v for name, v in values if type(v) is dict and name[:2] != "__"}
        classes = [v for _, v in values if type(v) is type]
        self._classes = {each for each in classes if each.__module__.startswith(OWN)}
        kinds = self._classes | {torch.Tensor, nn.Parameter, nn.Module, nn.Linear, nn.Sequential}
        kinds |= {nn.BatchNorm1d, TorchDispatchMode, TorchFunctionMode, json.JSONEncoder}
        targets: list[tuple[Callable[..., None], Any]] = [
            # new names may stay there
            *((self._update, vars(module)) for module in (builtins, *others)),
            *((self._restore_own_module, vars(module)) for module in own),
            # each once, although several modules may import it
            *((self._restore_table, table) for table in tables.values()),
            *((self._restore_class, kind) for kind in kinds),
        ]
        # [how to restore, what, its entries]
        self._records: list[tuple[Callable[..., None], Any, Any]] = [
            (restore, target, dict(getattr(target, "__dict__", target)))
            for restore, target in targets
        ]
        spaces = [vars(each) for each in (*own, *(kinds - {torch.Tensor}))]
        self._functions = _find_functions(spaces)
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


def _find_functions(spaces: list[Any]) -> list[tuple[types.FunctionType, Any, Any, Any]]:
    """Find functions in namespaces and inside decorators, each once, with what they run with."""
    values = [value for space in spaces for value in space.values()]
    values += [getattr(each, "__dict__", {}).get("__wrapped__") for each in values]
    functions = {id(each): each for each in values if type(each) is types.FunctionType}.values()
    return [(f, f.__code__, f.__defaults__, f.__kwdefaults__) for f in functions]


# attributes of classes that Python itself changes
_MANAGED: frozenset[Any] = frozenset(
    "__dict__ __weakref__ __doc__ __abstractmethods__ _abc_impl __annotations__ "
    "__slotnames__".split()
)
