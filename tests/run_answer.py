"""Run an answer as a worker does, in this process: what it is, and which statements ran."""

import tempfile
from pathlib import Path

from attacks import code, notebook

from vitedu.exercises import BY_ID
from vitedu.grading.box.names import Program
from vitedu.grading.box.package_view import earlier_exercises
from vitedu.grading.grades import Answer, Submission
from vitedu.grading.intake.extraction import extract


def written_answer(exercise: str, source: str, support: str = "") -> Answer:
    """Make an answer of the text of its cell and of a cell in front of it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "notebook.ipynb"
        path.write_text(notebook([code(support), code(source, exercise)]))
        answers = extract(Submission("ann", (path,))).answers
    return answers.get(exercise) or Answer(exercise, source, cell=2)


class RunAnswer:
    """An answer and the program that it ran in.

    Args:
        answer: from an extraction.
        own: exercises that the student has passed.
        stand_ins: exercises whose references replace his own.

    Attributes:
        value: of the exercise's name; None if it was not bound.
    """

    def __init__(self, answer: Answer, own=(), stand_ins=()):
        sent = answer.program
        earlier = {each.id for each in earlier_exercises(answer.exercise)}
        references = {id: BY_ID[id].module for id in sent.uses if id in earlier}
        mine = {id: space for id, space in sent.own.items() if id in own}
        self.program = Program(sent.spaces, references, list(stand_ins), mine, sent.mocks)
        self.error = self.program.run(*sent.targets[0], answer.exercise)
        self.names = self.program.spaces[sent.targets[0][0]].globals
        self.value = self.names.get(answer.exercise)

    @property
    def ran(self) -> list[str]:
        """The texts of the statements that ran."""
        spaces = self.program.spaces.values()
        return [space.statements[place].text for space in spaces for place in sorted(space.done)]
