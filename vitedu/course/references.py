"""The source of each reference, read as text, and what a notebook takes from it.

Role: finds the statement that solves an exercise, and writes its stub and the first lines of its
check. Modules are parsed, never imported, so this is fast and needs no torch. The references
themselves are in the module of each notebook.
"""

import ast
import importlib.util
import re
from functools import cache
from pathlib import Path

from vitedu.course.parsing import parse
from vitedu.exercises import Exercise


@cache
def module_source(name: str) -> str:
    """Read the source of a module of this package without importing it.

    Raises:
        ValueError: the module does not exist.
    """
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.origin:
        raise ValueError(f"there is no module {name}.")
    return Path(spec.origin).read_text(encoding="utf-8")


@cache
def reference_source(exercise: Exercise) -> str:
    """Return the text of the statement that solves an exercise, as its module writes it.

    It is a function, a class with all its methods, or the assignment of a value.

    Raises:
        ValueError: the module defines no such name.

    Example:
        >>> from vitedu.exercises import find
        >>> print(reference_source(find("tokens_at_224")))
        tokens_at_224 = (224 // 16) ** 2 + 1  # 14 x 14 patches and the class token
    """
    source = module_source(exercise.module)
    for node in parse(source).body:
        if exercise.id in defined_names(node):
            return "\n".join(source.splitlines()[first_line(node) - 1 : node.end_lineno])
    raise ValueError(f"{exercise.module} does not define {exercise.id}; write the reference there.")


def solution_source(exercise: Exercise) -> str:
    """Return the text of the statement that solves an exercise in its notebook.

    A value that can be measured there is given by the expression that measures it.

    Raises:
        ValueError: the module defines no such name.

    Example:
        >>> from vitedu.exercises import find
        >>> print(solution_source(find("stem_tokens")))
        stem_tokens = stem(torch.zeros(1, 3, 224, 224))[0, 0].numel()
    """
    if exercise.measured:
        return f"{exercise.id} = {exercise.measured}"
    return reference_source(exercise)


def check_lines(exercise: Exercise) -> tuple[str, str]:
    """Return the first two lines of a check cell."""
    name_argument = f', "{exercise.id}"' if exercise.kind == "value" else ""
    return f"report = check({exercise.id}{name_argument})", f"{exercise.id} = report.implementation"


def stub_text(exercise: Exercise, todo: str) -> str:
    """Write a stub: the reference, with TODO lines in place of what the student writes.

    That is the body of a function; of a class the bodies of its methods, of ``__init__`` only if
    the exercise says so (``whole``). The TODO lines stand in the first of them. Decorators are left
    out: the student writes them.
    """
    if exercise.kind == "value":
        return f"{todo}\n{exercise.id} = None"
    source = reference_source(exercise)
    lines, node = source.splitlines(), parse(source).body[0]
    start, text = node.lineno - 1, []
    for part in node.body if isinstance(node, ast.ClassDef) else [node]:
        if isinstance(part, ast.FunctionDef) and (exercise.whole or part.name != "__init__"):
            text += lines[start : part.lineno - 1]
            start = part.end_lineno or 0
            first, indent = part.body[0], " " * part.col_offset
            end = first.end_lineno if ast.get_docstring(part) else first.lineno - 1
            head = "\n".join(lines[part.lineno - 1 : end])
            if part.args.kwonlyargs:  # they stand last, a line each
                head = re.sub(r"\s+\*,[^)]*\)", f"\n{indent})", head, count=1)
            text += [head, *(f"{indent}    {line}" for line in todo.splitlines())]
            text.append(f'{indent}    raise NotImplementedError("{exercise.number} {exercise.id}")')
            todo = ""
    return "\n".join(text)


def first_line(node: ast.stmt) -> int:
    """Give the line on which a statement begins, with its decorators."""
    return min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])


def defined_names(node: ast.stmt) -> list[str]:
    """List the names that a function, a class or a plain assignment defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []
