"""Run a student's notebooks lazily: a name is bound when it is read, as Python would find it.

Role: ``Program`` runs an answer with what it reaches by name. A notebook is a ``Space``: the
statements of its cells, and a module whose ``__builtins__`` bind what is missing. A name has the
value of the last statement above the answer that binds it, with what changes it after that; if
there is none, that of the first below. Before the first probe ``Program.settle`` walks the objects
that the answer reaches and binds every global name that their code reads: what a probe's call would
bind first would keep that probe's modes.

Left out: loops that train, in other cells than the answer's, and names that only ``eval`` or
``globals()`` reads before anything else does. Standard library only, for the worker.
"""

import __future__

import ast
import bisect
import builtins
import dis
import gc
import linecache
import math
import sys
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

# the imports of the course's first cell, for notebooks without it
IMPORTS = {
    "torch": "import torch",
    "nn": "from torch import nn",
    "F": "import torch.nn.functional as F",
    "math": "import math",
    "np": "import numpy as np",
}
# Parts of torch that implement forbidden operations in Python. No answer needs them, and importing
# torch does not load them.
CLOSED_MODULES = ("torch.onnx.ops", "torch._inductor", "torch.testing._internal")
EXPORT = "my_vit"  # the module that a student's own model is exported to
MAX_OBJECTS = 50_000  # objects that are walked in one round
MAX_ROUNDS = 20


class Statement(NamedTuple):
    """One top-level statement of a cell, or one name of an import."""

    cell: int  # number of its cell, from 1
    line: int  # its first line in the cell
    text: str
    binds: list[str]  # names that it binds
    changes: list[str]  # names whose value it changes: ``table[0] = 1``, ``Block.forward = f``
    reads: list[str]  # global names that it may read, also when its functions are called
    # of: import, certain (it always binds), value, call, seed, display, training, star, future,
    # text (of a cell that is no code)
    marks: list[str]


class Makers:
    """Which statements of a notebook bind and change each name, as places in order."""

    def __init__(self, statements: dict[int, Statement]):
        self.binders: dict[str, list[int]] = {}
        self.changers: dict[str, list[int]] = {}
        self.starts: dict[str, list[int]] = {}  # of each binder: where the value begins
        for place, statement in sorted(statements.items()):
            if "future" not in statement.marks and "text" not in statement.marks:
                for name in statement.binds:
                    starts = self.starts.setdefault(name, [])
                    goes_on = "value" in statement.marks and name in statement.reads  # x = x + 1
                    is_new = "certain" in statement.marks and not goes_on
                    starts.append(place if is_new or not starts else starts[-1])
                    self.binders.setdefault(name, []).append(place)
                for name in statement.changes if "display" not in statement.marks else ():
                    self.changers.setdefault(name, []).append(place)

    def start(self, name: str, before: float) -> int | None:
        """Find the place where the value of a name begins, as a statement at a place finds it.

        It is the last one above that certainly binds it, or else the first below, or None. With
        the same start, a later statement finds all that an earlier one does.
        """
        binders = self.binders.get(name, [])
        end = bisect.bisect_left(binders, before)
        if not end:
            below = bisect.bisect_right(binders, before)
            return binders[below] if below < len(binders) else None
        return self.starts[name][end - 1]

    def find(self, name: str, before: float) -> list[int]:
        """List the places that make the value of a name: where it begins, and all after that."""
        first = self.start(name, before)
        if first is None:
            return []
        binders, changers = self.binders[name], self.changers.get(name, [])
        if first >= before:
            return [first, *changers[bisect.bisect_right(changers, first) :]]
        return sorted({*between(binders, first, before), *between(changers, first, before)})


def between(places: list[int], first: int, before: float) -> list[int]:
    """Give those of sorted places that are at least ``first`` and below ``before``."""
    return places[bisect.bisect_left(places, first) : bisect.bisect_left(places, before)]


class Program:
    """The notebooks of a student, and the references that may stand in for his answers.

    Args:
        spaces: name of a notebook or module -> place -> statement.
        references: exercise -> module, of those that the answer may use.
        stand_ins: exercises whose references replace the student's own.
        own: exercise -> name of the space with the student's answer, which has passed.
        mocks: name -> code that binds it, in place of what needs data.
    """

    def __init__(
        self,
        spaces: dict[str, dict[int, Statement]],
        references: dict[str, str],
        stand_ins: list[str],
        own: dict[str, str],
        mocks: dict[str, str],
    ):
        self.references, self.stand_ins, self.own, self.mocks = references, stand_ins, own, mocks
        self.failures: list[list] = []  # [names, why, module that was imported or ""]
        self.spaces: dict[str, Space] = {}
        for name, statements in spaces.items():
            self.spaces[name] = Space(name, statements, self)
        modules = {name: space.module for name, space in self.spaces.items()}
        modules[EXPORT] = types.ModuleType(EXPORT)
        modules[EXPORT].__getattr__ = self.exported  # type: ignore[method-assign]
        for name in _INSTALLED:
            sys.modules.pop(name, None)
        for name in [name for name in linecache.cache if name.startswith("<")]:
            del linecache.cache[name]
        _INSTALLED[:] = [name for name in modules if name not in sys.modules]
        sys.modules.update({name: modules[name] for name in _INSTALLED})

    def run(self, space: str, place: int, name: str) -> BaseException | None:
        """Run an answer and what it needs.

        Args:
            space, place: of the statement that is the answer.
            name: the exercise.

        Returns:
            The error that ended it, or None.
        """
        main = self.main = self.spaces[space]
        main.__dict__.update(place=place, cell=main.statements[place].cell)
        main.globals["__name__"] = "__main__"
        sys.modules["__main__"] = main.module  # dataclasses look up their module
        for each in self.spaces.values():
            each.run_stars()
        error = main.run(place)
        end = min([p for p in main.binders.get(name, ()) if p > place], default=math.inf)
        for changer in main.changers.get(name, ()):
            if place < changer < end and error is None:
                main.run(changer)
        if name in main.globals:
            self.settle(main.globals[name])
        return error

    def settle(self, answer: Any) -> None:
        """Bind every global name that the code behind an object reads."""
        for _ in range(MAX_ROUNDS):
            count = self.count_runs()
            for space, name in self.walk(answer):
                space.bind(name)
            if self.count_runs() == count:
                return

    def count_runs(self) -> int:
        return sum(len(space.done) for space in self.spaces.values())

    def walk(self, answer: Any) -> Iterator[tuple["Space", str]]:
        """Yield the global names that reachable code reads, and follow each when it is bound."""
        spaces = {id(space.globals): space for space in self.spaces.values()}
        modules = {"__main__", *self.spaces}
        seen: dict[int, Any] = {}
        work = [answer]
        while work and len(seen) < MAX_OBJECTS:
            thing = work.pop()
            kind = type(thing)
            if id(thing) in seen or issubclass(kind, _ATOMS) or id(thing) in spaces:
                continue
            seen[id(thing)] = thing
            if issubclass(kind, type) and type.__dict__["__module__"].__get__(thing) not in modules:
                continue
            if kind is not types.FunctionType:
                work += gc.get_referents(thing)
                continue
            work += [thing.__closure__, thing.__defaults__, thing.__kwdefaults__, thing.__dict__]
            if space := spaces.get(id(thing.__globals__)):
                for name in sorted(global_loads(thing.__code__, inner=True)):
                    yield space, name
                    work.append(space.globals.get(name))

    def foreign(self, name: str) -> Any:
        """Return what a name means that its notebook does not bind.

        An exercise is the student's own from another notebook, where that passed, or else the
        reference. Anything else is what another of the notebooks binds.

        Raises:
            KeyError: nothing binds it.
        """
        if name in self.own and name not in self.stand_ins:
            return self.spaces[self.own[name]].value(name)
        if name in self.references:
            __import__(self.references[name])
            return getattr(sys.modules[self.references[name]], name)
        for space in self.spaces.values():
            if name in space.binders:
                return space.value(name)
        raise KeyError(name)

    def exported(self, name: str) -> Any:
        """Return a name of ``my_vit``, which holds the answers that passed, and references."""
        try:
            return self.foreign(name)
        except KeyError:
            raise AttributeError(name) from None


_INSTALLED: list[str] = []  # modules of the present program in ``sys.modules``
_ATOMS = (int, float, complex, str, bytes, type(None), types.ModuleType, types.CodeType)


class _Builtins(dict):
    """Python's own names, without those that a notebook binds; what is missing is bound."""

    def __init__(self, space: "Space"):
        super().__init__({k: v for k, v in vars(builtins).items() if k not in space.binders})
        self.space = space

    def __missing__(self, name: str) -> Any:
        space = self.space
        space.bind(name)
        if name in space.globals:
            return space.globals[name]
        return vars(builtins)[name]


class Space:
    """The global names of one notebook, or of a module that a notebook writes.

    Attributes:
        place: of the answer; what stands above it binds its names.
        cell: of the answer.
        done: places of the statements that ran, also those that failed.
    """

    def __init__(self, name: str, statements: dict[int, Statement], program: Program):
        self.name, self.statements, self.program = name, statements, program
        self.place: float = math.inf
        self.cell = 0
        self.makers = Makers(statements)
        self.binders, self.changers = self.makers.binders, self.makers.changers
        self.flags = 0
        for statement in statements.values():
            if "future" in statement.marks:
                self.flags |= getattr(__future__, statement.binds[0]).compiler_flag
        self.module = types.ModuleType(name)
        self.module.__getattr__ = self.attribute  # type: ignore[method-assign]
        self.globals = vars(self.module)
        self.globals["__builtins__"] = _Builtins(self)
        self.done: set[int] = set()
        self.versions: dict[str, int] = {}  # name -> place that made its present value
        self.history: dict[str, list[tuple[int, Any]]] = {}  # its values, and what bound them
        self._limits: list[int] = []  # places of the statements that run now, the innermost last
        self._codes: dict[int, types.CodeType] = {}

    def attribute(self, name: str) -> Any:
        """Return a name of this module for an import elsewhere."""
        if name == "__all__":
            return [each for each in self.binders if not each.startswith("_")]
        if name in self.binders:
            try:
                return self.value(name)
            except KeyError:
                pass
        raise AttributeError(name)

    def value(self, name: str) -> Any:
        """Bind a name and return its value.

        Raises:
            KeyError: it has none.
        """
        self.bind(name)
        return self.globals[name]

    def bind(self, name: str) -> None:
        """Run what binds or changes a name and has not run yet."""
        program = self.program
        before = self._limits[-1] if self._limits else self.place
        if name in program.mocks or name in program.stand_ins or name not in self.binders:
            if name in self.globals or name in vars(builtins):
                return
            try:
                if name in program.mocks:
                    exec(program.mocks[name], self.globals)
                else:
                    self.globals[name] = program.foreign(name)
            except KeyError:
                if name in IMPORTS:
                    exec(IMPORTS[name], self.globals)
            return
        if self.versions.get(name, -1) >= before:
            return
        for place in self.makers.find(name, before):
            self.run(place)
        if name not in self.globals and name in program.references:
            self.globals[name] = program.foreign(name)  # its import failed

    def run(self, place: int) -> BaseException | None:
        """Run a statement once, with the names as it would find them; return its error."""
        if place in self.done:
            return None
        self.done.add(place)
        statement = self.statements[place]
        if "training" in statement.marks and statement.cell != self.cell:
            self.program.failures.append([statement.binds, "a loop that trains makes it", ""])
            return None
        self._limits.append(place)
        later: dict[str, Any] = {}
        versions: dict[str, int] = {}
        try:
            code = self.compile(place)
            read = global_loads(code)
            if "value" in statement.marks:
                self.run_companions(place, read)
            for name in read.union(statement.binds):
                if self.versions.get(name, -1) > place:
                    later[name], versions[name] = self.globals[name], self.versions[name]
                    if name in read:  # this statement saw an earlier value
                        self.go_back(name, place)
                elif name in self.versions and name in read:
                    self.bind(name)
            exec(code, self.globals)
        except (Exception, SystemExit) as error:
            self.record_failure(statement, error)
            return error
        finally:
            self._limits.pop()
            for name in (*statement.binds, *statement.changes):
                if name in self.globals:
                    self.versions[name] = max(place, self.versions.get(name, -1))
                    self.history.setdefault(name, []).append((place, self.globals[name]))
            self.globals.update(later)
            self.versions.update(versions)
        return None

    def go_back(self, name: str, place: int) -> None:
        """Give a name the value that it had at a place; if what makes it has not run, none."""
        if all(each in self.done for each in self.makers.find(name, place)):
            known = [pair for pair in self.history[name] if pair[0] < place]
            if known:
                self.globals[name] = max(known, key=lambda pair: pair[0])[1]
        else:
            del self.globals[name], self.versions[name]

    def run_companions(self, place: int, read: set[str]) -> None:
        """Run calls above a value in its cell: of what it reads, and seeds."""
        cell = self.statements[place].cell
        for other, statement in self.statements.items():
            if statement.cell == cell and other < place and other not in self.done:
                if "call" in statement.marks and "display" not in statement.marks:
                    shared = read.intersection(statement.reads) & self.binders.keys()
                    if "seed" in statement.marks or shared:
                        self.run(other)

    def run_stars(self) -> None:
        """Run imports of ``*``, which may hide Python's own names; the notebook's own stay."""
        for place, statement in self.statements.items():
            if "star" in statement.marks:
                found = {"__builtins__": vars(builtins), "__name__": self.name}
                self.done.add(place)
                try:
                    exec(self.compile(place), found)
                except Exception as error:
                    self.record_failure(statement._replace(binds=["*"]), error)
                for name in found.keys() - self.binders.keys() - {"__builtins__", "__name__"}:
                    self.globals[name] = found[name]

    def record_failure(self, statement: Statement, error: BaseException) -> None:
        """Note which names a statement does not bind, and why."""
        origin = statement.text.split()[1] if "import" in statement.marks else ""
        try:
            message = str(error)
        except Exception:
            message = "(its message cannot be shown)"
        why = f"{type(error).__name__}: {message}"[:200]
        self.program.failures.append([statement.binds, why, origin])

    def compile(self, place: int) -> types.CodeType:
        """Compile a statement so that errors name the lines of its cell."""
        if place not in self._codes:
            statement = self.statements[place]
            is_own = statement.cell == self.cell
            filename = "<answer>" if is_own else f"<{self.name}, cell {statement.cell}>"
            lines = list(linecache.getlines(filename))
            new = statement.text.splitlines(keepends=True)
            lines += [""] * (statement.line - 1 + len(new) - len(lines))
            lines[statement.line - 1 : statement.line - 1 + len(new)] = new
            linecache.cache[filename] = 1, None, lines, filename
            tree = ast.increment_lineno(ast.parse(statement.text), statement.line - 1)
            self._codes[place] = compile(tree, filename, "exec", self.flags, dont_inherit=True)
        return self._codes[place]


def is_attempt(value: Any, kind: str) -> bool:
    """Tell whether an object can be meant as the answer of an exercise of a kind."""
    if kind == "class":
        return issubclass(type(value), type)
    return kind == "value" or callable(value)


_LOADS = [dis.opmap.get(f"LOAD_{name}") for name in ("GLOBAL", "NAME", "FROM_DICT_OR_GLOBALS")]


def global_loads(code: types.CodeType, inner: bool = False) -> set[str]:
    """Return the global names that code reads.

    Args:
        code: of a statement or function.
        inner: also what functions inside it read, which class bodies and comprehensions do anyway.

    Example:
        >>> code = compile("class A(B):\\n    x = c\\n    def f(self): return d.e", "", "exec")
        >>> sorted(global_loads(code)), "d" in global_loads(code, inner=True)
        (['B', '__name__', 'c'], True)
    """
    names, work = set(), [code]
    while work:
        code, extended = work.pop(), 0
        for operation, argument in zip(code.co_code[::2], code.co_code[1::2], strict=True):
            index = extended | argument
            extended = index << 8 if operation == dis.EXTENDED_ARG else 0
            if operation in _LOADS:
                # the lowest bit tells whether NULL is pushed as well
                names.add(code.co_names[index >> 1 if operation == _LOADS[0] else index])
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                at_once = not constant.co_flags & 1 or constant.co_name.startswith("<")  # OPTIMIZED
                if inner or at_once:
                    work.append(constant)
    return names
