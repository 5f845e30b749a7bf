"""Run honest notebooks as their students did, and ask ``check`` about the answers.

Role: ``wrong_answers``. Each student's notebooks run in a process of their own, in IPython, so that
magics, ``my_vit.py`` and files of a student's own work as they do for him.
"""

import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

from proof.honest import Student, hand_in

SEED = 1
RIGHT = "right"


def wrong_answers(handed_in: list[Student]) -> Iterator[tuple[Student, list[str]]]:
    """Yield every student with what is wrong in his notebooks: nothing, if they are honest.

    Students whose Python is newer than this one are left out.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(["IPython.core.interactiveshell", "vitedu.checks.api"])
    for student in handed_in:
        if sys.version_info < tuple(student.needs):
            continue
        with tempfile.TemporaryDirectory() as folder, context.Pool(1) as pool:
            hand_in(Path(folder), [student])
            yield student, pool.apply(_run, (student, f"{folder}/{student.name}"))


def _run(student: Student, folder: str) -> list[str]:
    """Run the files in order; list cells that raise, and exercises whose answer never was right."""
    os.environ |= {"VITEDU_HOME": folder, "VITEDU_KEEP_SOURCES": "1", "VITEDU_PROFILE": "quick"}
    os.environ["MPLBACKEND"] = "Agg"
    os.chdir(folder)
    sys.path.insert(0, folder)
    problems: list[str] = []
    said: dict[str, list[str]] = {id: [] for id in student.exercises}
    for name, text in student.files.items():
        if not name.endswith(".ipynb"):
            continue
        problems += [f"{name}, {problem}" for problem in _run_file(text, said)]
    wrong = {id: heads for id, heads in said.items() if RIGHT not in heads}
    return problems + [f"{id}: {', then '.join(heads) or 'none'}" for id, heads in wrong.items()]


def _run_file(text: str, said: dict[str, list[str]]) -> Iterator[str]:
    """Run one notebook; yield what its cells raise, and note what is said about each answer."""
    from IPython.core.interactiveshell import InteractiveShell

    from vitedu.checks.api import judge

    InteractiveShell.enable_gui = lambda *_: None  # for %matplotlib: there is no window
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    judged: dict[str, object] = {}
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    if all(cell["execution_count"] for cell in cells):
        cells.sort(key=lambda cell: cell["execution_count"])
    for number, cell in enumerate(cells, 1):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            result = shell.run_cell("".join(cell["source"]), store_history=True)
        if not result.success and "raises-exception" not in cell["metadata"].get("tags", ()):
            yield f"code cell {number}: {printed.getvalue()[-300:]}"
        for id, heads in said.items():
            answer = shell.user_ns.get(id) if RIGHT not in heads else None
            # at the end once more: a cell may have changed an object, such as a class
            if answer is not None and (number == len(cells) or judged.get(id) is not answer):
                judged[id], report = answer, judge(answer, id, seed=SEED)
                heads.append(RIGHT if report.is_flawless else report.head)
