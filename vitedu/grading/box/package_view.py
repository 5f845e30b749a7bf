"""The part of this package that a worker may see.

Role: ``base_files`` are the files in the box: probes and communication. ``visible_sources`` are the
references that are sent with an answer. They do not contain the reference of the exercise under
test or of any later one, nor code that uses them, nor comments. Checkers, right answers and
mistakes are never sent.
"""

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

from vitedu import __version__, exercises
from vitedu.course.parsing import global_names, parse
from vitedu.course.references import module_source
from vitedu.grading.intake.statements import split_import

# the files that a worker needs: no reference, expected value or mistake; ``isolation`` adds its own
BASE_FILES = [
    f"{name}.py"
    for name in (
        "checks/__init__ checks/observing/__init__ checks/observing/accelerator "
        "checks/observing/answers checks/observing/arguments checks/observing/case "
        "checks/observing/drivers checks/observing/errors checks/observing/limits "
        "checks/observing/observation checks/observing/observe checks/observing/operations "
        "checks/observing/second_call checks/observing/settings grading/__init__ "
        "grading/box/__init__ grading/box/module_state grading/box/names "
        "grading/box/visible_modules grading/box/worker grading/transport/__init__ "
        "grading/transport/messages grading/transport/wire"
    ).split()
]
# so that annotations name nothing, and a hidden name may stand there
FUTURE = "from __future__ import annotations\n"

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
    from vitedu.checks.writing.checker import find_checker

    hidden: frozenset[str] = getattr(find_checker(exercise_id), "hides", frozenset())
    order = [exercise.id for exercise in exercises.EXERCISES]
    before = exercises.EXERCISES[: order.index(exercises.find(exercise_id).id)]
    return [e for e in before if e.id not in hidden]


@cache
def visible_sources(exercise_id: str) -> dict[str, str]:
    """Return the chapter modules as an answer to one exercise may see them.

    Returns:
        Full module name -> source, without the references of this exercise and all later ones, and
        without what uses them.
    """
    known = {exercise.id for exercise in earlier_exercises(exercise_id)}
    hidden = {(each.module, each.id) for each in exercises.EXERCISES if each.id not in known}
    size = 0
    while size < len(hidden):  # what is lost may be used by others
        size = len(hidden)
        for statements in _split_modules().values():
            hidden.update(*(each.binds for each in statements if each.names & hidden))
    return {
        module: FUTURE + "\n".join(each.text for each in statements if not each.names & hidden)
        for module, statements in _split_modules().items()
    }


class _Statement(NamedTuple):
    """One top-level statement of a module, or one name of an import. A name is (module, name)."""

    text: str
    binds: set[tuple[str, str]]
    names: set[tuple[str, str]]  # that it binds, uses or imports, except in annotations


@cache
def _split_modules() -> dict[str, list[_Statement]]:
    """Split the modules of the exercises, and all that they import, into statements."""
    modules: dict[str, list[_Statement]] = {}
    work = [exercise.module for exercise in exercises.EXERCISES]
    while work:
        module = work.pop()
        if module.startswith("vitedu.") and module not in modules:
            nodes = [
                part for node in parse(module_source(module)).body for part in split_import(node)
            ]
            modules[module] = [_read_statement(node, module) for node in nodes]
            inner = [part for node in nodes for part in ast.walk(node)]
            work += [part.module or "" for part in inner if isinstance(part, ast.ImportFrom)]
    return modules


def _read_statement(node: ast.stmt, module: str) -> _Statement:
    text = ast.unparse(node)
    reads, binds = global_names(FUTURE + text)
    imports = [part for part in ast.walk(node) if isinstance(part, ast.ImportFrom)]
    imported = {(each.module or "", alias.name) for each in imports for alias in each.names}
    binds.discard("annotations")  # of ``FUTURE``
    own = {(module, name) for name in reads | binds}
    return _Statement(text, {(module, name) for name in binds}, own | imported)
