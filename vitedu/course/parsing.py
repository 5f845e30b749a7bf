"""Parse Python text safely in several threads.

Role: ``parse``. Python up to 3.13 shares one recursion counter for all threads in ``ast.parse``.
Two threads that parse at the same time may fail with "SystemError: AST constructor recursion depth
mismatch". Everything in this package parses here. Other libraries parse without asking (since 3.11
``traceback`` does), so a tree that such a neighbour spoiled is built again.
"""

import ast
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
