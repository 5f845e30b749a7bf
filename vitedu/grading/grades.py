"""What the parts of the grader hand to each other: answers as text, grades as plain data.

Role: ``Answer`` and ``Submission`` (before grading), ``ExerciseGrade`` and ``SubmissionGrade`` (after), and how grades
become JSON and come back. Standard library alone. Not here: how any of them comes about.

Three states, never two: an exercise was ``passed``, or it ``failed`` and has points for what held, or it is
``not_gradable`` and has a reason and no points at all, so that no export can take it for a 0.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path

PASSED, FAILED, NOT_GRADABLE = "passed", "failed", "not_gradable"
STATES = (PASSED, FAILED, NOT_GRADABLE)

# why something cannot be graded: word -> what an instructor reads
REASONS = {
    "unreadable": "the file is no notebook that can be read",
    "no_cell": "no cell answers this exercise and no cell defines its name",
    "syntax": "the answer is not valid Python",
    "import": "the code around the answer cannot be run",
    "timeout": "the answer did not come to an end and would not be interrupted",
    "memory": "the answer asked for more memory than a worker may have",
    "crashed": "the answer ended the process that ran it",
    "flooded": "the answer wrote more than a reply may hold",
    "protocol": "the worker's reply could not be understood",
    "unstable": "fresh processes disagreed about the answer",
    "grader": "the grader itself failed; this is no fault of the answer",
}

# no reason to leave points open: a whole notebook that is not there earns 0
NOT_HANDED_IN = "not handed in"


@dataclass(frozen=True)
class Flag:
    """Something that a person may want to look at. A flag alone never changes a point."""

    kind: str  # one word: "found_by_name", "duplicate", "forbidden_name", "like_reference", "similar", ...
    message: str  # one sentence with the evidence


@dataclass(frozen=True)
class Answer:
    """The code of one exercise, as text."""

    exercise: str  # id of the syllabus
    source: str  # the answer cell
    support: str = ""  # imports, helper definitions and literal constants of the notebook, in order
    found_by: str = "metadata"  # or "name", where an editor dropped the metadata
    notebook: str = ""  # name of the file that it came from
    flags: tuple[Flag, ...] = ()
    cell: int = 0  # number of its cell in the notebook, from 1
    bound: tuple[str, ...] = ()  # names that it reads and that its notebook binds somewhere


@dataclass(frozen=True)
class Submission:
    """What one student handed in."""

    student: str  # as the file or folder calls them
    files: tuple[Path, ...]  # notebooks, oldest first
    identity: dict[str, str] = field(
        default_factory=dict
    )  # what a learning platform's name told: ids
    flags: tuple[Flag, ...] = ()  # what was odd about the files; ``extract`` hands it on


@dataclass
class ExerciseGrade:
    """The outcome of one exercise for one student."""

    exercise: str
    state: str  # one of STATES
    max_points: float
    points: float | None = None  # None exactly where the state is "not_gradable"
    reason: str = ""  # a key of REASONS where not gradable, else ""
    detail: str = ""  # the reason in full, with numbers
    attempted: bool = True  # False: the stub was left as it was, which earns 0
    headline: str = ""  # first line of the checker's report
    lines: list[list[str]] = field(
        default_factory=list
    )  # [label, text] of the report, no reference values
    findings: list[dict] = field(
        default_factory=list
    )  # name, passed, skipped, points, max_points, message
    misconceptions: list[str] = field(default_factory=list)  # ids of recognised mistakes
    picture: str = ""  # SVG of the counterexample, drawn by the parent
    printed: str = ""  # the first characters of what the answer printed
    flags: list[Flag] = field(default_factory=list)
    code: str = ""  # the cell of an answer that did not pass
    place: str = ""  # file and number of that cell
    comment: str = ""  # of the person who decided about an open exercise
    decided_by: str = ""  # who that was
    runs: int = 0  # how often it ran, each time in another process
    seconds: float = 0.0  # wall clock of all of them

    def __post_init__(self):
        if self.state not in STATES:
            raise ValueError(f"state must be one of {', '.join(STATES)} (got {self.state!r}).")
        if (self.points is None) != (self.state == NOT_GRADABLE):
            raise ValueError(
                f"{self.exercise}: points and state do not fit (got state={self.state!r}, points={self.points})."
            )
        if self.state == NOT_GRADABLE and self.reason not in REASONS:
            raise ValueError(f"{self.exercise}: unknown reason {self.reason!r}.")


@dataclass
class SubmissionGrade:
    """All that is known of one submission after grading: the content of its JSON file."""

    student: str
    files: list[str]  # names, not paths: nothing of the grader's machine leaves with a grade
    digest: str  # SHA-256 over the files, so that a changed submission is graded anew
    seed: int  # of the secret inputs; the same seed repeats the same grading
    isolation: str  # "full", "partial: ..." or "none"
    exercises: list[ExerciseGrade]
    flags: list[Flag] = field(default_factory=list)  # about the submission as a whole
    identity: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)  # vitedu, torch, python
    seconds: float = 0.0

    @property
    def points(self) -> float:
        """Points earned so far; what is not gradable is not in it (see ``open_points``)."""
        return round(sum(grade.points or 0.0 for grade in self.exercises), 2)

    @property
    def max_points(self) -> float:
        """Points that could be earned."""
        return sum(grade.max_points for grade in self.exercises)

    @property
    def open_points(self) -> float:
        """Points that wait for a person, since their exercises are not gradable."""
        return sum(g.max_points for g in self.exercises if g.state == NOT_GRADABLE)

    def to_dict(self) -> dict:
        """Return plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict) -> "SubmissionGrade":
        """Read back what ``to_dict`` gave.

        Raises:
            KeyError, TypeError, ValueError: it is not such data.
        """
        data = dict(data)
        data["flags"] = [Flag(**flag) for flag in data["flags"]]
        data["exercises"] = [
            ExerciseGrade(**{**grade, "flags": [Flag(**flag) for flag in grade["flags"]]})
            for grade in data["exercises"]
        ]
        return cls(**data)
