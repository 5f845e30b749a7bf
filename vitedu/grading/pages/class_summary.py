"""The numbers of a class for the instructor's page.

Role: ``summarise`` reads grades one at a time and returns counts, a row for each student, and what
a person must look at. ``class_report`` makes the page of it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from vitedu.grading.grades import NOT_GRADABLE, PASSED, REASONS, Flag
from vitedu.grading.grades import SubmissionGrade as Grade
from vitedu.grading.pages.skeleton import grade_kind

# flags that only say how an answer was found; a person should look at all others
HARMLESS_FLAGS = set(
    "found_by_name duplicate conflict not_code magics renamed two_files other_file layout oddity "
    "unknown_exercise".split()
)
IF_FAILED = {"left_out"}  # shown only if the answer did not pass, because it may be the cause
IF_POINTS = {"like_reference", "undecided"}  # shown only if the answer earned points

FLAG_LABELS = {
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

OPEN_LABEL = "could not be graded"


@dataclass
class StudentRow:
    """One student on the page."""

    student: str
    points: float
    open_points: float
    cells: dict[str, tuple[str, float | None]]  # exercise -> (key of ``skeleton.SIGNS``, points)
    concerns: list[tuple[str, str]]  # why a person should look: (label, evidence)


@dataclass
class Summary:
    """The numbers of a class."""

    rows: list[StudentRow] = field(default_factory=list)
    kinds: dict[str, Counter] = field(default_factory=lambda: defaultdict(Counter))
    mistakes: Counter = field(default_factory=Counter)  # (exercise, id) -> number of students
    levels: Counter = field(default_factory=Counter)
    versions: set[str] = field(default_factory=set)
    problems: Sequence[Flag] = ()  # files that belong to no student
    faults: Counter = field(default_factory=Counter)  # faults of the grader -> number of answers
    runs: set[int] = field(default_factory=set)
    seconds: float = 0.0
    max_points: float = 0.0


def summarise(
    grades: Iterable[Grade],
    class_flags: Mapping[str, Sequence[Flag]],
    problems: Sequence[Flag] = (),
) -> Summary:
    """Read grades one at a time and keep what the page needs."""
    summary = Summary(problems=problems)
    for grade in grades:
        cells = {each.exercise: (grade_kind(each), each.points) for each in grade.exercises}
        for each in grade.exercises:
            summary.kinds[each.exercise][grade_kind(each)] += 1
            summary.mistakes.update({(each.exercise, id) for id in each.misconceptions})
            if each.runs:
                summary.runs.add(each.runs)
            if each.reason == "grader":
                summary.faults[each.detail] += 1
        concerns = _list_concerns(grade, class_flags.get(grade.student, ()))
        summary.rows.append(
            StudentRow(grade.student, grade.points, grade.open_points, cells, concerns)
        )
        summary.levels[grade.isolation] += 1
        summary.versions.add(", ".join(f"{name} {v}" for name, v in grade.versions.items()))
        summary.seconds += grade.seconds
        summary.max_points = max(summary.max_points, grade.max_points)
    return summary


def _list_concerns(grade: Grade, class_flags: Sequence[Flag]) -> list[tuple[str, str]]:
    """List why a person should look at a submission, with one line for each reason."""
    reasons = defaultdict(list)  # (label, words) -> exercises
    for each in grade.exercises:
        if each.state == NOT_GRADABLE:
            detail = f" ({each.detail})" if each.detail else ""
            reasons[OPEN_LABEL, REASONS[each.reason] + detail].append(each.exercise)
    for each in grade.exercises:
        for flag in each.flags:
            skip = flag.kind in HARMLESS_FLAGS or (flag.kind in IF_FAILED and each.state == PASSED)
            skip = skip or (flag.kind in IF_POINTS and not each.points)
            if not skip:
                reasons[FLAG_LABELS.get(flag.kind, flag.kind), flag.message].append(each.exercise)
    for flag in [*grade.flags, *class_flags]:
        if flag.kind not in HARMLESS_FLAGS:
            reasons[FLAG_LABELS.get(flag.kind, flag.kind), flag.message] += []
    return [
        (label, f"{_write_names(exercises, len(grade.exercises))}{words}")
        for (label, words), exercises in reasons.items()
    ]


def _write_names(exercises: list[str], n: int) -> str:
    exercises = list(dict.fromkeys(exercises))
    if not exercises:
        return ""
    return f"all {n} exercises: " if len(exercises) == n > 2 else f"{', '.join(exercises)}: "
