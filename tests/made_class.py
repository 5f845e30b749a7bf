"""A class made for tests: grades by hand, and a grader's parts that judge without running anything.

A submission is a text file of lines ``exercise: what becomes of it``, so that a test says in a line
what was handed in.
"""

import json
import threading
from types import SimpleNamespace

from vitedu.exercises import find
from vitedu.grading.grades import Answer, ExerciseGrade, Flag, Submission, SubmissionGrade
from vitedu.grading.student import Parts

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="10"><rect width="40"/></svg>'
LINES = {"expected": "row first", "got": "7/9 values differ", "why": "Order matters."}
LINES |= {"try": "Print the shape.", "case": "2 images of 6 x 6"}
LINES["again"] = 'check(..., "patchify", seed=987654) repeats these inputs'
RETURNS = {"name": "returns", "passed": True, "skipped": False, "points": 1.5, "max_points": 1.5}
VALUES = {"name": "values", "passed": False, "skipped": False, "points": 0.0, "max_points": 4.5}


def exercise_grade(exercise="patchify", state="passed", **fields):
    """A grade of one exercise with all that a report has."""
    points = float(find(exercise).points)
    known = {
        "passed": {
            "points": points,
            "lines": [["tested", "equals the definition on random inputs"]],
            "runs": 3,
        },
        "failed": {
            "points": 1.5,
            "headline": "rows and columns are swapped",
            "lines": [list(line) for line in LINES.items()],
            "findings": [
                RETURNS | {"message": "runs and returns the right types"},
                VALUES | {"message": "expected this; got that"},
            ],
            "misconceptions": ["row_major"],
            "picture": SVG,
            "runs": 3,
        },
        "not_gradable": {"reason": "timeout", "detail": "no reply within 10 s", "runs": 1},
    }[state]
    return ExerciseGrade(exercise, state, **{"max_points": points} | known | fields)


def submission_grade(student="Anna", exercises=None, **fields):
    """A grade of one submission."""
    known = {
        "files": ["01_patches.ipynb"],
        "digest": "d",
        "seed": 987654,
        "isolation": "full",
        "exercises": exercises or [exercise_grade()],
        "versions": {"vitedu": "0.1.0", "torch": "2.15"},
    }
    return SubmissionGrade(student, **known | fields)


class FakeBox:
    """A box that counts who is inside."""

    def __init__(self, level="full"):
        self.level, self.inside, self.most, self.is_open = level, 0, 0, False
        self.lock = threading.Lock()

    def __enter__(self):
        self.is_open = True
        return self

    def __exit__(self, *_):
        self.is_open = False


def find_submissions(folder):
    """A student a file."""
    files = sorted(folder.glob("*.txt"))
    return SimpleNamespace(submissions=[Submission(f.stem, (f,)) for f in files], problems=[])


def extract(submission):
    """Read ``exercise: words`` lines; a line ``raise`` is a fault of the grader."""
    answers = {}
    for line in submission.files[0].read_text().splitlines():
        if line == "raise":
            raise RuntimeError("the extraction broke")
        exercise, _, words = line.partition(": ")
        answers[exercise] = Answer(exercise, words)
    notebooks = {find(exercise).stem for exercise in answers}
    return SimpleNamespace(answers=answers, problems={}, flags=[], notebooks=notebooks, given=set())


def judge(answer, runs):
    """Do what the answer says: a state, or an exception to raise."""
    box = runs.box
    assert box.is_open
    with box.lock:
        box.inside += 1
        box.most = max(box.most, box.inside)
    try:
        word, _, rest = answer.source.partition(" ")
        if word == "raises":
            known = {"error": RuntimeError, "exit": SystemExit, "memory": MemoryError}
            raise known[rest]("on purpose")
        fields = json.loads(rest) if rest else {}
        return exercise_grade(answer.exercise, word, **fields)
    finally:
        with box.lock:
            box.inside -= 1


def compare(answers):
    """Flag those whose answer to patchify is somebody else's."""
    flags, first = {}, {}
    for student, own in sorted(answers.items()):
        source = own["patchify"].source if "patchify" in own else None
        if source and source in first:
            flags[student] = [Flag("similar", f"patchify is that of {first[source]}")]
        first.setdefault(source, student)
    return flags


def made_parts(box=None, **others):
    """Put the parts together; ``others`` take the place of single ones."""
    box = box or FakeBox()
    known = {
        "find": find_submissions,
        "extract": extract,
        "open_box": lambda *, allow_unsafe: box,
        "grade": judge,
        "compare": compare,
    }
    return Parts(**known | others)


def hand_in(folder, **students):
    """Write submissions: ``hand_in(folder, anna={"patchify": "passed"})``."""
    folder.mkdir(exist_ok=True)
    for student, answers in students.items():
        if not isinstance(answers, str):
            answers = "\n".join(f"{exercise}: {words}" for exercise, words in answers.items())
        (folder / f"{student}.txt").write_text(answers)
    return folder
