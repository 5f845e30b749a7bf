"""The page that a student gets back.

Role: ``feedback_page`` (a submission's grade -> one HTML file). It says what holds and what that proves, and for what
does not: the first thing that failed, the mistake if it was recognised, the evidence, why it matters, the next step. No
reference value and no seed of the class is in it. Not here: judging; looks (``pages``).
"""

from collections import defaultdict
from itertools import groupby

from vitedu.exercises import Exercise, find
from vitedu.grading.grades import FAILED, NOT_GRADABLE, PASSED, REASONS, ExerciseGrade
from vitedu.grading.grades import SubmissionGrade as Grade
from vitedu.grading.pages.skeleton import SIGNS, bar, count, look, number, page, picture, text

# label of a checker's line -> how the page calls it; other labels, those of drawings, stay as they are
LABELS = {
    "proved": "what this proves",
    "expected": "what should hold",
    "got": "what your answer does",
    "why": "why it matters",
    "try": "next step",
    "case": "on this input",
    "also": "also",
    "note": "note",
}
PROSE = {"why", "try", "also", "note", "hint"}  # the rest is set like code: it has columns
SECRET = {"again"}  # the inputs of a class are not given away

# what a student reads of flags; suspicions are for the instructor alone
OPEN_FLAGS = set(
    "found_by_name duplicate conflict not_code magics left_out late two_files renamed unreadable archive no_notebook "
    "link other_file".split()
)

NEXT = {
    "unreadable": "Open the file in Jupyter, save it and hand it in once more.",
    "no_cell": "If you wrote it, tell your instructor where: the cell may have been renamed or deleted.",
    "syntax": "Run the cell in your notebook: Python shows the line. Then hand the notebook in once more.",
    "import": "Restart the kernel and run all cells: the error shows there too. Every name that the answer uses has to "
    "be made in the notebook, in a cell of imports, helpers or constants.",
    "timeout": "Run the check in your notebook; if it does not come to an end, look at the loops.",
    "memory": "Look for a tensor that is larger than it needs to be; print its shape.",
    "crashed": "Restart the kernel and run the check: it must not end the kernel.",
    "flooded": "Take the prints out of the loops.",
    "unstable": "Run the check in your notebook several times: something in the answer rests on chance or on an earlier call.",
}


def feedback_page(grade: Grade) -> str:
    """Write the page of one student."""
    exercises = [(find(each.exercise), each) for each in grade.exercises]
    parts = [_head(grade), _strip(exercises), _next_points(exercises)]
    for notebook, group in groupby(exercises, key=lambda pair: pair[0].notebook):
        parts.append(f"<h2>{text(notebook)}</h2>")
        parts += _cards(list(group))
    parts += [_practice(exercises), _foot(grade)]
    return page(f"Feedback: {grade.student}", "\n".join(parts), STYLE)


def _head(grade: Grade) -> str:
    counts = {state: sum(e.state == state for e in grade.exercises) for state in (PASSED, FAILED)}
    words = f"{number(grade.points)} of {number(grade.max_points)} points"
    notes = [flag.message for flag in grade.flags if flag.kind in OPEN_FLAGS]
    shown = number(grade.points)
    if grade.open_points == grade.max_points:
        shown = words = "open"  # a large 0 would be read before everything else
    waiting = ""
    if grade.open_points:
        waiting = (
            f'<p class="not_gradable"><b>? {_points_open(grade.open_points)}.</b> '
            f"{count(sum(e.state == NOT_GRADABLE for e in grade.exercises), 'exercise')} could not be graded by "
            "machine. That is not a 0: your instructor looks at it and decides about these points.</p>"
        )
    return (
        f"<header><p class='soft small'>Feedback</p><h1><bdi>{text(grade.student, 200)}</bdi></h1>"
        f'<p class="total"><b>{shown}</b> of {number(grade.max_points)} points</p>'
        f"{bar(grade.points, grade.max_points, grade.open_points, words)}"
        f'<p class="soft small">{counts[PASSED]} of {len(grade.exercises)} exercises passed. '
        f"Handed in: {', '.join(f'<bdi>{text(name, 120)}</bdi>' for name in grade.files) or 'nothing'}.</p>"
        + waiting
        + "".join(f'<p class="small">{text(note)}</p>' for note in notes)
        + "</header>"
    )


def _points_open(points: float) -> str:
    return f"{number(points)} point{' is' if points == 1 else 's are'} open"


def _strip(exercises: list[tuple[Exercise, ExerciseGrade]]) -> str:
    """Draw all exercises at a glance: a tile each, as wide as its points."""
    tiles = "".join(
        f'<a class="tile {look(grade)}" style="flex-grow:{exercise.points}" href="#{exercise.id}" '
        f'title="{text(f"{exercise.number} {exercise.id}: {SIGNS[look(grade)][1]}")}">'
        f"<span>{SIGNS[look(grade)][0]}</span><small>{exercise.number}</small></a>"
        for exercise, grade in exercises
    )
    seen = {look(grade) for _, grade in exercises}
    legend = "  ".join(
        f'<span class="{key}">{sign} {word}</span>'
        for key, (sign, word) in SIGNS.items()
        if key in seen
    )
    return f'<nav class="strip">{tiles}</nav><p class="small legend">{legend}</p>'


def _next_points(exercises: list[tuple[Exercise, ExerciseGrade]]) -> str:
    """Name the exercises where most points wait, in the order of the course."""
    lost = [(e.max_points - e.points, ex, e) for ex, e in exercises if e.state == FAILED]
    if not lost:
        return ""
    best = sorted(lost, key=lambda each: -each[0])[:3]
    chosen = [each for each in lost if each in best]
    items = "".join(
        f'<li><a href="#{exercise.id}">{exercise.number} {text(exercise.title)}</a>: {number(points)} '
        f"more{f': {text(grade.headline, 160)}' if grade.attempted and grade.headline else ''}</li>"
        for points, exercise, grade in chosen
    )
    return f"<h2>Where the next points are</h2><ul>{items}</ul>"


# --- one exercise --------------------------------------------------------------------------------


def _cards(group: list[tuple[Exercise, ExerciseGrade]]) -> list[str]:
    """Give a card an exercise; those that are open for one and the same reason share one."""
    alike = defaultdict(list)
    for exercise, grade in group:
        own = grade.exercise if grade.state != NOT_GRADABLE or grade.flags or grade.printed else ""
        alike[own, grade.reason, grade.detail].append((exercise, grade))
    return [_card(*same[0]) if len(same) == 1 else _shared_card(same) for same in alike.values()]


def _shared_card(same: list[tuple[Exercise, ExerciseGrade]]) -> str:
    sign = SIGNS[NOT_GRADABLE][0]
    tops = "".join(
        f'<div class="top" id="{exercise.id}"><h3><span class="not_gradable" aria-hidden="true">{sign}</span> '
        f"{exercise.number} <code>{exercise.id}</code> <span class='soft'>{text(exercise.title)}</span></h3>"
        f'<div class="points not_gradable"><b>open</b>/{number(grade.max_points)}</div></div>'
        for exercise, grade in same
    )
    points = sum(grade.max_points for _, grade in same)
    return f'<section class="card">{tops}{_open(same[0][1], points)}</section>'


def _card(exercise: Exercise, grade: ExerciseGrade) -> str:
    kind = look(grade)
    sign, word = SIGNS[kind]
    earned = "open" if grade.points is None else number(grade.points)
    body = {
        PASSED: _passed,
        "untouched": _untouched,
        NOT_GRADABLE: lambda exercise, grade: _open(grade, grade.max_points),
    }.get(kind, _failed)(exercise, grade)
    notes = "".join(
        f'<p class="small soft">{text(flag.message)}</p>'
        for flag in grade.flags
        if flag.kind in OPEN_FLAGS
    )
    return (
        f'<section class="card" id="{exercise.id}"><div class="top"><h3><span class="{kind}" aria-hidden="true">'
        f"{sign}</span> {exercise.number} <code>{exercise.id}</code> <span class='soft'>{text(exercise.title)}</span>"
        f'</h3><div class="points {kind}"><b>{earned}</b>/{number(grade.max_points)}'
        f"<small>{word}</small></div></div>{body}{notes}</section>"
    )


def _passed(exercise: Exercise, grade: ExerciseGrade) -> str:
    proved = [words for label, words in grade.lines if label == "proved"]
    proved = proved or [finding["message"] for finding in grade.findings if finding["passed"]]
    items = "".join(f"<li>{text(words)}</li>" for words in proved)
    return f'<ul class="proved small">{items}</ul>' if items else ""


def _failed(exercise: Exercise, grade: ExerciseGrade) -> str:
    told = [(label, words) for label, words in grade.lines if label not in SECRET and words]
    rows = [(LABELS.get(label, label), words, label) for label, words in told]
    if not any(label == "try" for label, _ in told) and exercise.hints:
        rows.append(("next step", exercise.hints[0], "hint"))
    table = "".join(
        f'<dt>{text(name)}</dt><dd class="{"mono" if label not in PROSE else ""}">'
        f"{text(words, 1200)}</dd>"
        for name, words, label in rows
    )
    head = f'<p class="what">{text(grade.headline)}</p>' if grade.headline else ""
    return f"{head}<dl>{table}</dl>{picture(grade.picture)}{_findings(grade)}{_printed(grade)}"


def _findings(grade: ExerciseGrade) -> str:
    """Show what was judged, with the points of each."""
    if len(grade.findings) < 2:
        return ""
    tiles = []
    for finding in grade.findings:
        passed, skipped = finding["passed"], finding.get("skipped")
        kind, sign = (PASSED, "✓") if passed else ("untouched", "–") if skipped else (FAILED, "✗")
        most = finding.get("max_points") or 0
        points = f" {number(most if passed else 0)}/{number(most)}" if most else ""
        title = finding["message"] if passed else ""
        tiles.append(
            f'<span class="{kind}" title="{text(title, 300)}">{sign} {text(finding["name"])}'
            f'<span class="soft">{points}</span></span>'
        )
    held = [f for f in grade.findings if f["passed"] and f.get("max_points")]
    proved = "; ".join(finding["message"] for finding in held)
    what = f'<p class="small soft">What holds already: {text(proved)}.</p>' if held else ""
    return f'<p class="findings small">{"".join(tiles)}</p>{what}'


def _printed(grade: ExerciseGrade) -> str:
    if not grade.printed.strip():
        return ""
    return f'<p class="small soft">Your answer printed (this never costs points):</p><pre>{text(grade.printed, 600)}</pre>'


def _untouched(exercise: Exercise, grade: ExerciseGrade) -> str:
    hint = (
        f"<dl><dt>a first step</dt><dd>{text(exercise.hints[0])}</dd></dl>"
        if exercise.hints
        else ""
    )
    return f"<p>The cell is as you got it. It takes about {exercise.minutes} minutes.</p>{hint}"


def _open(grade: ExerciseGrade, points: float) -> str:
    if grade.reason == "grader":
        after = "Nothing for you to do: your instructor runs the grading once more or looks at it."
    else:
        after = f"Your instructor looks at it; {_points_open(points)} until then."
    detail = (
        f'<dt>detail</dt><dd class="mono">{text(grade.detail, 600)}</dd>' if grade.detail else ""
    )
    yours = NEXT.get(grade.reason, "")
    return (
        f'<p class="what">{text(REASONS[grade.reason])}</p><dl>{detail}<dt>what happens next</dt>'
        f"<dd>{text(after)}</dd>{f'<dt>what you can do</dt><dd>{text(yours)}</dd>' if yours else ''}</dl>"
        f"{_printed(grade)}"
    )


# --- below ---------------------------------------------------------------------------------------


def _practice(exercises: list[tuple[Exercise, ExerciseGrade]]) -> str:
    example = next((ex for ex, e in exercises if e.state == FAILED), None)
    if example is None:
        return ""
    call = example.id if example.kind != "value" else f'{example.id}, "{example.id}"'
    return (
        "<h2>Try it yourself</h2><p>The cell below each exercise, "
        f"<code>check({call})</code>, judges with the same checkers and draws fresh inputs every time: run it, "
        "change your answer, run it again. The inputs of this grading were drawn for you alone and stay secret, so "
        "they can not be repeated; a mistake that shows here shows there too, with other numbers. "
        f'<code>hint("{example.id}")</code> gives three hints, one at a time.</p>'
    )


def _foot(grade: Grade) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in grade.versions.items())
    runs = max((each.runs for each in grade.exercises), default=0)
    ran = (
        f"; only your answers ran, in {count(runs, 'fresh process', 'fresh processes')} that had to agree, each against the "
        "references of what comes before it, so that one mistake costs its own points only"
        if runs
        else ""
    )
    return (
        f"<footer>Your notebook was read, never executed{ran}. Isolation: {text(grade.isolation)}. {text(versions)}."
        "</footer>"
    )


STYLE = """
.total { font-size: 1.25rem; margin: .5rem 0 .4rem; } .total b { font-size: 2.4rem; line-height: 1; }
.strip { display: flex; flex-wrap: wrap; gap: 3px; margin: 1.2rem 0 .3rem; }
.tile { flex: 1 0 2.1rem; text-align: center; text-decoration: none; border: 1px solid currentColor; border-radius: .3rem;
  padding: .15rem 0; line-height: 1.2; background: var(--card); }
.tile span { display: block; font-weight: 700; } .tile small { font-size: .7rem; color: var(--soft); }
.legend span { margin-right: 1rem; white-space: nowrap; }
.card { border: 1px solid var(--line); border-radius: .5rem; padding: .7rem .9rem; margin: .6rem 0; background: var(--card);
  break-inside: avoid; }
.top { display: flex; justify-content: space-between; gap: 1rem; align-items: baseline; }
.top h3 .soft { font-weight: 400; } .points { text-align: right; white-space: nowrap; }
.points small { display: block; font-size: .75rem; } .what { font-weight: 600; margin: .5rem 0; }
.proved { margin: .3rem 0 0; padding: 0; color: var(--soft); } .proved li { display: inline; }
.proved li:not(:last-child)::after { content: " · "; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .25rem 1rem; margin: .4rem 0; }
dt { color: var(--soft); font-size: .875rem; padding-top: .1rem; } dd { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.findings { margin: .6rem 0 0; } .findings > span { display: inline-block; margin-right: 1rem; }
@media (max-width: 34rem) { dl { grid-template-columns: 1fr; } dt { margin-top: .3rem; } }
"""
