"""The price of an exercise: its lines of Python, its lines of TOML, and its files.

Role: counts for ``vitedu lint``. An exercise has the files that carry its name: its reference, its
entry in ``exercises.toml``, its checker and the words beside it, the proof of the checker, and two
cells of its notebook. Every line of them counts, blank lines and comments as well. A file that
several exercises share is divided equally. Files are read as text; nothing is imported.
"""

from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from vitedu.course.notebooks import exercise_cells, find_notebooks, read
from vitedu.course.references import reference_source
from vitedu.exercises import EXERCISES, FILE, Exercise

PACKAGE = Path(__file__).parents[1]
PROOF = PACKAGE.parent / "tests" / "proof"  # not in an installed package


class Price(NamedTuple):
    """What one exercise costs."""

    exercise: Exercise
    python: float  # lines
    toml: float  # lines
    files: int


def prices(folder: Path) -> list[Price]:
    """Count the lines and files of every exercise in the notebooks at a path."""
    cells = {}
    for path in find_notebooks(folder):
        notebook = read(path)
        for index, exercise_id in exercise_cells(notebook):
            both = notebook.cells[index : index + 2]
            cells[exercise_id] = sum(len(cell.source.splitlines()) for cell in both)
    return [_price(exercise, cells[exercise.id]) for exercise in EXERCISES if exercise.id in cells]


def _price(exercise: Exercise, in_notebook: int) -> Price:
    checker = Path(exercise.chapter) / f"{exercise.file_stem}.py"
    siblings = [
        e for e in EXERCISES if (e.chapter, e.file_stem) == (exercise.chapter, exercise.file_stem)
    ]
    paths = [PACKAGE / "checks" / checker, PACKAGE / "checks" / checker.with_suffix(".toml")]
    paths = [path for path in [*paths, PROOF / checker] if path.is_file()]
    lines = {".py": 0.0, ".toml": _lines(FILE) / len(EXERCISES)}
    for path in paths:
        lines[path.suffix] += _lines(path) / len(siblings)
    lines[".py"] += len(reference_source(exercise).splitlines()) + in_notebook
    return Price(exercise, lines[".py"], lines[".toml"], len(paths) + 3)


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def price_table(folder: Path) -> str:
    """Write the price of every exercise and the means as a table."""
    all_prices = prices(folder)
    groups = {price.exercise.id: [price] for price in all_prices}
    groups["mean of functions and classes"] = [p for p in all_prices if p.exercise.kind != "value"]
    groups["mean of values"] = [p for p in all_prices if p.exercise.kind == "value"]
    rows = [f"{'exercise':<32}{'Python':>8}{'TOML':>8}{'files':>8}   lines, of all its files"]
    for name, group in groups.items():
        if group:
            _, *columns = zip(*group, strict=True)
            rows.append(f"{name:<32}" + "".join(f"{fmean(column):8.0f}" for column in columns))
    return "\n".join(rows)
