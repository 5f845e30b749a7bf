"""Tell an unchanged stub from an answer by reading its code.

Role: ``is_stub`` chooses between several cells of one exercise. The points do not depend on it: the
checkers have their own test of a stub.
"""

import ast


def is_stub(node: ast.AST, name: str) -> bool:
    """Tell whether a statement is a stub: a function or class without an answer, or ``None``.

    Args:
        node: the statement.
        name: the exercise.

    Example:
        >>> is_stub(ast.parse("gelu = None").body[0], "gelu")
        True
        >>> is_stub(ast.parse("def gelu(x):\\n    return x").body[0], "gelu")
        False
    """
    if isinstance(node, ast.FunctionDef):
        return _does_nothing(node)
    if isinstance(node, ast.ClassDef):
        methods = [inner for inner in node.body if isinstance(inner, ast.FunctionDef)]
        return any(_raises_not_implemented(method) for method in methods) or not any(
            not _does_nothing(method) for method in methods
        )
    if isinstance(node, ast.Assign | ast.AnnAssign):
        value = node.value
        return isinstance(value, ast.Constant) and (value.value is None or value.value is ...)
    return False


def _body(function: ast.FunctionDef) -> list[ast.stmt]:
    """Return the statements of a function without docstrings and ``pass``."""
    return [
        statement
        for statement in function.body
        if not isinstance(statement, ast.Pass)
        and not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    ]


def _raises_not_implemented(function: ast.FunctionDef) -> bool:
    body = _body(function)
    if len(body) != 1 or not isinstance(body[0], ast.Raise):
        return False
    exception = body[0].exc
    exception = exception.func if isinstance(exception, ast.Call) else exception
    return isinstance(exception, ast.Name) and exception.id == "NotImplementedError"


def _does_nothing(function: ast.FunctionDef) -> bool:
    return not _body(function) or _raises_not_implemented(function)
