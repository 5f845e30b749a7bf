"""nbgrader beside the grader: the same files, graded by its own ``autograde``.

Role: ``Course`` (a course of one assignment, in a process of its own that stays loaded, so that no
start-up is counted) and what runs in that process. Needs nbgrader, which nothing else here does.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import nbformat

from bench.made_class import Student, filled
from vitedu.grading.adapters.assign import assign_nbgrader

SECONDS = 120  # one cell may take so long


class Course:
    """An nbgrader course with submissions. A context manager.

    Args:
        notebook: with stubs and checks.
        stem: its name, and that of the assignment.
        students: who has handed in.
        folder: where it is made.

    Raises:
        RuntimeError: nbgrader does not take the assignment.
    """

    def __init__(self, notebook, stem: str, students: list[Student], folder: Path):
        self.folder, self.stem = folder.resolve(), stem
        source = folder.parent / "lean" / f"{stem}.ipynb"
        source.parent.mkdir()
        nbformat.write(notebook, source)
        assign_nbgrader(folder, source.parent)
        environment = {
            **os.environ,
            "VITEDU_HOME": str(folder / "home"),
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",  # for alembic
            **{
                f"JUPYTER_{kind}_DIR": str(folder / "jupyter")
                for kind in ("CONFIG", "DATA", "RUNTIME")
            },
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.nbgrader", str(folder), stem],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=folder,
            text=True,
        )
        assert self._process.stdin and self._process.stdout  # both are pipes
        self._input, self._output = self._process.stdin, self._process.stdout
        try:
            self._ask("")
            released = json.loads((folder / "release" / stem / f"{stem}.ipynb").read_text())
            for student in students:
                path = folder / "submitted" / student.name / stem / f"{stem}.ipynb"
                path.parent.mkdir(parents=True)
                path.write_text(filled(released, answers_in(student.text)), encoding="utf-8")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def autograde(self, student: str) -> float:
        """Grade one student; give the seconds on the clock."""
        return self._ask(student)["seconds"]

    def scores(self) -> dict[str, float]:
        """Give the points of all who were graded."""
        return self._ask("?")

    def close(self) -> None:
        """End the process."""
        self._input.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()

    def _ask(self, word: str):
        self._input.write(word + "\n")
        self._input.flush()
        line = self._output.readline()
        reply = json.loads(line) if line else {"error": "its process ended"}
        if "error" in reply:
            raise RuntimeError(
                f"nbgrader, {word or 'generate_assignment'}: {reply['error'][-1000:]}"
            )
        return reply


def answers_in(text: str) -> dict[str, str]:
    """Read the answers back out of the text of a notebook."""
    cells = [
        cell
        for cell in json.loads(text)["cells"]
        if "exercise" in cell["metadata"].get("vitedu", {})
    ]
    return {cell["metadata"]["vitedu"]["exercise"]: cell["source"] for cell in cells}


# --- in the process of its own ------------------------------------------------------------------


def main(folder: str, stem: str) -> None:
    """Serve: an empty line makes the assignment, a name grades, "?" tells all scores."""
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import Config

    line = sys.stdout
    sys.stdout = sys.stderr
    config = Config()
    config.CourseDirectory.root = folder
    config.CourseDirectory.course_id = "bench"
    config.Execute.timeout = SECONDS
    config.ClearSolutions.code_stub = {"python": "raise NotImplementedError"}
    api = NbGraderAPI(config=config)
    for word in sys.stdin:
        word = word.strip()
        start = time.perf_counter()
        if word == "?":
            with api.gradebook as book:
                reply = {each.student.id: each.score for each in book.assignment_submissions(stem)}
        else:
            result = api.autograde(stem, word) if word else api.generate_assignment(stem)
            reply = {"seconds": time.perf_counter() - start}
            if not result["success"]:
                reply = {"error": result.get("error") or result.get("log") or "it failed"}
        print(json.dumps(reply), file=line, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
