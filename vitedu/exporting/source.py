"""Read the text of an answer: the answer, the helpers it names, the imports that both need.

Role: ``collect``. It works while the objects live, since their globals say what a name means and
their code says where it stands; nothing of the student runs.
"""

import ast
import builtins
import inspect
import linecache
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from vitedu.course.parsing import global_names, parse, strip_magics
from vitedu.course.references import defined_names, first_line
from vitedu.course.run_above import find_shell

FUTURE = "from __future__ import annotations\n"  # so that annotations need no names
# where a function of a library is looked for if its own module is private
PUBLIC = "torch torch.nn torch.nn.functional math operator functools itertools einops".split()


class Unreadable(Exception):
    """Why the text of an answer cannot stand alone, to be read after "yours passed, but"."""


def collect(answer: Any, exercise: str, is_in_file: Callable[[str, Any], bool]) -> dict[str, str]:
    """Find the statements that an answer is made of.

    Args:
        answer: a function or class that passed.
        exercise: its id; an answer of another name gets a last line that gives it this one.
        is_in_file: whether an object is what the file has under a name, such as another part that
            passed. Its text does not come along.

    Returns:
        The name that a statement defines -> its text: imports, helpers, and last the answer.

    Raises:
        Unreadable: the text is not there, or it needs something that no text can bring.
    """
    statements: dict[str, str] = {}
    visited: list[Any] = []

    def put(name: str, text: str) -> None:
        if statements.setdefault(name, text) != text:
            raise Unreadable(f"it uses two things called {name}: rename one")

    def add(name: str, value: Any) -> None:
        """Add what a name means, unless the file has it."""
        real, home = getattr(value, "__name__", ""), getattr(value, "__module__", None) or ""
        for each in (name, real):
            if each != exercise and is_in_file(each, value):
                return put(name, f"{name} = {each}") if name != each else None
        is_made = isinstance(value, FunctionType | type) or hasattr(value, "__wrapped__")
        if is_made and _is_own(home):
            add_own(name, value)
        elif str(real if isinstance(value, ModuleType) else home).split(".")[0] == "vitedu":
            raise Unreadable(f"it builds on {home and home + '.'}{real or name} of the course")
        elif statement := _import_of(name, value):
            put(name, statement)
        elif _is_literal(value):
            put(name, f"{name} = {value!r}")
        else:
            raise Unreadable(f"it needs the notebook's {name}, a {type(value).__name__}")

    def add_own(name: str, thing: Any) -> None:
        """Add the statement of a function or class, after what it needs."""
        own, text, scope = find_statement(thing)
        if not any(thing is each for each in visited):
            visited.append(thing)
            needed, written = (global_names(start + text)[0] - {own} for start in (FUTURE, ""))
            if missing := sorted(needed - scope.keys() - vars(builtins).keys()):
                raise Unreadable(f"it names {missing[0]}, which is not defined")
            for each in sorted(written & scope.keys()):
                if each in needed or _import_of(each, scope[each]):  # or in an annotation alone
                    add(each, scope[each])
        put(own, text)
        if own != name:
            put(name, f"{name} = {own}")

    add_own(exercise, answer)
    return statements


def _import_statement(module: str, name: str, alias: str) -> str:
    """Write an import in one form: of a name from a module, or of a module if ``name`` is ""."""
    parent, _, last = module.rpartition(".")
    if not name and parent and last == alias:
        module, name = parent, last
    statement = f"from {module} import {name}" if name else f"import {module}"
    return statement if alias == (name or module) else f"{statement} as {alias}"


def _import_of(name: str, value: Any) -> str:
    """Write the import of a library, or of an object from its shortest public module, or ""."""
    real, module = getattr(value, "__name__", None), getattr(value, "__module__", None)
    if isinstance(value, ModuleType):
        return "" if _is_own(value.__name__) else _import_statement(value.__name__, "", name)
    if not isinstance(real, str) or _is_own(str(module)):
        return ""
    pieces = str(module).split(".")
    places = [".".join(pieces[: i + 1]) for i in range(len(pieces))]
    for place in [*(p for p in places if not re.search(r"(^|\.)_", p)), *PUBLIC]:
        if place in sys.modules and vars(sys.modules[place]).get(real) is value:
            return _import_statement(place, real, name)
    return ""


def _is_literal(value: Any) -> bool:
    with suppress(ValueError, SyntaxError, TypeError, RuntimeError, MemoryError):
        return ast.literal_eval(repr(value)) == value
    return False


def _is_own(module: str) -> bool:
    """Tell whether a module is the notebook, the student's file or a file in this folder."""
    if module in ("__main__", "my_vit"):
        return True
    path = Path(getattr(sys.modules.get(module), "__file__", None) or "/")
    others = module.split(".")[0] in {"vitedu", *sys.stdlib_module_names}
    is_installed = others or "site-packages" in path.parts
    return not is_installed and path.resolve().is_relative_to(Path.cwd())


# --- the statement that made an object ------------------------------------------------------------


def find_statement(thing: Any) -> tuple[str, str, dict]:
    """Find the statement of a function or class: (the name it defines, its text, its globals).

    Raises:
        Unreadable: it is not there, or not all of what runs.
    """
    is_class = isinstance(thing, type)
    thing = thing if is_class else inspect.unwrap(thing)
    name, home = getattr(thing, "__name__", "it"), getattr(thing, "__module__", "")
    if not is_class and not isinstance(thing, FunctionType):
        raise Unreadable(f"{name} is a {type(thing).__name__}, which has no text of yours")
    if not _is_own(home):
        raise Unreadable(f"{name} comes from {home}, it is not text of yours")
    if "<locals>" in thing.__qualname__ or getattr(thing, "__closure__", None):
        raise Unreadable(f"{name} is made inside a function, and uses what that function knows")
    codes = [f.__code__ for f in (_functions_of(thing) if is_class else [thing])]
    for place, text in _texts_around(home, codes):
        for node in reversed([n for n in ast.walk(parse(text)) if isinstance(n, ast.stmt)]):
            names = defined_names(node)
            is_lambda = isinstance(getattr(node, "value", None), ast.Lambda)
            if names and (is_lambda if name == "<lambda>" else name in names):
                lines = range(first_line(node), (node.end_lineno or 0) + 1)
                if all(c.co_filename == place and c.co_firstlineno in lines for c in codes):
                    return names[-1], statement_text(text, node), vars(sys.modules[home])
    raise Unreadable(f"the text of {name} that runs cannot be found (%%time hides it)")


def _functions_of(cls: type) -> Iterator[FunctionType]:
    """Yield the functions behind methods, properties and static methods that a text defines."""
    for member in vars(cls).values():
        member = getattr(member, "fget", None) or getattr(member, "__func__", member)
        member = inspect.unwrap(member) if callable(member) else member
        if isinstance(member, FunctionType) and member.__code__.co_filename != "<string>":
            yield member  # "<string>": dataclass wrote it


def _texts_around(home: str, codes: list[CodeType]) -> Iterator[tuple[str, str]]:
    """Yield (file, text) of the cell or file of some code; without any all cells, newest first.

    IPython keeps each version of a cell under a name of its own.
    """
    place = getattr(sys.modules.get(home), "__file__", None) or ""
    place = codes[0].co_filename if codes else place
    yield place, "".join(linecache.getlines(place))
    shell = find_shell()
    if shell is not None and home == "__main__" and not codes:
        for cell in map(strip_magics, reversed(shell.history_manager.input_hist_raw)):
            with suppress(SyntaxError, ValueError):
                parse(cell)
                yield "", cell


def statement_text(text: str, node: ast.stmt) -> str:
    """Cut a statement out of a text, with its decorators and the comments above and beside it."""
    lines, first = text.split("\n"), first_line(node)
    while first > 1 and re.match(r"\s*#(?!.*TODO)", lines[first - 2]):
        first -= 1
    whole_lines = textwrap.dedent("\n".join(lines[first - 1 : node.end_lineno]))
    # alone: one of two statements in a line, or one in an ``if`` with a string of several lines
    for cut in (whole_lines, ast.get_source_segment(text, node) or ""):
        with suppress(SyntaxError):
            if [ast.dump(each) for each in parse(cut).body] == [ast.dump(node)]:
                return cut.rstrip()
    raise Unreadable("it shares its line with another statement: give it lines of its own")
