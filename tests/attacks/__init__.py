"""Answers and files that try to get points they do not deserve, and honest ones that only look odd.

Role: ``Attack``, the notebooks that carry it, and ``table``, which reads attacks from a TOML file:
``answers`` (what an answer's code tries), ``line`` (the line to the judge and the process),
``forbidden`` (calls that hide), ``claims`` (forged facts), ``running`` (notebooks that run as a
whole) and ``honest``. Odd files stand in ``files`` and ``editors``. Nothing is run here.
"""

import json
import re
import textwrap
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitedu.exercises import find

IMPORTS = "import math\n\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn"


@dataclass(frozen=True)
class Attack:
    """One answer and what it may earn.

    Attributes:
        source: the cell.
        worth: words, one of which says what it earns: "full", "less", "zeros" (what
            ``return x * 0`` earns), "nothing", a number of points, or why it is not gradable.
        exercise: id.
        flags: kinds that must be there, for a person to look at.
        stem: of its notebook, where that is not the exercise's.
        before: cells in front of it.
    """

    source: str
    worth: str
    exercise: str = "softmax"
    flags: str = ""
    stem: str = ""
    before: tuple[str, ...] = (IMPORTS,)

    def notebook(self) -> str:
        """Write the notebook that hands it in."""
        return notebook([*map(code, self.before), code(self.source, self.exercise)])

    @property
    def file(self) -> str:
        """The name of its notebook."""
        return f"{self.stem or find(self.exercise).stem}.ipynb"


def code(source: str, exercise: str = "", **others: Any) -> dict:
    """Make a code cell as the course's own notebooks have them."""
    metadata = {"vitedu": {"exercise": exercise}} if exercise else {}
    lines = source.splitlines(keepends=True)
    cell = {"cell_type": "code", "execution_count": None, "metadata": metadata, "outputs": []}
    return cell | {"source": lines} | others


def notebook(cells: list[dict], minor: int = 5, **metadata: Any) -> str:
    """Make the text of a notebook file; cells get ids where the format has them."""
    if minor >= 5:
        cells = [{"id": f"cell-{number}", **cell} for number, cell in enumerate(cells)]
    content = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": minor}
    return json.dumps(content, indent=1)


RIGHT = """def softmax(x, dim=-1):
    exp = (x - x.amax(dim=dim, keepdim=True)).exp()
    return exp / exp.sum(dim=dim, keepdim=True)
"""
VALUE = "(x - x.amax(dim, True)).exp() / (x - x.amax(dim, True)).exp().sum(dim, True)"
ZEROS = "def softmax(x, dim=-1):\n    return x * 0\n"
EMPTY = "def softmax(x, dim=-1):\n    raise NotImplementedError('2.1 softmax')\n"


def called(body: str) -> str:
    """Write a softmax that does something whenever it is called; it gives zeros or what it says."""
    if not body.splitlines()[-1].startswith("return"):
        body += "return x * 0\n"
    return f"def softmax(x, dim=-1):\n{textwrap.indent(body, '    ')}"


def loaded(body: str, result: str = "x * 0") -> str:
    """Write a softmax that does something once, when its cell is run."""
    once = f"def at_once():\n{textwrap.indent(body, '    ')}\n\ndone = at_once()\n\n\n"
    return f"{once}def softmax(x, dim=-1, done=done):\n    return {result}\n"


# what an attack of a group is written into
GROUPS = {
    "cells": str,
    "called": called,
    "loaded": loaded,
    "loaded, then right": lambda body: loaded(body, VALUE),
    "results": lambda body: f"def softmax(x, dim=-1):\n    return {body}",
}


def table(name: str) -> dict[str, Attack]:
    """Read the attacks of a TOML file: a table an attack, ``[group.name]``, whose keys are fields.

    A line of ``source`` that is RIGHT or a name in ``[words]`` stands for that text, as far to the
    right as the name; VALUE is known everywhere. ``# %%`` ends a cell before the answer.
    """
    text = Path(__file__).with_name(f"{name}.toml").read_text("utf-8").replace("VALUE", VALUE)
    groups = tomllib.loads(text)
    words, found = {"RIGHT": RIGHT}, {}

    def fill(body: str) -> str:
        word = r"(?m)^( *)([A-Z]+)\n"
        return re.sub(word, lambda line: textwrap.indent(words[line[2]], line[1]), body)

    for word, body in groups.pop("words", {}).items():
        words[word] = fill(body)
    for group, attacks in groups.items():
        for title, fields in attacks.items():
            *before, source = fill(fields.pop("source")).split("# %%\n")
            found[title] = Attack(GROUPS[group](source), before=(IMPORTS, *before), **fields)
    return found
