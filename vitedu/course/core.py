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
from vitedu.exercises import BY_ID

FOLDED = re.compile(r"<details>.*?</details>", re.DOTALL)
FIGURE = re.compile(r"\b(?:plots\.\w+|explore_\w+|show_\w+|draw_\w+|postcard)\(")
MORE = re.compile(r"(?m)^# More\b")
PREDICTION = re.compile(r"(?m)^my_\w+ = None\b")
MINUTES = {
    "01_patches": 90,
    "02_attention": 100,
    "03_encoder": 95,
    "04_training": 120,
    "05_inside": 90,
    "06_vit_and_cnn": 90,
    "07_less_data": 90,
    "08_efficient": 90,
    "09_transfer": 90,
}
MOST = {"cells": 85, "words": 2800, "lines": 300, "predictions": 6}


@dataclass(frozen=True)
class Core:
    """What the core of one notebook asks for."""

    cells: int
    words: int  # of prose, outside folded answers
    lines: int  # of given code that is open
    predictions: int
    figures: int
    exercises: tuple[str, ...]
    run_minutes: float  # of its cells in the laptop profile, from the notebook's metadata

    @property
    def minutes(self) -> float:
        """Estimate how long a student needs."""
        writing = 1.3 * sum(BY_ID[name].minutes for name in self.exercises)
        return self.words / 120 + writing + self.predictions + self.figures + self.run_minutes


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
    return Core(
        cells=len(cells),
        words=sum(len(FOLDED.sub("", text).split()) for text in texts),
        lines=sum(bool(line.strip()) and line.strip() not in checks for line in lines),
        predictions=sum(len(PREDICTION.findall(source)) for source in given),
        figures=sum(bool(FIGURE.search(source)) for source in given),
        exercises=tuple(each for each in stubs.values() if each in BY_ID),
        run_minutes=notebook.metadata.get("vitedu", {}).get("run_minutes", 0.0),
    )


def find_problems(notebook: NotebookNode, name: str) -> Iterator[str]:
    """Rule: a core fits its budget, and what is optional has a file of its own."""
    if name not in MINUTES:
        return
    if any(MORE.search(cell.source) for cell in notebook.cells if cell.cell_type == "markdown"):
        yield f"core: has a heading '# More'; move what stands below to more/{name}_more.ipynb."
    core = measure(notebook)
    for what, most in {**MOST, "minutes": MINUTES[name]}.items():
        if (count := getattr(core, what)) > most:
            yield f"core: {count:.0f} {what}, at most {most}; shorten it or move some to more."


def core_table(notebooks: dict[str, NotebookNode]) -> str:
    """Write what each core asks for as a table."""
    counts = [*MOST, "figures", "minutes"]
    rows = [f"{'notebook':<20}" + "".join(f"{count:>13}" for count in counts)]
    for name, notebook in notebooks.items():
        core = measure(notebook)
        columns = "".join(f"{getattr(core, count):13.0f}" for count in counts)
        rows.append(f"{name:<20}{columns}")
    return "\n".join(rows)
