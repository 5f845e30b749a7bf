"""The price of an exercise: its number of lines, words included, and of files.

Role: counts for ``vitedu lint``. An exercise has lines in the module of its chapter, in
``exercises.py``, in its checker and in its notebook (the stub and the check cell). The lines of a
file that several exercises share are divided equally. Files are read as text; nothing is imported.
"""

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from vitedu.course.notebooks import exercise_cells, find_notebooks, read
from vitedu.course.parsing import parse
from vitedu.course.references import reference_source
from vitedu.exercises import EXERCISES, Exercise, find

PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Price:
    """The lines of one exercise, by file."""

    exercise: Exercise
    lines: dict[str, float]

    @property
    def total(self) -> float:
        """The sum of all lines."""
        return sum(self.lines.values())


def prices(folder: Path) -> list[Price]:
    """Count the lines of every exercise in the notebooks at a path."""
    cells = {}
    for path in find_notebooks(folder):
        notebook = read(path)
        for index, exercise_id in exercise_cells(notebook):
            both = notebook.cells[index : index + 2]
            cells[exercise_id] = sum(len(cell.source.splitlines()) for cell in both)
    return [_price(exercise, cells[exercise.id]) for exercise in EXERCISES if exercise.id in cells]


def _price(exercise: Exercise, in_notebook: int) -> Price:
    lines: dict[str, float] = {
        exercise.module.removeprefix("vitedu.") + ".py": len(
            reference_source(exercise).splitlines()
        ),
        "exercises.py": _span(PACKAGE / "exercises.py", exercise.id),
        f"{exercise.notebook}.ipynb": in_notebook,
    }
    folder = PACKAGE / "checks" / exercise.chapter
    if exercise.kind == "value":
        lines["checks"] = _span(folder / "values.py", exercise.id)
        return Price(exercise, lines)
    path = folder / f"{exercise.checker}.py"
    lines["checks"] = len(path.read_text(encoding="utf-8").splitlines())
    for shared, users in _shared(folder).items():
        if path.stem in users:
            count = len((folder / f"{shared}.py").read_text(encoding="utf-8").splitlines())
            lines[f"checks, {shared}.py"] = count / len(users)
    return Price(exercise, lines)


def has_checker_file(exercise_id: str) -> bool:
    """Tell whether a file holds the checker of an exercise; ``checks.api.has_checker`` loads it."""
    exercise = find(exercise_id)
    path = PACKAGE / "checks" / exercise.chapter / f"{exercise.checker}.py"
    return path.is_file() and (exercise.kind != "value" or _span(path, exercise_id) > 0)


@cache
def _span(path: Path, exercise_id: str) -> int:
    """Count the lines of the call whose first argument is the exercise's id; 0 if there is none."""
    for node in ast.walk(parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant) and first.value == exercise_id:
                return (node.end_lineno or node.lineno) - node.lineno + 1
    return 0


@cache
def _shared(folder: Path) -> dict[str, list[str]]:
    """Return, for each shared module of a chapter's checkers, the checker files that import it."""
    own = {exercise.checker for exercise in EXERCISES} | {"__init__"}
    shared = sorted(path.stem for path in folder.glob("*.py") if path.stem not in own)
    texts = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.py")}
    users = {}
    for name in shared:
        pattern = re.compile(rf"^from vitedu\.checks\.\w+\.{name} import", re.MULTILINE)
        users[name] = [stem for stem in own & set(texts) if pattern.search(texts[stem])]
    return {name: found for name, found in users.items() if found}


def price_table(folder: Path) -> str:
    """Write the price of every exercise and the means as a table."""
    counted = prices(folder)
    rows = [
        f"{'exercise':<32}{'lines':>7}{'files':>7}   of which reference, syllabus, notebook, checks"
    ]
    for price in counted:
        own = list(price.lines.values())
        parts = ", ".join(f"{count:.0f}" for count in (*own[:3], sum(own[3:])))
        rows.append(f"{price.exercise.id:<32}{price.total:7.0f}{len(own):7}   {parts}")
    for kind, chosen in (
        ("mean of functions and classes", [p for p in counted if p.exercise.kind != "value"]),
        ("mean of values", [p for p in counted if p.exercise.kind == "value"]),
    ):
        if chosen:
            mean = sum(price.total for price in chosen) / len(chosen)
            files = sum(len(price.lines) for price in chosen) / len(chosen)
            rows.append(f"{kind:<32}{mean:7.0f}{files:7.1f}")
    return "\n".join(rows)
