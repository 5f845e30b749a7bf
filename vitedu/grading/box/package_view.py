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

from vitedu import __version__
from vitedu.course.parsing import global_names, parse
from vitedu.course.references import module_source
from vitedu.exercises import EXERCISES
from vitedu.grading.box.statements import split_imports

PACKAGE = Path(__file__).parents[2]
# what a worker needs, with the ``__init__.py`` beside it: no reference, expected value or mistake
INSIDE = (
    "checks/__init__.py checks/observing/*.py checks/*/*_driver.py grading/__init__.py "
    "grading/box/*.py grading/box/*.txt grading/transport/messages.py grading/transport/wire.py"
)
OUTSIDE = "conversation isolation launch package_view".split()  # of ``grading/box``
# so that annotations name nothing, and a hidden name may stand there
FUTURE = "from __future__ import annotations\n"

# what ``notebook`` gives its names
PACKAGE_STUB = '"""vitedu where a notebook is graded."""\n\n__version__ = "{version}"\n'


def base_files() -> dict[str, str]:
    """Return the files in the box: path, relative to the folder on ``sys.path`` -> text."""
    paths = {path for pattern in INSIDE.split() for path in PACKAGE.glob(pattern)}
    paths -= {PACKAGE / "grading/box" / f"{name}.py" for name in OUTSIDE}
    paths |= {path.parent / "__init__.py" for path in paths}
    files = {f"vitedu/{p.relative_to(PACKAGE).as_posix()}": p.read_text("utf-8") for p in paths}
    return files | {"vitedu/__init__.py": PACKAGE_STUB.format(version=__version__)}


@cache
def visible_sources(place: int) -> dict[str, str]:
    """Return the chapter modules with the references of the syllabus up to a place, from 0.

    Returns:
        Full module name -> source, without the references of all later exercises, and without what
        uses them.
    """
    hidden = {(each.module, each.id) for each in EXERCISES[place + 1 :]}
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
    work = [exercise.module for exercise in EXERCISES]
    while work:
        module = work.pop()
        if module.startswith("vitedu.") and module not in modules:
            nodes = split_imports(parse(module_source(module)).body)
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
