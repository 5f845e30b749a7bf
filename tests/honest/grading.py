"""Grade honest notebooks as one class, and say what each loses and why."""

from dataclasses import dataclass
from pathlib import Path

from honest import Student, hand_in
from vitedu.exercises import EXERCISES
from vitedu.grading.batch import grade_class
from vitedu.grading.grades import NOT_GRADABLE, ExerciseGrade

SEED = 5


@dataclass(frozen=True)
class Verdict:
    """What the grader says about one student."""

    student: str
    exercises: tuple[str, ...]
    word: str  # full, open, below: the worst of the exercises
    reasons: list[str]  # a line an exercise that is not full
    is_fair: bool


def grade(handed_in: list[Student], folder: Path) -> list[Verdict]:
    """Hand in, grade every exercise that anybody answered, and judge the grader."""
    hand_in(folder / "in", handed_in)
    answered = {id for student in handed_in for id in student.exercises}
    found = {}

    def on_finish(store, outcome, chosen):
        found.update({name: store.load(name) for name in outcome.students})

    ids = [exercise.id for exercise in EXERCISES if exercise.id in answered]
    options = {"exercises": ids, "seed": SEED, "allow_unsafe": True, "on_finish": on_finish}
    grade_class(folder / "in", folder / "out", **options)
    return [_verdict(student, found[student.name]) for student in handed_in]


def _verdict(student: Student, graded) -> Verdict:
    grades = [each for each in graded.exercises if each.exercise in student.exercises]
    words = {each.exercise: _word(each) for each in grades}
    worst = next(word for word in ("below", "open", "full") if word in words.values())
    reasons = [_reason(each) for each in grades if words[each.exercise] != "full"]
    is_fair = worst in (student.verdict, "full")
    return Verdict(student.name, student.exercises, worst, reasons, is_fair)


def _word(graded: ExerciseGrade) -> str:
    if graded.state == NOT_GRADABLE:
        return "open"
    return "full" if graded.points == graded.max_points else "below"


def _reason(graded: ExerciseGrade) -> str:
    """Say in a line what became of an exercise."""
    if graded.state == NOT_GRADABLE:
        return f"{graded.exercise}: open, {graded.reason}: {graded.detail}"
    said = " ".join(text for label, text in graded.lines if label == "got")
    flags = ", ".join(flag.kind for flag in graded.flags)
    words = f"{graded.points:g} of {graded.max_points:g}: {graded.headline}"
    return f"{graded.exercise}: {words} {graded.detail} {said[:160]} [{flags}]"
