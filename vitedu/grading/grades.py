"""The data that the parts of the grader exchange: answers as text, grades as plain data.

Role: ``Answer`` and ``Submission`` before grading, ``ExerciseGrade`` and ``SubmissionGrade`` after
it, grades as JSON, and a student's name as a file name and as a cell. Loads without torch.

An exercise has one of three states. ``passed`` has full points, but for those of its remarks.
``failed`` has points for the parts that passed. ``not_gradable`` has a reason and no points at all,
so that no export takes it for a 0.
"""

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Container
from dataclasses import dataclass, field, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from vitedu.exercises import BY_ID, EXERCISES, Exercise
from vitedu.ground import words

PASSED, FAILED, NOT_GRADABLE = STATES = ("passed", "failed", "not_gradable")

WORDS = words.read(Path(__file__).with_name("words.toml"))
# why something cannot be graded: word -> what an instructor reads
REASONS = {reason: table["meaning"] for reason, table in WORDS["reasons"].items()}

# not one of REASONS: if a whole notebook is missing, its exercises earn 0 and are not open
NOT_HANDED_IN = "not handed in"


@dataclass(frozen=True)
class Flag:
    """Something that a person may want to look at. A flag never changes points."""

    kind: str  # one word, such as "duplicate", "dangerous" or "similar"
    message: str  # one sentence with the evidence


@dataclass(frozen=True)
class Answer:
    """What a person reads of one exercise."""

    exercise: str  # id of the syllabus
    source: str  # its cell
    notebook: str = ""  # name of its file
    flags: tuple[Flag, ...] = ()
    cell: int = 0  # number of its cell in the notebook, from 1; 0: no cell defines its name
    # what ``flags`` compares: how many tokens of it are the student's own, and a digest of all
    tokens: int = 0
    digest: str = ""


@dataclass(frozen=True)
class ScriptCell:
    """A cell that runs."""

    number: int  # in its notebook, from 1
    source: str  # IPython's own syntax as Python
    is_own: bool = True  # whether the student wrote it; the course's own change no answer


@dataclass
class Script:
    """A notebook, to be run from top to bottom. Plain data."""

    name: str  # of its file
    cells: list[ScriptCell]
    stems: list[str]  # of the course's files that it holds
    # exercise -> places in ``cells`` that define its name, and that check it
    defines: dict[str, list[int]]
    checks: dict[str, list[int]]
    order: list[int] | None  # places in the order in which they ran, if that is another one
    passes: dict[str, int]  # exercise -> number of the cell whose stored output says passed
    files: dict[str, str]  # Python files beside it, and those that cells write
    blank: list[str] = field(default_factory=list)  # exercises whose marked cell has no code


@dataclass(frozen=True)
class Submission:
    """What one student handed in."""

    student: str  # the name in the file or folder
    files: tuple[Path, ...]  # notebooks, oldest first
    # ids that a learning platform put into the name
    identity: dict[str, str] = field(default_factory=dict)
    flags: tuple[Flag, ...] = ()  # what is odd about the files; ``extract`` copies them
    place: str = ""  # the path that names the student, below the folder that is graded


@dataclass
class ExerciseGrade:
    """The outcome of one exercise for one student."""

    exercise: str
    state: str  # one of STATES
    max_points: float
    points: float | None = None  # None if and only if the state is "not_gradable"
    reason: str = ""  # a key of REASONS if not gradable, else ""
    detail: str = ""  # the reason in full, with numbers
    attempted: bool = True  # False: the stub is unchanged, which earns 0
    headline: str = ""  # first line of the checker's report
    lines: list[list[str]] = field(default_factory=list)  # [label, text] of the report
    # each with name, passed, skipped, polish, points, max_points, message
    findings: list[dict[str, Any]] = field(default_factory=list)
    misconceptions: list[str] = field(default_factory=list)  # ids of recognised mistakes
    picture: str = ""  # SVG of the counterexample, drawn by the parent
    printed: str = ""  # the beginning of what the answer printed
    flags: list[Flag] = field(default_factory=list)
    code: str = ""  # the cell of an answer that did not pass
    place: str = ""  # file and number of that cell
    comment: str = ""  # of the person who decided about the points
    decided_by: str = ""  # the name of that person, or of the file that says so
    runs: int = 0  # number of runs, each in another process
    seconds: float = 0.0  # wall-clock time of all runs
    digest: str = ""  # ``batch.digest``; if it changes, the exercise is graded again
    seed: int = 0  # of the secret inputs; the same seed repeats the grading

    def __post_init__(self):
        if self.state not in STATES:
            raise ValueError(f"state must be one of {', '.join(STATES)} (got {self.state!r}).")
        if (self.points is None) != (self.state == NOT_GRADABLE):
            raise ValueError(f"{self.exercise}: {self.state} does not fit points={self.points}.")
        if self.state == NOT_GRADABLE and self.reason not in REASONS:
            raise ValueError(f"{self.exercise}: unknown reason {self.reason!r}.")


@dataclass
class SubmissionGrade:
    """Everything known about one submission after grading: the content of its JSON file."""

    student: str
    files: list[str]  # names only: paths would tell about the grader's machine
    digest: str  # of the last grading; an exercise has its own
    seed: int  # of the last grading; an exercise has its own
    isolation: str  # "full", "partial: ..." or "none"
    exercises: list[ExerciseGrade]
    flags: list[Flag] = field(default_factory=list)  # about the submission as a whole
    identity: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)  # vitedu, torch, python
    seconds: float = 0.0
    deductions: dict[str, float] = field(default_factory=dict)  # notebook -> points, for lateness

    @property
    def points(self) -> float:
        """Points earned so far, without open exercises (see ``open_points``)."""
        earned: dict[str, float] = defaultdict(float)
        for grade in self.exercises:
            earned[BY_ID[grade.exercise].notebook] += grade.points or 0.0
        rest = (max(own - self.deductions.get(name, 0.0), 0.0) for name, own in earned.items())
        return round(sum(rest), 2)

    @property
    def max_points(self) -> float:
        """Points that could be earned."""
        return sum(grade.max_points for grade in self.exercises)

    @property
    def open_points(self) -> float:
        """Points of exercises that are not gradable, which a person must decide."""
        return sum(g.max_points for g in self.exercises if g.state == NOT_GRADABLE)

    @property
    def core(self) -> "SubmissionGrade":
        """The grade of the core exercises alone."""
        return self.limit_to({exercise.id for exercise in EXERCISES if exercise.core})

    def limit_to(self, ids: Container[str]) -> "SubmissionGrade":
        """Return a copy with some exercises only."""
        return replace(self, exercises=[each for each in self.exercises if each.exercise in ids])


_hints = cache(get_type_hints)


def from_plain(hint: Any, data: Any) -> Any:
    """Make a value of this type from what JSON keeps of ``dataclasses.asdict``.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: the data has another form.
    """
    kind: Any = get_origin(hint) or hint
    inner = get_args(hint)
    if is_dataclass(kind) and isinstance(kind, type):
        hints = _hints(kind)
        return kind(**{name: from_plain(hints[name], each) for name, each in data.items()})
    if kind is dict:
        return {name: from_plain(inner[1], each) for name, each in data.items()}
    if kind is tuple and inner[-1] is not ...:
        return tuple(map(from_plain, inner, data))
    if kind in (list, set, tuple):
        return kind(from_plain(inner[0], each) for each in data)
    return Path(data) if kind is Path else data


def not_gradable(exercise: Exercise, reason: str, detail: str = "") -> ExerciseGrade:
    """Make the grade of an exercise that a person must decide, with the reason."""
    points = float(exercise.points)
    return ExerciseGrade(exercise.id, NOT_GRADABLE, points, reason=reason, detail=detail)


def not_handed_in(exercise: Exercise, detail: str) -> ExerciseGrade:
    """Make the grade of an exercise whose whole notebook was not handed in: 0 points."""
    own: dict[str, Any] = {"detail": detail, "attempted": False, "headline": NOT_HANDED_IN}
    return ExerciseGrade(exercise.id, FAILED, float(exercise.points), 0.0, **own)


# --- names and texts -----------------------------------------------------------------------------

FORMULA = tuple("=+-@|＝＋－＠")  # signs with which a formula begins in some spreadsheet
SPLITTING = str.maketrans({";": "；", '"': "”", "\t": " "})
MAX_CELL = 1000  # the most characters of a cell; spreadsheets accept 32,767
_DIRECTIONS = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C}


def clean(text: str) -> str:
    """Replace control characters, lone surrogates, and marks that change the writing direction.

    Example:
        >>> clean("a\\x1b[31mb\\u202ec\\ttab")
        'a�[31mb�c\\ttab'
    """
    return "".join(
        "�"
        if (unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t") or ord(c) in _DIRECTIONS
        else c
        for c in text.replace("\r\n", "\n")
    )


def safe_cell(text: str) -> str:
    """Make text that a spreadsheet shows in one cell and does not compute.

    A cell that begins like a formula, also after spaces, gets an apostrophe in front, and so does
    one that begins with an apostrophe: two names never make one cell. Line ends become spaces, and
    semicolons and quotes their wide forms, because quoting stops no program that splits at ``;``.

    Example:
        >>> [safe_cell(text) for text in ("=1+1", " @SUM(A1)", "Anna-Lena", "a;=1\\tb\\r\\nc")]
        ["'=1+1", "' @SUM(A1)", 'Anna-Lena', 'a；=1 b c']
    """
    flat = " ".join(clean(text[:MAX_CELL]).translate(SPLITTING).splitlines())
    visible = (c for c in flat if unicodedata.category(c) not in ("Cf", "Zs"))
    begins = text[:1] in ("\t", "\r", "\n") or next(visible, "") in FORMULA
    return f"'{flat}" if begins or flat.startswith("'") else flat


def safe_name(student: str) -> str:
    """Make a file name for a student: ASCII letters of the name, and a digest that is unique.

    It is safe for any name: paths, Windows' reserved names, any length, any script, and file
    systems that ignore letter case.

    Example:
        >>> safe_name("../../Zoë Müller")
        'zoe-muller-716e91db1b3d'
    """
    digest = hashlib.sha256(student.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    ascii_only = unicodedata.normalize("NFKD", student).encode("ascii", "ignore").decode()
    letters = re.sub(r"[^a-z0-9]+", "-", ascii_only.lower()).strip("-")[:40].strip("-")
    return f"{letters or 'student'}-{digest}"
