"""The same answer, the same points: in a class, whatever values a student's inputs have, a mistake costs the same."""

import pytest

from vitedu.checks.checker import find_checker
from vitedu.checks.engine import judge_answer
from vitedu.checks.inputs import SPLIT
from vitedu.exercises import EXERCISES

STUDENTS = 20
CLASS = 11  # the number that the sizes of a class are drawn from
MOST = 0.02  # of an exercise's points, between two students of a class

# Cases of the others may still hide a mistake behind some values: "relu" of numbers that are all large is no mistake of
# gelu. Add an exercise here when its cases have been mended.
HOLDS = {"patchify"}
JUDGED = [e for e in EXERCISES if e.id in HOLDS]


def points(checker, mistakes, seed):
    """Judge a known mistake as one student's answer."""
    return judge_answer(checker, checker.make(frozenset(mistakes)), seed).points


@pytest.mark.slow
@pytest.mark.parametrize("exercise", JUDGED, ids=lambda exercise: exercise.id)
def test_a_mistake_costs_every_student_of_a_class_the_same(exercise):
    """Every mistake of the bank, for twenty students: points differ by 2 % of the maximum at most."""
    checker = find_checker(exercise.id)
    spread = {}
    for mistake in checker.bank:
        found = [points(checker, [mistake.id], CLASS * SPLIT + n) for n in range(1, STUDENTS + 1)]
        if max(found) - min(found) > MOST * exercise.points:
            spread[mistake.id] = sorted(set(found))
    assert not spread


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
