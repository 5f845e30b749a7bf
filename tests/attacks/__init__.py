"""Answers and files that try to get points they do not deserve, and honest ones that only look odd, as data.

Role: ``Attack`` and the notebooks that carry it. The tables stand in ``answers`` (what an answer's code tries), ``line`` (the
line to the judge and the process), ``claims`` (forbidden calls and forged facts), ``honest`` and ``files``. Nothing is run here.
"""

import json
from dataclasses import dataclass
from typing import Any

from vitedu.exercises import find

IMPORTS = "import math\n\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn"


@dataclass(frozen=True)
class Attack:
    """One answer and what it may earn.

    Attributes:
        source: the cell.
        worth: "full", "zeros" (what ``return x * 0`` earns), "nothing", a number of points, or the reasons, one of which an
            answer is not gradable for.
        exercise: id.
        flags: kinds that must be there, for a person to look at.
        before: cells in front of it.
    """

    source: str
    worth: str | float | tuple[str, ...]
    exercise: str = "softmax"
    flags: tuple[str, ...] = ()
    before: tuple[str, ...] = (IMPORTS,)

    def notebook(self) -> str:
        """Write the notebook that hands it in."""
        cells = [code(source) for source in self.before]
        return notebook([*cells, code(self.source, self.exercise)])

    @property
    def file(self) -> str:
        """The name of its notebook."""
        return f"{find(self.exercise).notebook}.ipynb"


def code(source: str, exercise: str = "", **others: Any) -> dict:
    """Make a code cell as the course's own notebooks have them."""
    metadata = {"vitedu": {"exercise": exercise}} if exercise else {}
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": metadata,
        "outputs": [],
        "source": source.splitlines(keepends=True),
    } | others


def notebook(cells: list[dict], minor: int = 5, **metadata: Any) -> str:
    """Make the text of a notebook file; cells get ids where the format has them."""
    if minor >= 5:
        cells = [{"id": f"cell-{number}", **cell} for number, cell in enumerate(cells)]
    content = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": minor}
    return json.dumps(content, indent=1)


def called(body: str, result: str = "x * 0") -> str:
    """Write a softmax that does something whenever it is called."""
    lines = [f"    {line}".rstrip() for line in body.strip().splitlines()]
    return "\n".join(["def softmax(x, dim=-1):", *lines, f"    return {result}\n"])


def loaded(body: str, result: str = "x * 0") -> str:
    """Write a softmax that does something once, when its cell is run."""
    lines = [f"    {line}".rstrip() for line in body.strip().splitlines()]
    once = ["def at_once():", *lines, "", "", "done = at_once()", "", ""]
    return "\n".join([*once, f"def softmax(x, dim=-1, done=done):\n    return {result}\n"])


RIGHT = """def softmax(x, dim=-1):
    exp = (x - x.amax(dim=dim, keepdim=True)).exp()
    return exp / exp.sum(dim=dim, keepdim=True)
"""
# the same in one expression, for attacks around a right answer
VALUE = "(x - x.amax(dim, True)).exp() / (x - x.amax(dim, True)).exp().sum(dim, True)"
ZEROS = "def softmax(x, dim=-1):\n    return x * 0\n"
EMPTY = "def softmax(x, dim=-1):\n    raise NotImplementedError('2.1 softmax')\n"
