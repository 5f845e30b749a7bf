"""The same answer, the same points: in a class, whatever values a student's inputs have, a mistake costs the same."""

import os
from collections import defaultdict

import pytest

from vitedu.checks import engine
from vitedu.checks.answers import LocalAnswer
from vitedu.checks.checker import find_checker
from vitedu.checks.engine import conclude, gather
from vitedu.checks.guard import neutral_settings
from vitedu.checks.inputs import SPLIT
from vitedu.checks.probing import observe
from vitedu.exercises import EXERCISES

STUDENTS = range(20 if os.environ.get("VITEDU_THOROUGH") else 5)  # set by `make proof`
CLASS = 11  # the number that the sizes of a class are drawn from
MOST = 0.02  # of an exercise's points, between two students of a class
CODE = [exercise for exercise in EXERCISES if exercise.kind != "value"]


@pytest.fixture
def points(monkeypatch):
    """Give a function: points of every mistake of a checker, for one student. The reference runs once a case."""
    monkeypatch.setattr(engine, "diagnose", lambda *seen: [])  # names cost no points

    def points(checker, answers, seed):
        cases = checker.draw(seed)
        want = {case.name: observe(checker.reference, case) for case in cases}
        monkeypatch.setattr(engine, "observe", lambda reference, case: want[case.name])
        for name, answer in answers.items():
            seen = gather(checker, cases, LocalAnswer(answer))
            yield name, conclude(checker, cases, seen, seed).points

    return points


@pytest.mark.bank
@pytest.mark.parametrize("exercise", CODE, ids=lambda exercise: exercise.id)
def test_a_mistake_costs_every_student_of_a_class_the_same(exercise, points):
    """Every mistake of the bank, for all students: points differ by 2 % of the maximum at most."""
    checker = find_checker(exercise.id)
    answers = {mistake.id: checker.make(frozenset({mistake.id})) for mistake in checker.bank}
    found = defaultdict(list)
    with neutral_settings():
        for student in STUDENTS:
            for name, earned in points(checker, answers, CLASS * SPLIT + student):
                found[name].append(earned)
    spread = {
        name: sorted(set(earned))
        for name, earned in found.items()
        if max(earned) - min(earned) > MOST * exercise.points
    }
    assert len(found) == len(checker.bank) > 0 and not spread


def test_students_of_a_class_share_sizes_and_not_values():
    """Another class has other sizes; a notebook draws both anew."""
    checker = find_checker("patchify")

    def shape_and_sum(seed):
        images = checker.draw(seed)[0].args["images"]
        return tuple(images.shape), float(images.double().sum())

    shapes, sums = zip(*(shape_and_sum(CLASS * SPLIT + n) for n in range(1, 6)), strict=True)
    assert len(set(shapes)) == 1 and len(set(sums)) == 5
    others = {shape_and_sum(n * SPLIT + 1)[0] for n in range(1, 9)}
    assert len(others) > 2
    assert len({shape_and_sum(n)[0] for n in range(8)}) > 2
