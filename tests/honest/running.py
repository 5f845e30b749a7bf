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

from honest import Student, hand_in

SEED = 1


def wrong_answers(handed_in: list[Student]) -> Iterator[tuple[Student, list[str]]]:
    """Yield every student with what is wrong in his notebooks: nothing, if they are honest.

    Students whose Python is newer than this one are left out.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(["IPython.core.interactiveshell", "vitedu.checks.api"])
    for student in handed_in:
        if sys.version_info < student.needs:
            continue
        with tempfile.TemporaryDirectory() as folder, context.Pool(1) as pool:
            hand_in(Path(folder), [student])
            yield student, pool.apply(_run, (student, f"{folder}/{student.name}"))


def _run(student: Student, folder: str) -> list[str]:
    """Run the files in order; list cells that raise and exercises that never were right."""
    from IPython.core.interactiveshell import InteractiveShell

    from vitedu.checks.api import judge

    os.environ |= {"VITEDU_HOME": folder, "VITEDU_KEEP_SOURCES": "1", "VITEDU_PROFILE": "quick"}
    os.environ["MPLBACKEND"] = "Agg"
    os.chdir(folder)
    sys.path.insert(0, folder)
    problems, verdicts = [], {}
    for name, text in student.files.items():
        InteractiveShell.clear_instance()
        shell, judged = InteractiveShell.instance(), {}
        for number, cell in enumerate(json.loads(text)["cells"], 1):
            if cell["cell_type"] != "code":
                continue
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                result = shell.run_cell("".join(cell["source"]), store_history=True)
            if not result.success and "raises-exception" not in cell["metadata"].get("tags", ()):
                problems.append(f"{name}, cell {number}: {printed.getvalue()[-300:]}")
            for id in student.exercises:
                value = shell.user_ns.get(id)
                # a class may have been changed without a new object
                if value is None or (judged.get(id) is value and not isinstance(value, type)):
                    continue
                judged[id] = value
                report = judge(value, id, seed=SEED)
                verdicts.setdefault(id, []).append(report.status)
                if report.is_flawless:
                    verdicts[id].append("flawless")
    for id in student.exercises:
        if "flawless" not in verdicts.get(id, []):
            problems.append(f"{id} was {', '.join(verdicts.get(id, ['never there']))}")
    return problems
