"""Restore what an answer has changed in torch, in Python and in the probes.

Role: ``ModuleState``. The probes look up functions when they need them: ``torch.equal``,
``nn.Module.named_modules``, their own helpers. An answer runs in the same process and could replace
any of them by one that lies. ``ModuleState`` therefore stores all of them before an answer is
loaded, and restores them each time after its code has run. CPython numbers the changes of each
dict, up to version 3.12, and keeps what a function runs at fixed words of its memory. It reads all
these words at once and restores what belongs to the changed ones. For the worker, so with the
standard library, numpy and torch only.

Not covered: changes in objects that are passed to an answer, and an answer that finds the stored
state itself. The scan of the source looks for such code.
"""

import builtins
import ctypes
import gc
import json
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
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
        self._classes = {each for m in own for each in vars(m).values() if type(each) is type}
        self._classes -= {each for each in self._classes if not each.__module__.startswith(OWN)}
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
        self._read_words = (_memory() if IS_NUMBERED else np.zeros(0)).take
        targets: list[tuple[Callable[..., None], Any]] = [
            *((self._restore_module, vars(module)) for module in (builtins, *others)),
            *((self._restore_own_module, vars(module)) for module in own),
            *((self._restore_table, table) for table in tables.values()),
            *((self._restore_class, kind) for kind in kinds | self._classes),
        ]
        # [how to restore, what, its entries, the place of a dict's number, bytes of ``_snapshot``]
        self._records: list[list[Any]] = []
        places: list[int] = []
        for restore, target in targets:
            space, part = _namespace(target), slice(WORD * len(places), WORD * (len(places) + 1))
            places += [_number_of(space)]
            self._records.append([restore, target, dict(space), places[-1], part])
        for f in functions:
            start, entries = WORD * len(places), (f.__code__, f.__defaults__, f.__kwdefaults__)
            places += [_place_of(f) + number for number in FUNCTION_WORDS]
            part = slice(start, WORD * len(places))
            self._records.append([self._restore_function, f, entries, None, part])
        self._places = np.array(places if IS_NUMBERED else [], dtype=np.intp)
        self._snapshot = bytearray(self._read_words(self._places).tobytes())
        self.restore()

    def restore(self) -> None:
        """Restore everything."""
        now = self._read_words(self._places).tobytes()
        if now and now == self._snapshot:
            return
        for restore, target, entries, number, part in self._records:
            if not now:
                restore(target, entries)
            elif now[part] != self._snapshot[part]:
                restore(target, entries)
                if number is not None:
                    self._snapshot[part] = self._read_words(number).tobytes()

    def _restore_module(self, space: dict, entries: dict) -> None:
        """Restore a module of others, in which new names may stay."""
        self._update(space, entries)

    def _restore_own_module(self, space: dict, entries: dict) -> None:
        self._update(space, entries)
        if len(space) != len(entries):
            for name in [name for name in space if name not in entries]:
                del space[name]

    def _restore_table(self, table: dict, entries: dict) -> None:
        table.clear()
        self._update(table, entries)

    def _restore_function(self, function: types.FunctionType, entries: tuple) -> None:
        code, defaults, keywords = entries
        if function.__code__ is not code:
            function.__code__ = code
        if function.__defaults__ is not defaults:
            function.__defaults__ = defaults
        if function.__kwdefaults__ is not keywords:
            function.__kwdefaults__ = keywords

    def _restore_class(self, kind: type, entries: dict) -> None:
        now = kind.__dict__
        for name, value in entries.items():
            if name not in now or now[name] is not value:
                if name not in _MANAGED:
                    self._set(kind, name, value)
        if len(now) != len(entries):
            for name in [name for name in now if name not in entries and name not in _MANAGED]:
                # a method that a student adds to a class of torch may stay if it hides none
                if kind in self._classes or self._hides(kind, name):
                    self._drop(kind, name)

    @staticmethod
    def _hides(kind: type, name: str) -> bool:
        """Tell whether an attribute of a class overrides an inherited one or a special name."""
        for base in kind.__mro__[1:]:
            if name in base.__dict__:
                return True
        return name[:2] == "__"


# attributes of classes that Python itself changes
_MANAGED: frozenset[Any] = frozenset(
    "__dict__ __weakref__ __doc__ __abstractmethods__ _abc_impl __annotations__ "
    "__slotnames__".split()
)


# --- words of memory ------------------------------------------------------------------------------

WORD = 8  # bytes


def _memory() -> np.ndarray:
    """Return this process's memory, from address ``WORD`` on, as one array of words.

    Reading through it changes no counter of references. A worker would have to copy the page of
    each counter that it changes.
    """
    words: Any = (ctypes.c_uint64 * 2**45).from_address(WORD)
    memory = np.frombuffer(words, dtype=np.uint64)
    memory.flags.writeable = False
    return memory


def _place_of(thing: Any) -> int:
    """Return the place of an object's first word in ``_memory()``."""
    return id(thing) // WORD - 1


def _number_of(space: dict) -> int:
    """Return the place where CPython numbers the last change of a dict: the dict's fourth word."""
    return _place_of(space) + 3


def _namespace(target: Any) -> dict:
    """Return the dict behind a class; a dict itself stays as it is."""
    return gc.get_referents(target.__dict__)[0] if isinstance(target, type) else target


def _find_function_words() -> list[int]:
    """Find out which words of a function point to its code, defaults and keyword defaults."""

    def probe(a=(), *, b=()):
        """Have defaults of both kinds."""

    start, size = _place_of(probe), types.FunctionType.__basicsize__ // WORD
    words = _memory()[start : start + size].tolist()
    parts = probe.__code__, probe.__defaults__, probe.__kwdefaults__
    return [words.index(id(part)) for part in parts]


def _numbers_changes() -> bool:
    """Try whether the words that are read change with what is stored."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != WORD:
        return False
    memory = _memory()
    table, kind = {"a": 1}, type("Kind", (), {})
    for space, changes in (
        (table, (lambda: table.update(a=2), lambda: table.update(b=1), table.popitem, table.clear)),
        (kind, (lambda: setattr(kind, "a", 1), lambda: delattr(kind, "a"))),
    ):
        number = _number_of(_namespace(space))
        for change in changes:
            before = memory[number]
            change()
            if memory[number] == before:
                return False
    return True


# CPython 3.10 to 3.12 numbers dicts; elsewhere everything is restored every time
IS_NUMBERED = _numbers_changes()
FUNCTION_WORDS = _find_function_words() if IS_NUMBERED else []
