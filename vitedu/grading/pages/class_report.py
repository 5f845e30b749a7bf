"""The page that an instructor reads: how a class did, what it misunderstood, and who needs a person.

Role: ``report_page`` (a summary of the class -> one HTML file with drawn figures). Not here: counting (``class_summary``),
looks (``pages``). What a mistake means comes from the checkers' own bank, through ``explain``.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import groupby
from statistics import mean, median

from vitedu.exercises import Exercise
from vitedu.grading.grades import NOT_GRADABLE, PASSED
from vitedu.grading.pages.class_summary import OPEN, Summary
from vitedu.grading.pages.skeleton import SIGNS, count, number, page, text
from vitedu.grading.store import safe_name

MOST_BARS = 16  # of the histogram
MOST_MISTAKES = 15
STEPS = (1, 2, 5, 10, 20, 50, 100, 200)  # widths of a bar in points

Explain = Callable[
    [str, str], tuple[str, str, str]
]  # exercise, id of a mistake -> name, why, what to try


def report_page(summary: Summary, exercises: Sequence[Exercise], explain: Explain) -> str:
    """Write the page of a class."""
    parts = [_head(summary), _distribution(summary), _people(summary)]
    parts += [_hardest(summary, exercises), _mistakes(summary, exercises, explain)]
    parts += [_everybody(summary, exercises), _foot(summary)]
    return page("Class report", "\n".join(parts), STYLE)


def _head(summary: Summary) -> str:
    points = [row.points for row in summary.rows]
    concerned = sum(bool(row.concerns) for row in summary.rows)
    waiting = sum(bool(row.open_points) for row in summary.rows)
    yet = " so far" if waiting else ""
    tiles = [
        (str(len(points)), "submissions" if len(points) != 1 else "submission"),
        (
            number(mean(points)) if points else "–",
            f"mean of {number(summary.max_points)} points{yet}",
        ),
        (number(median(points)) if points else "–", f"median{yet}"),
        (str(waiting), "with open points"),
        (f'<a href="#people">{concerned}</a>', "need a person"),
    ]
    shown = "".join(f"<div><b>{value}</b><span>{words}</span></div>" for value, words in tiles)
    return f'<header><h1>Class report</h1><div class="tiles">{shown}</div></header>'


# --- figures -------------------------------------------------------------------------------------


def _distribution(summary: Summary) -> str:
    """Draw how many students have how many points; those with open points stand on top, hatched."""
    if not summary.rows:
        return ""
    whole = max(summary.max_points, 1.0)
    step = next((s for s in STEPS if whole / s <= MOST_BARS), STEPS[-1])
    bars = int(-(-whole // step))
    final, waiting = [0] * bars, [0] * bars
    for row in summary.rows:
        place = min(int(row.points // step), bars - 1)
        (waiting if row.open_points else final)[place] += 1
    most = max(map(sum, zip(final, waiting, strict=True)))
    width, height, left, top = 760, 220, 8, 26
    across = (width - 2 * left) / bars
    shapes = []
    for i, (done, rest) in enumerate(zip(final, waiting, strict=True)):
        x, unit = left + i * across, height / most
        if done:
            shapes.append(
                _rect("earned", x + 2, top + height - done * unit, across - 4, done * unit)
            )
        if rest:
            y = top + height - (done + rest) * unit
            shapes.append(_rect("hatched", x + 2, y, across - 4, rest * unit))
        if done + rest:
            y = top + height - (done + rest) * unit - 5
            shapes.append(_words(x + across / 2, y, str(done + rest)))
        shapes.append(_words(x, top + height + 17, number(i * step)))
    shapes.append(_words(left + bars * across, top + height + 17, number(bars * step)))
    shapes.append(
        f'<line x1="{left}" x2="{width - left}" y1="{top + height}" y2="{top + height}" class="axis"/>'
    )
    middle = median(row.points for row in summary.rows)
    x = left + min(middle / step, bars) * across
    shapes.append(
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top - 4}" y2="{top + height}" class="median"/>'
    )
    anchor = "end" if x > width / 2 else "start"
    shapes.append(
        _words(x + (-5 if anchor == "end" else 5), top - 8, f"median {number(middle)}", anchor)
    )
    note = '<p class="small soft">Hatched: with open points, so not final.</p>' * any(waiting)
    return (
        f'<h2>Points</h2><svg class="figure" viewBox="0 0 {width} {top + height + 24}" role="img" '
        f'aria-label="histogram of points; median {number(middle)}">{HATCH}{"".join(shapes)}</svg>{note}'
    )


HATCH = (
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="6" height="6" class="hatch-back"/>'
    '<line x1="0" y1="0" x2="0" y2="6" class="hatch-line"/></pattern></defs>'
)


def _rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'
    )


def _words(x: float, y: float, words: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


def _shares(looks: Counter) -> str:
    """Draw what became of an exercise: one bar, cut by outcome."""
    total, x, shapes = sum(looks.values()), 0.0, []
    said = ", ".join(f"{looks[key]} {word}" for key, (_, word) in SIGNS.items() if looks[key])
    for key in SIGNS:
        width = 100 * looks[key] / total
        if width:
            shapes.append(f'<rect class="{key}" x="{x:.2f}" width="{width:.2f}" height="10"/>')
        x += width
    return (
        f'<svg class="shares" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" '
        f'aria-label="{said}"><title>{said}</title>{"".join(shapes)}</svg>'
    )


# --- tables --------------------------------------------------------------------------------------


def _people(summary: Summary) -> str:
    """List who needs a person, by the kind of concern: what could not be graded first."""
    by_label = defaultdict(list)
    for row in summary.rows:
        for label, evidence in row.concerns:
            by_label[label].append((row.student, evidence))
    parts = ['<h2 id="people">Who needs a person</h2>']
    if not by_label:
        parts.append("<p>Nobody.</p>")
    else:
        parts.append(
            '<p class="small soft">No remark here took a point from anybody. Only what could not be graded has points '
            "open.</p>"
        )
    for label in sorted(by_label, key=lambda each: (each != OPEN, -len(by_label[each]), each)):
        rows = "".join(
            f"<tr><td class='who'>{_link(student)}</td><td>{text(evidence, 400)}</td></tr>"
            for student, evidence in by_label[label]
        )
        students = len({student for student, _ in by_label[label]})
        parts.append(
            f"<h3>{text(label)} <span class='soft'>({count(students, 'student')})</span></h3>"
            f"<table class='people'><tbody>{rows}</tbody></table>"
        )
    if summary.problems:
        items = "".join(f"<li>{text(flag.message, 400)}</li>" for flag in summary.problems)
        parts.append(f"<h3>in the folder, of nobody known</h3><ul>{items}</ul>")
    return "".join(parts)


def _hardest(summary: Summary, exercises: Sequence[Exercise]) -> str:
    def share(exercise: Exercise) -> float:
        looks = summary.looks[exercise.id]
        return looks[PASSED] / max(sum(looks.values()), 1)

    judged = [exercise for exercise in exercises if summary.looks[exercise.id]]
    rows = "".join(
        f"<tr><td>{exercise.number}</td><td><code>{exercise.id}</code><br><span class='small soft'>"
        f"{text(exercise.title)}</span></td><td class='num'>{100 * share(exercise):.0f} %</td>"
        f"<td class='wide'>{_shares(summary.looks[exercise.id])}</td></tr>"
        for exercise in sorted(judged, key=share)
    )
    legend = " ".join(
        f'<span><svg class="key" viewBox="0 0 10 10"><rect class="{key}" width="10" height="10"/></svg> {word}</span>'
        for key, (_, word) in SIGNS.items()
        if any(summary.looks[exercise.id][key] for exercise in judged)
    )
    return (
        f'<h2>Exercises, the hardest first</h2><p class="small legend">{legend}</p><table><thead><tr><th></th><th>exercise'
        f"</th><th class='num'>passed</th><th></th></tr></thead><tbody>{rows}</tbody></table>"
    )


def _mistakes(summary: Summary, exercises: Sequence[Exercise], explain: Explain) -> str:
    numbers = {exercise.id: exercise.number for exercise in exercises}
    known = [each for each in summary.mistakes.most_common() if each[0][0] in numbers]
    if not known:
        return ""
    most, items = known[0][1], []
    for (exercise, mistake), students in sorted(
        known, key=lambda each: (-each[1], numbers[each[0][0]], each[0][1])
    )[:MOST_MISTAKES]:
        name, why, look_at = explain(exercise, mistake)
        items.append(
            f"<tr><td class='num'><b>{students}</b></td><td class='thin'><svg class='shares' viewBox='0 0 100 10' "
            f"preserveAspectRatio='none' aria-hidden='true'><rect class='failed' width='{100 * students / most:.1f}' "
            f"height='10'/></svg></td><td>{numbers[exercise]} <code>{exercise}</code>: <b>{text(name)}</b><br>"
            f"<span class='small soft'>{text(' '.join(filter(None, [why, look_at])))}</span></td></tr>"
        )
    rest = len(known) - len(items)
    more = f'<p class="small soft">and {rest} more, each rarer: see grades.csv.</p>' if rest else ""
    return (
        "<h2>What was misunderstood</h2><p class='small soft'>Recognised mistakes, and how many students made each. A mistake is "
        "named only where making it reproduces the answer.</p><table><tbody>"
        f"{''.join(items)}</tbody></table>{more}"
    )


def _everybody(summary: Summary, exercises: Sequence[Exercise]) -> str:
    """Tables of signs, one a notebook: a row a student, a column an exercise."""
    legend = " ".join(
        f'<span class="{key}">{sign} {word}</span>' for key, (sign, word) in SIGNS.items()
    )
    grids = "".join(
        _grid(summary, notebook, list(group))
        for notebook, group in groupby(exercises, key=lambda exercise: exercise.notebook)
    )
    return (
        f'<h2>Everybody</h2><p class="small legend">{legend}; a number: points of an answer that is partly right; '
        f"+4?: points that are open</p>{grids}"
    )


def _grid(summary: Summary, notebook: str, exercises: list[Exercise]) -> str:
    head = "".join(f'<th title="{exercise.id}">{exercise.number}</th>' for exercise in exercises)
    rows = []
    for row in summary.rows:
        signs, earned, waiting = [], 0.0, 0.0
        for exercise in exercises:
            kind, points = row.cells.get(exercise.id, (NOT_GRADABLE, None))
            sign, word = SIGNS[kind]
            earned += points or 0.0
            waiting += exercise.points if points is None else 0.0
            shown = number(points) if kind == "partly" else sign
            signs.append(f'<td class="sign {kind}" title="{exercise.id}: {word}">{shown}</td>')
        still = f' <span class="not_gradable">+{number(waiting)}?</span>' if waiting else ""
        rows.append(
            f"<tr><td class='who'>{_link(row.student)}</td><td class='num'>{number(earned)}{still}</td>"
            f"{''.join(signs)}</tr>"
        )
    most = sum(exercise.points for exercise in exercises)
    return (
        f'<h3>{text(notebook)}</h3><div class="scroll"><table class="grid"><thead><tr><th></th>'
        f'<th class="num">of {most}</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _link(student: str) -> str:
    return f'<a href="feedback/{safe_name(student)}.html"><bdi>{text(student, 60)}</bdi></a>'


def _foot(summary: Summary) -> str:
    levels = "; ".join(
        f"{text(level)}" + (f" ({count(often, 'submission')})" if len(summary.levels) > 1 else "")
        for level, often in summary.levels.items()
    )
    runs = f"up to {max(summary.runs)}" if summary.runs else "0"
    return (
        f"<footer>Isolation: {levels or 'nothing ran'}. Fresh processes an exercise: {runs}. "
        f"{text('; '.join(sorted(summary.versions)))}. "
        f"Time of grading, added over the submissions: {number(round(summary.seconds, 1))} s.</footer>"
    )


def bank_words(exercise: str, mistake: str) -> tuple[str, str, str]:
    """Look a mistake up in the checkers' bank: name, why it matters, what to try."""
    from vitedu.checks.engine import find_checker

    checker = find_checker(exercise)
    known = checker.mistakes() if hasattr(checker, "mistakes") else checker.bank
    for each in known:
        if each.id == mistake:
            return each.name, each.why, each.look
    return mistake.replace("_", " "), "", ""


STYLE = f"""
.tiles {{ display: flex; flex-wrap: wrap; gap: .75rem 2.2rem; margin: .8rem 0; }}
.tiles b {{ display: block; font-size: 1.9rem; line-height: 1.2; }} .tiles span {{ color: var(--soft); font-size: .875rem; }}
.figure {{ width: 100%; height: auto; font-size: 13px; }} .figure text {{ fill: var(--ink); }}
.figure .earned {{ fill: var(--earned); }} .figure .hatched {{ fill: url(#hatch); stroke: var(--open); }}
.hatch-back {{ fill: var(--card); }} .hatch-line {{ stroke: var(--open); stroke-width: 5; }}
.axis {{ stroke: var(--soft); }} .median {{ stroke: var(--ink); stroke-dasharray: 4 4; }}
table {{ border-collapse: collapse; width: 100%; }} th {{ text-align: left; font-size: .8125rem; color: var(--soft); }}
td, th {{ padding: .3rem .6rem .3rem 0; vertical-align: top; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }}
tr {{ break-inside: avoid; }} .num {{ text-align: right; white-space: nowrap; overflow-wrap: normal; }}
.wide {{ width: 45%; vertical-align: middle; }} .thin {{ width: 8rem; vertical-align: middle; }}
.shares {{ display: block; width: 100%; height: .9rem; }} .key {{ width: .8em; height: .8em; }}
{"".join(f"rect.{key} {{ fill: var(--{key}); }} " for key in SIGNS)}
h3 {{ margin-top: 1.1rem; }} .people .who {{ width: 30%; }}
.legend span {{ margin-right: .9rem; white-space: nowrap; }} .scroll {{ overflow-x: auto; }}
.grid td, .grid th {{ padding: .15rem .35rem; text-align: center; font-size: .875rem; overflow-wrap: normal; }}
.grid .who {{ text-align: left; min-width: 9rem; overflow-wrap: anywhere; }} .grid .num {{ text-align: right; }} .sign {{ font-weight: 700; }}
"""
