"""For every exercise: its checker rejects and names all mistakes, and accepts right answers.

What is particular to a chapter stands in ``test_checks_<chapter>.py``.
"""

import functools
import itertools
import random
from collections.abc import Iterator

import kept
import numpy as np
import pytest
import torch
from given_away import assert_gives_nothing_away

from proof import bank
from vitedu import exercises
from vitedu.checks import diagnosing
from vitedu.checks.api import judge
from vitedu.checks.engine import find_checker, judge_answer
from vitedu.checks.values import ValueChecker

pytestmark = pytest.mark.bank

CHECKERS = {exercise.id: find_checker(exercise.id) for exercise in exercises.EXERCISES}
VALUES = [id_ for id_, checker in CHECKERS.items() if isinstance(checker, ValueChecker)]
ASKED = [id_ for id_ in CHECKERS if id_ not in VALUES]  # functions and classes
CLASSES = [id_ for id_ in ASKED if isinstance(CHECKERS[id_].reference, type)]
FUNCTIONS = [id_ for id_ in ASKED if id_ not in CLASSES]
SEEDS = bank.students(2)  # of one class; `make proof` takes twenty, of four


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """Judge right and wrong however crowded the machine is: a limit of time is tested elsewhere."""
    monkeypatch.setenv("VITEDU_TIME_LIMIT", "60")
    monkeypatch.setattr(diagnosing, "PAIR_SECONDS", 5.0)
    monkeypatch.setattr(diagnosing, "REPLAY_SECONDS", 60.0)


# --- the bank and the acceptance set ------------------------------------------------------------


@pytest.mark.parametrize("exercise", CHECKERS)
def test_mistakes_are_rejected_named_and_cost_alike_and_right_answers_pass(exercise):
    """Every mistake is named as itself alone, and no report gives anything away."""

    def reports() -> Iterator[bank.Judged]:
        for one in bank.judged(exercise, SEEDS, functools.partial(kept.replays, exercise)):
            is_full = one.report.points == one.report.max_points
            assert is_full == (not one.mistake), str(one.report)
            if one.mistake and exercise in ASKED and one.seed == SEEDS[-1]:
                observe = kept.replays(exercise, one.seed).observe
                assert_gives_nothing_away(exercise, one.answer, one.report, one.seed, observe)
            yield one

    row = bank.count(exercise, reports())
    assert row.holds, row.troubles
    if exercise in ASKED:  # enough of its own, beside the mistakes that all can show
        assert len(CHECKERS[exercise].bank) >= 6 and row.answers >= 5 * len(SEEDS)


@pytest.mark.parametrize("exercise", ASKED)
def test_two_mistakes_together_are_rejected_and_mostly_named(exercise):
    """Pairs are rejected; of four, three are named as these two or one of them, one as both."""
    checker = CHECKERS[exercise]
    own = [mistake.id for mistake in checker.bank if mistake.build is None]
    pairs = [p for p in itertools.combinations(own, 2) if checker.make(frozenset(p)) is not None]
    found, replays = {}, diagnosing.Replays()
    for pair in random.Random(0).sample(pairs, 4):
        report = judge_answer(checker, checker.make(frozenset(pair)), 1, replays)
        assert not report.passed, pair
        found[pair] = set(report.misconceptions)
    assert sum(bool(ids) and ids <= set(pair) for pair, ids in found.items()) >= 3, found
    assert sum(ids == set(pair) for pair, ids in found.items()) >= 1, found


# --- no answer, and answers of another kind -----------------------------------------------------


def raise_stub(*args, **kwargs):
    """Stand in for what the notebook hands out."""
    raise NotImplementedError("a stub")


STUBS = (
    [pytest.param(id_, None, id=id_) for id_ in VALUES]
    + [pytest.param(id_, raise_stub, id=id_) for id_ in FUNCTIONS]
    + [
        pytest.param(
            id_, type("Stub", (CHECKERS[id_].reference,), {name: raise_stub}), id=f"{id_}-{name}"
        )
        for id_ in CLASSES
        for name in ("__init__", "forward")
        if name == "__init__" or "__init__" in CHECKERS[id_].given  # else a right one is work done
    ]
)


@pytest.mark.parametrize(("exercise", "stub"), STUBS)
def test_stub_is_not_attempted(exercise, stub):
    """What the notebook hands out is no attempt, and later cells get the reference."""
    report = judge(stub, exercise, seed=0)
    assert report.status == "not_attempted"
    assert report.implementation is CHECKERS[exercise].reference


# what such a result says of itself; of two results that are asked for, one is missing
FACTS = {"no_error", "own_device", "constant_output", "detached"}
FACTS |= {"weights_not_returned", "python_number"}


OTHER_RESULTS = {
    "None": None,
    "list": [],
    "text": "text",
    "nan": float("nan"),
    "nans": torch.full((2,), float("nan")),
    "array": np.zeros(3),
    "integers": torch.zeros(2, 3).long(),
}


@pytest.mark.parametrize("exercise", ASKED)
def test_other_results_fail_without_a_false_name(exercise):
    """No result at all fails; only what it says of itself is claimed, such as a constant."""
    checker, replays = CHECKERS[exercise], diagnosing.Replays()
    for name, result in OTHER_RESULTS.items():
        if exercise in CLASSES:
            forward = {"forward": lambda self, x, result=result: result}
            answer = type("Answer", (checker.reference,), forward)
        else:
            answer = functools.wraps(checker.reference)(
                lambda *args, result=result, **kwargs: result
            )
        report = judge_answer(checker, answer, 0, replays)
        assert report.status == "failed", f"{name}: {report}"
        assert set(report.misconceptions) <= FACTS, f"{name}: {report}"
        if result is None:
            assert "return" in str(report)


@pytest.mark.parametrize("exercise", FUNCTIONS)
def test_arguments_may_have_any_names(exercise):
    """Order and keywords of the text count; the names of positional parameters are free."""
    reference = CHECKERS[exercise].reference
    assert judge(lambda *args, **kwargs: reference(*args, **kwargs), exercise, seed=0).passed


# --- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("exercise", VALUES)
def test_value_is_accepted_in_every_clothing(exercise):
    """Python, NumPy and torch values are alike; another value is not."""
    value = CHECKERS[exercise].reference
    if isinstance(value, tuple):
        right = [
            value,
            list(value),
            [np.asarray(v) for v in value],
            [torch.tensor(v) for v in value],
        ]
        wrong = [value[::-1] + (1,), value[:1]]
    else:
        number = float(value)
        right = [value, number, np.float64(value), torch.tensor(number)]
        right += [torch.tensor(number, dtype=torch.float64)]
        wrong = [value + 1, 2 * value + 1]
    for clothed in right:
        assert judge(clothed, exercise).passed, clothed
    wrong += ["eight", float("nan"), {}, [value, value, value], object(), np.zeros((2, 2))]
    for other in wrong:
        assert judge(other, exercise).status == "failed", other
    for nothing in (None, ...):
        assert judge(nothing, exercise).status == "not_attempted"
