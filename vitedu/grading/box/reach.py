"""The global names that an answer reaches, and what they mean now.

Role: ``reach`` and ``marks``. They tell which failed cell an answer misses, and whether a later
cell changed it after its check. Standard library and torch only, for the worker.
"""

import builtins
import contextlib
import dis
import functools
import types
from typing import Any

import torch

MAX_OBJECTS = 2_000
# what holds functions, and under which names
_WRAPPERS = functools.partial | types.MethodType | staticmethod | classmethod | property
_INSIDE = ("func", "args", "keywords", "__func__", "__self__", "fget", "fset")
_LOADS = {dis.opmap.get(f"LOAD_{name}") for name in ("GLOBAL", "NAME", "FROM_DICT_OR_GLOBALS")}


def reach(answer: Any, names: dict[str, Any]) -> dict[str, Any]:
    """Return the global names of a notebook that an answer reads, with their values.

    A name that has no value has ``...``. An object that lets nobody look is not followed.
    """
    found: dict[str, Any] = {}
    seen: dict[int, Any] = {}
    work = [answer]
    while work and len(seen) < MAX_OBJECTS:
        thing = work.pop()
        if id(thing) not in seen:
            seen[id(thing)] = thing
            with contextlib.suppress(Exception):
                work += _parts(thing, names, found)
    return found


def _parts(thing: Any, names: dict[str, Any], found: dict[str, Any]) -> list:
    """List what an object is made of, and add the global names that its code reads."""
    if isinstance(thing, types.FunctionType):
        parts = [c.cell_contents for c in thing.__closure__ or () if _is_set(c)]
        parts += [*(thing.__defaults__ or ()), *vars(thing).values()]
        if thing.__globals__ is names:
            for name in _reads(thing.__code__):
                if name in names or not hasattr(builtins, name):
                    found[name] = names.get(name, ...)
                    parts.append(found[name])
        return parts
    if isinstance(thing, _WRAPPERS):
        return [getattr(thing, name, None) for name in _INSIDE]
    if isinstance(thing, type):
        is_own = thing.__module__ == names["__name__"]
        return [*thing.__bases__, *vars(thing).values()] if is_own else []
    if isinstance(thing, dict):
        return list(thing.values())[:MAX_OBJECTS]
    if isinstance(thing, list | tuple | set):
        return list(thing)[:MAX_OBJECTS]
    if type(thing).__module__ == names["__name__"]:
        return [type(thing), *getattr(thing, "__dict__", {}).values()]
    return []


def marks(answer: Any, names: dict[str, Any]) -> dict[str, Any]:
    """Mark what an answer is made of: the marks differ after a later cell has changed it."""
    found = {name: _mark(value) for name, value in reach(answer, names).items()}
    return found | {"": _mark(answer)}


def _mark(value: Any) -> tuple:
    if issubclass(type(value), torch.Tensor):
        return id(value), value._version
    inner: Any = {}
    with contextlib.suppress(Exception):
        if isinstance(value, dict):
            inner = value
        elif isinstance(value, list | set):
            inner = dict(enumerate(value))
        elif not isinstance(value, types.ModuleType):
            inner = dict(getattr(value, "__dict__", {}))
    return id(value), tuple((str(name), id(each)) for name, each in list(inner.items())[:200])


def _is_set(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _reads(code: types.CodeType) -> set[str]:
    """Return the global names that code reads, also in functions inside it."""
    names, work = set[str](), [code]
    while work:
        code = work.pop()
        names |= {step.argval for step in dis.get_instructions(code) if step.opcode in _LOADS}
        work += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return names
