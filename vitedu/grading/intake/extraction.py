"""Read a submission's notebooks as scripts: cells in order, and which exercises they touch.

Role: ``extract`` returns what ``running`` runs, and for each exercise the cell that a person reads.
Nothing is run here, and no statement decides points: what is looked up in the text only says which
cell a reference must wait for. ``notebook_file`` reads files, and ``flags`` flags what looks odd.

The rules, in the order in which they are applied:

1. Cells run in the order of the document. A cell that is no code runs if it is marked for an
   exercise that no code defines.
2. A file of the exercise's own chapter counts first, the newest that has an attempt. An answer in
   another file counts with a remark.
3. Cells of the course that no other cell needs are left out: demonstrations that compute.
"""

import ast
import builtins
import contextlib
import hashlib
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace

from vitedu.course.parsing import global_names, parse
from vitedu.course.references import first_line
from vitedu.exercises import BY_ID, EXERCISES, Exercise, in_file
from vitedu.grading.grades import NOT_HANDED_IN, Answer, Flag, Script, ScriptCell, Submission
from vitedu.grading.intake.flags import mark, scan_answer, split_tokens
from vitedu.grading.intake.notebook_file import Cell, Unreadable, read_modules, read_notebook
from vitedu.grading.intake.submissions import clean_name, stem_of

MAX_SOURCE = 100_000  # characters of a cell
MAX_FOR_IPYTHON = 20_000  # a larger cell gets this package's own rule
# names with which calls begin that show something and change nothing
UNCHANGED = {"torch", "nn", "F", "math", "np", *dir(builtins)}
SHOWING = {"print", "plots", "compare", "confirm", "progress", "display"}
# a definition or an assignment; not ``x = report.implementation`` and its kin, which are no answer
_BINDS = re.compile(
    r"^[ \t]*(?:(?:def|class|async def|type)[ \t]+([^\W\d]\w*)"
    r"|([^\W\d]\w*)[ \t]*(?::[^=\n]*)?=(?!=)"
    r"(?![ \t]*(?:\w+\.implementation\b|check\(|solution\()))",
    re.MULTILINE,
)
_CODE = re.compile(r"^[ \t]*[^\s#]", re.MULTILINE)
_CHECK = re.compile(r"\bcheck\s*\(")
_COURSE_CHECK = re.compile(r"\bcheck\((\w+)")
_WORD = re.compile(r"[^\W\d]\w*")
_WRITES = re.compile(r"\s*%%(?:write)?file\s+(?:-a\s+)?[\"']?([\w./-]+\.py)[\"']?[ \t]*\n")
# of ``adapters.assign.GIVEN``: the exercise stands below it
_GIVEN = re.compile(r"# This exercise is not assigned\..*\n(?:from [\w.]+ import )?(\w+)")
_PASSED = re.compile(r"✓ [\d.]+ (\w+)")


@dataclass
class Extraction:
    """What a submission holds."""

    answers: dict[str, Answer] = field(default_factory=dict)  # by exercise
    # exercise without an answer -> (key of REASONS or NOT_HANDED_IN, detail)
    problems: dict[str, tuple[str, str]] = field(default_factory=dict)
    flags: list[Flag] = field(default_factory=list)  # about the submission
    notebooks: set[str] = field(default_factory=set)  # files of the course in it
    scripts: list[Script] = field(default_factory=list)  # the newest first
    given: set[str] = field(default_factory=set)  # exercises that ``vitedu assign`` left out


def digest_cell(source: str) -> str:
    """Return the digest by which a cell of the course is known."""
    return hashlib.sha256(source.strip().encode()).hexdigest()[:16]


def extract(submission: Submission, course: frozenset[str] = frozenset()) -> Extraction:
    """Read what a student handed in. Never raises because of what it is.

    Args:
        submission: its files.
        course: digests of the course's own cells.
    """
    result = Extraction(flags=list(submission.flags))
    unreadable: dict[str, str] = {}
    files: list[tuple[str, list[Cell], dict[str, str]]] = []
    for path in reversed(submission.files):
        name = clean_name(path.name)
        try:
            cells, oddities = read_notebook(path)
        except Unreadable as error:
            unreadable[name] = str(error)
            result.flags.append(Flag("unreadable", f"{name}: {error}"))
            continue
        result.flags += [Flag("oddity", f"{name}: {oddity}") for oddity in oddities]
        is_own_folder = path.parent.name == submission.student
        files.append((name, cells, read_modules(path.parent) if is_own_folder else {}))
    if not submission.files:
        unreadable[""] = "; ".join(flag.message for flag in submission.flags) or "no file at all"
    written = {
        found[1].removeprefix("./"): cell.source[found.end() :]
        for _, cells, _ in reversed(files)
        for cell in cells
        if (found := _WRITES.match(cell.source))
    }
    result.scripts = [_script(name, cells, written | own, course) for name, cells, own in files]
    texts = [cell.source for _, own, _ in files for cell in own]
    result.given = {found[1] for text in texts if (found := _GIVEN.match(text))} & BY_ID.keys()
    for script in result.scripts:
        result.notebooks |= set(script.stems)
    for exercise in EXERCISES:
        if answer := _find_answer(exercise, result.scripts):
            result.answers[exercise.id] = answer
        else:
            problem = _explain_absence(exercise, unreadable, result.notebooks)
            result.problems[exercise.id] = problem
    return result


# --- one notebook --------------------------------------------------------------------------------


def _script(name: str, cells: list[Cell], files: dict[str, str], course: frozenset[str]) -> Script:
    by_code = {id for cell in cells if cell.kind == "code" for id in defined(cell.source)}
    runs: list[ScriptCell] = []
    counts: list[int] = []
    script = Script(name, runs, [], defaultdict(list), defaultdict(list), None, {}, files)
    for number, cell in enumerate(cells, 1):
        is_code = cell.kind == "code"
        if cell.exercise in BY_ID and not _CODE.search(cell.source):
            script.blank.append(cell.exercise)
        ids = defined(cell.source)
        if not is_code and (cell.exercise not in ids or cell.exercise in by_code):
            continue
        for id in _PASSED.findall(cell.said):
            script.passes[id] = number
        is_own = digest_cell(cell.source) not in course
        for id in ids if is_own or cell.exercise else ():  # else a name of a demonstration
            script.defines[id].append(len(runs))
        words = set(_COURSE_CHECK.findall(cell.source))
        if is_own and _CHECK.search(cell.source):
            words = set(_WORD.findall(cell.source[:MAX_SOURCE]))
        for id in words & BY_ID.keys():
            script.checks[id].append(len(runs))
        runs.append(ScriptCell(number, cell.source[: MAX_SOURCE + 1], is_own))
        counts.append(cell.count or 0)
    script.defines, script.checks = dict(script.defines), dict(script.checks)
    script.stems = sorted(_find_stems(name, cells, script))
    known = [place for place, count in enumerate(counts) if count]
    order = sorted(known, key=counts.__getitem__)
    if order != known and 2 * len(known) > len(runs):
        script.order = order
    touched = set[int]().union(*script.defines.values(), *script.checks.values())
    script.cells = [
        replace(cell, source=_as_python(cell.source)) if cell.is_own else cell
        for cell in _drop_needless(runs, touched)
    ]
    return script


def defined(source: str) -> set[str]:
    """Return the exercises whose names a text defines, judging by its lines.

    Example:
        >>> defined("def gelu(x): ..."), defined("gelu = report.implementation")
        ({'gelu'}, set())
    """
    found = _BINDS.findall(source[:MAX_SOURCE])
    return {name for pair in found for name in pair} & BY_ID.keys()


def _as_python(source: str) -> str:
    """Write IPython's own syntax as Python; text that is neither stays as it is."""
    if len(source) > MAX_SOURCE:  # the box says why nothing of it runs
        return f"raise SyntaxError('a cell of more than {MAX_SOURCE:,} characters is not read')"
    try:
        parse(source)
    except SyntaxError:
        if len(source) <= MAX_FOR_IPYTHON:
            with contextlib.suppress(ImportError, SyntaxError, ValueError, RecursionError):
                from IPython.core.inputtransformer2 import TransformerManager

                return TransformerManager().transform_cell(source)
    except (ValueError, RecursionError, MemoryError):
        pass
    return source


def _drop_needless(cells: list[ScriptCell], touched: set[int]) -> list[ScriptCell]:
    """Reduce the course's own cells to statements that bind what a cell that runs may read."""
    needed = set[str]()
    left: list[tuple[int, ast.stmt]] = []  # place and statement that nobody needs so far
    for place, cell in enumerate(cells):
        if cell.is_own or place in touched:
            needed |= _names_read(cell.source)
        else:
            with contextlib.suppress(SyntaxError):  # of Colab's set-up: nothing of it is needed
                left += [(place, node) for node in parse(cell.source).body]
    kept: list[tuple[int, ast.stmt]] = []
    while found := [each for each in left if _binds(each[1]) & needed]:
        left = [each for each in left if each not in found]
        kept += found
        needed = needed.union(*(_names_read(ast.unparse(node)) for _, node in found))
    texts: dict[int, list[str]] = defaultdict(list)
    for place, node in sorted(kept, key=lambda each: (each[0], each[1].lineno)):
        lines = cells[place].source.split("\n")
        texts[place].append("\n".join(lines[first_line(node) - 1 : node.end_lineno]))
    return [
        cell if cell.is_own or place in touched else replace(cell, source="\n".join(texts[place]))
        for place, cell in enumerate(cells)
    ]


def _names_read(source: str) -> set[str]:
    try:
        return global_names(source)[0]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set(_WORD.findall(source[:MAX_SOURCE]))


def _binds(node: ast.stmt) -> set[str]:
    """Return the names that a statement of the course binds, or whose value it may change."""
    names = {getattr(node, "name", "")}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return names
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        root = _root(node.value)
        if root in SHOWING or root.startswith("show"):
            return set()
        if getattr(node.value.func, "attr", "") == "manual_seed":
            return {"torch"}
        names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
        return names - UNCHANGED
    for inner in ast.walk(node):
        if isinstance(getattr(inner, "ctx", None), ast.Store):
            names.add(_root(inner))
        elif isinstance(inner, ast.stmt) and inner is not node:
            names |= _binds(inner)
    return names


def _root(node: ast.AST) -> str:
    """Return the name with which a chain of attributes, items and calls begins, or ""."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return getattr(node, "id", "")


def _find_stems(name: str, cells: list[Cell], script: Script) -> set[str]:
    """Find out which of the course's files a notebook contains.

    The marks of cells that define what they name decide. Without any, a file counts if the
    notebook's name says so, if it defines at least half of the file's exercises, or as many of them
    as of any other file.
    """
    marked = {  # cells that define the exercise that they are marked for, or no other
        BY_ID[cell.exercise].stem
        for cell in cells
        if cell.exercise in BY_ID and cell.exercise in (defined(cell.source) or {cell.exercise})
    }
    counts = Counter(BY_ID[id].stem for id in script.defines)
    most = max(counts.values(), default=0)
    return marked or ({stem_of(name)} - {""}) | {
        s for s, count in counts.items() if count == most or 2 * count >= len(in_file(s))
    }


# --- what a person reads -------------------------------------------------------------------------


def _find_answer(exercise: Exercise, scripts: list[Script]) -> Answer | None:
    """Return the last definition, with what is odd about it.

    A file of its own may bind an answer in a way that no text shows, so it is answered there.
    """
    home = [each for each in scripts if exercise.stem in each.stems]
    for script in [*home, *(each for each in scripts if each not in home)]:
        if places := script.defines.get(exercise.id):
            shown = [p for p in places if split_tokens(script.cells[p].source, exercise.id)]
            cell = script.cells[(shown or places)[-1]]
            answer = Answer(exercise.id, cell.source, script.name, (), cell.number)
            flags = []
            if exercise.stem not in script.stems:
                words = f"found in {script.name}, which holds another notebook; it counts"
                flags.append(Flag("elsewhere", words))
            above = (each.source for each in script.cells[: places[-1] + 1] if each.is_own)
            flags += scan_answer(answer, above)
            return mark(replace(answer, flags=tuple(flags)))
    return Answer(exercise.id, "", home[0].name) if home else None


def _explain_absence(
    exercise: Exercise, unreadable: dict[str, str], present: set[str]
) -> tuple[str, str]:
    stem = exercise.stem
    for name, problem in unreadable.items():
        about, is_missing = stem_of(name), stem not in present
        # an older edition has both files of a notebook in one
        if about == stem or (is_missing and about in ("", exercise.notebook)):
            return "unreadable", f"{name}: {problem}" if name else problem
    if stem not in present:
        return NOT_HANDED_IN, f"no file holds notebook {stem}"
    return "no_cell", ""
