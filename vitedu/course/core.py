"""What a notebook asks of a student.

Role: counts and budgets, for ``vitedu lint``. Cells are read as text; nothing is run. No budget
holds the notebooks of the second shelf.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nbformat import NotebookNode

from vitedu.course.notebooks import exercise_cells
from vitedu.course.stub_text import check_lines
from vitedu.exercises import BY_ID, MINUTES, describe_minutes

FOLDED = re.compile(r"<details>.*?</details>", re.DOTALL)
FIGURE = re.compile(r"\b(?:plots\.\w+|explore_\w+|show_\w+|draw_\w+|postcard)\(")
PREDICTION = re.compile(r"(?m)^my_\w+ = None\b")
WARM_UP = re.compile(r"(?m)^(?!my_)\w+ = None\b")
DECISION = re.compile(r"\*\*Decide")
MOST = {"cells": 85, "words": 2800, "lines": 250, "predictions": 6}
MOST_MINUTES = 110, 105  # of the cores of 01 to 04, and of 05 to 09


@dataclass(frozen=True)
class Core:
    """What the core of one notebook asks for."""

    cells: int
    words: int  # of prose, outside folded answers
    folded: int  # words of the folded answers
    warm_ups: int  # lines to write that nobody grades, and decisions
    lines: int  # of given code that is open
    predictions: int
    figures: int
    exercises: tuple[str, ...]
    run_minutes: float  # of its cells in the laptop profile, from the notebook's metadata

    @property
    def minutes(self) -> float:
        """Estimate how long an ordinary student needs; readers with a clock gave the weights."""
        reading = self.words / 120 + self.folded / 240 + self.lines / 12
        writing = sum(BY_ID[name].minutes for name in self.exercises) + 3 * self.warm_ups
        return reading + writing + 1.5 * (self.predictions + self.figures) + self.run_minutes


def open_cells(notebook: NotebookNode) -> list[int]:
    """List the indices of the code cells that are given and not folded."""
    stubs = dict(exercise_cells(notebook))
    return [
        index
        for index, cell in enumerate(notebook.cells)
        if cell.cell_type == "code"
        and index not in stubs
        and "hide-input" not in cell.metadata.get("tags", ())
    ]


def measure(notebook: NotebookNode) -> Core:
    """Count a notebook."""
    cells, stubs = notebook.cells, dict(exercise_cells(notebook))
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    given = [cells[index].source for index in open_cells(notebook)]
    checks = {line for each in stubs.values() if each in BY_ID for line in check_lines(BY_ID[each])}
    lines = [line for source in given for line in source.splitlines()]
    folds = [fold for text in texts for fold in FOLDED.findall(text)]
    decisions = sum(len(DECISION.findall(text)) for text in texts)
    return Core(
        cells=len(cells),
        words=sum(len(FOLDED.sub("", text).split()) for text in texts),
        folded=sum(len(fold.split()) for fold in folds),
        warm_ups=sum(len(WARM_UP.findall(source)) for source in given) + decisions,
        lines=sum(bool(line.strip()) and line.strip() not in checks for line in lines),
        predictions=sum(len(PREDICTION.findall(source)) for source in given),
        figures=sum(bool(FIGURE.search(source)) for source in given),
        exercises=tuple(each for each in stubs.values() if each in BY_ID),
        run_minutes=notebook.metadata.get("vitedu", {}).get("run_minutes", 0.0),
    )


def find_problems(notebook: NotebookNode, name: str) -> Iterator[str]:
    """Rule: a core fits its budget."""
    if name not in MINUTES:
        return
    core, stated = measure(notebook), MINUTES[name]
    most = MOST_MINUTES[name > "05"]
    for what, limit in {**MOST, "minutes": min(stated, most)}.items():
        if (count := getattr(core, what)) > limit:
            yield f"core: {count:.0f} {what}, at most {limit}; shorten it or move some to more."
    first = next((cell.source for cell in notebook.cells if cell.cell_type == "markdown"), "")
    if (words := describe_minutes(name)) not in first:
        yield f"core: the first cell does not say '{words}', as ``exercises.MINUTES`` has it."


def core_table(notebooks: dict[str, NotebookNode]) -> str:
    """Write what each core asks for as a table."""
    counts = [*MOST, "figures", "minutes"]
    rows = [f"{'notebook':<20}" + "".join(f"{count:>13}" for count in counts)]
    for name, notebook in notebooks.items():
        core = measure(notebook)
        columns = "".join(f"{getattr(core, count):13.0f}" for count in counts)
        rows.append(f"{name:<20}{columns}")
    return "\n".join(rows)
