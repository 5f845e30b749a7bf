"""The catch matrix: what it counts and what it prints, and that it holds."""

import dataclasses
from types import SimpleNamespace

import pytest
from conftest import whole

from proof import bank
from vitedu import exercises, patches
from vitedu.checks.explaining.values import ValueChecker
from vitedu.checks.writing.checker import find_checker
from vitedu.checks.writing.inputs import SPLIT

pytestmark = pytest.mark.bank
IDS = [exercise.id for exercise in exercises.EXERCISES]
FUNCTIONS = [id_ for id_ in IDS if not isinstance(find_checker(id_), ValueChecker)]


@pytest.mark.parametrize("exercise", FUNCTIONS)
def test_ids_of_a_bank_are_unique(exercise):
    """A report, a grade and a statistic know a mistake by its id."""
    ids = [mistake.id for mistake in find_checker(exercise).mistakes]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("exercise", IDS)
def test_words_of_the_bank_follow_the_house(exercise):
    """Names go on after a colon; sentences end; nobody is asked or blamed."""
    checker = find_checker(exercise)
    for mistake in checker.bank if isinstance(checker, ValueChecker) else checker.mistakes:
        assert mistake.name and not mistake.name.endswith("."), mistake.name
        for text in (mistake.why, mistake.next_step):
            assert text.endswith((".", ")", '"')), text
            assert "?" not in text.rstrip("?") and "!" not in text.replace("!=", ""), text


@pytest.mark.parametrize("exercise", FUNCTIONS)
def test_a_checker_says_what_its_values_are(exercise):
    """A report of wrong values shows it as what was expected."""
    assert find_checker(exercise).idea["values"]


def test_a_hole_in_a_checker_shows(monkeypatch, capsys):
    """A mistake that is not rejected, or not named, is counted, told and makes the command fail."""
    checker = find_checker("patchify")
    blind = dataclasses.replace(checker, cases=lambda g: checker.cases(g)[1:2])
    monkeypatch.setattr(bank, "find_checker", lambda id_: blind)
    row = bank.measure("patchify", range(1))
    assert not row.holds and row.rejected < row.mistakes and row.accepted == row.answers
    assert any("square_only" in trouble for trouble in row.troubles)
    monkeypatch.setattr(bank, "catch_matrix", lambda ids, seeds: [row])
    assert bank.main_bank(["patchify"], 1) == 1
    assert "✗" in capsys.readouterr().out


def test_a_checker_that_fails_right_answers_shows(monkeypatch):
    """A right answer that is not accepted is told by its name."""
    monkeypatch.setattr(bank, "right_answers", lambda id_: [patches.unpatchify])
    row = bank.measure("patchify", range(1))
    assert row.accepted == 0 and "unpatchify" in row.troubles[-1]


@whole
def test_matrix_in_processes_is_the_same_in_order():
    """Several processes count what one counts, in the order of the exercises."""
    ids = ["tokens_at_224", "seam_neighbours", "stem_tokens"]
    alone = list(bank.catch_matrix(ids, 1, processes=1))
    together = list(bank.catch_matrix(ids, 1, processes=2))
    assert [row.exercise for row in alone] == ids and alone == together


def test_unknown_exercise_is_refused():
    """A name that does not exist is the caller's mistake."""
    with pytest.raises(ValueError, match="no exercise 'pachify'"):
        bank.main_bank(["pachify"], 1)


def test_another_price_within_a_class_shows(monkeypatch):
    """A mistake that costs one student more than another is told with the points of both."""
    real = bank.judge_answer

    def dearer(checker, answer, seed, cache):
        report = real(checker, answer, seed, cache)
        more = not report.is_flawless and seed == bank.students(2)[1]
        names = ("status", "misconceptions", "passed", "is_flawless", "head", "first_view")
        names += ("max_points", "lines", "findings", "headline", "remarks")
        values = {name: getattr(report, name) for name in names}
        return SimpleNamespace(**values, points=report.points + more)

    monkeypatch.setattr(bank, "judge_answer", dearer)
    alike = bank.measure("window_merge", bank.students(1))
    row = bank.measure("window_merge", bank.students(2))
    assert alike.holds and not row.holds and row.alike == 0
    assert any("earned students of one class" in trouble for trouble in row.troubles)


def test_students_of_a_class_share_sizes_and_not_values():
    """Another class has other sizes; a notebook draws both anew."""
    checker = find_checker("patchify")

    def shape_and_sum(seed):
        images = checker.draw(seed)[0].args["images"]
        return tuple(images.shape), float(images.double().sum())

    shapes, sums = zip(*(shape_and_sum(11 * SPLIT + n) for n in range(1, 6)), strict=True)
    assert len(set(shapes)) == 1 and len(set(sums)) == 5
    others = {shape_and_sum(n * SPLIT + 1)[0] for n in range(1, 9)}
    assert len(others) > 2
    assert len({shape_and_sum(n)[0] for n in range(8)}) > 2
