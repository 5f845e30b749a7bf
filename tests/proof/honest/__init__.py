"""Honest notebooks: right answers as real students write and save them.

Role: ``students`` reads what stands in ``notebooks/``, a text file a student, and ``hand_in``
writes the notebook files. Whatever such a notebook loses is the grader's fault. Nothing is run
here: ``running`` shows that the answers are right, ``__main__`` grades them.

A text file begins with ``about:`` (what is special), ``exercises:`` (those that are judged) and
``verdict:`` (``full``, or ``open`` where that is all that a grader can say). ``reader:`` is the
word of the grader that reads notebooks, where it is another; ``needs: 3.12`` names the Python that
the student had. ``# === NAME`` begins a file, the word after it says who saved it; a file that is
no notebook is written as it stands. ``# %%`` begins a cell, and the words after it say more
(``In[7]`` in front of them: the seventh that was run):

* an exercise: its mark in the metadata;
* ``[markdown]`` or ``[raw]``: no code;
* ``[attachment]``: text with a picture of more than 4 MB attached;
* ``raises``: a cell that its student left broken;
* ``stub EXERCISE``, ``imports NOTEBOOK``: a cell of the course, as it was handed out.

``PICTURE`` stands for a picture of more than 4 MB, pasted into a text.
"""

import base64
import os
import random
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from attacks import code, editors, notebook

from vitedu.course.notebooks import read, shelf_path
from vitedu.exercises import find

COURSE = Path(__file__).parents[3] / "notebooks"
EDITORS = {
    "": notebook,
    "colab": editors.colab,
    "vscode": editors.vscode,
    "jupyterlab": editors.jupyterlab,
}


@dataclass(frozen=True)
class Student:
    """What one student handed in, and what a fair grader says about it."""

    name: str
    about: str
    exercises: tuple[str, ...]
    verdict: str  # "full" or "open"
    files: dict[str, str]  # name -> text; oldest first
    reader: str  # what the grader that reads says today: "full", "open" or "below"
    needs: tuple[int, ...] = ()  # version of Python


def students() -> list[Student]:
    """Read all students, in the order of names."""
    return [read_student(path) for path in sorted(Path(__file__).parent.glob("notebooks/*.txt"))]


def read_student(path: Path) -> Student:
    """Read one text file."""
    head, *parts = re.split(r"^# === (.+)\n", path.read_text("utf-8"), flags=re.M)
    about = dict(line.split(": ", 1) for line in head.splitlines())
    files = {}
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        name, _, editor = title.partition(" saved by ")
        if not name.endswith(".ipynb"):
            files[name] = text
            continue
        _, *cells = re.split(r"^# %%(?: (.+))?\n", text, flags=re.M)
        pairs = zip(cells[::2], cells[1::2], strict=True)
        files[name] = EDITORS[editor]([_cell(kind or "", body) for kind, body in pairs])
    return Student(
        path.stem,
        about["about"],
        tuple(about["exercises"].split()),
        about["verdict"],
        files,
        about.get("reader", about["verdict"]),
        tuple(map(int, about.get("needs", "3").split("."))),
    )


def hand_in(folder: Path, handed_in: list[Student]) -> None:
    """Write the files, a folder a student, each file a minute newer than the one before."""
    for student in handed_in:
        for number, (name, text) in enumerate(student.files.items()):
            path = folder / student.name / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            os.utime(path, (1.7e9 + 60 * number,) * 2)


def _cell(kind: str, body: str) -> dict:
    """Make a cell from the words of its heading and its text."""
    if match := re.match(r"In\[(\d+)\] ?", kind):
        return _cell(kind[match.end() :], body) | {"execution_count": int(match[1])}
    words = kind.split()
    if words[:1] == ["stub"]:
        exercise = find(words[1])
        cells = read(COURSE / shelf_path(f"{exercise.stem}.ipynb")).cells
        marked = [c for c in cells if c.metadata.get("vitedu", {}).get("exercise") == exercise.id]
        return code(marked[0].source, exercise.id)
    if words[:1] == ["imports"]:
        cells = read(COURSE / f"{words[1]}.ipynb").cells
        return code(next(c.source for c in cells if "from vitedu import " in c.source))
    body = body.strip("\n")
    if kind.startswith("["):
        source = body.replace("PICTURE", picture()).splitlines(keepends=True)
        kind = kind.strip("[]").replace("attachment", "markdown")
        attached = {"attachments": {"map.png": {"image/png": picture().split(",")[1]}}}
        cell = {"cell_type": kind, "metadata": {}, "source": source}
        return cell | attached if "attachment:" in body else cell
    if kind == "raises":
        return code(body) | {"metadata": {"tags": ["raises-exception"]}}
    return code(body, find(kind).id if kind else "")


@cache
def picture() -> str:
    """Make the address of a picture as Colab pastes it: 4.5 MB that do not compress."""
    data = b"\x89PNG\r\n\x1a\n" + random.Random(0).randbytes(3_400_000)
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"
