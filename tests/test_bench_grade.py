"""The made class of `make bench-grade`, and the real grader on a small one."""

import ast
import json
import math
from collections import Counter
from pathlib import Path

import psutil
import pytest
import torch
from bench import grade as bench
from bench import made_class as bench_class
from bench.grade import Clock, differences, measure
from bench.made_class import (
    HOSTILE,
    MIX,
    Expected,
    Student,
    hostile,
    kinds_of,
    lean_notebook,
    make_class,
    right,
    wrong,
)
from made_class import exercise_grade, submission_grade
from sound_notebook import build

from vitedu import patches
from vitedu.checks.engine import judge_answer
from vitedu.checks.writing.checker import find_checker
from vitedu.exercises import find, in_notebook

pytestmark = pytest.mark.slow

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def test_mix_fills_the_class():
    """Shares sum to one; the rest of a division is right."""
    assert sum(MIX.values()) == pytest.approx(1.0, abs=1e-12)
    assert Counter(kinds_of(200)) == {
        "right": 80,
        "partly": 70,
        "wrong": 20,
        "idle": 15,
        "hostile": 15,
    }
    assert len(kinds_of(7)) == 7


def test_lean_notebook_has_every_stub_and_check_and_nothing_else():
    """One of each for every exercise, and the imports; no output."""
    notebook = lean_notebook(NOTEBOOKS, "01_patches")
    ids = [exercise.id for exercise in in_notebook("01_patches")]
    assert [c.metadata.vitedu.exercise for c in notebook.cells[1::2]] == ids
    assert all(f"check({id}" in c.source for id, c in zip(ids, notebook.cells[2::2], strict=True))
    assert not any(cell.outputs for cell in notebook.cells)


def test_answers_are_worth_what_is_said():
    """Right ones all points; wrong ones fewer, forgotten errors among them; each is Python."""
    points = find("patchify").points
    assert len(right("patchify")) > 3
    assert {answer.expected for answer in right("patchify")} == {Expected("passed", points)}
    values = [answer.expected.points for answer in wrong("patchify")]
    assert len(values) == bench_class.POOL and all(0 <= value < points for value in values)
    assert 0 in values and max(values) > points / 2  # the error of the exercise, forgotten
    for answer in [*right("patchify"), *wrong("patchify"), *wrong("stem_tokens")]:
        ast.parse(answer.source)
    assert wrong("patchify") is wrong("patchify")  # judged once


@pytest.mark.parametrize("exercise", in_notebook("01_patches"), ids=lambda exercise: exercise.id)
def test_right_answers_stand_alone(exercise):
    """Each brings its helpers, and passes beside earlier answers and a notebook's imports."""
    for answer in right(exercise.id):
        names = {"torch": torch, "math": math, "nn": torch.nn, "F": torch.nn.functional}
        names["sincos_positions"] = patches.sincos_positions
        exec(answer.source, names)
        report = judge_answer(find_checker(exercise.id), names[exercise.id], 5)
        assert report.passed, f"{answer.source}\n{report}"


def test_every_attack_is_python_and_has_an_outcome():
    """Of those that are refused, the points are those of an answer that raises."""
    for kind in HOSTILE:
        made = hostile(find("patchify"), kind)
        ast.parse(made.source)
        assert made.expected.state in ("passed", "failed", "not_gradable")
    assert hostile(find("patchify"), "fork bomb").expected == Expected("failed", 0.0)


def test_a_class_is_the_same_for_the_same_seed(monkeypatch):
    """Whoever repeats a measurement grades the same files; another seed gives others."""
    monkeypatch.setattr(
        bench_class, "in_notebook", lambda stem: [find("patchify"), find("stem_tokens")]
    )
    notebook = build("01_patches")
    first = list(make_class(notebook, "01_patches", 40))
    assert first == list(make_class(notebook, "01_patches", 40))
    assert first != list(make_class(notebook, "01_patches", 40, seed=1))
    kinds = Counter(student.kind for student in first)
    assert kinds["idle"] == kinds["endless loop"] + kinds["os._exit"] + kinds["4 GB"] == 3
    for student in first:
        cells = json.loads(student.text)["cells"]
        assert set(student.expected) == {"patchify", "stem_tokens"} and len(cells) == len(
            notebook.cells
        )


def test_a_grade_that_is_not_the_expected_one_is_told():
    """Points, state or a whole student."""
    known = {"patchify": Expected("passed", 6.0)}
    made = [Student("anna", "right", "", known), Student("ben", "right", "", known)]
    grades = {"anna": submission_grade("anna", [exercise_grade("patchify")])}
    assert differences(made, grades) == ["ben: no grade"]
    grades["ben"] = submission_grade("ben", [exercise_grade("patchify", points=5.0)])
    (line,) = differences(made, grades)
    assert line.startswith("ben (right), patchify: ") and "5.0" in line


def test_judging_is_what_workers_do_not_take():
    """Shares are of the whole, each second counted once."""
    clock = Clock()
    clock.seconds = {
        "an answer": 5.0,
        "starting workers": 1.0,
        "answers": 2.0,
        "ending workers": 0.5,
        "reading": 1.0,
    }
    assert clock.shares()["judging"] == 1.5
    assert sum(clock.shares().values()) == 6.0


def test_a_made_class_gets_the_grades_that_were_known_before(monkeypatch, tmp_path, capsys):
    """One of each kind through the real grader: hostile ones too, and nobody else's points move."""
    monkeypatch.setattr(bench_class, "in_notebook", lambda stem: [find("patchify")])
    monkeypatch.setattr(
        bench_class, "MIX", {"right": 0.2, "partly": 0.1, "wrong": 0.1, "idle": 0.1, "hostile": 0.5}
    )
    notebook = build("01_patches")
    made = list(make_class(notebook, "01_patches", 14))
    assert {student.kind for student in made} >= set(HOSTILE)
    for student in made:  # the exercises that this class does not answer
        reason = "unreadable" if student.kind == "no JSON" else ""
        for exercise in in_notebook("01_patches")[1:]:
            state = ("not_gradable", None, reason) if reason else ("failed", 0.0, "")
            student.expected[exercise.id] = Expected(*state)
    before = psutil.Process().memory_info().rss / 2**20  # of all tests that ran before this one
    figures = measure(made, "01_patches", tmp_path, 2)
    bench.tell(figures)
    assert figures["wrong_grades"] == []
    assert figures["slowest"] == "endless loop" and figures["per_minute"] > 0
    assert figures["parent_mb"] - max(before, figures["torch_mb"]) < bench.PARENT_MB
    assert "submissions a minute" in capsys.readouterr().out
