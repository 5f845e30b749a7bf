"""Read the text of an answer: the answer, the helpers it names, the imports that both need.

Role: ``collect``. It works while the objects live, since their globals say what a name means, and
nothing of the student runs. What is found is compared with the live code, so that an older text of
an edited cell, or a method replaced later, is not taken for the answer.
"""

import __future__

import ast
import builtins
import functools
import inspect
import linecache
import operator
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from vitedu.course.parsing import global_names, parse, strip_magics
from vitedu.course.references import defined_names
from vitedu.exercises import BY_ID

FUTURE = "from __future__ import annotations\n"  # so that annotations need no names
FLAGS = functools.reduce(
    operator.or_,
    (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names),
)
# where a function of a library is looked for if its own module is private
PUBLIC = "torch torch.nn torch.nn.functional math operator functools itertools einops".split()
_MISSING = object()


class Unreadable(Exception):
    """Why the text of an answer cannot stand alone, to be read after "yours passed, but"."""


def collect(answer: Any, exercise: str, is_accepted: Callable[[str, Any], bool]) -> str:
    """Return a text of imports, helpers and the answer, which is the last statement.

    Args:
        answer: a function or class that passed.
        exercise: its id; an answer of another name gets a last line that gives it this one.
        is_accepted: whether an object under the id of a part is the part that passed. Such a name
            means the part of the file, and its text does not come along.

    Raises:
        Unreadable: the text is not there, or it needs something that no text can bring.
    """
    pieces = _Pieces(exercise, is_accepted)
    pieces.add_own(answer, exercise)
    return "\n".join([*pieces.imports.values(), *pieces.texts.values()]) + "\n"


def statement_text(text: str, node: ast.stmt) -> str:
    """Cut a statement out of a text, with its decorators and the comments above and beside it."""
    lines = text.encode().split(b"\n")
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(d.lineno for d in decorators)])
    while first > 1 and re.match(rb"\s*#(?!.*TODO)", lines[first - 2]):
        first -= 1  # the comment above it
    last = node.end_lineno or node.lineno
    after = lines[last - 1][node.end_col_offset or 0 :]
    if not re.match(rb"\s*(#|$)", after):
        lines[last - 1] = lines[last - 1][: node.end_col_offset]
    indent = lines[node.lineno - 1][: node.col_offset]
    if indent.strip():  # another statement stands before it in its line
        first, lines[node.lineno - 1] = node.lineno, lines[node.lineno - 1][node.col_offset :]
    cut = [line.removeprefix(indent) for line in lines[first - 1 : last]]
    return b"\n".join(cut).decode().rstrip()


class _Pieces:
    """What has been collected for one answer."""

    def __init__(self, exercise: str, is_accepted: Callable[[str, Any], bool]):
        self.exercise, self.is_accepted = exercise, is_accepted
        self.imports: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        self.meaning: dict[str, Any] = {}

    def add_own(self, thing: Any, name: str) -> None:
        """Add the text of a function or class, after what it needs."""
        text, own, scope = find_text(thing)
        self._is_new(own, thing)
        self._is_new(name, thing)
        for each in sorted(global_names(FUTURE + text)[0] - {own}):
            self._add(each, scope)
        for each in sorted(global_names(text)[0] & scope.keys() - self.meaning.keys()):
            if _library_import(scope[each], each):  # of an annotation, where it is easy
                self._add(each, scope)
        self.texts[own] = text
        if own != name:
            self.texts[f"{name} ="] = f"{name} = {own}"

    def _is_new(self, name: str, value: Any) -> bool:
        """Note what a name means. One text has one meaning for it."""
        is_new = name not in self.meaning
        before = self.meaning.setdefault(name, value)
        if before is not value and repr(before) != repr(value):
            raise Unreadable(f"it uses two things called {name}: rename one")
        return is_new

    def _add(self, name: str, scope: dict) -> None:
        """Add what a name means."""
        value = scope.get(name, _MISSING)
        if value is _MISSING:
            if not hasattr(builtins, name):
                raise Unreadable(f"it names {name}, which is not defined")
            return
        real, module = getattr(value, "__name__", ""), getattr(value, "__module__", None)
        is_known = self._is_part(name, value) or _is_in_file(name, value)
        if is_known or (name in self.meaning and not self._is_new(name, value)):
            return
        if isinstance(value, ModuleType) and value.__name__.split(".")[0] == "vitedu":
            raise Unreadable(f"it needs the course's package as {name}")
        if isinstance(value, ModuleType) and not _is_own(value.__name__):
            self.imports[name] = f"import {value.__name__} as {name}"
        elif str(module).split(".")[0] == "vitedu" or self._is_part(real, value):
            if not self._is_part(real, value):
                raise Unreadable(f"it builds on {module}.{real or name} of the course's package")
            self.texts[name] = f"{name} = {real}"  # another name of a part
        elif statement := _library_import(value, name):
            self.imports[name] = statement
        elif isinstance(value, FunctionType | type) or hasattr(value, "__wrapped__"):
            return self.add_own(value, name)
        elif _is_literal(value):
            self.texts[name] = f"{name} = {value!r}"
        else:
            raise Unreadable(f"it needs the notebook's {name}, a {type(value).__name__}")
        self._is_new(name, value)

    def _is_part(self, name: str, value: Any) -> bool:
        """Tell whether an object is another part, which the file has."""
        is_other = name in BY_ID and BY_ID[name].part and name != self.exercise
        return bool(is_other and self.is_accepted(name, value))


# names of the package that the file has too, and their modules
NAMES_OF_PACKAGE = {"ViTConfig": "vit", "BlockWithoutBias": "vit", "initialise": "vit"}
NAMES_OF_PACKAGE |= {"GELU": "encoder", "reflect": "training"}


def _is_in_file(name: str, value: Any) -> bool:
    if getattr(value, "__module__", None) == "my_vit" and name in {*NAMES_OF_PACKAGE, "LayerNorm"}:
        return value.__name__ == name
    module = sys.modules.get(f"vitedu.{NAMES_OF_PACKAGE.get(name)}")
    return module is not None and getattr(module, name) is value


def _is_literal(value: Any) -> bool:
    try:
        return ast.literal_eval(repr(value)) == value
    except (ValueError, SyntaxError, TypeError, RuntimeError, MemoryError):
        return False


def _is_own(module: str) -> bool:
    """Tell whether a module is the notebook, the student's file or a file in this folder."""
    if module in ("__main__", "my_vit"):
        return True
    path = getattr(sys.modules.get(module), "__file__", None)
    others = {"vitedu", *sys.stdlib_module_names}
    if not path or module.split(".")[0] in others or "site-packages" in Path(path).parts:
        return False
    return Path(path).resolve().is_relative_to(Path.cwd())


def _library_import(value: Any, name: str) -> str:
    """Write the import of an object of a library from its shortest public module, or ""."""
    real = getattr(value, "__name__", None)
    module = getattr(value, "__module__", None)
    module = module if isinstance(module, str) else ""
    if not isinstance(real, str) or _is_own(module) or module.split(".")[0] == "vitedu":
        return ""
    pieces = module.split(".")
    places = [".".join(pieces[: i + 1]) for i in range(len(pieces))]
    for place in [*(p for p in places if not re.search(r"(^|\.)_", p)), *PUBLIC]:
        if getattr(sys.modules.get(place), real, _MISSING) is value:
            return f"from {place} import {real}" + f" as {name}" * (real != name)
    return ""


# --- the statement that made an object ------------------------------------------------------------


def find_text(thing: Any) -> tuple[str, str, dict]:
    """Find the statement of a function or class: (text, the name it defines, its globals).

    Raises:
        Unreadable: it is not there, or not what runs.
    """
    kind = "class" if isinstance(thing, type) else "function"
    name = getattr(thing, "__name__", type(thing).__name__)
    if kind == "class":
        functions = [f for f in map(_function_of, vars(thing).values()) if f is not None]
        functions = [f for f in functions if f.__code__.co_filename[:1] != "<"]
    else:
        thing = inspect.unwrap(thing)
        if not isinstance(thing, FunctionType):
            raise Unreadable(f"{name} is a {type(thing).__name__} of a library, no text of yours")
        functions = [thing]
    if not _is_own(thing.__module__):
        raise Unreadable(f"{name} comes from {thing.__module__}, it is no text of yours")
    if "<locals>" in thing.__qualname__ or getattr(thing, "__closure__", None):
        raise Unreadable(f"{name} is made inside a function, and uses what that function knows")
    scope = functions[0].__globals__ if functions else vars(sys.modules[thing.__module__])
    for text in _texts_around(thing, functions):
        try:
            statements = list(_statements(parse(text).body))
        except (SyntaxError, ValueError):
            continue
        for node in reversed(statements):
            names = defined_names(node)
            is_lambda = isinstance(getattr(node, "value", None), ast.Lambda)
            if not names or (not is_lambda if name == "<lambda>" else name not in names):
                continue
            if all(_is_code_of(f.__code__, text, node) for f in functions):
                cut = statement_text(text, node)
                with_cut = parse(cut).body  # the indentation of a string may have suffered
                if len(with_cut) == 1 and ast.dump(with_cut[0]) == ast.dump(node):
                    return cut, names[-1], scope
    raise Unreadable(f"the text of {name} that runs cannot be found (%%time hides it)")


def _function_of(member: Any) -> FunctionType | None:
    """Return the function behind a method, a property or a static method."""
    member = getattr(member, "fget", None) or getattr(member, "__func__", member)
    member = inspect.unwrap(member) if callable(member) else member
    return member if isinstance(member, FunctionType) else None


def _texts_around(thing: Any, functions: list[FunctionType]) -> Iterator[str]:
    """Yield texts that may hold the statement: cells, the newest first, or a file."""
    if functions:
        yield "".join(linecache.getlines(functions[0].__code__.co_filename))
    elif path := getattr(sys.modules.get(thing.__module__), "__file__", None):
        yield "".join(linecache.getlines(path))
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None and thing.__module__ == "__main__":
        for cell in reversed(shell.history_manager.input_hist_raw):
            yield strip_magics(cell)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, also those under ``if``, ``try``, ``for`` and ``with``."""
    for node in body:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for field in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, field, []))


def _is_code_of(code: CodeType, text: str, node: ast.stmt) -> bool:
    """Tell whether a statement compiles to a piece of code, alone or within its file."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    if not first <= code.co_firstlineno <= (node.end_lineno or first):
        return False
    for source in (ast.Module([node], []), text):
        try:
            made = compile(source, "", "exec", code.co_flags & FLAGS, dont_inherit=True)
        except (SyntaxError, ValueError):  # a cell that awaits
            continue
        if any(_same(code, each) for each in _codes(made)):
            return True
    return False


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _same(one: Any, other: Any) -> bool:
    """Compare two pieces of code, or two constants, but not where they stand."""
    if not isinstance(one, CodeType) or not isinstance(other, CodeType):
        return type(one) is type(other) and one == other
    fields = ("co_name", "co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars")
    return (
        all(getattr(one, field) == getattr(other, field) for field in fields)
        and len(one.co_consts) == len(other.co_consts)
        and all(map(_same, one.co_consts, other.co_consts))
    )
