"""Find the answers in a submission's notebooks, with the statements that they may need.

Role: ``extract`` returns where each answer stands, and why others are missing. Nothing is run:
``box.names`` runs an answer and binds what it reads. ``notebook_file`` reads files, ``statements``
splits cells, and ``scan`` flags what looks odd.

The rules, in the order in which they are applied:

1. The answer of an exercise is the function, class or assignment that defines its name, wherever it
   stands. The mark in a cell's metadata helps only a cell that is no code or defines nothing.
2. The last definition counts, in the newest file that has one. An earlier one counts only if the
   later ones are no attempt (``statements._is_attempt``), or turn out to be a string or a tensor.
3. A file of the exercise's own chapter comes first. An answer in another one counts with a remark.
4. ``X = report.implementation``, ``X = solution(...)`` and ``from my_vit import X`` are no answers.
"""

import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace

from vitedu.exercises import BY_ID, EXERCISES, Exercise, in_file
from vitedu.grading.box.names import Makers, Statement
from vitedu.grading.grades import NOT_HANDED_IN, Answer, Flag, Program, Submission
from vitedu.grading.intake.notebook_file import Cell, read_notebook
from vitedu.grading.intake.scan import scan_answer
from vitedu.grading.intake.similarity import token_runs
from vitedu.grading.intake.statements import MAX_SOURCE, ParsedCell, Scope, parse_cell
from vitedu.grading.intake.submissions import clean_name, stem_of

MAX_TARGETS = 4  # definitions of an exercise that are tried

_BINDS = re.compile(r"^(?:def |class |import |type )?(\w+)[ \t]*(?:=(?!=)|\(|:|$)", re.MULTILINE)
_WORD = re.compile(r"[^\W\d]\w*")

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
class _Definition:
    file: "_File"
    cell: int  # index
    space: str
    place: int
    is_attempt: bool


class _File:
    """One notebook, read and split into statements.

    Attributes:
        space: the name of its namespace; modules that it writes have their own.
        bound: names that it binds in a way that is not seen here.
        definitions: exercise -> what defines it, in order.
    """

    def __init__(self, name: str, cells: list[Cell], spaces: dict):
        self.name, self.cells = name, cells
        self.space = clean_name(name.rsplit(".", 1)[0]) or "notebook"
        while self.space in spaces:
            self.space += "_"
        self.parsed: list[ParsedCell] = []
        self.definitions: dict[str, list[_Definition]] = {}
        self.bound: set[str] = set()
        scope = Scope()
        for number, cell in enumerate(cells):
            parsed = ParsedCell()
            if cell.kind == "code" or cell.exercise in BY_ID:
                parsed = parse_cell(cell.source, number + 1, scope)
            self.parsed.append(parsed)
            if parsed.error:  # a cell that cannot be parsed may still bind names
                self.bound |= set(_BINDS.findall(cell.source[:MAX_SOURCE]))
            space = parsed.module or self.space
            statements = spaces.setdefault(space, {})
            first = len(statements)
            for place, statement in enumerate(parsed.statements, first):
                marks = [*statement.marks, *([] if cell.kind == "code" else ["text"])]
                statements[place] = statement._replace(marks=marks)
            for id, index, is_attempt in parsed.definitions:
                found = _Definition(self, number, space, first + index, is_attempt)
                self.definitions.setdefault(id, []).append(found)
        self.chapters = self._find_chapters()

    def _find_chapters(self) -> set[str]:
        """Find out which of the course's notebooks a file contains.

        The marks of cells that define what they name decide. Without any, a notebook counts if the
        file's name says so, if the file defines at least half of its exercises, or as many of them
        as of any other notebook.
        """
        marked = {
            BY_ID[cell.exercise].stem
            for cell, parsed in zip(self.cells, self.parsed, strict=True)
            if cell.exercise in BY_ID and _is_own_mark(cell, parsed)
        }
        counts = Counter(BY_ID[id].stem for id in self.definitions)
        most = max(counts.values(), default=0)
        named = {stem_of(self.name)} - {""}
        return marked or named | {
            notebook
            for notebook, count in counts.items()
            if count == most or 2 * count >= len(in_file(notebook))
        }


def _is_own_mark(cell: Cell, parsed: ParsedCell) -> bool:
    """Tell whether a cell defines the exercise that it is marked for, or no other."""
    ids = {id for id, _, _ in parsed.definitions}
    return not ids or cell.exercise in ids


def extract(submission: Submission) -> Extraction:
    """Find the answers of one student. Never raises because of what was handed in."""
    result = Extraction(flags=list(submission.flags))
    files: list[_File] = []
    unreadable: dict[str, str] = {}
    spaces: dict[str, dict[int, Statement]] = {}
    for path in reversed(submission.files):  # what is said about newer ones comes first
        name, notebook = clean_name(path.name), read_notebook(path)
        if notebook.problem:
            unreadable[name] = notebook.problem
            result.flags.append(Flag("unreadable", f"{name}: {notebook.problem}"))
            continue
        result.flags += [Flag("oddity", f"{name}: {oddity}") for oddity in notebook.oddities]
        if words := _unknown_marks(notebook.cells):
            result.flags.append(Flag("unknown_exercise", f"{name} marks cells as {words}"))
        files.insert(0, _File(name, notebook.cells, spaces))
    if not submission.files:
        unreadable[""] = "; ".join(flag.message for flag in submission.flags) or "no file at all"
    for file in files:
        result.notebooks |= file.chapters
    _find_answers(result, files, spaces, unreadable)
    return result


def _unknown_marks(cells: list[Cell]) -> str:
    unknown = {c.exercise for c in cells if c.exercise and c.exercise not in BY_ID}
    names = ", ".join(repr(clean_name(id))[:40] for id in sorted(unknown)[:5])
    return names and f"{names}; by name, then"


# --- choosing ------------------------------------------------------------------------------------


def _find_answers(
    result: Extraction,
    files: list[_File],
    spaces: dict[str, dict[int, Statement]],
    unreadable: dict[str, str],
) -> None:
    index = _Index(spaces)
    bound = set().union(*(file.bound for file in files))
    choices = {exercise.id: _choose(exercise, files) for exercise in EXERCISES}
    own = {
        id: found[0].space for id, (found, _) in choices.items() if found and found[0].is_attempt
    }
    for exercise in EXERCISES:
        chosen, flags = choices[exercise.id]
        if chosen:
            result.answers[exercise.id] = _build_answer(exercise, chosen, flags, index, own, bound)
        else:
            problem = _explain_absence(exercise, files, unreadable, result.notebooks)
            result.problems[exercise.id] = problem


def _choose(exercise: Exercise, files: list[_File]) -> tuple[list[_Definition], list[Flag]]:
    """Choose the definitions to try, the one that counts first, and say what is odd about them.

    Code counts before cells that are no code. A stub is chosen only if there is no attempt.
    """
    home = [file for file in files if exercise.stem in file.chapters]
    stubs: list[_Definition] = []
    for group in (home, [file for file in files if file not in home]):
        found = [each for file in group for each in file.definitions.get(exercise.id, ())]
        attempts = [each for each in found if each.is_attempt]
        if attempts:
            flags = []
            if len(attempts) > 1:
                places = ", ".join(f"{e.file.name} cell {e.cell + 1}" for e in attempts[:5])
                words = f"{len(attempts)} answers ({places}); the last code is graded"
                flags.append(Flag("duplicate", words))
            if group is not home:
                words = f"found in {attempts[-1].file.name}, which holds another notebook"
                flags.append(Flag("elsewhere", f"{words}; it counts"))
            as_code = [each for each in attempts if each.file.cells[each.cell].kind == "code"]
            most = 1 if exercise.kind == "value" else MAX_TARGETS
            return (as_code or attempts)[: -most - 1 : -1], flags
        stubs = stubs or (found[:-2:-1] if group is home else [])
    return stubs, []


def _build_answer(
    exercise: Exercise,
    chosen: list[_Definition],
    flags: list[Flag],
    index: "_Index",
    own: dict[str, str],
    bound: set[str],
) -> Answer:
    """Make an answer from its definitions and all that they may need."""
    first = chosen[0]
    file, number = first.file, first.cell + 1
    cell, parsed = file.cells[first.cell], file.parsed[first.cell]
    if not cell.exercise:
        words = f"cell {number} of {file.name} has no exercise in its metadata"
        flags.append(Flag("found_by_name", words))
    if cell.kind != "code":
        flags.append(Flag("not_code", f"the answer stands in a {clean_name(cell.kind)[:20]} cell"))
    if parsed.magics:
        flags.append(Flag("magics", f"{parsed.magics} lines of IPython's were taken out of it"))
    targets = [(each.space, each.place) for each in chosen]
    spaces = index.collect(targets)
    names = {name for places in spaces.values() for each in places.values() for name in each.reads}
    program = Program(
        spaces=spaces,
        targets=targets,
        mocks={n: code for n, code in MOCKS.get(exercise.id, {}).items() if n in names},
        uses=sorted(names & BY_ID.keys() - {exercise.id}),
        own={id: own[id] for id in sorted(names & own.keys() - {exercise.id})},
        bound=sorted(names & bound),
    )
    source = "\n".join(parsed.lines).strip("\n") if not parsed.module else cell.source
    answer = Answer(exercise.id, source, file.name, (), number, program)
    return replace(answer, flags=(*flags, *scan_answer(answer)), runs=token_runs(answer))


class _Index:
    """Finds the statements that others may need, by the names that they read.

    It errs on the side of too many: what is not read is never run.
    """

    def __init__(self, spaces: dict[str, dict[int, Statement]]):
        self.spaces = spaces
        self.makers = {space: Makers(statements) for space, statements in spaces.items()}
        self.always = defaultdict(list)  # space -> places of star imports and features
        self.calls = defaultdict(list)  # (space, cell) -> places of calls that show nothing
        for space, statements in spaces.items():
            for place, statement in statements.items():
                if {"star", "future"} & set(statement.marks):
                    self.always[space].append(place)
                if "call" in statement.marks and "display" not in statement.marks:
                    self.calls[space, statement.cell].append(place)

    def collect(self, targets: list[tuple[str, int]]) -> dict[str, dict[int, Statement]]:
        """Return space -> place -> statement of what statements may need, with these."""
        work = list(targets)
        seen: set[tuple[str, int]] = set()
        done: dict[tuple, float] = {}  # (space, name, where its value begins) -> up to where
        ends: dict[str, float] = {}  # space -> place of the answer
        for space, place in targets:
            ends.setdefault(space, place)
            name_makers = self.makers[space].changers
            for name in self.spaces[space][place].binds:
                work += [(space, p) for p in name_makers.get(name, ()) if p > place]
        while work:
            space, place = work.pop()
            if (space, place) in seen:
                continue
            seen.add((space, place))
            statement = self.spaces[space][place]
            if space not in ends or (space, place) == targets[0]:
                ends.setdefault(space, math.inf)
                work += [(space, each) for each in self.always[space]]
            if "value" in statement.marks:
                names = set(statement.reads)
                for p in self.calls[space, statement.cell]:
                    call = self.spaces[space][p]
                    if p < place and ("seed" in call.marks or not names.isdisjoint(call.reads)):
                        work.append((space, p))
            for name in {*statement.reads, *statement.changes}:
                for before in {float(place), ends[space]}:
                    makers_here = self.makers[space]
                    value = space, name, makers_here.start(name, before)
                    if done.get(value, -1.0) >= before:
                        continue  # all of it is known
                    done[value] = before
                    found = [(space, p) for p in makers_here.find(name, before)]
                    if name not in makers_here.binders:  # from another notebook
                        for other, makers in self.makers.items():
                            if other != space and (other, name) not in done:
                                done[other, name] = math.inf
                                found += [(other, p) for p in makers.find(name, math.inf)]
                    work += [each for each in found if each not in seen]
            if "import" in statement.marks:  # of a module that a cell writes
                for name in self.spaces.keys() & set(_WORD.findall(statement.text)) - {space}:
                    work += [(name, each) for each in self.spaces[name]]
        needed: dict[str, dict[int, Statement]] = {space: {} for space, _ in targets}
        for space, place in sorted(seen):
            needed.setdefault(space, {})[place] = self.spaces[space][place]
        return needed


# --- what is missing -----------------------------------------------------------------------------


def _explain_absence(
    exercise: Exercise, files: list[_File], unreadable: dict[str, str], present: set[str]
) -> tuple[str, str]:
    id, notebook = exercise.id, exercise.stem
    words = f"def {id}(", f"class {id}(", f"class {id}:", f"{id} ="
    for file in files:
        for number, (cell, parsed) in enumerate(zip(file.cells, file.parsed, strict=True), 1):
            is_marked = cell.exercise == id
            if parsed.error and (is_marked or any(word in cell.source for word in words)):
                return "syntax", f"cell {number} of {file.name}: {parsed.error}"
            if is_marked and not cell.source.strip():
                return "no_cell", f"its cell in {file.name} is empty"
            if is_marked and _is_own_mark(cell, parsed):
                return "no_cell", f"its cell in {file.name} does not define {id}"
    for name, problem in unreadable.items():
        about, is_missing = stem_of(name), notebook not in present
        # an older edition has both files of a notebook in one
        if about == notebook or (is_missing and about in ("", exercise.notebook)):
            return "unreadable", f"{name}: {problem}" if name else problem
    if notebook not in present:
        return NOT_HANDED_IN, f"no file holds notebook {notebook}"
    return "no_cell", ""
