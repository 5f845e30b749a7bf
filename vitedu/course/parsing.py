"""Python text as a syntax tree, also where several threads ask for one.

Role: ``parse``. Python up to 3.13 counts how deep it stands in a tree once for all threads. Two threads that parse at
the same time may therefore end in "SystemError: AST constructor recursion depth mismatch".
"""

import ast
import threading

_ONE_AT_A_TIME = threading.RLock()  # a finalizer that runs while its thread parses may parse too


def parse(source: str, mode: str = "exec"):
    """Parse Python text, one thread after the other.

    Returns:
        An ``ast.Module``; with ``mode="eval"`` an ``ast.Expression``.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as ``ast.parse``.

    Example:
        >>> parse("a = 1").body[0].lineno
        1
    """
    with _ONE_AT_A_TIME:
        return ast.parse(source, mode=mode)
