"""The page for the instructor: what to teach again, who needs most, and what a person must look at.

Role: ``summarise`` reads grades one at a time and keeps counts and a row for each student;
``report_page`` makes one HTML page of them. Every number that is shown, here or in the terminal,
comes from ``Summary``. The words about ideas and mistakes are the checkers'.
``templates/class_report.html`` has the layout.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from statistics import mean, median

from vitedu.exercises import Exercise, find
from vitedu.grading.grades import FAILED, NOT_GRADABLE, PASSED, REASONS, ExerciseGrade, Flag
from vitedu.grading.grades import SubmissionGrade as Grade
from vitedu.grading.pages.skeleton import SIGNS, count, grade_kind, number, render, text

# flags that only say how an answer was found; a person should look at all others
HARMLESS_FLAGS = set(
    "found_by_name duplicate conflict not_code magics renamed two_files other_file layout oddity "
    "unknown_exercise ambiguous".split()
)
IF_FAILED = {"left_out"}  # shown only if the answer did not pass, because it may be the cause
IF_POINTS = {"like_reference", "undecided"}  # shown only if the answer earned points

FLAG_LABELS = {
    "similar": "nearly the same answers as somebody else's",
    "like_reference": "the published reference, names and layout aside",
    "dangerous": "reaches for what no answer needs",
    "unstable": "differs between runs",
    "late": "handed in late",
    "left_out": "failed without something that could not come along",
    "unreadable": "a file that cannot be read",
    "no_notebook": "no notebook handed in",
    "archive": "an archive, not unpacked",
    "link": "a link, not followed",
    "empty_folder": "an empty folder",
    "stale": "graded from an earlier hand-in or by another version",
}
OPEN_LABEL = "could not be graded"

MAX_BARS = 16  # in the distribution of points
MAX_MISTAKES = 3  # of an exercise
MAX_IDEAS = 3  # to teach again
STEPS = (1, 2, 5, 10, 20, 50, 100, 200)  # possible widths of a bar, in points


@dataclass
class StudentRow:
    """One student on the page."""

    student: str
    points: float
    core_points: float
    open_points: float
    num_exercises: int  # with a grade
    is_final: bool  # whether all exercises have points
    cells: dict[str, tuple[str, float | None]]  # exercise -> (key of ``skeleton.SIGNS``, points)
    concerns: list[tuple[str, str]]  # why a person should look: (label, evidence)

    def earned(self, exercises: Sequence[Exercise]) -> float:
        """Add up the points of some exercises."""
        return sum(self.cells.get(each.id, ("", 0))[1] or 0.0 for each in exercises)

    @property
    def order(self) -> tuple[float, float, str]:
        """The key that sorts by need: whoever misses most of the core comes first."""
        return self.core_points, self.points, self.student


@dataclass
class Summary:
    """The numbers of a class."""

    exercises: Sequence[Exercise]
    rows: list[StudentRow] = field(default_factory=list)
    kinds: dict[str, Counter] = field(default_factory=lambda: defaultdict(Counter))
    tried: Counter = field(default_factory=Counter)  # exercise -> students with a judged answer
    # (exercise, first part that fails) -> students
    missed: Counter = field(default_factory=Counter)
    mistakes: Counter = field(default_factory=Counter)  # (exercise, id) -> students
    levels: Counter = field(default_factory=Counter)
    versions: set[str] = field(default_factory=set)
    problems: Sequence[Flag] = ()  # files that belong to no student
    faults: Counter = field(default_factory=Counter)  # faults of the grader -> number of answers
    runs: set[int] = field(default_factory=set)
    seconds: float = 0.0

    @property
    def max_points(self) -> float:
        return sum(exercise.points for exercise in self.exercises)

    @property
    def core_max(self) -> float:
        return sum(exercise.points for exercise in self.exercises if exercise.core)

    @property
    def final(self) -> list[StudentRow]:
        """The students of whom all points are known; mean and median are theirs."""
        return [row for row in self.rows if row.is_final]

    def average(self, kind=mean, name: str = "points") -> str:
        """Write the mean or median of the final points; "–" if nobody's are final."""
        return number(kind(getattr(row, name) for row in self.final)) if self.final else "–"


def summarise(
    grades: Iterable[Grade], exercises: Sequence[Exercise], problems: Sequence[Flag] = ()
) -> Summary:
    """Read grades one at a time and keep what the page needs."""
    summary = Summary(exercises, problems=problems)
    for grade in grades:
        cells = {each.exercise: (grade_kind(each), each.points) for each in grade.exercises}
        for each in grade.exercises:
            summary.kinds[each.exercise][grade_kind(each)] += 1
            summary.mistakes.update({(each.exercise, id) for id in each.misconceptions})
            summary.tried[each.exercise] += each.attempted and each.points is not None
            if each.state == FAILED and each.attempted and not each.decided_by:
                failed = (f for f in each.findings if not (f["passed"] or f.get("polish")))
                summary.missed[each.exercise, next((f["name"] for f in failed), "")] += 1
            if each.runs:
                summary.runs.add(each.runs)
            if each.reason == "grader":
                summary.faults[each.detail] += 1
        is_final = not grade.open_points and len(cells) == len(exercises)
        points = grade.points, grade.core.points, grade.open_points
        row = StudentRow(grade.student, *points, len(cells), is_final, cells, _list_concerns(grade))
        summary.rows.append(row)
        summary.levels[grade.isolation] += 1
        summary.versions.add(", ".join(f"{name} {v}" for name, v in grade.versions.items()))
        summary.seconds += grade.seconds
    summary.rows.sort(key=lambda row: row.order)
    return summary


def _list_concerns(grade: Grade) -> list[tuple[str, str]]:
    """List why a person should look at a submission, with one line for each reason."""
    reasons = defaultdict(list)  # (label, words) -> exercises
    for each in grade.exercises:
        if each.state == NOT_GRADABLE:
            detail = f" ({each.detail})" if each.detail else ""
            reasons[OPEN_LABEL, REASONS[each.reason] + detail].append(each.exercise)
    flags: list[tuple[ExerciseGrade | None, Flag]] = [(None, flag) for flag in grade.flags]
    flags[:0] = [(each, flag) for each in grade.exercises for flag in each.flags]
    for answer, flag in flags:
        if answer:
            skip = flag.kind in IF_FAILED and answer.state == PASSED
            skip = skip or (flag.kind in IF_POINTS and not answer.points)
        else:
            skip = any(flag.message in words for _, words in reasons)  # said of the exercises
        if not skip and flag.kind not in HARMLESS_FLAGS:
            words = "" if flag.kind == "like_reference" else flag.message  # the label says it
            key = FLAG_LABELS.get(flag.kind, flag.kind), words
            reasons[key] += [answer.exercise] if answer else []
    return [
        (label, ": ".join(filter(None, [_write_names(exercises, len(grade.exercises)), words])))
        for (label, words), exercises in reasons.items()
    ]


def _write_names(exercises: list[str], n: int) -> str:
    exercises = list(dict.fromkeys(exercises))
    return f"all {n} exercises" if len(exercises) == n > 2 else ", ".join(exercises)


# --- the page ------------------------------------------------------------------------------------


def report_page(summary: Summary) -> str:
    """Write the page of a class."""
    final, num_open = len(summary.final), len(summary.rows) - len(summary.final)
    of = f", {final} final" if num_open else ""
    return render(
        "class_report.html",
        title="Class report",
        summary=summary,
        tiles=[
            (str(len(summary.rows)), count(len(summary.rows), "submission").split()[1]),
            (summary.average(name="core_points"), f"mean of {number(summary.core_max)} core{of}"),
            (summary.average(), f"mean of all {number(summary.max_points)} points{of}"),
            (summary.average(median), f"median{of}"),
            (str(num_open), "with open points"),
            (str(sum(bool(row.concerns) for row in summary.rows)), "need a person"),
        ],
        ideas=_list_ideas(summary),
        notebooks=[
            (notebook, list(group))
            for notebook, group in groupby(summary.exercises, key=attrgetter("notebook"))
        ],
        bars=_distribution(summary),
        median=summary.average(median),
        hardest=_list_exercises(summary),
        kinds={key for each in summary.kinds.values() for key, often in each.items() if often},
        runs=f"up to {max(summary.runs)}" if summary.runs else "0",
        versions="; ".join(sorted(summary.versions)),
        seconds=round(summary.seconds, 1),
    )


def _list_ideas(summary: Summary) -> list[dict]:
    """Return the ideas that most students missed, at most one of an exercise, with numbers."""
    ideas: dict[str, tuple[int, str]] = {}
    for (id, part), students in summary.missed.items():
        ideas[id] = max(ideas.get(id, (0, "")), (students, part))
    best = sorted(ideas, key=lambda id: (-ideas[id][0], summary.tried[id], id))[:MAX_IDEAS]
    rows = []
    for id in best:
        students, part = ideas[id]
        often, name, words = next(iter(_list_mistakes(summary, id)), (0, "", ""))
        row = {"exercise": find(id), "idea": name_idea(id, part), "tried": summary.tried[id]}
        rows.append(row | {"students": students, "often": often, "mistake": name, "words": words})
    return rows


def _list_mistakes(summary: Summary, id: str) -> list[tuple[int, str, str]]:
    """Return the most frequent mistakes in an exercise: students, name, explanation."""
    own = [(-often, key[1]) for key, often in summary.mistakes.items() if key[0] == id]
    rows = []
    for often, mistake in sorted(own)[:MAX_MISTAKES]:
        name, why, look_at = explain_mistake(id, mistake)
        rows.append((-often, text(name), text(" ".join(filter(None, [why, look_at])))))
    return rows


def _distribution(summary: Summary) -> list[dict]:
    """Return a bar for each range of points: students whose points are final, and the others."""
    step = next((s for s in STEPS if summary.max_points / s <= MAX_BARS), STEPS[-1])
    bars: list[Counter] = [Counter() for _ in range(max(1, -(-int(summary.max_points) // step)))]
    for row in summary.rows:
        place = min(int(row.points // step), len(bars) - 1)
        bars[place]["earned" if row.is_final else "open"] += 1
    widest = max(bar.total() for bar in bars) or 1
    return [
        {
            "label": f"{i * step}–{number(min((i + 1) * step, summary.max_points))}",
            "students": bar.total(),
            "shares": _shares(bar, ("earned", "open"), widest),
        }
        for i, bar in enumerate(bars)
    ]


def _list_exercises(summary: Summary) -> list[dict]:
    """Return a row for each exercise, hardest first: the share that passed, and the mistakes."""
    rows = []
    for exercise in summary.exercises:
        kinds = summary.kinds[exercise.id]
        words = [f"{kinds[key]} {word}" for key, (_, word) in SIGNS.items() if kinds[key]]
        share = 100 * kinds[PASSED] / kinds.total() if kinds else 0.0
        row = {"exercise": exercise, "share": share, "summary": ", ".join(words)}
        row["shares"] = _shares(kinds, SIGNS, kinds.total())
        row["mistakes"] = _list_mistakes(summary, exercise.id)
        rows += [row] if kinds else []
    return sorted(rows, key=lambda row: row["share"])


def _shares(counts: Counter, keys: Iterable[str], whole: int) -> list[dict[str, str]]:
    """Return the pieces of a stacked bar, as percentages of its width."""
    x, shares = 0.0, []
    for key in keys:
        if width := 100 * counts[key] / whole if whole else 0.0:
            shares.append({"kind": key, "x": f"{x:.2f}", "width": f"{width:.2f}"})
        x += width
    return shares


def explain_mistake(exercise: str, mistake: str) -> tuple[str, str, str]:
    """Look up a mistake in the bank of its exercise: name, why it matters, what to try."""
    from vitedu.checks.writing.checker import find_checker

    checker = find_checker(exercise)
    known = checker.mistakes() if hasattr(checker, "mistakes") else checker.bank
    for each in known:
        if each.id == mistake:
            return each.name, each.why, each.next_step
    return mistake.replace("_", " "), "", ""


def name_idea(exercise: str, part: str) -> str:
    """Look up what a part of an exercise's checker shows; "" if it has no words."""
    from vitedu.checks.writing.checker import find_checker

    return getattr(find_checker(exercise), "idea", {}).get(part, "")
