"""Grade honest notebooks as one class, and say what each loses and why."""

from dataclasses import dataclass
from pathlib import Path

from proof.honest import Student, hand_in
from vitedu.exercises import EXERCISES
from vitedu.grading.batch import grade_class
from vitedu.grading.grades import NOT_GRADABLE, ExerciseGrade, Flag, SubmissionGrade

SEED = 5
ACCUSING = {"dangerous", "like_reference", "similar"}  # kinds of flags


@dataclass(frozen=True)
class Verdict:
    """What the grader says about one student."""

    student: str
    exercises: list[str]
    word: str  # full, open, below: the worst of the exercises
    reasons: list[str]  # a line an exercise that is not full
    is_fair: bool
    accusations: list[str]  # flags that make a person look for a cheat


def grade(handed_in: list[Student], folder: Path) -> list[Verdict]:
    """Hand in, grade every exercise that anybody answered, and judge the grader."""
    hand_in(folder / "in", handed_in)
    answered = {id for student in handed_in for id in student.exercises}
    found, class_flags = {}, {}

    def on_finish(store, outcome):
        found.update({name: store.load(name) for name in outcome.students})
        class_flags.update(outcome.class_flags)

    ids = [exercise.id for exercise in EXERCISES if exercise.id in answered]
    options = {"exercises": ids, "seed": SEED, "allow_unsafe": True, "on_finish": on_finish}
    grade_class(folder / "in", folder / "out", **options)
    return [_verdict(s, found[s.name], class_flags.get(s.name, [])) for s in handed_in]


def _verdict(student: Student, graded: SubmissionGrade, class_flags: list[Flag]) -> Verdict:
    grades = [each for each in graded.exercises if each.exercise in student.exercises]
    words = {each.exercise: _word(each) for each in grades}
    worst = next(word for word in ("below", "open", "full") if word in words.values())
    reasons = [_reason(each) for each in grades if words[each.exercise] != "full"]
    is_fair = worst in (student.verdict, "full")
    flags = [*class_flags, *(flag for each in graded.exercises for flag in each.flags)]
    accusations = [f"{flag.kind}: {flag.message}" for flag in flags if flag.kind in ACCUSING]
    return Verdict(student.name, student.exercises, worst, reasons, is_fair, accusations)


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
