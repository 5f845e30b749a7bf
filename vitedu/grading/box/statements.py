"""Statements as text: IPython's own syntax, imports one by one, the names that are bound.

Role: ``to_python``, ``split_imports`` and ``bound_by``, for the box and for who reads notebooks.
Standard library only.
"""

import ast
import builtins
import copy
import re

IMPORTS = ast.Import | ast.ImportFrom
MAX_MAGICS = 60  # lines of a cell in IPython's own syntax
MAX_LINE = 2_000  # characters of such a line
SHELL = "get_ipython()"
_LINE = re.compile(r"(\s*)(?:([\w.,\s]+=)\s*)?(?:%(\w+)\s*(.*)|(!).*)$")
_HELP = re.compile(r"(\s*)(?:\?.*|.*\?\s*)$")


def split_imports(statements: list[ast.stmt]) -> list[ast.stmt]:
    """Split imports of several names, so that a missing one does not affect the others."""
    parts: list[ast.stmt] = []
    for node in statements:
        if not isinstance(node, IMPORTS):
            parts.append(node)
            continue
        for alias in node.names:
            part = copy.copy(node)
            part.names = [alias]
            parts.append(part)
    return parts


_BINDS = re.compile(r"^\s*(?:def |class |async def )?([^\W\d]\w*)[ \t]*(?:=(?!=)|\(|:)", re.M)


def bound_by_text(source: str) -> set[str]:
    """Guess the names that a text binds that is no Python."""
    return set(_BINDS.findall(source[:100_000]))


def bound_by(node: ast.stmt, is_own: bool) -> set[str]:
    """Return the names that a statement binds, and of a student's own those that it may change."""
    names = set[str]()
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            names.add(inner.name)
        elif isinstance(inner, ast.alias):
            names.add(inner.asname or inner.name.split(".")[0])
        elif isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load):
            names.add(inner.id)
        elif isinstance(inner, ast.Attribute | ast.Subscript):
            is_changed = not isinstance(inner.ctx, ast.Load)
            names |= root(inner) if is_changed or is_own else set()
        elif isinstance(inner, ast.Call) and is_own:
            names |= {each.id for each in inner.args if isinstance(each, ast.Name)}
    return names - set(vars(builtins))


def root(node: ast.AST) -> set[str]:
    """Return the name with which a chain of attributes, items and calls begins."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def to_python(source: str) -> str:
    """Write a cell as Python.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it is neither Python nor IPython's.

    Example:
        >>> to_python("%time x = 1\\nx?")
        "get_ipython().run_line_magic('time', 'x = 1')\\npass"
        >>> to_python("%%time\\nx = 1")
        "get_ipython().run_cell_magic('time', '', 'x = 1')"
    """
    lines = source.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    if lines[first].startswith("%%"):
        name, _, rest = lines[first][2:].strip().partition(" ")
        body = "\n".join(lines[first + 1 :])
        return f"{SHELL}.run_cell_magic({name!r}, {rest.strip()!r}, {body!r})"
    for _ in range(min(MAX_MAGICS, 500_000 // (len(source) + 1)) + 1):
        text = "\n".join(lines)
        try:
            ast.parse(text)
        except SyntaxError as error:
            at = (error.lineno or 0) - 1
            line = lines[at] if 0 <= at < len(lines) else ""
            if len(line) > MAX_LINE or not (written := _write_line(line)):
                raise
            lines[at] = written
        else:
            return text
    raise SyntaxError(f"more than {MAX_MAGICS} lines in IPython's own syntax")


def _write_line(line: str) -> str:
    """Write a line of IPython's as Python, or return "" if it is none."""
    if found := _LINE.match(line):
        indent, target, magic, rest, _ = found.groups()
        call = f"{SHELL}.run_line_magic({magic!r}, {rest!r})" if magic else f"{SHELL}.getoutput()"
        return f"{indent}{target or ''}{' ' if target else ''}{call}"
    found = _HELP.match(line)
    return f"{found[1]}pass" if found else ""
