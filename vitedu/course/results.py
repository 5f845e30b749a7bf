"""The store of a student's results: one small JSON file that survives a kernel restart.

Role: stores the result of each check, the number of hints taken, what was guessed before a
measurement (``course.predictions``) and what a student measured (``course.kept``), and shows the
results as a table. Loads neither torch nor numpy. The folder and the lock come from
``vitedu.ground.files``.

Two results of every exercise are kept: the latest and the best. A later failure changes only the
latest, so points once earned stay until ``reset``. The tables count the best and say where the
latest differs.

A problem with the file never stops a notebook. A damaged file is renamed, with a message. If the
folder cannot be written, one message says so and the results stay in memory. Two kernels that write
at once wait for each other, and a reader always sees a complete file.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from vitedu.exercises import BY_ID, EXERCISES, MORE, Exercise, in_notebook, notebook_named
from vitedu.ground import files

LOCK_SECONDS = 5.0  # a healthy writer holds the lock for milliseconds
FIELDS = "status points max_points misconception misconceptions remarks headline seconds".split()

VERSION = 1  # of the file
TABLES = "exercises", "predictions", "measurements"
ENDS = "ends"  # where ``measurements`` keeps which cores were read to their last cell
END_WITH_A_PICTURE = "01_patches", "02_attention", "03_encoder", "04_training"

_unwritten: dict[Path, bytes] = {}  # what a file should hold and could not be written


def record(report: dict) -> None:
    """Store one report as the latest result of its exercise, and as the best if it is the best.

    Args:
        report: ``Report.to_dict()``: at least exercise, status, points, max_points; the other
            ``FIELDS`` if known (``seconds`` that the check took). A report on an unknown exercise
            is ignored.
    """
    exercise = report["exercise"]
    if exercise not in BY_ID:
        return
    result = {key: report.get(key) for key in FIELDS}
    with edit("exercises", exercise) as entry:
        best = max(entry.get("best", result), result, key=_rank)
        entry.update(result, best=best)


def record_challenge(exercise: str, stopped: int, total: int) -> None:
    """Store how many broken parts of an exercise a student's test stops; it earns no points."""
    with edit("exercises", exercise) as entry:
        before = entry.get("challenge", {})
        best = before["best"] if before.get("total") == total else 0
        entry["challenge"] = {"stopped": stopped, "total": total, "best": max(stopped, best)}


def load(home: Path | None = None) -> dict[str, dict]:
    """Read what is stored about each exercise.

    Args:
        home: the folder of the store; default ``files.data_folder()``.

    Returns:
        exercise id -> ``FIELDS`` for the latest result, ``best`` (the same for the best result),
        ``hints_used``, ``challenge`` and ``source`` (the latest text that passed, or the reason
        why there is none). An exercise for which only hints were taken has no status.
    """
    return load_table("exercises", home)


def load_table(table: str, home: Path | None = None) -> dict[str, dict]:
    """Read one table: "exercises", "predictions" or "measurements" (by notebook and name)."""
    return _read((home or files.data_folder()) / "progress.json")[0][table]


def _rank(result: dict) -> tuple:
    return result["status"] == "passed", result["points"], result["status"] != "not_attempted"


# --- the file ----------------------------------------------------------------------------------


@contextmanager
def edit(table: str, key: str) -> Iterator[dict[str, Any]]:
    """Give an entry of a table, to be changed; the file is written when the block ends.

    The file is replaced in one step. The lock keeps two results at once from losing one.
    """
    path = files.data_folder() / "progress.json"
    with suppress(OSError):  # then it cannot be written, which is said below
        path.parent.mkdir(parents=True, exist_ok=True)
    with files.file_lock(path.with_suffix(".lock"), LOCK_SECONDS):
        tables, is_readable = _read(path)
        yield (entry := tables[table].setdefault(key, {}))
        if not is_readable and os.path.isfile(path):  # another program may hold it: it stays
            return
        if not entry:
            del tables[table][key]
        content = json.dumps({"version": VERSION, **tables}, indent=1).encode()
        try:
            files.write_whole(path, content)
            _unwritten.pop(path, None)
        except OSError as error:
            _unwritten[path] = content
            _print_once(
                f"{path} cannot be written ({error.strerror or error}); results stay in memory "
                "until this kernel ends. Set VITEDU_HOME to a folder of yours to keep them."
            )


def _read(path: Path) -> tuple[dict[str, dict], bool]:
    """Read the tables of the file, and tell whether it, or that there is none, could be read.

    One that cannot be used is renamed, with a message.
    """
    tables: dict[str, dict] = {table: {} for table in TABLES}
    with suppress(OSError, ValueError):  # where versions before 0.3 kept them
        tables["measurements"] = json.loads(path.with_name("measurements.json").read_bytes())
    try:
        found = json.loads(_unwritten.get(path) or path.read_bytes())
        if found.get("version", VERSION) > VERSION:
            raise ValueError("a newer version")
        for entry in found["exercises"].values():
            _row(EXERCISES[0], entry)  # what cannot be shown is damaged
        tables |= {table: dict(found[table]) for table in TABLES if found.get(table)}
    except FileNotFoundError:
        pass
    except OSError as error:
        _print_once(f"{path} cannot be read ({error.strerror or error}); it is left as it is.")
        return tables, False
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        number = 1
        while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
            number += 1
        try:
            os.replace(path, aside)
        except OSError:
            aside = path  # the folder is read-only, or another process has just renamed it
        why = f"{path} was damaged, or written by a newer vitedu"
        _print_once(f"{why}; it is kept as {aside.name} and a new one begins.")
    return tables, True


@cache
def _print_once(message: str) -> None:
    print(f"vitedu: {message}", file=sys.stderr)


# --- the tables --------------------------------------------------------------------------------


def table_text(notebook: str | None = None) -> str:
    """Write a table of every exercise, or of one notebook's, and what comes next.

    Raises:
        ValueError: the notebook is unknown.

    Example:
        >>> print(table_text("01_patches"))  # doctest: +ELLIPSIS
        01_patches...
    """
    groups = list(_groups(notebook))
    width = max(len(row[1]) for *_, rows in groups for row in rows)
    lines = []
    for group, words, rows in groups:
        lines.append(f"{group:<15}{words}")
        for number, name, _, core, points, state, remark in rows:
            line = f"  {number:<5}{name:<{width}}  {core:<4}  {points:>7}  {state:<13}  {remark}"
            lines.append(line.rstrip())
    return "\n".join([*lines, next_step(notebook)])


def progress_html(notebook: str | None = None) -> str:
    """Write the student's model as boxes, each his own or the reference's, and ``table_text``.

    A box is the student's where the best result of its exercise passed.

    Raises:
        ValueError: the notebook is unknown.
    """
    from jinja2 import Template

    page = Path(__file__).with_name("progress.html").read_text(encoding="utf-8")
    entries, parts = load(), [exercise for exercise in EXERCISES if exercise.part]
    return Template(page, autoescape=True).render(
        numbers={exercise.id: exercise.number for exercise in parts},
        own={exercise.id for exercise in parts if is_passed(exercise, entries)},
        groups=_groups(notebook),
        next_step=next_step(notebook),
    )


def _groups(notebook: str | None) -> Iterator[tuple[str, str, list[list[str]]]]:
    """Yield a notebook's name, its exercises and points in words, and its exercises' rows.

    Without a notebook all of them, and at the end the sum of all, which has no rows of its own.
    """
    entries = load()
    names = [*dict.fromkeys(exercise.notebook for exercise in EXERCISES), "all"]
    for name in names if notebook is None else [notebook_named(notebook)]:
        group = list(EXERCISES) if name == "all" else in_notebook(name)
        earned = sum(entries.get(e.id, {}).get("best", {}).get("points", 0) for e in group)
        possible = sum(exercise.points for exercise in group)
        core = [is_passed(exercise, entries) for exercise in group if exercise.core]
        passed = [is_passed(exercise, entries) for exercise in group]
        words = f"core {sum(core)} of {len(core)}, all {sum(passed)} of {len(passed)}"
        words += f", {round(earned, 2):g} of {possible} points"
        rows = [_row(e, entries.get(e.id, {})) for e in group if name != "all"]
        yield name, words, rows


def is_passed(exercise: Exercise, entries: dict) -> bool:
    """Tell whether the best result of an exercise passed, by what ``load`` gives."""
    return entries.get(exercise.id, {}).get("best", {}).get("status") == "passed"


def next_step(notebook: str | None = None) -> str:
    """Name the exercise to do next: what this file has left, then the core from it on, the rest.

    Before it comes what is left of a core whose exercises are passed: sections without any.
    """
    entries = load()
    start = notebook_named(notebook) if notebook else ""
    is_left = [exercise for exercise in EXERCISES if not is_passed(exercise, entries)]
    if not is_left:
        return "next: nothing; every exercise is passed"
    stem = f"{start}_{MORE}" if f"_{MORE}" in str(notebook) else start
    step = min(is_left, key=lambda e: (e.stem != stem, not e.core, e.notebook < start))
    words = f"{step.number} {step.id} ({'core' if step.core else MORE}, {step.minutes} min)"
    reached = stem or max((e.notebook for e in EXERCISES if e.notebook < step.notebook), default="")
    read = load_table("measurements").get(ENDS, {})
    is_open = reached in END_WITH_A_PICTURE and reached not in read
    if is_open and not any(exercise.stem == reached for exercise in is_left):
        return f"next: the rest of {reached}, as far as the picture at its end; then {words}"
    return f"next: {words}"


def _row(exercise: Exercise, entry: dict) -> list[str]:
    """Return number, id, title, whether it is core, points, state and remarks, in words."""
    best = entry.get("best")
    state = best["status"].replace("_", " ") if best else "not attempted"
    points = f"{round(best['points'] if best else 0, 2):g}/{exercise.points}"
    remarks = []
    if best and entry["status"] != best["status"]:
        remarks.append(f"latest: {entry['status'].replace('_', ' ')}")
    if entry.get("misconception"):
        # results that an earlier version stored have no headline
        remarks.append(entry.get("headline") or entry["misconception"].replace("_", " "))
    if "challenge" in entry:
        best, total, latest = (entry["challenge"][name] for name in ("best", "total", "stopped"))
        now = f" (latest: {latest})" if latest != best else ""
        remarks.append(f"challenge: {best} of {total} stopped{now}")
    core = "core" if exercise.core else ""
    return [exercise.number, exercise.id, exercise.title, core, points, state, ", ".join(remarks)]
