"""A class in numbers: what the instructor's page is drawn from.

Role: ``summarise`` (grades, one after the other -> counts, a row a student, who needs a person and why). Standard library
alone. Not here: how it looks (``class_report``).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from vitedu.grading.grades import NOT_GRADABLE, PASSED, REASONS, Flag
from vitedu.grading.grades import SubmissionGrade as Grade
from vitedu.grading.pages.skeleton import look

# flags that only say how an answer was found; all others are for a person
HARMLESS = set(
    "found_by_name duplicate conflict not_code magics renamed two_files other_file layout oddity unknown_exercise".split()
)
IF_NOT_PASSED = {"left_out"}  # matters where the answer failed, perhaps for want of it

IF_POINTS = {"like_reference", "undecided"}  # nothing is to be decided about an answer with 0

KINDS = {
    "similar": "nearly the same answers as somebody else's",
    "like_reference": "the published reference",
    "forbidden_name": "names what the exercise forbids",
    "dangerous": "reaches for what no answer needs",
    "unstable": "differs between runs",
    "late": "handed in late",
    "left_out": "failed without something that could not come along",
    "unreadable": "a file that cannot be read",
    "no_notebook": "no notebook handed in",
    "archive": "an archive, not unpacked",
    "link": "a link, not followed",
    "empty_folder": "an empty folder",
}

OPEN = "could not be graded"


@dataclass
class StudentRow:
    """One student, in what the page needs."""

    student: str
    points: float
    open_points: float
    cells: dict[str, tuple[str, float | None]]  # exercise -> look, points
    concerns: list[tuple[str, str]]  # why a person should look: label, evidence


@dataclass
class Summary:
    """A class in numbers."""

    rows: list[StudentRow] = field(default_factory=list)
    looks: dict[str, Counter] = field(default_factory=lambda: defaultdict(Counter))
    mistakes: Counter = field(default_factory=Counter)  # (exercise, id) -> students
    levels: Counter = field(default_factory=Counter)
    versions: set[str] = field(default_factory=set)
    problems: Sequence[Flag] = ()  # what was handed in under no name
    faults: Counter = field(default_factory=Counter)  # of the grader itself: words -> answers
    runs: set[int] = field(default_factory=set)
    seconds: float = 0.0
    max_points: float = 0.0


def summarise(
    grades: Iterable[Grade],
    class_flags: Mapping[str, Sequence[Flag]],
    problems: Sequence[Flag] = (),
) -> Summary:
    """Read grades one after the other and keep what the page needs."""
    summary = Summary(problems=problems)
    for grade in grades:
        cells = {each.exercise: (look(each), each.points) for each in grade.exercises}
        for each in grade.exercises:
            summary.looks[each.exercise][look(each)] += 1
            summary.mistakes.update({(each.exercise, id) for id in each.misconceptions})
            if each.runs:
                summary.runs.add(each.runs)
            if each.reason == "grader":
                summary.faults[each.detail] += 1
        concerns = _concerns(grade, class_flags.get(grade.student, ()))
        summary.rows.append(
            StudentRow(grade.student, grade.points, grade.open_points, cells, concerns)
        )
        summary.levels[grade.isolation] += 1
        summary.versions.add(", ".join(f"{name} {v}" for name, v in grade.versions.items()))
        summary.seconds += grade.seconds
        summary.max_points = max(summary.max_points, grade.max_points)
    return summary


def _concerns(grade: Grade, class_flags: Sequence[Flag]) -> list[tuple[str, str]]:
    """Say why a person should look, one line for all exercises of which the same is to be said."""
    said = defaultdict(list)  # (label, words) -> exercises
    for each in grade.exercises:
        if each.state == NOT_GRADABLE:
            detail = f" ({each.detail})" if each.detail else ""
            said[OPEN, REASONS[each.reason] + detail].append(each.exercise)
    for each in grade.exercises:
        for flag in each.flags:
            idle = flag.kind in HARMLESS or (flag.kind in IF_NOT_PASSED and each.state == PASSED)
            idle = idle or (flag.kind in IF_POINTS and not each.points)
            if not idle:
                said[KINDS.get(flag.kind, flag.kind), flag.message].append(each.exercise)
    for flag in [*grade.flags, *class_flags]:
        if flag.kind not in HARMLESS:
            said[KINDS.get(flag.kind, flag.kind), flag.message] += []
    return [
        (label, f"{_names(exercises, len(grade.exercises))}{words}")
        for (label, words), exercises in said.items()
    ]


def _names(exercises: list[str], of: int) -> str:
    exercises = list(dict.fromkeys(exercises))
    if not exercises:
        return ""
    return f"all {of} exercises: " if len(exercises) == of > 2 else f"{', '.join(exercises)}: "
