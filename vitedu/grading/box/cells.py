"""Run the cells of a notebook, statement by statement, and note what fails.

Role: ``Cells``, the names of a notebook and the code that runs in them, and ``Shell``, which its
magics reach. A statement that fails ends its cell, as in Jupyter. Where it fails because something
is not in the box, the next statement runs. Standard library only, for the worker.
"""

import __future__

import ast
import asyncio
import contextlib
import linecache
import sys
import types
from collections.abc import Callable
from typing import Any

from vitedu.checks.observing.errors import describe_error
from vitedu.checks.observing.limits import TimeUp, time_limit
from vitedu.grading.box.course_stand_ins import Absent
from vitedu.grading.box.memory_files import MemoryFiles, name_of
from vitedu.grading.box.statements import (
    IMPORTS,
    bound_by,
    bound_by_text,
    split_imports,
    to_python,
)

MAX_ERRORS = 60  # that are kept
REFUSAL = "is not allowed in this exercise"  # end of what a forbidden function says
MAX_NAMES = 30  # of a failed statement
PYTHON_MAGICS = {"time", "timeit", "capture", "prun", "python", "python3"}
FEATURES = __future__.annotations.compiler_flag  # of the import that still changes something
_COROUTINE = 0x80  # flag of code that awaits
_DEFINITIONS = ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef | IMPORTS
# what a notebook without the course's first cell may lack
SETUP = """
import math
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from vitedu import check
"""


class EventLoop(asyncio.SelectorEventLoop):
    """A loop for ``await`` in a cell, without the sockets that the box refuses."""

    def _make_self_pipe(self):
        self._ssock = self._csock = None


class Cells:
    """The names of a notebook, and what its statements did.

    Attributes:
        names: the global names.
        number: of the cell that runs.
        is_own: whether the student wrote that cell; the course's own change no answer.
        errors: [number, kind, message, names that the statement would have bound or changed].
    """

    def __init__(self, files: MemoryFiles, notebooks: dict[str, list[str]], seconds: float):
        self.files, self.notebooks, self.seconds = files, notebooks, seconds
        self.number, self.is_own = -1, True
        self.errors: list[list[Any]] = []
        self.of_box: set[int] = set()  # places in ``errors`` of those that the box is the cause of
        self._flags = 0
        self._loop: EventLoop | None = None
        # binds a name that no cell has bound, and tells whether it could
        self.provide: Callable[[str], bool] = lambda name: False
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main  # dataclasses look up their module
        self.names = vars(main)
        self.run(SETUP)
        shell = Shell(self)
        self.names |= {"get_ipython": lambda: shell, "display": lambda *rest, **settings: None}
        self.names |= {"Out": {}, "In": []}

    def run_cell(self, number: int, source: str, is_own: bool) -> None:
        """Run one cell."""
        self.number, self.is_own = number, is_own
        try:
            with time_limit(self.seconds, waiting=self.seconds):
                self.run(source)
        except BaseException as error:  # no Python, or the time is up
            self.note(error, bound_by_text(source))

    def leave_out(self, number: int, source: str) -> None:
        """Note what a cell would have bound that does not run here."""
        self.number = number
        self.note(TimeUp("this cell was left out"), bound_by_text(source))
        self.of_box.add(len(self.errors) - 1)

    def run(self, source: str) -> None:
        """Run a text in the names of the notebook.

        Raises:
            SyntaxError: it cannot be compiled.
            TimeUp, SystemExit, KeyboardInterrupt: nothing of it runs any more.
        """
        text = source if source.endswith("\n") else source + "\n"
        try:
            ast.parse(text)
        except SyntaxError:
            text = to_python(source)
        except (RecursionError, MemoryError, ValueError) as error:
            raise SyntaxError(f"it is no Python: {error or 'nested too deep'}") from None
        file = f"<cell {self.number + 1}>"
        linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST | self._flags
        tree: Any = compile(text, file, "exec", flags, dont_inherit=True)
        parts = split_imports(tree.body)
        for number, part in enumerate(parts, 1):
            uses = Absent.uses
            try:
                self._run_or_provide(part, file)
            except TimeUp:
                self._run_definitions(parts[number:], file)
                raise
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                self.note(error, bound_by(part, self.is_own))
                if self._is_of_box(error, uses):
                    self.of_box.add(len(self.errors) - 1)
                elif self.is_own:
                    return

    def _is_of_box(self, error: BaseException, uses: int) -> bool:
        """Tell whether a statement failed because something is not here."""
        if Absent.uses > uses or isinstance(error, ImportError | OSError):
            return True
        if isinstance(error, NameError):
            return any(error.name in names for _, _, _, names in self.errors[:-1])
        return isinstance(error, RuntimeError) and str(error).endswith(REFUSAL)

    def _run_definitions(self, statements: list[ast.stmt], file: str) -> None:
        """Run the definitions below a statement that took too long."""
        for part in statements:
            if isinstance(part, _DEFINITIONS):
                with contextlib.suppress(Exception), time_limit(1.0):
                    self._run_statement(part, file)

    def _run_or_provide(self, part: ast.stmt, file: str) -> None:
        """Run a statement, once more with a reference for an earlier exercise that it lacks."""
        try:
            self._run_statement(part, file)
        except NameError as error:
            if not self.provide(error.name or ""):
                raise
            self._run_statement(part, file)

    def _run_statement(self, part: Any, file: str) -> None:
        is_value = isinstance(part, ast.Expr)
        tree: Any = ast.Expression(part.value) if is_value else ast.Module([part], [])
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | self._flags
        code = compile(tree, file, "eval" if is_value else "exec", flags, dont_inherit=True)
        self._flags |= code.co_flags & FEATURES
        if code.co_flags & _COROUTINE:
            self._loop = self._loop or EventLoop()
            self._loop.run_until_complete(eval(code, self.names))
        elif is_value and (value := eval(code, self.names)) is not None:
            self.names["_"] = self.names["Out"][len(self.names["Out"]) + 1] = value
        elif not is_value:
            exec(code, self.names)

    def note(self, error: BaseException, names: set[str]) -> None:
        """Note an error, with the names that are lost by it."""
        seen = describe_error(error)
        if len(self.errors) < MAX_ERRORS:
            lost = [n for n in sorted(names) if type(self.names.get(n)) is not types.ModuleType]
            kept = [self.number, seen.kind, seen.message[:200], lost[:MAX_NAMES]]
            self.errors.append(kept)


class Shell:
    """What ``get_ipython()`` gives: magics that matter to an answer."""

    def __init__(self, cells: Cells):
        self._cells = cells

    def run_cell_magic(self, magic: str, line: str, body: str) -> None:
        """Run a ``%%magic``."""
        if magic in PYTHON_MAGICS:
            self._cells.run(body)
        elif magic in ("writefile", "file"):
            files, name = self._cells.files, name_of(line.split()[-1].strip("'\""))
            before = files.contents.get(name, b"") if "-a" in line.split() else b""
            files.write(name, before + body.encode())

    def run_line_magic(self, magic: str, line: str, *rest: Any) -> Any:
        """Run a ``%magic``."""
        if magic in ("time", "timeit"):
            self._cells.run(line)
        elif magic == "run":
            name = name_of(next(w for w in line.split() if not w.startswith("-")).strip("'\""))
            content = self._cells.files.contents.get(name)
            texts = [content.decode()] if content is not None else self._cells.notebooks[name]
            for text in texts:
                self._cells.run(text)
        return Absent()

    def __getattr__(self, name: str) -> Any:
        return Absent()
