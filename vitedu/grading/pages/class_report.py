"""The page for the instructor: results of the class, its mistakes, and what a person must look at.

Role: ``report_page`` turns a summary of the class into one HTML page. The words about a mistake
come from the checkers' banks, through ``explain``. ``class_summary`` counts, and
``templates/class_report.html`` has the layout.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import groupby
from statistics import mean, median

from vitedu.exercises import Exercise
from vitedu.grading.grades import NOT_GRADABLE, PASSED
from vitedu.grading.pages.class_summary import OPEN_LABEL, Summary
from vitedu.grading.pages.skeleton import SIGNS, number, render, text

MAX_BARS = 16  # in the histogram
MAX_MISTAKES = 15
STEPS = (1, 2, 5, 10, 20, 50, 100, 200)  # possible widths of a bar, in points
WIDTH, HEIGHT, LEFT, TOP = 760, 206, 8, 40  # of the histogram, in SVG units

# (exercise, id of a mistake) -> (name, why, what to try)
Explain = Callable[[str, str], tuple[str, str, str]]


def report_page(summary: Summary, exercises: Sequence[Exercise], explain: Explain) -> str:
    """Write the page of a class."""
    graded = [exercise for exercise in exercises if summary.kinds[exercise.id]]
    mistakes, more = _list_mistakes(summary, exercises, explain)
    return render(
        "class_report.html",
        title="Class report",
        tiles=_tiles(summary),
        concerned=sum(bool(row.concerns) for row in summary.rows),
        grids=[
            _notebook_table(summary, notebook, list(group))
            for notebook, group in groupby(exercises, key=lambda exercise: exercise.notebook)
        ],
        figure=_histogram(summary) if summary.rows else None,
        concerns=_list_concerns(summary),
        problems=summary.problems,
        hardest=_list_exercises(summary, graded),
        kinds={key for each in graded for key, often in summary.kinds[each.id].items() if often},
        mistakes=mistakes,
        more_mistakes=more,
        levels=summary.levels,
        runs=f"up to {max(summary.runs)}" if summary.runs else "0",
        versions="; ".join(sorted(summary.versions)),
        seconds=round(summary.seconds, 1),
    )


def _tiles(summary: Summary) -> list[tuple[str, str]]:
    """Return the large numbers at the top, each with its label."""
    points = [row.points for row in summary.rows]
    final = [row.points for row in summary.rows if not row.open_points]
    num_open = len(points) - len(final)
    of = f", {len(final)} final" if num_open else ""
    most = number(summary.max_points)
    return [
        (str(len(points)), "submissions" if len(points) != 1 else "submission"),
        (number(mean(final)) if final else "–", f"mean of {most} points{of}"),
        (number(median(final)) if final else "–", f"median{of}"),
        (str(num_open), "with open points"),
    ]


# --- figures -------------------------------------------------------------------------------------


def _histogram(summary: Summary) -> dict:
    """Draw a histogram of points; students with open points are stacked on top, hatched."""
    whole = max(summary.max_points, 1.0)
    step = next((s for s in STEPS if whole / s <= MAX_BARS), STEPS[-1])
    count = int(-(-whole // step))
    final, pending = [0] * count, [0] * count
    for row in summary.rows:
        place = min(int(row.points // step), count - 1)
        (pending if row.open_points else final)[place] += 1
    unit = HEIGHT / max(map(sum, zip(final, pending, strict=True)))
    across = (WIDTH - 2 * LEFT) / count
    bars, words, foot = [], [], TOP + HEIGHT
    for i, (done, rest) in enumerate(zip(final, pending, strict=True)):
        x = LEFT + i * across
        if done:
            bars.append(_bar("earned", x + 2, foot - done * unit, across - 4, done * unit))
        if rest:
            bars.append(
                _bar("hatched", x + 2, foot - (done + rest) * unit, across - 4, rest * unit)
            )
        if done + rest:
            words.append(_label(x + across / 2, foot - (done + rest) * unit - 5, str(done + rest)))
    for i in range(count + 1):
        words.append(_label(LEFT + i * across, foot + 17, number(i * step)))
    middle = median(row.points for row in summary.rows)
    x = LEFT + min(middle / step, count) * across
    side, anchor = (-5, "end") if x > WIDTH / 2 else (5, "start")
    words.append(_label(x + side, TOP - 24, f"median {number(middle)}", anchor))
    return {
        "width": WIDTH,
        "height": foot + 24,
        "median": number(middle),
        "bars": bars,
        "words": words,
        "lines": [
            {"kind": "axis", "x1": LEFT, "x2": WIDTH - LEFT, "y1": foot, "y2": foot},
            {"kind": "median", "x1": f"{x:.1f}", "x2": f"{x:.1f}", "y1": TOP - 36, "y2": foot},
        ],
        "hatched": any(pending),
    }


def _bar(kind: str, x: float, y: float, width: float, height: float) -> dict[str, str]:
    sizes = {"x": x, "y": y, "width": width, "height": height}
    return {"kind": kind} | {name: f"{size:.1f}" for name, size in sizes.items()}


def _label(x: float, y: float, words: str, anchor: str = "middle") -> dict[str, str]:
    return {"x": f"{x:.1f}", "y": f"{y:.1f}", "words": words, "anchor": anchor}


# --- tables --------------------------------------------------------------------------------------


def _list_concerns(summary: Summary) -> list[tuple[str, int, list[dict]]]:
    """List the students that a person must look at, by kind of concern.

    Open exercises come first, then the most frequent kinds. Within a kind, the student with the
    most points at stake comes first.
    """
    by_label = defaultdict(list)
    for row in summary.rows:
        for label, evidence in row.concerns:
            stake = row.open_points if label == OPEN_LABEL else row.points
            entry = {"student": row.student, "evidence": evidence, "stake": stake}
            by_label[label].append(entry)
    order = sorted(by_label, key=lambda each: (each != OPEN_LABEL, -len(by_label[each]), each))
    return [
        (
            label,
            len({row["student"] for row in by_label[label]}),
            sorted(by_label[label], key=lambda row: -row["stake"]),
        )
        for label in order
    ]


def _list_exercises(summary: Summary, graded: list[Exercise]) -> list[dict]:
    """Return a row for each exercise, hardest first: the share that passed, and a stacked bar."""

    def passed(exercise: Exercise) -> float:
        return summary.kinds[exercise.id][PASSED] / summary.kinds[exercise.id].total()

    return [
        {
            "exercise": exercise,
            "passed": f"{100 * passed(exercise):.0f}",
            "summary": ", ".join(
                f"{summary.kinds[exercise.id][key]} {word}"
                for key, (_, word) in SIGNS.items()
                if summary.kinds[exercise.id][key]
            ),
            "shares": _shares(summary.kinds[exercise.id]),
        }
        for exercise in sorted(graded, key=passed)
    ]


def _shares(looks: Counter) -> list[dict[str, str]]:
    x, shares = 0.0, []
    for key in SIGNS:
        width = 100 * looks[key] / looks.total()
        if width:
            shares.append({"kind": key, "x": f"{x:.2f}", "width": f"{width:.2f}"})
        x += width
    return shares


def _list_mistakes(
    summary: Summary, exercises: Sequence[Exercise], explain: Explain
) -> tuple[list[dict], int]:
    """Return the most frequent mistakes with their explanations, and how many more there are."""
    numbers = {exercise.id: exercise.number for exercise in exercises}
    known = [each for each in summary.mistakes.most_common() if each[0][0] in numbers]
    known.sort(key=lambda each: (-each[1], numbers[each[0][0]], each[0][1]))
    rows = []
    for (exercise, mistake), students in known[:MAX_MISTAKES]:
        name, why, look_at = explain(exercise, mistake)
        rows.append(
            {
                "students": students,
                "width": f"{100 * students / known[0][1]:.1f}",
                "number": numbers[exercise],
                "exercise": exercise,
                "name": text(name),
                "words": text(" ".join(filter(None, [why, look_at]))),
            }
        )
    return rows, len(known) - len(rows)


def _notebook_table(summary: Summary, notebook: str, exercises: list[Exercise]) -> dict:
    """Return the table of a notebook: a row for each student, a column for each exercise."""
    rows = []
    for row in summary.rows:
        cells, earned, waiting = [], 0.0, 0.0
        for exercise in exercises:
            kind, points = row.cells.get(exercise.id, (NOT_GRADABLE, None))
            sign, word = SIGNS[kind]
            earned += points or 0.0
            waiting += exercise.points if points is None else 0.0
            text = number(points or 0.0) if kind == "partly" else sign
            cells.append({"kind": kind, "title": f"{exercise.id}: {word}", "text": text})
        rows.append({"student": row.student, "earned": earned, "waiting": waiting, "signs": cells})
    most = sum(exercise.points for exercise in exercises)
    return {"notebook": notebook, "most": most, "exercises": exercises, "rows": rows}


def explain_mistake(exercise: str, mistake: str) -> tuple[str, str, str]:
    """Look up a mistake in the bank of its exercise: name, why it matters, what to try."""
    from vitedu.checks.checker import find_checker

    checker = find_checker(exercise)
    known = checker.mistakes() if hasattr(checker, "mistakes") else checker.bank
    for each in known:
        if each.id == mistake:
            return each.name, each.why, each.next_step
    return mistake.replace("_", " "), "", ""
