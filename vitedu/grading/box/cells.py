"""Run the code of a notebook's cells, statement by statement, as far as it goes.

Role: ``run_cell`` (an answer) and ``run_imports`` (what stands around it). For the worker: standard library only. One
statement that fails, such as a call on data that is not here, takes no other with it.
"""

import __future__

import ast
import linecache
from collections.abc import Iterator
from typing import Any

# parts of torch that no answer needs and that spell forbidden operations out in Python; none of them is loaded by torch itself
CLOSED = ("torch.onnx.ops", "torch._inductor", "torch.testing._internal")


def run_cell(source: str, filename: str, names: dict[str, Any]) -> BaseException | None:
    """Run a cell; give the first error of a statement.

    Errors that end a process or a check (``SystemExit``, a time limit) are raised.

    Args:
        source: Python.
        filename: how error messages call the cell.
        names: the namespace, which is filled.
    """
    first = None
    try:
        statements = list(_statements(source, filename, names))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return error
    for code, _, _ in statements:
        try:
            exec(code, names)
        except SystemExit as error:
            return first or error  # the rest of a notebook's cell would not run either
        except Exception as error:
            first = first or error
    return first


def run_imports(source: str, filename: str, names: dict[str, Any]) -> list[list]:
    """Run code of which some parts may be missing here.

    Returns:
        For each statement that failed [names that it would have given, why, module that it imports from or ""].
    """
    lost = []
    try:
        statements = list(_statements(source, filename, names))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [[[], f"{type(error).__name__}: {error}"[:200], ""]]
    for code, given, origin in statements:
        try:
            exec(code, names)
        except (Exception, SystemExit) as error:
            lost.append([given, f"{type(error).__name__}: {error}"[:200], origin])
    return lost


def _statements(
    source: str, filename: str, names: dict[str, Any]
) -> Iterator[tuple[Any, list[str], str]]:
    """Compile statement by statement, imports name by name; give code, the names that it sets, whence they come.

    What an earlier cell has imported from ``__future__`` holds on, as in a notebook.
    """
    linecache.cache[filename] = len(source), None, source.splitlines(keepends=True), filename
    flags = 0
    for value in names.values():
        if type(value) is __future__._Feature:
            flags |= value.compiler_flag
    for node in ast.parse(source, filename).body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            features = (getattr(__future__, alias.name, None) for alias in node.names)
            flags |= sum(feature.compiler_flag for feature in features if feature)
        for part in _single(node):
            module = ast.Module([part], type_ignores=[])
            code = compile(module, filename, "exec", flags, dont_inherit=True)
            yield code, _names_of(part), _origin(part)


def _single(node: ast.stmt) -> list[ast.stmt]:
    """Take an import of several names apart: one that is missing takes no other with it."""
    if not isinstance(node, ast.Import | ast.ImportFrom) or len(node.names) == 1:
        return [node]
    parts: list[ast.stmt] = [
        ast.Import([alias])
        if isinstance(node, ast.Import)
        else ast.ImportFrom(node.module, [alias], node.level)
        for alias in node.names
    ]
    return [ast.copy_location(part, node) for part in parts]


def _names_of(node: ast.stmt) -> list[str]:
    """Name what a statement sets at the top level."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).split(".")[0] for alias in node.names]
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return [node.name]
    stored = (n for n in ast.walk(node) if isinstance(n, ast.Name))
    return [name.id for name in stored if isinstance(name.ctx, ast.Store)]


def _origin(node: ast.stmt) -> str:
    """Name the module that an import reads."""
    if isinstance(node, ast.Import):
        return node.names[0].name
    return (node.module or "") if isinstance(node, ast.ImportFrom) else ""
