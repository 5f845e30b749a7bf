"""Grade the source of one answer as a notebook of two cells."""

import tempfile
from pathlib import Path

from attacks import code, notebook

from vitedu.checks.writing.checker import MOST_POLISH
from vitedu.exercises import find
from vitedu.grading.grades import ExerciseGrade, Submission
from vitedu.grading.intake.extraction import Extraction, extract
from vitedu.grading.judge import Judge
from vitedu.grading.running import StudentRuns
from vitedu.grading.student import grade_answer


def read_cells(exercise: str, *cells: str) -> Extraction:
    """Read a notebook of some cells; the last one is marked for an exercise."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{find(exercise).stem}.ipynb"
        path.write_text(notebook([*map(code, cells[:-1]), code(cells[-1], exercise)]))
        return extract(Submission("ann", (path,)))


def grade_cells(
    box, exercise: str, *cells: str, seed: int = 11, runs: int = 1, polish: float = MOST_POLISH
) -> ExerciseGrade:
    """Grade one exercise of a notebook of some cells."""
    extraction = read_cells(exercise, *cells)
    student = StudentRuns(box, extraction, [find(exercise)], Judge(seed, polish, runs))
    return grade_answer(extraction.answers[exercise], student)
