"""The statements of a notebook, and which of them an answer needs. Nothing is run.

Role: ``parse_cell`` splits a cell into statements, without IPython's own syntax. ``Slicer`` finds
the statements that an answer needs, without plots, checks, training and other answers.
``extraction`` decides which statement is the answer.

For a name that the answer reads, the last statement before the answer that binds it is needed, and
everything that changes it in between. If there is none and the answer is a function or a class, the
first statement after it is needed. Star imports are always included, because the names that they
bind are not known here. So is everything that changes the answer after its definition.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from vitedu.course.parsing import parse
from vitedu.grading.intake.names import bindings, changes, definition_reads, reads

MAX_SOURCE = 100_000  # characters of a cell
# characters of a submission; parsing takes up to 200 bytes for each; the course has 80,000
MAX_CODE = 500_000
MAX_STATEMENTS = 20_000  # of a notebook, to limit memory; the course's notebooks have 400
MAX_MAGICS = 60  # lines of a cell in IPython's own syntax
MAX_MAGIC_LINE = 2_000  # characters
MAX_STEPS = 300_000  # for one answer; a step is a look at one statement
READ_STEPS = 200  # what finding the names that a statement reads costs, in steps
PYTHON_MAGICS = {"time", "timeit", "capture", "prun", "python", "python3"}  # cells of Python code
# calls that only show or check something
DISPLAY_CALLS = set("print display help check hint solution progress reset compare".split())
# calls inside a loop that make it a training loop
TRAINING_CALLS = {"backward", "step", "sleep", "fit", "train_one_epoch", "zero_grad"}
# the imports of the course's first cell, for notebooks without it
IMPORTS = {
    "torch": "import torch",
    "nn": "from torch import nn",
    "F": "import torch.nn.functional as F",
    "math": "import math",
    "np": "import numpy as np",
}

_MAGIC_LINE = re.compile(r"\s*(?:[%!?]|[\w.,\s]+=\s*(?:!|%[a-zA-Z]))|.*\?\s*$")


@dataclass
class Statement:
    """One top-level statement of one cell."""

    cell: int
    place: int  # its index among all statements of the notebook
    node: ast.stmt
    text: str  # as the student wrote it
    shares_line: bool = False  # it shares a line with another statement

    @cached_property
    def binds(self) -> set[str]:
        """The names that it binds at the top level."""
        return {name for name, _ in bindings(self.node)}

    @cached_property
    def changes(self) -> set[str]:
        """The names whose value it changes: ``table[0] = 1``, ``Block.forward = f``, ``n += 1``."""
        return set(changes(self.node))

    @cached_property
    def reads(self) -> set[str]:
        """The global names that it reads, also inside its functions when they are called."""
        try:
            return reads([self.node], set())
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return {node.id for node in ast.walk(self.node) if isinstance(node, ast.Name)}

    @property
    def is_import(self) -> bool:
        return isinstance(self.node, ast.Import | ast.ImportFrom)

    @property
    def is_definition(self) -> bool:
        return isinstance(self.node, ast.FunctionDef | ast.ClassDef)

    @property
    def is_call(self) -> bool:
        return isinstance(self.node, ast.Expr) and isinstance(self.node.value, ast.Call)

    def defines(self, name: str) -> bool:
        """Tell whether it defines a name, other than by an import or ``report.implementation``."""
        return any(
            bound == name and not isinstance(node, ast.alias) and not _is_wrapper(node)
            for bound, node in bindings(self.node)
        )


@dataclass
class ParsedCell:
    """The statements of a cell, or why there are none."""

    statements: list[Statement] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)  # with IPython's lines blanked
    error: str = ""
    magics: int = 0  # number of blanked lines


def parse_cell(
    source: str, cell: int = 0, first_place: int = 0, budget: int = MAX_SOURCE
) -> ParsedCell:
    """Split one cell into statements. Never raises because of the content.

    A line of IPython's (``%magic``, ``!command``, ``help?``) is blanked only if Python's parser
    fails at it, so that such a line inside a string stays. A cell of another language (``%%bash``)
    has no statements. ``budget`` is the number of characters that the submission may still have.

    Example:
        >>> parsed = parse_cell("%matplotlib inline\\nx = 1")
        >>> [statement.text for statement in parsed.statements], parsed.magics
        (['x = 1'], 1)
    """
    if len(source) > min(budget, MAX_SOURCE):
        limit = f"at most {MAX_SOURCE:,} in a cell and {MAX_CODE:,} in a submission are read"
        return ParsedCell(error=f"a cell of {len(source):,} characters; {limit}")
    lines, magics = source.split("\n"), 0
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    if lines[first].startswith("%%"):
        if re.split(r"\W+", lines[first][2:])[0] not in PYTHON_MAGICS:
            return ParsedCell(error=f"a cell that begins with {lines[first][:40]!r} is not Python")
        lines[first], magics = "", 1
    while True:
        try:
            tree = parse("\n".join(lines))
            break
        except SyntaxError as error:
            at = (error.lineno or 0) - 1
            tries = min(MAX_MAGICS, 500_000 // len(source))  # every try parses the whole cell
            if magics >= tries or not 0 <= at < len(lines) or not _is_magic(lines[at]):
                message = f"line {at + 1}: {error.msg}" if at >= 0 else str(error.msg)
                return ParsedCell(error=message[:300], magics=magics)
            indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
            lines[at], magics = indent + ("pass" if indent else ""), magics + 1
        except (RecursionError, MemoryError):
            return ParsedCell(error="expressions are nested too deep", magics=magics)
        except ValueError as error:  # NUL characters
            return ParsedCell(error=str(error)[:300], magics=magics)
    if first_place + len(tree.body) > MAX_STATEMENTS:
        words = f"more than {MAX_STATEMENTS:,} statements in a notebook"
        return ParsedCell(error=words, magics=magics)
    result = ParsedCell(lines=lines, magics=magics)
    spans = [(_first_line(node), _last_line(node)) for node in tree.body]
    for i, (node, (start, end)) in enumerate(zip(tree.body, spans, strict=True)):
        shares_line = (i > 0 and spans[i - 1][1] >= start) or (
            i + 1 < len(spans) and spans[i + 1][0] <= end
        )
        try:
            text = ast.unparse(node) if shares_line else "\n".join(lines[start - 1 : end])
        except RecursionError:
            return ParsedCell(error="expressions are nested too deep", magics=magics)
        result.statements.append(Statement(cell, first_place + i, node, text, shares_line))
    return result


def _is_magic(line: str) -> bool:
    return len(line) <= MAX_MAGIC_LINE and _MAGIC_LINE.match(line) is not None


def select_lines(parsed: ParsedCell, statements: Iterable[Statement]) -> str:
    """Write a cell with only the kept statements; the others become blank lines.

    A line number in an error is then a line number of the student's cell.
    """
    selected_ids = {id(statement) for statement in statements}
    lines = list(parsed.lines)
    texts_by_line: dict[int, list[str]] = {}
    for statement in parsed.statements:
        start, end = _first_line(statement.node), _last_line(statement.node)
        if statement.shares_line:
            texts_by_line.setdefault(start, [])
            if id(statement) in selected_ids:
                texts_by_line[start] += [statement.text]
            lines[start - 1 : end] = [""] * (end - start + 1)
        elif id(statement) not in selected_ids:
            lines[start - 1 : end] = [""] * (end - start + 1)
    for start, texts in texts_by_line.items():
        lines[start - 1] = "; ".join(texts)
    return "\n".join(lines).rstrip()


class Slicer:
    """Finds what a statement needs among all statements of one notebook."""

    def __init__(self, statements: list[Statement]):
        self.statements = statements
        self.binders: dict[str, list[Statement]] = {}
        self.changers: dict[str, list[Statement]] = {}
        self.star_imports = [statement for statement in statements if "*" in statement.binds]
        for statement in statements:
            for name in statement.binds:
                self.binders.setdefault(name, []).append(statement)
            for name in statement.changes:
                self.changers.setdefault(name, []).append(statement)

    def collect(
        self, target: Statement, own: str, is_foreign: Callable[[str], bool], end: int
    ) -> tuple[list[Statement], set[str], list[str]]:
        """Collect the statements that an answer needs.

        Args:
            target: the statement that is the answer.
            own: the name of the exercise, which ``target`` binds.
            is_foreign: whether a name belongs to another exercise, whose code is not included.
            end: place of the next definition of ``own``; what follows does not affect the answer.

        Returns:
            The statements in order, with ``target``; the names that are foreign or not found; and
            what was left out although it is needed, in words.
        """
        self.target, self.own, self.is_foreign, self.end = target, own, is_foreign, end
        self.slice, self.unresolved, self.omissions = {target.place: target}, set(), []
        self.visited: set[tuple[str, int]] = set()
        self.steps = 0
        work = [(name, target.place) for name in target.reads | target.changes]
        if target.is_definition and own not in definition_reads(target.node):
            # A function that calls itself needs no earlier definition of its name. A class that
            # inherits from its own name does.
            work = [(name, place) for name, place in work if name != own]
        for statement in [*self.changers.get(own, []), *self._find_attaching(own)]:
            if target.place < statement.place < end and not _is_display(statement):
                work += self._select(statement)
        for statement in self.star_imports:
            if statement.place < target.place or target.is_definition:
                work += self._select(statement)
        while work and self.steps <= MAX_STEPS:
            name, before = work.pop()
            if (name, before) in self.visited:
                continue
            self.visited.add((name, before))
            if self.is_foreign(name):
                self.unresolved.add(name)
                continue
            for statement in self._find_binding(name, before):
                work += self._select(statement)
        if self.steps > MAX_STEPS:
            self.omissions.append("the rest, since too many statements hang together")
        self._select_calls()
        return [self.slice[place] for place in sorted(self.slice)], self.unresolved, self.omissions

    def _select(self, statement: Statement) -> list[tuple[str, int]]:
        """Choose a statement; return the (name, place) that it needs in turn."""
        if statement.place in self.slice:
            return []
        if _is_training(statement) and statement.cell != self.target.cell:
            self.omissions.append(
                f"a loop that trains, which binds {', '.join(sorted(statement.binds)[:5])}"
            )
            return []
        self.slice[statement.place] = statement
        self.steps += READ_STEPS
        later = statement.is_definition or statement.place > self.target.place
        before = max(self.target.place, statement.place) if later else statement.place
        return [(name, before) for name in statement.reads | (statement.changes - {self.own})]

    def _find_binding(self, name: str, before: int) -> list[Statement]:
        """Return the last statement before a place that binds a name, and what changes it later."""
        self.steps += len(self.binders.get(name, [])) + len(self.changers.get(name, [])) + 1
        if self.steps > MAX_STEPS:
            return []
        binders = [s for s in self.binders.get(name, []) if not _is_wrapper_of(s, name)]
        earlier = [s for s in binders if s.place < before]
        if not earlier:
            after = [s for s in binders if s.place > before and not _is_training(s)]
            if after and self.target.is_definition and name != self.own:
                # a later definition exists by the time the answer is called
                later = [s for s in self.changers.get(name, []) if s.place > after[0].place]
                return after[:1] + [s for s in later if not _is_display(s)]
            self.unresolved.add(name)
            return []
        chain = [earlier.pop()]
        while earlier and name in chain[-1].reads and not chain[-1].is_definition:  # x = x + 1
            chain.append(earlier.pop())
            self.steps += READ_STEPS
            if self.steps > MAX_STEPS:
                return []
        chain.reverse()
        changes = self.changers.get(name, [])
        chain += [s for s in changes if chain[0].place < s.place < before and not _is_display(s)]
        return chain

    def _find_attaching(self, own: str) -> Iterator[Statement]:
        """Yield calls such as ``attach(Block, forward)`` of helpers that set attributes."""
        for statement in self.statements:
            call = statement.node.value if isinstance(statement.node, ast.Expr) else None
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
                continue
            if any(isinstance(each, ast.Name) and each.id == own for each in call.args):
                helpers = self.binders.get(call.func.id, [])
                if any(_sets_attributes(helper.node) for helper in helpers):
                    yield statement

    def _select_calls(self) -> None:
        """Add calls in the cells of chosen statements that use chosen values or set a seed."""
        values = set()
        for statement in self.slice.values():
            if not statement.is_import and not statement.is_definition:
                values |= statement.binds
        cells = {s.cell for s in self.slice.values() if not s.is_import and not s.is_definition}
        last = max(self.slice)
        for statement in self.statements:
            if not statement.is_call or statement.place > last or _is_display(statement):
                continue
            names = [statement.reads]
            own_cell = statement.cell in cells
            if own_cell and (_is_seed(statement) or names[0] & (values - {self.own})):
                self.slice[statement.place] = statement
                for name in statement.reads:
                    if self.is_foreign(name):
                        self.unresolved.add(name)
                        continue
                    for needed in self._find_binding(name, statement.place):
                        if needed.is_import or _is_constant(needed):
                            self.slice[needed.place] = needed


# --- reading the tree ----------------------------------------------------------------------------


def _first_line(node: ast.stmt) -> int:
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])


def _last_line(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _called_names(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            yield _last_name(inner.func)


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_wrapper(node: ast.AST) -> bool:
    """Tell whether a statement only binds ``report.implementation``, as check cells do."""
    value = getattr(node, "value", None)
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) or value is None:
        return False
    return any(isinstance(n, ast.Attribute) and n.attr == "implementation" for n in ast.walk(value))


def _is_wrapper_of(statement: Statement, name: str) -> bool:
    return all(_is_wrapper(node) for bound, node in bindings(statement.node) if bound == name)


def _is_display(statement: Statement) -> bool:
    """Tell whether a statement is a call that shows or checks something and changes nothing."""
    if not (isinstance(statement.node, ast.Expr) and isinstance(statement.node.value, ast.Call)):
        return False
    call = statement.node.value.func
    root: ast.AST = call
    while isinstance(root, ast.Attribute | ast.Call | ast.Subscript):
        root = root.func if isinstance(root, ast.Call) else root.value
    names = {_last_name(call), _last_name(root)}
    shows = {"plots", "plt", "get_ipython", "sys", "os"} | DISPLAY_CALLS
    return bool(names & shows) or _last_name(call).startswith(("show", "draw", "plot"))


def _sets_attributes(node: ast.AST) -> bool:
    """Tell whether a statement is a function that sets attributes."""
    return isinstance(node, ast.FunctionDef) and any(
        (isinstance(n, ast.Call) and _last_name(n.func) == "setattr")
        or (isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
        for n in ast.walk(node)
    )


def _is_constant(statement: Statement) -> bool:
    node = statement.node  # for example SEED = 0
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)


def _is_seed(statement: Statement) -> bool:
    names = set(_called_names(statement.node))
    return bool(names & {"manual_seed", "seed"})


def _is_training(statement: Statement) -> bool:
    loops = isinstance(statement.node, ast.For | ast.While | ast.With)
    return loops and bool(set(_called_names(statement.node)) & TRAINING_CALLS)
