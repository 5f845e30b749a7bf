"""The checkers of notebook 01: they reject and name every mistake, and accept every right answer."""

import functools
import itertools
import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from vitedu import patches as reference
from vitedu.checks.alternatives.patches import ALTERNATIVES
from vitedu.checks.api import judge
from vitedu.checks.bank import right_answers, wrong_answers
from vitedu.checks.engine import find_checker
from vitedu.checks.patches import CHECKERS
from vitedu.checks.values import ValueChecker

SEEDS = range(5)
FUNCTIONS = [id_ for id_, checker in CHECKERS.items() if not isinstance(checker, ValueChecker)]
VALUES = [id_ for id_ in CHECKERS if id_ not in FUNCTIONS]
WRONG = [
    pytest.param(exercise, wrong, id_, id=f"{exercise}-{id_}")
    for exercise in CHECKERS
    for id_, wrong in wrong_answers(exercise)
]
RIGHT = [
    pytest.param(exercise, answer, id=f"{exercise}-{answer.__name__}")
    for exercise in FUNCTIONS
    for answer in right_answers(exercise)
]


def finding(report, name):
    """Get one finding of a report."""
    return next(finding for finding in report.findings if finding.name == name)


# --- the bank and the acceptance set ------------------------------------------------------------


@pytest.mark.parametrize(("exercise", "wrong", "id_"), WRONG)
def test_mistake_is_rejected_and_named(exercise, wrong, id_):
    """Every mistake of the bank fails and is named as itself and nothing else, whatever the seed."""
    for seed in SEEDS:
        report = judge(wrong, exercise, seed=seed)
        assert report.status in ("failed", "error")
        assert report.misconceptions == [id_], str(report)
        assert report.points < report.max_points


@pytest.mark.parametrize(("exercise", "answer"), RIGHT)
def test_right_answer_passes(exercise, answer):
    """Every right implementation earns full points, whatever the seed."""
    for seed in SEEDS:
        report = judge(answer, exercise, seed=seed)
        assert report.passed and report.points == report.max_points, str(report)


@pytest.mark.parametrize("exercise", FUNCTIONS)
def test_acceptance_set_has_four_roads(exercise):
    """At least four right implementations stand beside the reference."""
    assert len(ALTERNATIVES[exercise]) >= 4


@pytest.mark.parametrize("exercise", FUNCTIONS)
def test_two_mistakes_together_are_named_as_such(exercise):
    """A sample of pairs is rejected; most are named as both, or as the one that hides the other."""
    checker = find_checker(exercise)
    own = [mistake.id for mistake in checker.bank if mistake.build is None]
    pairs = list(itertools.combinations(own, 2))
    named = 0
    sample = random.Random(1).sample(pairs, min(5, len(pairs)))
    for pair in sample:
        report = judge(checker.faulty(frozenset(pair)), exercise, seed=1)
        assert not report.passed, pair
        named += bool(report.misconceptions) and set(report.misconceptions) <= set(pair)
    assert named > len(sample) / 2


@pytest.mark.parametrize("exercise", FUNCTIONS)
def test_stub_is_not_attempted(exercise):
    """A stub that raises NotImplementedError is no answer yet."""
    if isinstance(CHECKERS[exercise].reference, type):
        stub = type("Stub", (nn.Module,), {"__init__": _raise_stub})
    else:
        stub = _raise_stub
    assert judge(stub, exercise, seed=0).status == "not_attempted"


def _raise_stub(*args, **kwargs):
    raise NotImplementedError("a stub")


@pytest.mark.parametrize(
    "result",
    [
        None,
        [],
        "text",
        float("nan"),
        torch.full((2,), float("nan")),
        np.zeros(3),
        torch.zeros(2, 3).long(),
    ],
    ids=["None", "list", "text", "nan", "nans", "array", "integers"],
)
@pytest.mark.parametrize("exercise", FUNCTIONS)
def test_other_results_fail_without_a_false_name(exercise, result):
    """What is no result at all fails; a constant may be called one, and nothing else is claimed of its values."""
    reference_answer = CHECKERS[exercise].reference
    if isinstance(reference_answer, type):
        answer = type("Answer", (reference_answer,), {"forward": lambda self, x: result})
    else:
        answer = functools.wraps(reference_answer)(lambda *args, **kwargs: result)
    report = judge(answer, exercise, seed=0)
    assert report.status == "failed", str(report)
    facts = {"no_error", "own_device", "constant_output", "detached"}
    assert set(report.misconceptions) <= facts, str(report)


@pytest.mark.parametrize("exercise", FUNCTIONS)
def test_arguments_may_have_any_names(exercise):
    """Only order and keywords that the text uses count; the names of positional parameters are free."""
    reference_answer = CHECKERS[exercise].reference
    if not isinstance(reference_answer, type):
        assert judge(
            lambda *args, **kwargs: reference_answer(*args, **kwargs), exercise, seed=0
        ).passed


@pytest.mark.parametrize("exercise", VALUES)
def test_value_is_accepted_in_every_clothing(exercise):
    """Python, NumPy and torch values are alike; another value is not."""
    value = CHECKERS[exercise].reference
    if isinstance(value, tuple):
        for clothed in (
            value,
            list(value),
            [np.asarray(v) for v in value],
            [torch.tensor(v) for v in value],
        ):
            assert judge(clothed, exercise).passed
        assert not judge(value[::-1] + (1,), exercise).passed
        assert not judge(value[:1], exercise).passed
    else:
        for clothed in (
            value,
            float(value),
            np.float64(value),
            torch.tensor(float(value), dtype=torch.float64),
        ):
            assert judge(clothed, exercise).passed
        assert not judge(2 * value + 1, exercise).passed
    for other in ("eight", float("nan"), {}, [value, value, value], object(), np.zeros((2, 2))):
        assert judge(other, exercise).status == "failed"
    for nothing in (None, ...):
        assert judge(nothing, exercise).status == "not_attempted"


# --- contract -----------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong_size", ["H", "W"])
def test_patchify_must_refuse_both_sides(wrong_size):
    """A missing error for one of the sides is found, and costs only the points for errors."""

    def patchify(images, patch_size):
        H, W = images.shape[-2:]
        P = patch_size
        size = W if wrong_size == "H" else H
        if size % P:
            raise ValueError(f"{size} is not divisible by {P}")
        return reference.patchify(images[..., : H // P * P, : W // P * P], P)

    report = judge(patchify, seed=0)
    assert report.misconception == "no_error" and report.points > report.max_points / 2


def test_patchify_error_names_both_numbers():
    """A message with one of the two numbers is not enough, one with both in any words is."""

    def patchify(images, patch_size, both):
        H, W = images.shape[-2:]
        for side in (H, W):
            if side % patch_size:
                raise ValueError(f"{side} / {patch_size}" if both else f"{side} is bad")
        return reference.patchify(images, patch_size)

    assert judge(lambda i, p: patchify(i, p, True), "patchify", seed=0).passed
    assert (
        judge(lambda i, p: patchify(i, p, False), "patchify", seed=0).misconception
        == "error_without_numbers"
    )


def test_patchify_may_raise_an_error_of_its_own_kind():
    """A subclass of ValueError is a ValueError."""

    class BadSize(ValueError):
        pass

    def patchify(images, patch_size):
        H, W = images.shape[-2:]
        if H % patch_size or W % patch_size:
            raise BadSize(f"{H} x {W}, {patch_size}")
        return F.unfold(images, patch_size, stride=patch_size).mT

    assert judge(patchify, seed=0).passed


def test_linear_from_conv_may_be_made_by_assignment():
    """Parameters may be new objects, as long as the values are copied."""

    def linear_from_conv(conv):
        linear = nn.Linear(1, 1)
        linear.weight = nn.Parameter(conv.weight.detach().clone().flatten(1))
        linear.bias = None if conv.bias is None else nn.Parameter(conv.bias.detach().clone())
        return linear

    assert judge(linear_from_conv, seed=0).passed


def test_tables_are_float32_whatever_the_formula():
    """A table computed in float32 throughout is near enough, one in float64 has the wrong dtype."""

    def sincos_positions(n, D):
        if D % 2:
            raise ValueError(D)
        angle = torch.arange(n).float()[:, None] * 10000.0 ** (-torch.arange(0, D, 2) / D)
        return torch.stack([angle.sin(), angle.cos()], dim=2).reshape(n, D)

    for seed in range(20):
        assert judge(sincos_positions, seed=seed).passed
    report = judge(lambda n, D: sincos_positions(n, D).double(), "sincos_positions", seed=0)
    assert report.misconception == "double_table"


def test_grid_may_be_any_pair():
    """grid_size comes as a tuple; what is done with it is free."""

    def sincos_positions_2d(grid_size, embed_dim):
        return reference.sincos_positions_2d(list(grid_size), embed_dim)

    assert judge(sincos_positions_2d, seed=0).passed
