"""Run the code of a notebook's cells, one statement at a time.

Role: ``run_cell`` runs an answer and ``run_support`` its support code. If a statement fails, for
example because it needs data that a worker does not have, the others still run. For the worker, so
with the standard library only.
"""

import __future__

import ast
import linecache
from collections.abc import Iterator
from typing import Any

# Parts of torch that implement forbidden operations in Python. No answer needs them, and importing
# torch does not load them.
CLOSED_MODULES = ("torch.onnx.ops", "torch._inductor", "torch.testing._internal")


def run_cell(source: str, filename: str, names: dict[str, Any]) -> BaseException | None:
    """Run a cell and return the first error of a statement, or None.

    ``SystemExit`` ends the cell and is returned. A time limit or an interrupt is raised.

    Args:
        source: Python code.
        filename: the cell's name in error messages.
        names: the namespace, which is filled.
    """
    first = None
    try:
        statements = list(_statements(source, filename, names))
    except ValueError as error:  # what Python before 3.11.4 says of a byte of zero
        return SyntaxError(str(error))
    except (SyntaxError, RecursionError, MemoryError) as error:
        return error
    for code, _, _ in statements:
        try:
            exec(code, names)
        except SystemExit as error:
            return first or error  # in a notebook the rest of the cell would not run either
        except Exception as error:
            first = first or error
    return first


def run_support(source: str, filename: str, names: dict[str, Any]) -> list[list]:
    """Run support code, of which some statements may fail.

    Returns:
        For each statement that failed: [names that it would bind, why, module that it imports, or
        ""].
    """
    failures = []
    try:
        statements = list(_statements(source, filename, names))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [[[], f"{type(error).__name__}: {error}"[:200], ""]]
    for code, names_bound, origin in statements:
        try:
            exec(code, names)
        except (Exception, SystemExit) as error:
            failures.append([names_bound, f"{type(error).__name__}: {error}"[:200], origin])
    return failures


def _statements(
    source: str, filename: str, names: dict[str, Any]
) -> Iterator[tuple[Any, list[str], str]]:
    """Compile each statement and each imported name by itself.

    Imports from ``__future__`` in earlier cells apply, as in a notebook.

    Yields:
        (code, names that it binds, module that it imports or "").
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
        for part in _split_import(node):
            module = ast.Module([part], type_ignores=[])
            code = compile(module, filename, "exec", flags, dont_inherit=True)
            yield code, _bound_names(part), _imported_module(part)


def _split_import(node: ast.stmt) -> list[ast.stmt]:
    """Split an import of several names, so that a missing one does not affect the others."""
    if not isinstance(node, ast.Import | ast.ImportFrom) or len(node.names) == 1:
        return [node]
    parts: list[ast.stmt] = [
        ast.Import([alias])
        if isinstance(node, ast.Import)
        else ast.ImportFrom(node.module, [alias], node.level)
        for alias in node.names
    ]
    return [ast.copy_location(part, node) for part in parts]


def _bound_names(node: ast.stmt) -> list[str]:
    """Return the names that a statement binds."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).split(".")[0] for alias in node.names]
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return [node.name]
    name_nodes = (n for n in ast.walk(node) if isinstance(n, ast.Name))
    return [name.id for name in name_nodes if isinstance(name.ctx, ast.Store)]


def _imported_module(node: ast.stmt) -> str:
    """Return the module that an import reads; "" for other statements."""
    if isinstance(node, ast.Import):
        return node.names[0].name
    return (node.module or "") if isinstance(node, ast.ImportFrom) else ""
