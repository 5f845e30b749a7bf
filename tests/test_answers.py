"""What a judge may ask of an answer: what it is, without running it, and its plain value."""

import numpy as np
import pytest
import torch
from torch import nn

from vitedu.checks.api import judge
from vitedu.checks.observing.answers import AnswerInfo, LocalAnswer, to_plain


class Alarm:
    """A class that must not be made, and whose instances must not be called."""

    def __init__(self, size):
        raise AssertionError("made")

    def __call__(self, x):
        raise AssertionError("called")


class Meta(type):
    """A metaclass that tells another name and forbids calls."""

    __name__ = "another"

    def __call__(cls, *args):
        raise AssertionError("made")


class Named(metaclass=Meta):
    """A class with such a metaclass."""

    def __init__(self, size):
        pass


def documented(x):
    """Do nothing yet."""


def returning(x):
    return None


def silent(x):
    print("not idle: it does something")


@pytest.mark.parametrize("answer", [None, ..., documented, returning, lambda x: None])
def test_what_does_nothing_is_idle(answer):
    """None, an ellipsis and functions without a deed are the state before a student has begun."""
    assert LocalAnswer(answer).info([(1, ())]) == AnswerInfo(is_empty=True)


@pytest.mark.parametrize("answer", [silent, lambda x: 0, lambda x: x, 0, False, "", nn.Identity])
def test_what_does_anything_is_not_idle(answer):
    """A wrong answer is an answer."""
    assert not LocalAnswer(answer).info([]).is_empty


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        (silent, (False, False, True, "function")),
        (3, (False, False, False, "int")),
        (nn.Linear, (True, False, True, "Linear")),
        (nn.Linear(1, 1), (False, True, True, "Linear")),
        (Alarm, (True, False, True, "Alarm")),
        (Alarm.__new__(Alarm), (False, False, True, "Alarm")),
        (Named, (True, False, True, "Named")),
    ],
    ids=["function", "number", "class", "layer", "class to leave alone", "instance", "metaclass"],
)
def test_kinds_are_told_without_running_anything(answer, seen):
    """A class is not made, an instance not called, and a class goes by its own name."""
    look = LocalAnswer(answer).info([(1, ())])
    assert (look.is_class, look.is_layer, look.is_callable, look.kind) == seen


def test_signatures_say_which_calls_they_do_not_take():
    """One entry for each call: empty where it fits, else Python's own words."""
    look = LocalAnswer(lambda x, dim=-1: x).info(
        [(1, ()), (2, ()), (1, ("dim",)), (3, ()), (1, ("axis",))]
    )
    assert look.signature == "(x, dim=-1)"
    assert [bool(refusal) for refusal in look.refusals] == [False, False, False, True, True]
    assert "too many positional" in look.refusals[3] and "axis" in look.refusals[4]
    assert LocalAnswer(max).info([(1, ())]).refusals == ()  # a builtin tells none


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (torch.tensor(3), 3),
        (torch.tensor([2.5]), 2.5),
        (np.float32(0.5), 0.5),
        (np.array([1, 2]), (1, 2)),
        ([True, (False, " Yes ")], (True, (False, "yes"))),
        (np.bool_(True), True),
    ],
    ids=str,
)
def test_values_become_plain(value, plain):
    """Scalars of all libraries are Python's, sequences are tuples, words lose their case."""
    result = to_plain(value)
    assert result == plain and type(result) is type(plain)


@pytest.mark.parametrize(
    "value",
    [object(), {1: 2}, [object()], 1j, max],
    ids=["object", "dict", "list of objects", "complex", "function"],
)
def test_what_is_no_value_is_said_to_be_unknown(value):
    """Objects, dicts, complex numbers and functions are no value of an exercise."""
    plain = LocalAnswer(value).plain()
    assert not plain.is_known and plain.kind == type(value).__name__


def test_an_integer_past_all_floats_is_wrong_and_no_fault_of_the_checker():
    """A number of 400 digits is another value, as any other."""
    report = judge(10**400, "tokens_at_224")
    assert report.status == "failed" and report.headline == "not the value asked for"
