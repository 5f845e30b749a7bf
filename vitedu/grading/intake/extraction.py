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
from vitedu.grading.intake.names import global_names
from vitedu.grading.intake.notebook_file import Cell, read_notebook
from vitedu.grading.intake.statements import (
    IMPORTS,
    MAX_CODE,
    MAX_SOURCE,
    ParsedCell,
    Slicer,
    Statement,
    parse_cell,
    select_lines,
)
from vitedu.grading.intake.stubs import is_stub
from vitedu.grading.intake.submissions import clean_name, notebook_of

ORDER = {exercise.id: number for number, exercise in enumerate(EXERCISES)}
MAX_SUPPORT = 200_000  # characters
# CPU time for reading one student's files, and again for finding the answers; the course takes 2 s
READ_SECONDS = 10.0

_BINDS = re.compile(r"^(?:def |class |import )?(\w+)[ \t]*(?:=(?!=)|\(|:|$)", re.MULTILINE)

# exercise -> name -> code in place of what a notebook computes from data that a worker lacks
MOCKS = {
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
    budget: int  # characters that the student's other files may have
    bound_names: set[str]  # all names that it binds at the top level


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
            file, problem = _read_file(Path(path), budget, result.flags)
        if file:
            files.insert(0, file)
            budget = file.budget
        else:
            unreadable[clean_name(Path(path).name)] = problem
            result.flags.append(Flag("unreadable", f"{clean_name(Path(path).name)}: {problem}"))
    if not submission.files:
        unreadable[""] = "; ".join(flag.message for flag in submission.flags) or "no file at all"
    for file in files:
        result.notebooks |= file.chapters
    from vitedu.grading.intake.scan import scan_answer  # loads checkers, and torch with them

    start = time.thread_time()
    for exercise in EXERCISES:
        candidates = [_find_candidates(file, exercise.id) for file in files]
        if any(candidates) and time.thread_time() - start > READ_SECONDS:
            words = f"finding the answers before it took more than {READ_SECONDS:g} s"
            result.problems[exercise.id] = "unreadable", words
            continue
        answer = _choose(exercise.id, files, candidates)
        if answer:
            flags = answer.flags + tuple(scan_answer(answer))
            result.answers[exercise.id] = replace(answer, flags=flags)
        else:
            result.problems[exercise.id] = _explain_absence(
                exercise.id, exercise.notebook, files, unreadable, result.notebooks
            )
    return result


# --- files ---------------------------------------------------------------------------------------


def _read_file(path: Path, budget: int, flags: list[Flag]) -> tuple[_File | None, str]:
    """Read a file and split it into statements; or return None and why not."""
    notebook, name = read_notebook(path), clean_name(path.name)
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
        names = ", ".join(repr(clean_name(id))[:40] for id in sorted(unknown)[:5])
        flags.append(Flag("unknown_exercise", f"{name} marks cells as {names}; by name, then"))
    chapters = _find_chapters(name, notebook.cells, statements)
    bound = set().union(*(s.binds | global_names(s.node) for s in statements))
    for cell, cell_result in zip(notebook.cells, parsed, strict=True):
        if cell_result.error:  # a cell that cannot be parsed may still bind names
            bound |= set(_BINDS.findall(cell.source[:MAX_SOURCE]))
    return _File(name, notebook.cells, parsed, Slicer(statements), chapters, budget, bound), ""


def _find_chapters(name: str, cells: list[Cell], statements: list[Statement]) -> set[str]:
    """Find out which of the course's notebooks a file contains.

    The metadata of its cells decide. Without any, a notebook counts if the file's name says so, if
    the file defines at least half of its exercises, or as many of them as of any other notebook.
    """
    from_metadata = {BY_ID[cell.exercise].notebook for cell in cells if cell.exercise in BY_ID}
    if from_metadata:
        return from_metadata
    defined: dict[str, set[str]] = {}
    for statement in statements:
        for bound in statement.binds & BY_ID.keys():
            if statement.defines(bound):
                defined.setdefault(BY_ID[bound].notebook, set()).add(bound)
    chapters = {notebook_of(name)} - {""}
    if defined:
        most = max(len(ids) for ids in defined.values())
        size = {n: sum(e.notebook == n for e in EXERCISES) for n in defined}
        chapters |= {
            n
            for n, ids in defined.items()
            if len(ids) in (most, size[n]) or 2 * len(ids) >= size[n]
        }
    return chapters


# --- choosing ------------------------------------------------------------------------------------


def _find_candidates(file: _File, exercise: str) -> list[Statement]:
    """List the statements of a file that answer an exercise, in order."""
    in_chapter = BY_ID[exercise].notebook in file.chapters
    return [
        statement
        for statement in file.slicer.binders.get(exercise, [])
        if (in_chapter or file.cells[statement.cell].exercise == exercise)
        and statement.defines(exercise)
    ]


def _choose(exercise: str, files: list[_File], candidates: list[list[Statement]]) -> Answer | None:
    """Choose the last attempt, in a code cell if there is one, or else the last stub."""
    everything = [(file, s) for file, own in zip(files, candidates, strict=True) for s in own]
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
    return _build_answer(exercise, file, target, flags)


def _build_answer(exercise: str, file: _File, target: Statement, flags: list[Flag]) -> Answer:
    """Make an answer from its statement and all that it needs."""
    cell, number = file.cells[target.cell], target.cell + 1
    tag = cell.exercise
    if tag != exercise:
        if tag:
            words = f"cell {number} is marked {clean_name(tag)[:40]} and defines {exercise}"
            flags.append(Flag("conflict", f"{words}; the name decides"))
        else:
            words = f"cell {number} of {file.name} has no exercise in its metadata"
            flags.append(Flag("found_by_name", words))
    if cell.kind != "code":
        flags.append(Flag("not_code", f"the answer stands in a {clean_name(cell.kind)[:20]} cell"))
    if magics := file.parsed[target.cell].magics:
        flags.append(Flag("magics", f"{magics} lines of IPython's were taken out of the answer"))
    chapter = BY_ID[exercise].notebook

    def is_foreign(name: str) -> bool:
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
    end = min(following, default=len(file.slicer.statements))
    slicer = file.slicer
    statements, unresolved, omissions = slicer.collect(target, exercise, is_foreign, end)
    heads, tails, own = [], [], []
    mocks = MOCKS.get(exercise, {})
    if any(mocks.keys() & statement.binds for statement in statements if statement is not target):
        statements, more, omissions = _with_mocks(slicer, target, exercise, is_foreign, end, mocks)
        unresolved |= more
        heads += [mocks[name] for name in mocks if any(name in s.reads for s in statements)]
    for name in sorted(unresolved, key=lambda n: ORDER.get(n, -1)):
        if is_foreign(name):
            if ORDER[name] < ORDER[exercise]:
                heads.append(f"from {BY_ID[name].module} import {name}")
            else:
                omissions.append(f"{name}, an exercise that comes later")
        elif name in IMPORTS:
            heads.append(IMPORTS[name])
    used = set().union(*(statement.reads for statement in statements))
    for statement in statements:
        if statement.cell == target.cell:
            own.append(statement)
        elif statement.place > target.place and (
            exercise in statement.changes or not (statement.is_definition or statement.is_import)
        ):
            tails.append(statement.text)
        else:
            heads.append(_write_statement(statement, used))
    heads = [*_future_imports(slicer.statements[: target.place]), *(text for text in heads if text)]
    support = "\n\n".join(dict.fromkeys(heads))
    if len(support) > MAX_SUPPORT:
        omissions.append(
            f"support of {len(support):,} characters; at most {MAX_SUPPORT:,} come along"
        )
        support = ""
    flags += [
        Flag("left_out", f"needed, and left out: {words}") for words in dict.fromkeys(omissions)
    ]
    source = "\n\n".join([_write_source(file.parsed[target.cell], own, used), *tails])
    match = "metadata" if tag == exercise else "name"
    bound = tuple(sorted((used | unresolved) & file.bound_names))
    return Answer(exercise, source, support, match, file.name, tuple(flags), number, bound)


def _with_mocks(slicer, target, exercise, is_foreign, end, mocks):
    """Collect again what an answer needs, without the names that the grader provides."""
    statements, unresolved, omissions = slicer.collect(
        target, exercise, lambda name: is_foreign(name) or name in mocks, end
    )
    return statements, unresolved - mocks.keys(), omissions


def _write_source(parsed: ParsedCell, statements: list[Statement], names: set[str]) -> str:
    """Write the answer's own cell, without unneeded imports."""
    return select_lines(parsed, [s for s in statements if _write_statement(s, names)])


def _future_imports(earlier: list[Statement]) -> list[str]:
    """Return the imports from ``__future__``, which apply to all later cells."""
    imports = [s.node for s in earlier if isinstance(s.node, ast.ImportFrom)]
    return [ast.unparse(node) for node in imports if node.module == "__future__"]


def _write_statement(statement: Statement, used: set[str]) -> str:
    """Write a statement; an import without unread names, which a worker may not have."""
    node = statement.node
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return statement.text
    if isinstance(node, ast.ImportFrom) and node.module == "__future__":
        return ""
    names = [a for a in node.names if (a.asname or a.name.split(".")[0]) in used or a.name == "*"]
    names = [a for a in names if (a.asname or a.name) not in BY_ID]
    if not names:
        return ""
    if isinstance(node, ast.Import):
        return ast.unparse(ast.Import(names))
    return ast.unparse(ast.ImportFrom(node.module, names, node.level))


# --- what is missing -----------------------------------------------------------------------------


def _explain_absence(
    exercise: str,
    notebook: str,
    files: Iterable[_File],
    unreadable: dict[str, str],
    present: set[str],
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
        if about == notebook or (not about and notebook not in present):
            return "unreadable", f"{name}: {problem}" if name else problem
    if notebook not in present:
        return NOT_HANDED_IN, f"no file holds notebook {notebook}"
    return "no_cell", ""
