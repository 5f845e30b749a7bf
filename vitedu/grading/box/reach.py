"""The global names that an answer reaches, and what they mean now.

Role: ``reach`` and ``marks``. They tell which failed cell an answer misses, and whether a later
cell changed it after its check. Standard library and torch only, for the worker.
"""

import builtins
import dis
import functools
import types
from typing import Any

import torch

MAX_OBJECTS = 2_000
_LOADS = {dis.opmap.get(f"LOAD_{name}") for name in ("GLOBAL", "NAME", "FROM_DICT_OR_GLOBALS")}


def reach(answer: Any, names: dict[str, Any]) -> dict[str, Any]:
    """Return the global names of a notebook that an answer reads, with their values.

    A name that has no value is left out of the values, not of the keys: it stands as ``...``.
    """
    found: dict[str, Any] = {}
    seen: dict[int, Any] = {}
    work = [answer]
    while work and len(seen) < MAX_OBJECTS:
        thing = work.pop()
        if id(thing) in seen:
            continue
        seen[id(thing)] = thing
        if isinstance(thing, types.FunctionType):
            work += [c.cell_contents for c in thing.__closure__ or () if _is_set(c)]
            work += [*(thing.__defaults__ or ()), *vars(thing).values()]
            if thing.__globals__ is names:
                for name in _reads(thing.__code__):
                    if name in names or not hasattr(builtins, name):
                        found[name] = names.get(name, ...)
                        work.append(found[name])
        elif isinstance(thing, functools.partial):
            work += [thing.func, *thing.args, *thing.keywords.values()]
        elif isinstance(thing, types.MethodType | staticmethod | classmethod):
            work += [thing.__func__, getattr(thing, "__self__", None)]
        elif isinstance(thing, property):
            work += [thing.fget, thing.fset]
        elif isinstance(thing, type):
            if thing.__module__ == names["__name__"]:
                work += [*thing.__bases__, *type.__dict__["__dict__"].__get__(thing).values()]
        elif isinstance(thing, dict):
            work += list(thing.values())[:MAX_OBJECTS]
        elif isinstance(thing, list | tuple | set):
            work += list(thing)[:MAX_OBJECTS]
        elif type(thing).__module__ == names["__name__"]:
            work += [type(thing), *getattr(thing, "__dict__", {}).values()]
    return found


def marks(answer: Any, names: dict[str, Any]) -> dict[str, Any]:
    """Mark what an answer is made of: the marks differ after a later cell has changed it."""
    found = {name: _mark(value) for name, value in reach(answer, names).items()}
    return found | {"": _mark(answer)}


def _mark(value: Any) -> tuple:
    if isinstance(value, torch.Tensor):
        return id(value), value._version
    inner: Any = getattr(value, "__dict__", ())
    if isinstance(value, dict):
        inner = value
    elif isinstance(value, list | set):
        inner = dict(enumerate(value))
    if isinstance(value, types.ModuleType):
        inner = {}
    return id(value), tuple((str(name), id(each)) for name, each in list(dict(inner).items())[:200])


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
