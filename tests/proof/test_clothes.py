"""Clothes: the right numbers in another type, shape or signature cost one remark and no more."""

import functools

import pytest
from replay_caches import judge_answer

from vitedu import attention, encoder, less_data
from vitedu.checks.writing.checker import find_checker

pytestmark = pytest.mark.slow


def renamed(x, axis=-1):
    return attention.softmax(x, axis)


def without_default(x, weight, bias, epsilon):
    return encoder.layer_norm(x, weight, bias, epsilon)


def loss_renamed(student, teacher, middle, warmth=0.1, cold=0.04):
    return less_data.dino_loss(student, teacher, middle, warmth, cold)


class Renamed(encoder.EncoderBlock):
    """Names its arguments in another way, and leaves out a default."""

    def __init__(self, dim, heads, ratio):
        super().__init__(dim, heads, ratio)


def changed(exercise, change):
    """Give the reference with another last step."""
    reference = find_checker(exercise).reference
    return functools.wraps(reference)(lambda *args, **named: change(reference(*args, **named)))


CLOTHES = {  # exercise, what becomes of the result, words of the remark
    "list of one": ("count_parameters", lambda y: [y], "list of 1"),
    "text": ("count_parameters", str, "str"),
    "one axis": ("cross_entropy", lambda y: y[None], "shape (1,)"),
    "float64": ("gelu", lambda y: y.double(), "dtype float64"),
    "NumPy": ("sincos_positions", lambda y: y.numpy(), "NumPy array"),
    "matrices": ("relevance_rollout", list, "list of"),
    "lists": ("confusion_matrix", lambda y: y.tolist(), "list of"),
}
CLOTHED = {name: (e, changed(e, change), words) for name, (e, change, words) in CLOTHES.items()}
CLOTHED |= {
    "another name": ("softmax", renamed, "axis=-1"),
    "no default": ("layer_norm", without_default, "epsilon"),
    "a loss": ("dino_loss", loss_renamed, "warmth"),
    "a class": ("EncoderBlock", Renamed, "ratio"),
}


@pytest.mark.parametrize(("exercise", "answer", "words"), CLOTHED.values(), ids=CLOTHED)
def test_clothes_cost_one_remark(exercise, answer, words):
    """The right numbers in another type or shape pass, and keep most points."""
    report = judge_answer(find_checker(exercise), answer, 1)
    assert report.passed and [remark.name for remark in report.remarks] == ["returns"], str(report)
    assert words in report.remarks[0].message and not report.misconceptions
    assert 0.75 * report.max_points <= report.points < report.max_points


def test_another_signature_stands_beside_a_mistake():
    """The mistake is told with its own evidence, the signature in a remark."""
    answer = lambda s, t, c, hot, cold: less_data.dino_loss(s, t, 0 * c, hot, cold)  # noqa: E731
    report = judge_answer(find_checker("dino_loss"), answer, 1)
    assert report.misconceptions == ["no_center"] and len(report.remarks) == 1, str(report)
    assert "another number" in dict(report.lines)["got"]


NAKED = {
    "numbers for a mask": ("packing_mask", lambda y: y.int()),
    "booleans for numbers": ("softmax", lambda y: y > 0.1),
    "a float where something learns": ("cross_entropy", lambda y: y.item()),
    "fractions for counts": ("confusion_matrix", lambda y: (y + 0.4).tolist()),
    "a wrong list": ("sincos_positions", lambda y: (y + 1).tolist()),
}


@pytest.mark.parametrize(("exercise", "change"), NAKED.values(), ids=NAKED)
def test_no_cast_makes_a_wrong_answer_right(exercise, change):
    """Whatever is lost by its type stays wrong."""
    assert not judge_answer(find_checker(exercise), changed(exercise, change), 1).passed


def test_values_in_other_clothes_cost_one_remark():
    """Text that reads as the number, and one in a list; a wrong one stays wrong."""
    checker = find_checker("tokens_at_224")
    for value in ("197", [197], (197.0,)):
        report = judge_answer(checker, value, 1)
        assert report.passed and len(report.remarks) == 1, str(report)
        assert report.points >= 0.75 * report.max_points
    for value in ("196", [196], True, "a hundred"):
        assert not judge_answer(checker, value, 1).passed
