"""Remove what an author chooses freely from code: names, comments, docstrings, type hints, layout.

Role: ``split_tokens`` of a definition, for comparing answers. Nothing is run.
"""

import ast
import builtins
import re
from functools import lru_cache

from vitedu.course.parsing import parse
from vitedu.grading.intake.statements import is_stub

FIXED = {*dir(builtins), "torch", "nn", "F", "math", "np", "einops", "rearrange", "einsum", "self"}
_TOKEN = re.compile(r"\w+|[^\w\s]")


@lru_cache(256)
def split_tokens(source: str, name: str) -> list[str]:
    """Split the last definition of a name into tokens, with one token for the author's names.

    There are none of a stub, or where nothing defines the name or the text is no Python.

    Example:
        >>> split_tokens("total = first.sum(dim=1)", "total")
        ['v', '=', 'v', '.', 'sum', '(', 'dim', '=', '1', ')']
    """
    tokens = []
    try:
        for node in parse(source).body:
            targets = {t.id for t in getattr(node, "targets", []) if isinstance(t, ast.Name)}
            if name in targets | {getattr(node, "name", None)}:
                text = "" if is_stub(node) else ast.unparse(_Normaliser().visit(node))
                tokens = _TOKEN.findall(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return tokens


class _Normaliser(ast.NodeTransformer):
    """Renames names and drops docstrings and types. Attributes and keywords stay: torch's names."""

    def visit_Name(self, node):
        node.id = node.id if node.id in FIXED else "v"
        return node

    def visit_arg(self, node):
        node.arg, node.annotation = node.arg if node.arg in FIXED else "v", None
        return node

    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        if node.value is None:
            return None
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_FunctionDef(self, node):
        node.returns = None
        return self.visit_ClassDef(node)

    def visit_ClassDef(self, node):
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            node.body = node.body[1:] or [ast.Pass()]
        self.generic_visit(node)
        return node
