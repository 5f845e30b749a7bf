"""The part of this package that a worker may see.

Role: ``base_files`` are the files in the box: probes and communication. ``visible_sources`` are the
references that are sent with an answer. They do not contain the reference of the exercise under
test or of any later one, nor code that uses them, nor comments. Checkers, right answers and
mistakes are never sent.
"""

import ast
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from vitedu import __version__, exercises
from vitedu.course.parsing import parse
from vitedu.course.references import defined_names, module_source

# the files that a worker needs: no reference, expected value or mistake; ``isolation`` adds its own
BASE_FILES = (
    "checks/__init__.py",
    "checks/accelerator.py",
    "checks/answers.py",
    "checks/arguments.py",
    "checks/case.py",
    "checks/drivers.py",
    "checks/errors.py",
    "checks/limits.py",
    "checks/observation.py",
    "checks/observe.py",
    "checks/operations.py",
    "checks/second_call.py",
    "checks/settings.py",
    "grading/__init__.py",
    "grading/box/__init__.py",
    "grading/box/module_state.py",
    "grading/box/names.py",
    "grading/box/visible_modules.py",
    "grading/box/worker.py",
    "grading/transport/__init__.py",
    "grading/transport/messages.py",
    "grading/transport/wire.py",
)

PACKAGE_STUB = '''"""vitedu where an answer is graded: checks hand the answer on and say nothing."""

__version__ = "{version}"


class Report:
    """What a check gives back; the verdict is made elsewhere."""

    passed, status, headline, picture, printed = True, "passed", "", "", ""
    points = max_points = 0
    misconception = seed = None

    def __init__(self, answer=None):
        self.implementation, self.misconceptions, self.findings, self.lines = answer, [], [], []


def check(answer=None, *rest, **settings):
    """Hand an answer on."""
    return Report(answer)


def _nothing(*rest, **settings):
    """Say nothing."""
    return ""


hint = solution = progress = reset = _nothing
'''


def base_files() -> dict[str, str]:
    """Return the files in the box: path, relative to the folder on ``sys.path`` -> text."""
    package = Path(__file__).parents[2]
    drivers = [path.relative_to(package) for path in package.glob("checks/**/*_driver.py")]
    folders = {path.parent / "__init__.py" for path in drivers}
    names = sorted({*BASE_FILES, *(path.as_posix() for path in {*drivers, *folders})})
    files = {f"vitedu/{name}": (package / name).read_text(encoding="utf-8") for name in names}
    return {"vitedu/__init__.py": PACKAGE_STUB.format(version=__version__), **files}


def earlier_exercises(exercise_id: str) -> list[exercises.Exercise]:
    """List the exercises whose references an answer may use: all earlier ones of the course.

    Those that alone would solve the exercise are left out (``Checker.hides``).
    """
    from vitedu.checks.checker import find_checker

    hidden: frozenset[str] = getattr(find_checker(exercise_id), "hides", frozenset())
    order = [exercise.id for exercise in exercises.EXERCISES]
    before = exercises.EXERCISES[: order.index(exercises.find(exercise_id).id)]
    return [e for e in before if e.id not in hidden]


@cache
def visible_sources(exercise_id: str) -> dict[str, str]:
    """Return the chapter modules as an answer to one exercise may see them.

    Returns:
        Full module name -> source, without the references of this exercise and all later ones.
    """
    known = {exercise.id for exercise in earlier_exercises(exercise_id)}
    hidden: dict[str, set[str]] = {}
    for exercise in exercises.EXERCISES:
        names = hidden.setdefault(exercise.module, set())
        if exercise.id not in known:
            names.add(exercise.id)
    sources: dict[str, str] = {}
    for module in list(hidden):
        _add_module(module, hidden, sources)
    return sources


@dataclass(frozen=True)
class _Statement:
    """One top-level statement of a module, with what decides whether it may be seen."""

    text: str  # without annotations of functions
    defines: frozenset[str]
    names: frozenset[str]  # names that it uses, except in annotations
    imports: tuple[tuple[str, str, str], ...]  # (module, name, as) of each "from ... import" in it
    is_import: bool  # it is such an import, so it can lose some names and stay


@cache
def _split_module(module: str) -> list[_Statement]:
    """Split a module into statements, once for all exercises."""
    return [_read_statement(node) for node in parse(module_source(module)).body]


def _read_statement(node: ast.stmt) -> _Statement:
    unused, parts = set(), list(ast.walk(node))
    for function in [part for part in parts if isinstance(part, ast.FunctionDef)]:
        arguments = [part for part in ast.walk(function.args) if isinstance(part, ast.arg)]
        hints = [function.returns, *(argument.annotation for argument in arguments)]
        unused |= {id(part) for hint in hints if hint is not None for part in ast.walk(hint)}
        function.returns = None
        for argument in arguments:
            argument.annotation = None
    imports = [part for part in parts if isinstance(part, ast.ImportFrom)]
    return _Statement(
        ast.unparse(node),
        frozenset(defined_names(node)),
        frozenset(p.id for p in parts if isinstance(p, ast.Name) and id(p) not in unused),
        tuple((i.module or "", a.name, a.asname or a.name) for i in imports for a in i.names),
        isinstance(node, ast.ImportFrom),
    )


def _add_module(module: str, hidden: dict[str, set[str]], sources: dict[str, str]) -> None:
    """Add a module to ``sources`` after those that it imports; add what it lost to ``hidden``."""
    if module in sources:
        return
    sources[module] = ""  # marks it as begun, for circular imports
    statements = _split_module(module)
    for origin in [origin for statement in statements for origin, _, _ in statement.imports]:
        if origin.startswith("vitedu."):
            _add_module(origin, hidden, sources)
    lost, old_count = hidden.setdefault(module, set()), -1
    while len(lost) > old_count:  # a removed statement may define names that others use
        old_count = len(lost)
        statements = [part for statement in statements if (part := _trim(statement, lost, hidden))]
    sources[module] = "\n".join(statement.text for statement in statements)


def _trim(statement: _Statement, lost: set[str], hidden: dict[str, set[str]]) -> _Statement | None:
    """Return what may be seen of a statement, or None; add the names that are lost to ``lost``."""
    missing = [one for one in statement.imports if one[1] in hidden.get(one[0], ())]
    if statement.is_import and missing:
        lost |= {known_as for _, _, known_as in missing}
        rest = tuple(one for one in statement.imports if one not in missing)
        names = ", ".join(
            name if name == other else f"{name} as {other}" for _, name, other in rest
        )
        text = f"from {statement.imports[0][0]} import {names}"
        return replace(statement, text=text, imports=rest) if rest else None
    if missing or not lost.isdisjoint(statement.defines | statement.names):
        lost |= statement.defines
        return None
    return statement
