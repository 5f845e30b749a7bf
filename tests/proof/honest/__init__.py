"""Honest notebooks: right answers as real students write and save them.

Role: ``students`` reads what stands in ``notebooks/``, a TOML file a student, and ``hand_in``
writes the notebook files. Whatever such a notebook loses is the grader's fault. Nothing is run
here: ``running`` shows that the answers are right, ``__main__`` grades them.

``about`` says what is special, ``exercises`` which are judged, ``verdict`` is ``full``, or ``open``
where that is all that a grader can say; ``needs`` is the Python that the student had. A table
``[[files]]`` is a file: its ``name``, its ``text``, and the ``editor`` that saved it. A notebook's
text is cut by ``# %%``, as scripts are; a file that is no notebook is written as it stands. The
words after ``# %%`` say more (``In[7]`` in front of them: the seventh that was run):

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
import tomllib
from dataclasses import dataclass, field
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
    exercises: list[str]
    verdict: str  # "full" or "open"
    files: dict[str, str]  # name -> text; oldest first
    needs: list[int] = field(default_factory=list)  # version of Python


def students() -> list[Student]:
    """Read all students, in the order of names."""
    return [read_student(path) for path in sorted(Path(__file__).parent.glob("notebooks/*.toml"))]


def read_student(path: Path) -> Student:
    """Read one TOML file."""
    fields = tomllib.loads(path.read_text("utf-8"))
    files = {file["name"]: _content(**file) for file in fields.pop("files")}
    return Student(path.stem, files=files, **fields)


def _content(name: str, text: str, editor: str = "") -> str:
    """Give what stands in a file."""
    if not name.endswith(".ipynb"):
        return text
    _, *cells = re.split(r"^# %%(?: (.+))?\n", text, flags=re.M)
    pairs = zip(cells[::2], cells[1::2], strict=True)
    return EDITORS[editor]([_cell(kind or "", body) for kind, body in pairs])


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
