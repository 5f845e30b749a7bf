"""The store of a student's results: one small JSON file that survives a kernel restart.

Role: keep what each check said and how many hints were taken, and show it as a table. Loads neither
torch nor numpy. Not here: judging (``vitedu.checks``), the syllabus (``vitedu.exercises``), the folder
and the lock (``vitedu.files``).

Of every exercise two results are kept: the latest, and beside it the best. Running a notebook again
from its stub, or breaking an answer, changes the latest; points once earned are the best and stay
until ``forget``. The tables count the best and say where the latest differs.

Nothing that happens to the file stops a notebook. A damaged one is set aside and said; a folder that
cannot be written is said once and the results stay in memory; two kernels that write at once wait
for each other, and a reader always sees a whole file.
"""

import html
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from vitedu import files
from vitedu.exercises import BY_ID, EXERCISES, Exercise, find, in_notebook, notebook_named

STATUSES = ("passed", "failed", "error", "not_attempted")
NUM_HINTS = 3
LOCK_SECONDS = 5.0  # a healthy writer holds the lock for milliseconds
KEPT = ("status", "points", "max_points", "misconception", "headline", "time")

_unsaved: dict[Path, list[Callable[[dict], None]]] = {}  # changes that no file holds yet
_said: set[str] = set()


def record(report: dict) -> None:
    """Keep one report as the latest result of its exercise, and as the best if it is the best.

    Args:
        report: ``Report.to_dict()``: at least exercise, status, points, max_points; misconception
            and time (seconds since 1970) if known. A report on a name that the syllabus does not
            have (a typing error) is not kept.

    Raises:
        ValueError: no such status.
    """
    exercise = report["exercise"]
    if exercise not in BY_ID:
        return
    if report["status"] not in STATUSES:
        raise ValueError(f"no status {report['status']!r}; there are {', '.join(STATUSES)}.")
    result = {key: report.get(key) for key in KEPT}
    result["time"] = result["time"] or time.time()

    def change(entries: dict) -> None:
        entry = entries.setdefault(exercise, {})
        hints = entry.get("hints_used", 0)
        best = entry.get("best")
        if best is None or _rank(result) > _rank(best):
            best = {**result, "hints_used": hints}
        attempts = entry.get("attempts", 0) + (result["status"] != "not_attempted")
        entry.update(result, best=best, hints_used=hints, attempts=attempts)

    _update(change)


def hint_taken(exercise: str) -> int:
    """Count one more hint and give the number of the hint to show: 1, 2, 3, then 3 again.

    Raises:
        ValueError: no such exercise.
    """
    exercise = find(exercise).id
    number = 0

    def change(entries: dict) -> None:
        nonlocal number
        entry = entries.setdefault(exercise, {})
        number = min(entry.get("hints_used", 0) + 1, NUM_HINTS)
        entry["hints_used"] = number

    _update(change)
    return number


def forget(exercise: str) -> None:
    """Drop the results and the hints of one exercise.

    Raises:
        ValueError: no such exercise.
    """
    exercise = find(exercise).id
    _update(lambda entries: entries.pop(exercise, None))


def load(home: Path | None = None) -> dict[str, dict]:
    """Read what is known of each exercise.

    Args:
        home: the folder of the store; ``files.data_folder()`` if not given.

    Returns:
        exercise id -> ``status``, ``points``, ``max_points``, ``misconception`` and ``time`` of the
        latest result, ``best`` (the same of the best one, and the hints used by then),
        ``hints_used`` and ``attempts``. An exercise of which only hints were taken has no status.
    """
    path = (home or files.data_folder()) / "progress.json"
    try:
        entries = _read(path)
    except OSError as error:
        _say_once(f"{path} cannot be read ({error.strerror or error}); going on without it.")
        entries = {}
    for change in _unsaved.get(path, ()):
        change(entries)
    return entries


def _rank(result: dict) -> tuple:
    return result["status"] == "passed", result["points"], result["status"] != "not_attempted"


# --- the file ----------------------------------------------------------------------------------


def _update(change: Callable[[dict], None]) -> None:
    """Read, change and write the file while no other process does."""
    path = files.data_folder() / "progress.json"
    waiting = _unsaved.setdefault(path, [])
    waiting.append(change)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A file is replaced whole. Without the lock, one of two results that come at once may be lost.
        with files.locked(path.with_suffix(".lock"), LOCK_SECONDS):
            entries = _read(path)
            for each in waiting:
                each(entries)
            text = json.dumps({"version": 1, "exercises": entries}, indent=1)
            files.write_whole(path, text.encode())
    except OSError as error:
        load()  # runs the change, which may report something to its caller
        _say_once(
            f"{path} cannot be written ({error.strerror or error}); results stay in memory until "
            "this kernel ends. Set VITEDU_HOME to a folder of yours to keep them."
        )
    else:
        waiting.clear()


def _read(path: Path) -> dict[str, dict]:
    """Read the file; one that makes no sense is renamed, said, and taken as empty."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return {}
    try:
        entries = json.loads(text)["exercises"]
        return {name: _sound(entry) for name, entry in entries.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        number = 1
        while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
            number += 1
        try:
            os.replace(path, aside)
        except OSError:
            aside = path  # read only, or another process has just moved it
        _say_once(f"{path} was damaged; it is kept as {aside.name} and a new one begins.")
        return {}


def _sound(entry: dict) -> dict:
    """Give the entry back if every part has its type.

    Raises:
        TypeError, KeyError, AttributeError: it has not.
    """
    results = [entry] if "status" in entry else []
    results += [entry["best"]] if "best" in entry else []
    for result in results:
        numbers = result["points"] + result["max_points"] + result["time"]
        if result["status"] not in STATUSES or not isinstance(numbers, int | float):
            raise TypeError("not a result")
    if not isinstance(entry.get("hints_used", 0) + entry.get("attempts", 0), int):
        raise TypeError("not a count")
    return entry


def _say_once(message: str) -> None:
    if message not in _said:
        _said.add(message)
        print(f"vitedu: {message}", file=sys.stderr)


# --- the tables --------------------------------------------------------------------------------


def table_text(notebook: str | None = None) -> str:
    """Show every exercise of one notebook, or of all, with its state and points.

    Raises:
        ValueError: no such notebook.

    Example:
        >>> print(table_text("01_patches"))  # doctest: +ELLIPSIS
        01_patches...
    """
    entries = load()
    chosen = _chosen(notebook)
    width = max(len(exercise.id) for group in chosen.values() for exercise in group)
    lines = []
    for name, group in chosen.items():
        earned, possible, passed = _sums(group, entries)
        lines.append(
            f"{name:<14}[{_bar(earned, possible)}] {_number(earned)} of {possible} points, "
            f"{passed} of {len(group)} exercises passed"
        )
        for exercise in group:
            state, points, remark = _row(exercise, entries.get(exercise.id, {}))
            line = (
                f"  {exercise.number:<5}{exercise.id:<{width}}  {points:>7}  {state:<13}  {remark}"
            )
            lines.append(line.rstrip())
    if len(chosen) > 1:
        everything = [exercise for group in chosen.values() for exercise in group]
        earned, possible, passed = _sums(everything, entries)
        lines.append(
            f"{'all':<14}[{_bar(earned, possible)}] {_number(earned)} of {possible} points, "
            f"{passed} of {len(everything)} exercises passed"
        )
    return "\n".join(lines)


def table_html(notebook: str | None = None) -> str:
    """Show the same as ``table_text`` as an HTML table; every bar has its number beside it.

    Raises:
        ValueError: no such notebook.
    """
    entries = load()
    rows = []
    for name, group in _chosen(notebook).items():
        earned, possible, passed = _sums(group, entries)
        rows.append(
            f'<tr><th colspan="3" style="text-align:left">{html.escape(name)}</th>'
            f'<th style="text-align:right">{_number(earned)}/{possible}</th>'
            f'<th colspan="2" style="text-align:left">{_html_bar(earned, possible)} '
            f"{passed} of {len(group)} passed</th></tr>"
        )
        for exercise in group:
            state, points, remark = _row(exercise, entries.get(exercise.id, {}))
            cells = [exercise.number, exercise.id, exercise.title, points, state, remark]
            styles = ["left", "left", "left", "right", "left", "left"]
            rows.append(
                "<tr>"
                + "".join(
                    f'<td style="text-align:{style}">{html.escape(cell)}</td>'
                    for cell, style in zip(cells, styles, strict=True)
                )
                + "</tr>"
            )
    return f"<table>{''.join(rows)}</table>"


def _chosen(notebook: str | None) -> dict[str, list[Exercise]]:
    if notebook is not None:
        name = notebook_named(notebook)
        return {name: in_notebook(name)}
    names = dict.fromkeys(exercise.notebook for exercise in EXERCISES)
    return {name: in_notebook(name) for name in names}


def _sums(group: list[Exercise], entries: dict) -> tuple[float, int, int]:
    """Give points earned, points possible and the number of exercises passed."""
    best = [entries.get(exercise.id, {}).get("best") for exercise in group]
    earned = sum(result["points"] for result in best if result)
    passed = sum(result["status"] == "passed" for result in best if result)
    return earned, sum(exercise.points for exercise in group), passed


def _row(exercise: Exercise, entry: dict) -> tuple[str, str, str]:
    """Give state, points and remarks of one exercise."""
    best = entry.get("best")
    state = best["status"].replace("_", " ") if best else "not attempted"
    points = f"{_number(best['points'] if best else 0)}/{exercise.points}"
    remarks = []
    if best and entry["status"] != best["status"]:
        remarks.append(f"latest: {entry['status'].replace('_', ' ')}")
    if entry.get("misconception"):
        # results of an earlier version of this package have no words
        remarks.append(entry.get("headline") or entry["misconception"].replace("_", " "))
    hints = entry.get("hints_used", 0)
    if hints:
        remarks.append(f"{hints} {'hint' if hints == 1 else 'hints'} used")
    return state, points, ", ".join(remarks)


def _number(points: float) -> str:
    """Write 4.0 as 4 and 2.5 as 2.5."""
    return f"{points:.2f}".rstrip("0").rstrip(".")


def _bar(earned: float, possible: int, width: int = 20) -> str:
    """Draw a bar that is full only when everything is earned."""
    filled = int(width * earned / possible + 1e-9) if possible else 0
    return "#" * filled + "-" * (width - filled)


def _html_bar(earned: float, possible: int) -> str:
    share = 100 * earned / possible if possible else 0
    return (
        '<span aria-hidden="true" style="display:inline-block;width:8em;height:.7em;'
        'border:1px solid currentColor;vertical-align:middle"><span style="display:block;'
        f'height:100%;width:{share:.0f}%;background:currentColor;opacity:.6"></span></span>'
    )
