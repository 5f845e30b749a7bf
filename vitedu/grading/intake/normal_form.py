"""Remove what an author chooses freely from code: names, comments, docstrings, type hints, layout.

Role: ``normalise`` and ``split_tokens`` of a definition, for comparing answers. Nothing is run.
"""

import ast
import builtins
import re

from vitedu.course.parsing import parse

FIXED = {*dir(builtins), "torch", "nn", "F", "math", "np", "einops", "rearrange", "einsum", "self"}
_TOKEN = re.compile(r"\w+|[^\w\s]")


def find_definition(source: str, name: str) -> ast.stmt | None:
    """Return the last top-level statement that defines a name; None if there is none.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as ``ast.parse``.
    """
    definition = None
    for node in parse(source).body:
        targets = {t.id for t in getattr(node, "targets", []) if isinstance(t, ast.Name)}
        if name in targets | {getattr(node, "name", None)}:
            definition = node
    return definition


def normalise(source: str, name: str) -> str:
    """Write a definition with its names numbered in order of appearance; "" if there is none.

    Example:
        >>> one, other = "def f(x): return x + 1", "def f(y: int): return (y + 1)  # one more"
        >>> normalise(one, "f") == normalise(other, "f") != ""
        True
    """
    node = find_definition(source, name)
    return ast.unparse(_Normaliser(is_numbered=True).visit(node)) if node else ""


def split_tokens(source: str, name: str) -> list[str]:
    """Split a definition into tokens, with the same token for all names of the author's.

    Example:
        >>> split_tokens("total = first.sum(dim=1)", "total")
        ['v', '=', 'v', '.', 'sum', '(', 'dim', '=', '1', ')']
    """
    node = find_definition(source, name)
    return _TOKEN.findall(ast.unparse(_Normaliser(is_numbered=False).visit(node))) if node else []


class _Normaliser(ast.NodeTransformer):
    """Renames names and drops docstrings and types. Attributes and keywords stay: torch's names."""

    def __init__(self, is_numbered: bool):
        self.is_numbered = is_numbered
        self.names: dict[str, int] = {}

    def name(self, name: str) -> str:
        if name in FIXED:
            return name
        return f"v{self.names.setdefault(name, len(self.names))}" if self.is_numbered else "v"

    def visit_Name(self, node):
        node.id = self.name(node.id)
        return node

    def visit_arg(self, node):
        node.arg, node.annotation = self.name(node.arg), None
        return node

    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        if node.value is None:
            return None
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_FunctionDef(self, node):
        node.returns = None
        return self._without_docstring(node)

    def visit_ClassDef(self, node):
        return self._without_docstring(node)

    def _without_docstring(self, node):
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            node.body = node.body[1:] or [ast.Pass()]
        self.generic_visit(node)
        return node
