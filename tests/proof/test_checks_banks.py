"""For every exercise: its checker rejects and names its mistakes, and accepts right answers.

Every right answer is judged and every third mistake: all of them in the weekly workflow, and by
``make proof``. What is particular to a chapter stands in ``test_checks_<chapter>.py``.
"""

import functools
import inspect
import itertools
import math
import random
from collections.abc import Iterator
from importlib import import_module
from unittest import mock

import numpy as np
import pytest
import replay_caches
import torch
from conftest import WHOLE, sample
from secrecy import assert_gives_nothing_away

from proof import bank
from vitedu import exercises
from vitedu.checks.api import judge
from vitedu.checks.engine import judge_answer
from vitedu.checks.explaining import diagnose
from vitedu.checks.writing.checker import find_checker
from vitedu.course.notebooks import exercise_cells, read
from vitedu.course.workspace import find_sources

pytestmark = pytest.mark.bank
CHECKERS = {exercise.id: find_checker(exercise.id) for exercise in exercises.EXERCISES}
VALUES, FUNCTIONS, CLASSES = (
    [exercise.id for exercise in exercises.EXERCISES if exercise.kind == kind]
    for kind in ("value", "function", "class")
)
ASKED = [id_ for id_ in CHECKERS if id_ not in VALUES]  # in the order of the course
# the first function and the first class of each chapter
ONE_OF_A_KIND = {
    (e.chapter, e.kind): e.id for e in reversed(exercises.EXERCISES) if e.id in ASKED
}.values()
# judged for two students of a class in the weekly workflow; `make proof` takes twenty, of four
TWICE = [id_ for id_ in FUNCTIONS if id_ in ONE_OF_A_KIND]


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """Judge right and wrong however crowded the machine is: a limit of time is tested elsewhere."""
    monkeypatch.setenv("VITEDU_TIME_LIMIT", "60")
    monkeypatch.setattr(diagnose, "REPLAY_SECONDS", 60.0)


# --- the bank and the acceptance set ------------------------------------------------------------


def assert_pairs_are_named(exercise: str, seed: int) -> None:
    """Pairs are rejected; three of four are named as these two or one of them, one as both."""
    checker, cache = CHECKERS[exercise], replay_caches.find_cache(exercise, seed)
    pairs = [p for p in itertools.combinations(checker.bank, 2) if checker.combine([*p])]
    by_pair = {}
    for pair in random.Random(0).sample(pairs, 8):
        report = judge_answer(checker, checker.combine([*pair]), seed, cache)
        ids = tuple(mistake.id for mistake in pair)
        assert not report.is_flawless, ids
        by_pair[ids] = set(report.misconceptions)
    assert sum(bool(ids) and ids <= set(pair) for pair, ids in by_pair.items()) >= 6, by_pair
    assert sum(ids == set(pair) for pair, ids in by_pair.items()) >= 1, by_pair


def map_values(change, value):
    """Change every tensor and number of a result, also in tuples, lists and dictionaries."""
    if isinstance(value, dict):
        return {key: map_values(change, part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(map_values(change, part) for part in value)
    is_number = isinstance(value, torch.Tensor | int | float) and not isinstance(value, bool)
    return change(torch.as_tensor(value)) if is_number else value


DISTORTED = {
    "three unlike": lambda x: torch.stack([x * 1.5, x * 0.5, x * 2.0]),
    "nothing": lambda x: x.flatten()[:0],
    "not a number": lambda x: x.double() * math.nan,
    "constant": lambda x: torch.full_like(x, 3),
    "complex": lambda x: x.to(torch.complex64),
}


def assert_no_result_breaks(exercise: str, seed: int) -> None:
    """Whatever shape and kind a result has, there is a verdict, no pass for other values."""
    checker, cache = CHECKERS[exercise], replay_caches.find_cache(exercise, seed)
    for kind, change in DISTORTED.items():

        def answer(*args, change=change, **named):
            return map_values(change, checker.reference(*args, **named))

        answer.__signature__ = inspect.signature(checker.reference)
        with mock.patch.object(diagnose, "MAX_PAIRS", 3):  # some pairs are tried
            report = judge_answer(checker, answer, seed, cache)
        is_other = kind in ("three unlike", "nothing", "not a number")
        # what linear_from_conv returns is a layer, which stays as it is
        assert not (report.passed and is_other and exercise != "linear_from_conv"), kind


@pytest.mark.parametrize("exercise", CHECKERS)
def test_mistakes_are_rejected_named_and_cost_alike_and_right_answers_pass(exercise):
    """A mistake is named as itself alone, pairs mostly; no report gives anything away.

    What a mistake does on these inputs runs once for all that is judged here.
    """
    seeds = bank.students(2 if WHOLE and exercise in TWICE else 1)

    def reports() -> Iterator[bank.Judgement]:
        find_cache = functools.partial(replay_caches.find_cache, exercise)
        chosen = sample if exercise in ASKED else list
        for one in bank.judge_answers(exercise, seeds, find_cache, chosen):
            is_full = one.report.points == one.report.max_points
            assert is_full == (not one.mistake), str(one.report)
            if one.mistake and exercise in ASKED and one.seed == seeds[-1]:
                observe = replay_caches.find_cache(exercise, one.seed).observe
                assert_gives_nothing_away(exercise, one.answer, one.report, one.seed, observe)
            yield one

    row = bank.count(exercise, reports())
    assert row.holds, row.troubles
    if exercise in ASKED:  # enough of its own, beside the mistakes that all can show
        assert len(CHECKERS[exercise].bank) >= 6 and row.answers >= 5 * len(seeds)
    if exercise in (ASKED if WHOLE else ONE_OF_A_KIND):
        assert_pairs_are_named(exercise, seeds[0])
        if exercise in FUNCTIONS:
            assert_no_result_breaks(exercise, seeds[0])


# --- no answer, and answers of another kind -----------------------------------------------------


STUBS = {
    id_: notebook.cells[index].source
    for notebook in map(read, find_sources())
    for index, id_ in exercise_cells(notebook)
}


@pytest.mark.parametrize("exercise", exercises.EXERCISES, ids=lambda exercise: exercise.id)
def test_stub_is_not_attempted(exercise):
    """What the notebook hands out is no attempt, and later cells get the reference."""
    names = {**vars(import_module(exercise.module))}
    exec(STUBS[exercise.id], names)
    report = judge(names[exercise.id], exercise.id, seed=0)
    assert report.status == "not_attempted"
    assert report.implementation is CHECKERS[exercise.id].reference


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


@pytest.mark.parametrize("exercise", ONE_OF_A_KIND)
def test_other_results_fail_without_a_false_name(exercise):
    """No result at all fails; only what it says of itself is claimed, such as a constant."""
    checker, cache = CHECKERS[exercise], diagnose.ReplayCache()
    for name, result in OTHER_RESULTS.items():
        if exercise in CLASSES:
            forward = {"forward": lambda self, x, result=result: result}
            answer = type("Answer", (checker.reference,), forward)
        else:
            answer = functools.wraps(checker.reference)(
                lambda *args, result=result, **kwargs: result
            )
        report = judge_answer(checker, answer, 0, cache)
        assert report.status == "failed", f"{name}: {report}"
        assert set(report.misconceptions) <= FACTS, f"{name}: {report}"
        if result is None:
            assert "return" in str(report)


@pytest.mark.parametrize("exercise", TWICE)
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
        right = [value, list(value)]
        right += [[kind(v) for v in value] for kind in (np.asarray, torch.tensor)]
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
