"""Find the answers in a submission's notebooks, with the code that they need. Nothing is run.

Role: ``extract`` returns the answers of a submission as text, and why others are missing.
``notebook_file`` reads files, ``statements`` finds what an answer needs, and ``scan`` flags what
looks odd in it.

The rules, in the order in which they are applied:

1. The answer of an exercise is the top-level function, class or assignment that defines its name.
   An import does not count, nor does ``patchify = report.implementation``.
2. It is searched in cells that the metadata marks for the exercise, and in all cells of a notebook
   of its chapter, because editors drop metadata and students add cells. If metadata and name
   disagree, the name decides, as in ``check``.
3. The last answer in the newest file that has one is graded. A cell of text counts only if no code
   cell has an answer, and an unchanged stub only if there is no other answer.
4. The statements that the answer needs are included (``statements.Slicer``). Names of earlier
   exercises are imported from the package, so that a wrong answer costs only its own points.
"""

import ast
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from vitedu.exercises import BY_ID, EXERCISES
from vitedu.grading.grades import NOT_HANDED_IN, Answer, Flag, Submission
from vitedu.grading.intake.names import declared_global
from vitedu.grading.intake.notebook_file import Cell, read_notebook
from vitedu.grading.intake.statements import (
    MAX_CODE,
    MAX_SOURCE,
    USUAL,
    ParsedCell,
    Slicer,
    Statement,
    kept_lines,
    parse_cell,
)
from vitedu.grading.intake.stubs import is_stub
from vitedu.grading.intake.submissions import notebook_of, plain

ORDER = {exercise.id: number for number, exercise in enumerate(EXERCISES)}
MAX_SUPPORT = 200_000  # characters
# CPU time for reading one student's files, and again for finding the answers; the course takes 2 s
READ_SECONDS = 10.0

_BINDS = re.compile(r"^(?:def |class |import )?(\w+)[ \t]*(?:=(?!=)|\(|:|$)", re.MULTILINE)

# exercise -> name -> code in place of what a notebook computes from data that a worker lacks
GIVEN = {
    # attention maps of an untrained model: weights of std 0.02 give scores of std 0.08
    "untrained_entropy": {
        "weights": "import torch\n\nweights = torch.softmax(0.08 * torch.randn(8, 3, 65, 65), "
        "dim=-1)"
    }
}


@dataclass
class Extraction:
    """The answers of a submission."""

    answers: dict[str, Answer] = field(default_factory=dict)  # by exercise
    # exercise without an answer -> (key of REASONS or NOT_HANDED_IN, detail)
    problems: dict[str, tuple[str, str]] = field(default_factory=dict)
    flags: list[Flag] = field(default_factory=list)  # about the submission
    notebooks: set[str] = field(default_factory=set)  # notebooks of the course in it


@dataclass
class _File:
    """One notebook, read and split into statements."""

    name: str
    cells: list[Cell]
    parsed: list[ParsedCell]
    slicer: Slicer
    chapters: set[str]  # notebooks of the course that it contains
    budget_left: int  # characters that the student's other files may have
    bound: set[str]  # all names that it binds at the top level


def extract(submission: Submission) -> Extraction:
    """Find the answers of one student. Never raises because of what was handed in."""
    result = Extraction(flags=list(submission.flags))
    files: list[_File] = []
    unreadable: dict[str, str] = {}
    budget = MAX_CODE
    start = time.thread_time()
    for path in reversed(submission.files):  # newest first, in case the budget runs out
        if time.thread_time() - start > READ_SECONDS:
            file, problem = None, f"reading the newer files took more than {READ_SECONDS:g} s"
        else:
            file, problem = _read(Path(path), budget, result.flags)
        if file:
            files.insert(0, file)
            budget = file.budget_left
        else:
            unreadable[plain(Path(path).name)] = problem
            result.flags.append(Flag("unreadable", f"{plain(Path(path).name)}: {problem}"))
    if not submission.files:
        unreadable[""] = "; ".join(flag.message for flag in submission.flags) or "no file at all"
    for file in files:
        result.notebooks |= file.chapters
    from vitedu.grading.intake.scan import scan_answer  # loads checkers, and torch with them

    start = time.thread_time()
    for exercise in EXERCISES:
        found = [_candidates(file, exercise.id) for file in files]
        if any(found) and time.thread_time() - start > READ_SECONDS:
            words = f"finding the answers before it took more than {READ_SECONDS:g} s"
            result.problems[exercise.id] = "unreadable", words
            continue
        answer = _choose(exercise.id, files, found)
        if answer:
            flags = answer.flags + tuple(scan_answer(answer))
            result.answers[exercise.id] = replace(answer, flags=flags)
        else:
            result.problems[exercise.id] = _why_not(
                exercise.id, exercise.notebook, files, unreadable, result.notebooks
            )
    return result


# --- files ---------------------------------------------------------------------------------------


def _read(path: Path, budget: int, flags: list[Flag]) -> tuple[_File | None, str]:
    """Read a file and split it into statements; or return None and why not."""
    notebook, name = read_notebook(path), plain(path.name)
    if notebook.problem:
        return None, notebook.problem
    flags += [Flag("oddity", f"{name}: {oddity}") for oddity in notebook.oddities]
    parsed: list[ParsedCell] = []
    statements: list[Statement] = []
    for number, cell in enumerate(notebook.cells):
        usable = cell.kind == "code" or cell.exercise in BY_ID
        parsed.append(ParsedCell())
        if usable:
            parsed[-1] = parse_cell(cell.source, number, len(statements), budget)
            if len(cell.source) <= min(budget, MAX_SOURCE):  # it was parsed, even if that failed
                budget -= len(cell.source)
        statements += parsed[-1].statements
    unknown = {c.exercise for c in notebook.cells if c.exercise and c.exercise not in BY_ID}
    if unknown:
        shown = ", ".join(repr(plain(id))[:40] for id in sorted(unknown)[:5])
        flags.append(Flag("unknown_exercise", f"{name} marks cells as {shown}; by name, then"))
    chapters = _chapters(name, notebook.cells, statements)
    bound = set().union(*(s.bound | declared_global(s.node) for s in statements))
    for cell, found in zip(notebook.cells, parsed, strict=True):
        if found.error:  # a cell that cannot be parsed may still bind names
            bound |= set(_BINDS.findall(cell.source[:MAX_SOURCE]))
    return _File(name, notebook.cells, parsed, Slicer(statements), chapters, budget, bound), ""


def _chapters(name: str, cells: list[Cell], statements: list[Statement]) -> set[str]:
    """Find out which of the course's notebooks a file contains.

    The metadata of its cells decide. Without any, a notebook counts if the file's name says so, if
    the file defines at least half of its exercises, or as many of them as of any other notebook.
    """
    marked = {BY_ID[cell.exercise].notebook for cell in cells if cell.exercise in BY_ID}
    if marked:
        return marked
    defined: dict[str, set[str]] = {}
    for statement in statements:
        for bound in statement.bound & BY_ID.keys():
            if statement.defines(bound):
                defined.setdefault(BY_ID[bound].notebook, set()).add(bound)
    found = {notebook_of(name)} - {""}
    if defined:
        most = max(len(ids) for ids in defined.values())
        size = {n: sum(e.notebook == n for e in EXERCISES) for n in defined}
        found |= {
            n
            for n, ids in defined.items()
            if len(ids) in (most, size[n]) or 2 * len(ids) >= size[n]
        }
    return found


# --- choosing ------------------------------------------------------------------------------------


def _candidates(file: _File, exercise: str) -> list[Statement]:
    """List the statements of a file that answer an exercise, in order."""
    in_chapter = BY_ID[exercise].notebook in file.chapters
    return [
        statement
        for statement in file.slicer.binders.get(exercise, [])
        if (in_chapter or file.cells[statement.cell].exercise == exercise)
        and statement.defines(exercise)
    ]


def _choose(exercise: str, files: list[_File], found: list[list[Statement]]) -> Answer | None:
    """Choose the last attempt, in a code cell if there is one, or else the last stub."""
    everything = [(file, s) for file, own in zip(files, found, strict=True) for s in own]
    attempts = [(file, s) for file, s in everything if not is_stub(s.node, exercise)]
    if not everything:
        return None
    as_code = [(file, s) for file, s in attempts if file.cells[s.cell].kind == "code"]
    file, target = (as_code or attempts or everything)[-1]
    flags = []
    if len(attempts) > 1:
        places = ", ".join(f"{f.name} cell {s.cell + 1}" for f, s in attempts[:5])
        flags.append(
            Flag("duplicate", f"{len(attempts)} answers ({places}); the last code is graded")
        )
    elif len(everything) > 1 and not attempts:
        flags.append(Flag("duplicate", f"the untouched stub is there {len(everything)} times"))
    return _answer(exercise, file, target, flags)


def _answer(exercise: str, file: _File, target: Statement, flags: list[Flag]) -> Answer:
    """Make an answer from its statement and all that it needs."""
    mark, cell = file.cells[target.cell].exercise, file.cells[target.cell]
    if mark != exercise:
        if mark:
            words = f"cell {target.cell + 1} is marked {plain(mark)[:40]} and defines {exercise}"
            flags.append(Flag("conflict", f"{words}; the name decides"))
        else:
            words = f"cell {target.cell + 1} of {file.name} has no exercise in its metadata"
            flags.append(Flag("found_by_name", words))
    if cell.kind != "code":
        flags.append(Flag("not_code", f"the answer stands in a {plain(cell.kind)[:20]} cell"))
    if magics := file.parsed[target.cell].magics:
        flags.append(Flag("magics", f"{magics} lines of IPython's were taken out of the answer"))
    chapter = BY_ID[exercise].notebook

    def taken(name: str) -> bool:
        """Tell whether a name belongs to another exercise and not to the student.

        A name of a later chapter, or of a chapter that this file does not contain, is the student's
        own helper.
        """
        other = BY_ID.get(name)
        if other is None or name == exercise or other.notebook > chapter:
            return False
        return other.notebook in file.chapters or not any(
            statement.defines(name) for statement in file.slicer.binders.get(name, [])
        )

    following = [s.place for s in file.slicer.binders.get(exercise, []) if s.place > target.place]
    until = min(following, default=len(file.slicer.statements))
    slicer = file.slicer
    kept, elsewhere, left_out = slicer.needed(target, exercise, taken, until)
    heads, tails, own = [], [], []
    given = GIVEN.get(exercise, {})
    if any(given.keys() & statement.bound for statement in kept if statement is not target):
        kept, more, left_out = _with_given(slicer, target, exercise, taken, until, given)
        elsewhere |= more
        heads += [given[name] for name in given if any(name in s.read for s in kept)]
    for name in sorted(elsewhere, key=lambda n: ORDER.get(n, -1)):
        if taken(name):
            if ORDER[name] < ORDER[exercise]:
                heads.append(f"from {BY_ID[name].module} import {name}")
            else:
                left_out.append(f"{name}, an exercise that comes later")
        elif name in USUAL:
            heads.append(USUAL[name])
    read = set().union(*(statement.read for statement in kept))
    for statement in kept:
        if statement.cell == target.cell:
            own.append(statement)
        elif statement.place > target.place and (
            exercise in statement.changed or not (statement.is_definition or statement.is_import)
        ):
            tails.append(statement.text)
        else:
            heads.append(_written(statement, read))
    heads = [*_futures(slicer.statements[: target.place]), *(text for text in heads if text)]
    support = "\n\n".join(dict.fromkeys(heads))
    if len(support) > MAX_SUPPORT:
        left_out.append(
            f"support of {len(support):,} characters; at most {MAX_SUPPORT:,} come along"
        )
        support = ""
    flags += [
        Flag("left_out", f"needed, and left out: {words}") for words in dict.fromkeys(left_out)
    ]
    source = "\n\n".join([_source(file.parsed[target.cell], own, read), *tails])
    found_by = "metadata" if mark == exercise else "name"
    bound = tuple(sorted((read | elsewhere) & file.bound))
    return Answer(
        exercise, source, support, found_by, file.name, tuple(flags), target.cell + 1, bound
    )


def _with_given(slicer, target, exercise, taken, until, given):
    """Collect again what an answer needs, without the names that the grader provides."""
    kept, elsewhere, left_out = slicer.needed(
        target, exercise, lambda name: taken(name) or name in given, until
    )
    return kept, elsewhere - given.keys(), left_out


def _source(parsed: ParsedCell, kept: list[Statement], read: set[str]) -> str:
    """Write the answer's own cell, without unneeded imports."""
    return kept_lines(parsed, [s for s in kept if _written(s, read)])


def _futures(earlier: list[Statement]) -> list[str]:
    """Return the imports from ``__future__``, which apply to all later cells."""
    imports = [s.node for s in earlier if isinstance(s.node, ast.ImportFrom)]
    return [ast.unparse(node) for node in imports if node.module == "__future__"]


def _written(statement: Statement, read: set[str]) -> str:
    """Write a statement; an import without unread names, which a worker may not have."""
    node = statement.node
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return statement.text
    if isinstance(node, ast.ImportFrom) and node.module == "__future__":
        return ""
    names = [a for a in node.names if (a.asname or a.name.split(".")[0]) in read or a.name == "*"]
    names = [a for a in names if (a.asname or a.name) not in BY_ID]
    if not names:
        return ""
    if isinstance(node, ast.Import):
        return ast.unparse(ast.Import(names))
    return ast.unparse(ast.ImportFrom(node.module, names, node.level))


# --- what is missing -----------------------------------------------------------------------------


def _why_not(
    exercise: str,
    notebook: str,
    files: Iterable[_File],
    unreadable: dict[str, str],
    handed_in: set[str],
) -> tuple[str, str]:
    """Say why an exercise has no answer."""
    for file in files:
        for cell, parsed in zip(file.cells, file.parsed, strict=True):
            if cell.exercise != exercise:
                continue
            if parsed.error:
                return "syntax", parsed.error
            if not cell.source.strip():
                return "no_cell", f"its cell in {file.name} is empty"
            return "no_cell", f"its cell in {file.name} does not define {exercise}"
    for file in files:  # a cell without metadata that cannot be parsed
        if notebook in file.chapters:
            for number, (cell, parsed) in enumerate(zip(file.cells, file.parsed, strict=True)):
                words = (
                    f"def {exercise}(",
                    f"class {exercise}(",
                    f"class {exercise}:",
                    f"{exercise} =",
                )
                if parsed.error and any(word in cell.source for word in words):
                    return "syntax", f"cell {number + 1} of {file.name}: {parsed.error}"
    for name, problem in unreadable.items():
        about = notebook_of(name)
        if about == notebook or (not about and notebook not in handed_in):
            return "unreadable", f"{name}: {problem}" if name else problem
    if notebook not in handed_in:
        return NOT_HANDED_IN, f"no file holds notebook {notebook}"
    return "no_cell", ""
