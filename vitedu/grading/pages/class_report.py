"""The pages for the instructor: what to teach again, who needs most, what a person must look at.

Role: ``summarise`` reads grades one at a time and keeps counts and a row for each student;
``report_page`` makes one HTML page of them. Every number that is shown, here or in the terminal,
comes from ``Summary``. The words about ideas and mistakes are the checkers'.
``templates/class_report.html`` has the layout. ``examples_page`` collects an answer or two for each
recognised mistake, to be discussed in the next session.
"""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from statistics import mean, median

from vitedu.checks.writing.checker import find_checker
from vitedu.course.parsing import parse
from vitedu.exercises import EXERCISES, Exercise, find
from vitedu.grading.grades import FAILED, NOT_GRADABLE, PASSED, REASONS, WORDS, ExerciseGrade, Flag
from vitedu.grading.grades import SubmissionGrade as Grade
from vitedu.grading.pages.skeleton import SIGNS, grade_kind, number, render, text

OPEN_LABEL = "could not be graded"
MAX_BARS = 16  # in the distribution of points
MAX_MISTAKES = 3  # of an exercise
MAX_IDEAS = 3  # to teach again
MAX_EXAMPLES = 2  # of a mistake
STEPS = (1, 2, 5, 10, 20, 50, 100, 200)  # possible widths of a bar, in points


@dataclass
class StudentRow:
    """One student on the page."""

    student: str
    points: float
    core_points: float
    open_points: float
    is_final: bool  # whether all exercises have points
    is_counted: bool  # whether anything that was handed in could be read
    cells: dict[str, tuple[str, float | None]]  # exercise -> (key of ``skeleton.SIGNS``, points)
    concerns: list[tuple[str, str]]  # why a person should look: (label, evidence)

    def earned(self, exercises: Sequence[Exercise]) -> float:
        """Add up the points of some exercises."""
        return sum(self.cells.get(each.id, ("", 0))[1] or 0.0 for each in exercises)


@dataclass
class Summary:
    """The numbers of a class."""

    exercises: Sequence[Exercise]
    problems: Sequence[Flag] = ()  # files that belong to no student
    rows: list[StudentRow] = field(default_factory=list)
    kinds: dict[str, Counter] = field(default_factory=lambda: defaultdict(Counter))
    tried: Counter = field(default_factory=Counter)  # exercise -> students with a judged answer
    # (exercise, first part that fails) -> students
    missed: Counter = field(default_factory=Counter)
    mistakes: Counter = field(default_factory=Counter)  # (exercise, id) -> students
    levels: Counter = field(default_factory=Counter)
    versions: set[str] = field(default_factory=set)
    faults: Counter = field(default_factory=Counter)  # faults of the grader -> number of answers
    seconds: float = 0.0

    @property
    def max_points(self) -> float:
        return sum(exercise.points for exercise in self.exercises)

    @property
    def core_max(self) -> float:
        return sum(exercise.points for exercise in self.exercises if exercise.core)

    @property
    def median(self) -> str:
        """The median of the points."""
        return self.average(median)

    @property
    def counted(self) -> list[StudentRow]:
        """The students who handed in something that can be read; mean and median are theirs."""
        return [row for row in self.rows if row.is_counted]

    def average(self, kind: Callable = mean, name: str = "points") -> str:
        """Write the mean or median of the points so far; "–" if nobody handed in."""
        return number(kind(getattr(row, name) for row in self.counted)) if self.counted else "–"


def summarise(
    grades: Iterable[Grade], exercises: Sequence[Exercise], problems: Sequence[Flag] = ()
) -> Summary:
    """Read grades one at a time and keep what the page needs."""
    summary = Summary(exercises, problems)
    for grade in grades:
        cells = {each.exercise: (grade_kind(each), each.points) for each in grade.exercises}
        for each in grade.exercises:
            summary.kinds[each.exercise][grade_kind(each)] += 1
            summary.mistakes.update({(each.exercise, id) for id in each.misconceptions})
            summary.tried[each.exercise] += each.attempted and each.points is not None
            if each.state == FAILED and each.attempted and not each.decided_by:
                failed = (f for f in each.findings if not (f["passed"] or f.get("polish")))
                summary.missed[each.exercise, next((f["name"] for f in failed), "")] += 1
            summary.faults.update([each.detail] if each.reason == "grader" else [])
        is_final = not grade.open_points and len(cells) == len(exercises)
        points = grade.points, grade.core.points, grade.open_points
        is_counted = bool(grade.files) and grade.open_points < grade.max_points
        is_known = is_final, is_counted
        row = StudentRow(grade.student, *points, *is_known, cells, _list_concerns(grade))
        summary.rows.append(row)
        summary.levels[grade.isolation] += 1
        summary.versions.add(", ".join(f"{name} {v}" for name, v in grade.versions.items()))
        summary.seconds += grade.seconds
    # by need: whoever misses most of the core comes first
    summary.rows.sort(key=lambda row: (row.core_points, row.points, row.student))
    return summary


def _list_concerns(grade: Grade) -> list[tuple[str, str]]:
    """List why a person should look at a submission, with one line for each reason."""
    reasons = defaultdict(list)  # (label, words) -> exercises
    for each in grade.exercises:
        if each.state == NOT_GRADABLE:
            detail = f" ({each.detail})" if each.detail else ""
            reasons[OPEN_LABEL, REASONS[each.reason] + detail].append(each.exercise)
    said = [words for _, words in reasons]  # of the exercises
    flags: list[tuple[ExerciseGrade | None, Flag]] = [(None, flag) for flag in grade.flags]
    for answer, flag in [(e, flag) for e in grade.exercises for flag in e.flags] + flags:
        table = WORDS["flags"].get(flag.kind, {})
        skip = table.get("look") is False
        if answer:
            skip |= table.get("look") == "if failed" and answer.state == PASSED
            skip |= table.get("look") == "if points" and not answer.points
        if not skip and (answer or not any(flag.message in words for words in said)):
            words = "" if flag.kind == "like_reference" else flag.message  # the label says it
            key = table.get("label", flag.kind), words
            reasons[key] += [answer.exercise] if answer else []
    rows, n = [], len(grade.exercises)
    for (label, words), exercises in reasons.items():
        ids = dict.fromkeys(exercises)
        names = f"all {n} exercises" if len(ids) == n > 2 else ", ".join(ids)
        rows.append((label, ": ".join(filter(None, [names, words]))))
    return rows


def report_page(summary: Summary, pages: str = "feedback/") -> str:
    """Write the page of a class; ``pages`` is the folder of the students' pages."""
    names = sorted(row.student for row in summary.rows)
    points = sorted({row.points for row in summary.rows})
    orders = {
        row.student: (names.index(row.student), points.index(row.points)) for row in summary.rows
    }
    notebooks = groupby(summary.exercises, key=attrgetter("notebook"))
    return render(
        "class_report.html",
        title="Class report",
        pages=pages,
        orders=orders,
        summary=summary,
        core_mean=summary.average(name="core_points"),
        median=summary.median,
        ideas=_list_ideas(summary),
        notebooks=[(notebook, list(group)) for notebook, group in notebooks],
        bars=_distribution(summary),
        hardest=_list_exercises(summary),
        kinds={key for each in summary.kinds.values() for key in +each},
    )


def _list_ideas(summary: Summary) -> list[dict]:
    """Return the ideas that most students missed, at most one of an exercise, with numbers."""
    ideas: dict[str, tuple[int, str]] = {}
    for (id, part), students in summary.missed.items():
        ideas[id] = max(ideas.get(id, (0, "")), (students, part))
    rows = []
    for id in sorted(ideas, key=lambda id: (-ideas[id][0], summary.tried[id], id))[:MAX_IDEAS]:
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
        name, *rest = explain_mistake(id, mistake)
        rows.append((-often, text(name), text(" ".join(filter(None, rest)))))
    return rows


def _distribution(summary: Summary) -> list[tuple[str, Counter]]:
    """Return a bar for each range of points: students whose points are final, and the others."""
    most = summary.max_points
    step = next((s for s in STEPS if most / s <= MAX_BARS), STEPS[-1])
    bars: list[Counter] = [Counter() for _ in range(max(1, -(-int(most) // step)))]
    for row in summary.rows:
        place = min(int(row.points // step), len(bars) - 1)
        bars[place]["earned" if row.is_final else "open"] += 1
    ends = [(i * step, number(min((i + 1) * step, most))) for i in range(len(bars))]
    return [(f"{start}–{end}", bar) for (start, end), bar in zip(ends, bars, strict=True)]


def _list_exercises(summary: Summary) -> list[dict]:
    """Return a row for each exercise, hardest first: the share that passed, and the mistakes."""
    rows = []
    for exercise in summary.exercises:
        if kinds := summary.kinds[exercise.id]:
            words = ", ".join(f"{kinds[k]} {word}" for k, (_, word) in SIGNS.items() if kinds[k])
            row = {"exercise": exercise, "share": 100 * kinds[PASSED] / kinds.total()}
            mistakes = _list_mistakes(summary, exercise.id)
            rows.append(row | {"kinds": kinds, "summary": words, "mistakes": mistakes})
    return sorted(rows, key=lambda row: row["share"])


def explain_mistake(exercise: str, mistake: str) -> tuple[str, str, str]:
    """Look up a mistake in the bank of its exercise: name, why it matters, what to try."""
    checker = find_checker(exercise)
    known = checker.mistakes if hasattr(checker, "mistakes") else checker.bank
    for each in known:
        if each.id == mistake:
            return each.name, each.why, each.next_step
    return mistake.replace("_", " "), "", ""


def name_idea(exercise: str, part: str) -> str:
    """Look up what a part of an exercise's checker shows; "" if it has no words."""
    return getattr(find_checker(exercise), "idea", {}).get(part, "")


# --- examples to talk about -----------------------------------------------------------------------


def examples_page(grades: Iterable[Grade], students: Iterable[str]) -> str:
    """Write the page of the mistakes that were recognised, the most frequent of an exercise first.

    Args:
        grades: of the class.
        students: an answer in which one of these names stands is no example.
    """
    names = re.compile("|".join(map(re.escape, sorted(students))) or "(?!)", re.IGNORECASE)
    found: dict[tuple[str, str], list[tuple[ExerciseGrade, str]]] = defaultdict(list)
    for grade in grades:
        for each in grade.exercises:
            for mistake in each.misconceptions:
                code = _bare(each.code)
                found[each.exercise, mistake].append((each, "" if names.search(code) else code))
    parts = []
    for exercise in EXERCISES:
        own = {mistake: rows for (id, mistake), rows in found.items() if id == exercise.id}
        if own:
            rows = sorted(own.items(), key=lambda item: (-len(item[1]), item[0]))
            parts.append((exercise, [_describe(exercise.id, *row) for row in rows]))
    return render("examples.html", title="Mistakes to talk about", parts=parts)


def _describe(exercise: str, mistake: str, rows: list[tuple[ExerciseGrade, str]]) -> dict:
    name, why, _ = explain_mistake(exercise, mistake)
    codes = {code: grade for grade, code in rows if code}
    chosen = sorted(codes, key=lambda code: (len(code), code))[:MAX_EXAMPLES]
    examples = [(code, codes[code].lines) for code in chosen]
    return {"students": len(rows), "name": name, "why": why, "examples": examples}


def _bare(code: str) -> str:
    """Write an answer without comments, which may name its author; "" if it is no Python."""
    try:
        return ast.unparse(parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
