"""The feedback page for a student.

Role: ``feedback_page`` turns a submission's grade into one HTML page. A passed exercise shows what
was tested. A failed one shows the first failed part, the recognised mistake, the evidence, why it
matters, and the next step. The page contains no reference value and no seed of the class.
``templates/feedback.html`` has the layout.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import groupby

from vitedu.exercises import Exercise, find
from vitedu.grading.grades import FAILED, NOT_GRADABLE, REASONS, WORDS, ExerciseGrade
from vitedu.grading.grades import SubmissionGrade as Grade
from vitedu.grading.pages.skeleton import grade_kind, render

MAX_LINES = 60  # of a cell that are shown
MAX_NEXT = 3  # exercises under "where the next points are"

# the flags that a student may read; suspicions are for the instructor only
STUDENT_FLAGS = {kind for kind, table in WORDS["flags"].items() if table.get("student")}
ADVICE = {reason: t["advice"] for reason, t in WORDS["reasons"].items() if "advice" in t}


@dataclass(frozen=True)
class Card:
    """One exercise on the page."""

    exercise: Exercise
    grade: ExerciseGrade

    @property
    def kind(self) -> str:
        """A key of ``SIGNS``."""
        return grade_kind(self.grade)

    @property
    def lost(self) -> float:
        """The points that a right answer would add."""
        return self.grade.max_points - (self.grade.points or 0.0)

    @property
    def code(self) -> list[tuple[int, str, bool]]:
        """The student's cell, line by line: number, text, and whether an error came from there."""
        said = "\n".join(text for _, text in self.grade.lines)
        error_lines = {int(number) for number in re.findall(r"\(line (\d+):", said)}
        lines = self.grade.code.rstrip().split("\n") if self.grade.code.strip() else []
        numbered = [(n, line, n in error_lines) for n, line in enumerate(lines, 1)]
        first = next((i for i, (_, line, _) in enumerate(numbered) if line.strip()), 0)
        return numbered[first:][:MAX_LINES]


def feedback_page(grade: Grade) -> str:
    """Write the page of one student."""
    cards = [Card(find(each.exercise), each) for each in grade.exercises]
    failed = [card for card in cards if card.grade.state == FAILED]
    best = sorted(failed, key=lambda card: -card.lost)[:MAX_NEXT]
    return render(
        "feedback.html",
        title=f"Feedback: {grade.student}",
        grade=grade,
        cards=cards,
        missed=failed,
        next_points=[card for card in failed if card in best],
        notebooks=[
            (notebook, _group_alike(list(group)))
            for notebook, group in groupby(cards, key=lambda card: card.exercise.notebook)
        ],
        readable=STUDENT_FLAGS,
        meanings=REASONS,
        advice=ADVICE,
    )


def _group_alike(cards: list[Card]) -> list[list[Card]]:
    """Group exercises that are open for the same reason, so that the page gives it once."""
    groups = defaultdict(list)
    for card in cards:
        grade = card.grade
        stands_alone = grade.state != NOT_GRADABLE or grade.flags or grade.printed
        groups[grade.exercise if stands_alone else "", grade.reason, grade.detail].append(card)
    return list(groups.values())
