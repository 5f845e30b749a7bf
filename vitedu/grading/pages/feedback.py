"""The feedback page for a student.

Role: ``feedback_page`` turns a submission's grade into one HTML page. A passed exercise shows what
was tested. A failed one shows the first failed part, the recognised mistake, the evidence, why it
matters, and the next step. The page contains no reference value and no seed of the class.
``templates/feedback.html`` has the layout.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from vitedu.exercises import Exercise, find
from vitedu.grading.grades import FAILED, NOT_GRADABLE, PASSED, REASONS, ExerciseGrade
from vitedu.grading.grades import SubmissionGrade as Grade
from vitedu.grading.pages.skeleton import grade_kind, number, render

# label of a line in a report -> its label on the page; all others stay
LABELS = {
    "tested": "what was tested",
    "expected": "what should hold",
    "got": "what your answer does",
    "why": "why it matters",
    "try": "next step",
    "case": "on this input",
}
PROSE = {"why", "try", "also", "note", "remark"}  # the other lines are aligned text, shown as code
# not shown: the seed would reveal the inputs, and the parts that hold stand below
HIDDEN_LABELS = {"again", "right"}
MAX_LINES = 60  # of a cell that are shown
MAX_NEXT = 3  # exercises under "where the next points are"

# the flags that a student may read; suspicions are for the instructor only
STUDENT_FLAGS = set(
    "found_by_name duplicate elsewhere stand_ins not_code magics late two_files renamed unreadable "
    "archive no_notebook link other_file".split()
)

ADVICE = {
    "ambiguous": "Tell your instructor which of the folders or files is yours.",
    "unreadable": "Open the file in Jupyter, save it and hand it in once more.",
    "no_cell": (
        "If you wrote it, tell your instructor where: the cell may have been renamed or deleted."
    ),
    "syntax": (
        "Run the cell in your notebook: Python shows the line. Then hand the notebook in once more."
    ),
    "import": (
        "Restart the kernel and run all cells: the error shows there too. Every name that the "
        "answer uses has to be made in the notebook, in a cell of imports, helpers or constants."
    ),
    "depends": (
        "Mend the earlier answer, or use it as its own exercise describes it; your instructor "
        "decides about this one."
    ),
    "timeout": "Run the check in your notebook; if it does not come to an end, look at the loops.",
    "memory": "Look for a tensor that is larger than it needs to be; print its shape.",
    "crashed": "Restart the kernel and run the check: it must not end the kernel.",
    "flooded": "Take the prints out of the loops.",
    "unstable": (
        "Run the check in your notebook several times: something in the answer rests on chance "
        "or on an earlier call."
    ),
}


@dataclass(frozen=True)
class Card:
    """One exercise on the page."""

    exercise: Exercise
    grade: ExerciseGrade

    @cached_property
    def kind(self) -> str:
        """A key of ``SIGNS``."""
        return grade_kind(self.grade)

    @property
    def lost(self) -> float:
        """The points that a right answer would add."""
        return self.grade.max_points - (self.grade.points or 0.0)

    @property
    def lines(self) -> dict[str, list[str]]:
        """The lines of the report, by their label."""
        lines = defaultdict(list)
        for label, words in self.grade.lines:
            lines[label].append(words)
        return lines

    @property
    def code(self) -> list[tuple[int, str, bool]]:
        """The student's cell, line by line: number, text, and whether an error came from there."""
        words = "\n".join(text for _, text in self.grade.lines)
        error_lines = {int(number) for number in re.findall(r"\(line (\d+):", words)}
        lines = self.grade.code.rstrip().split("\n") if self.grade.code.strip() else []
        numbered = [(n, line, n in error_lines) for n, line in enumerate(lines, 1)]
        first = next((i for i, (_, line, _) in enumerate(numbered) if line.strip()), 0)
        return numbered[first:][:MAX_LINES]

    @property
    def notes(self) -> list[str]:
        return [flag.message for flag in self.grade.flags if flag.kind in STUDENT_FLAGS]


def feedback_page(grade: Grade) -> str:
    """Write the page of one student."""
    cards = [Card(find(each.exercise), each) for each in grade.exercises]
    failed = [card for card in cards if card.grade.state == FAILED]
    best = sorted(failed, key=lambda card: -card.lost)[:MAX_NEXT]
    all_open = grade.open_points == grade.max_points
    max_points = grade.max_points or 1.0
    return render(
        "feedback.html",
        title=f"Feedback: {grade.student}",
        grade=grade,
        cards=cards,
        kinds={card.kind for card in cards},
        all_open=all_open,
        total="open" if all_open else number(grade.points),  # a large 0 would be read as a grade
        earned_share=100 * grade.points / max_points,
        open_share=100 * grade.open_points / max_points,
        passed=sum(card.grade.state == PASSED for card in cards),
        open_exercises=sum(card.grade.state == NOT_GRADABLE for card in cards),
        notes=[flag.message for flag in grade.flags if flag.kind in STUDENT_FLAGS],
        next_points=[card for card in failed if card in best],
        notebooks=[
            (notebook, _group_alike(list(group)))
            for notebook, group in groupby(cards, key=lambda card: card.exercise.notebook)
        ],
        example=failed[0].exercise if failed else None,
        labels=LABELS,
        prose=PROSE,
        hidden=HIDDEN_LABELS,
        meanings=REASONS,
        advice=ADVICE,
        runs=max((card.grade.runs for card in cards), default=0),
        versions=", ".join(f"{name} {version}" for name, version in grade.versions.items()),
    )


def _group_alike(cards: list[Card]) -> list[list[Card]]:
    """Group exercises that are open for the same reason, so that the page gives it once."""
    groups = defaultdict(list)
    for card in cards:
        grade = card.grade
        stands_alone = grade.state != NOT_GRADABLE or grade.flags or grade.printed
        groups[grade.exercise if stands_alone else "", grade.reason, grade.detail].append(card)
    return list(groups.values())
