"""Parse Python text safely in several threads.

Role: ``parse``, and the global names of a cell. Python up to 3.13 shares one recursion counter for
all threads in ``ast.parse``.
Two threads that parse at the same time may fail with "SystemError: AST constructor recursion depth
mismatch". Everything in this package parses here. Other libraries parse without asking (since 3.11
``traceback`` does), so a tree that such a neighbour spoiled is built again.
"""

import ast
import re
import symtable
import threading
from contextlib import suppress

# reentrant, because a finalizer that runs during parsing may parse as well
_LOCK = threading.RLock()
TRIES = 5


def parse(source: str, mode: str = "exec"):
    """Parse Python text as ``ast.parse`` does, in one thread at a time.

    Returns:
        An ``ast.Module``, or with ``mode="eval"`` an ``ast.Expression``.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as ``ast.parse``.

    Example:
        >>> parse("a = 1").body[0].lineno
        1
    """
    with _LOCK:
        for _ in range(TRIES - 1):
            with suppress(SystemError):
                return ast.parse(source, mode=mode)
        return ast.parse(source, mode=mode)


def without_docstrings(source: str) -> str:
    """Drop the docstrings of functions and classes; text that is no Python stays as it is.

    Example:
        >>> without_docstrings("def f():\\n    'Give 1.'\\n    return 1").splitlines()
        ['def f():', '    return 1']
    """
    words = set()
    with suppress(SyntaxError, ValueError):
        for node in ast.walk(parse(source)):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
                words |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = source.splitlines()
    return "\n".join(line for row, line in enumerate(lines, start=1) if row not in words)


def strip_magics(source: str) -> str:
    """Drop the lines of a cell that are IPython's and not Python's."""
    return re.sub(r"(?m)^\s*[%!].*$", "", source)


def global_names(source: str) -> tuple[set[str], set[str]]:
    """Return the global names that a piece of code reads, and those that it binds."""
    reads, binds = set(), set()

    def visit(table: symtable.SymbolTable) -> None:
        top = table.get_type() == "module"
        for symbol in table.get_symbols():
            if top and (symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()):
                binds.add(symbol.get_name())
            if symbol.is_referenced() and (top or symbol.is_global()):
                reads.add(symbol.get_name())
            if not top and symbol.is_declared_global() and symbol.is_assigned():
                binds.add(symbol.get_name())
        for child in table.get_children():
            visit(child)

    visit(symtable.symtable(source, "cell", "exec"))
    return reads, binds
