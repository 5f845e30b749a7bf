"""Mistakes as edits of a reference: where they apply, and how several go together."""

import pytest
import torch

from vitedu.checks.api import judge
from vitedu.checks.writing.checker import Checker
from vitedu.checks.writing.mistakes import (
    Mistake,
    apply_edits,
    apply_mistakes,
    bare_source,
    find_changes,
)

LOOP = "def f(xs):\n    total = 0\n    for x in xs:\n        total += x\n    return total"


@pytest.mark.parametrize(("old", "count"), [("x.mean()", 0), ("x", 8)])
def test_an_edit_must_meet_one_place(old, count):
    """A piece that is not there once is refused in words that say what to do."""
    with pytest.raises(ValueError, match=rf"exactly one place .* meets {count}\); copy"):
        find_changes("def f(x):\n    x = x.exp()\n    return x / x.sum() + x.amax()\n", {old: "y"})


def test_further_lines_are_indented_as_the_line_they_begin_in():
    """Lines are added to a loop, and several lines are found, without their indentation."""
    loop = {"for x in xs:\n    total += x": "for x in xs:\n    total = x\n    break"}
    assert apply_edits(LOOP, [loop]).splitlines()[3:5] == ["        total = x", "        break"]
    text = apply_edits(LOOP, [{"total += x": "total += x\nxs = xs[1:]"}])
    assert text.splitlines()[4] == "        xs = xs[1:]"


def test_edits_of_several_mistakes_go_together_where_they_change_different_places():
    """Equal edits count once, a clash is no text."""
    start, one = {"total = 0": "total = 0\nseen = 0"}, {"total = 0": "total = 1"}
    edits = [start | {"return total": "return seen"}, start | {"total += x": "seen += x"}]
    both = apply_edits(LOOP, edits)
    assert both.count("seen = 0") == 1 and "seen += x" in both and "return seen" in both
    assert apply_edits(LOOP, [one, {"total = 0": "total = 2"}]) is None


def test_docstrings_and_comments_are_no_place_for_an_edit():
    """The text of a reference is its code alone."""
    text = bare_source("patchify")
    assert '"""' not in text and "#" not in text and text.startswith("def patchify(")


def test_a_combination_that_is_no_python_is_left_out():
    """Two sound mistakes may make nonsense together; one alone that is nonsense is told."""
    sum_edit, call_edit = {"exp / exp.sum(": "(exp / exp.sum("}, {"keepdim=True)": "keepdim=True))"}
    assert callable(apply_mistakes("softmax", [{"exp / exp.sum(": "exp * exp.sum("}]))
    assert apply_mistakes("softmax", [sum_edit, {"x.amax(": "x.amin("}]) is None
    with pytest.raises((SyntaxError, ValueError)):
        apply_mistakes("softmax", [call_edit])


def test_a_checker_makes_its_mistakes_and_leaves_out_what_it_cannot():
    """Edits run beside the names of the chapter; two of one place go together in no way."""
    make = Checker("softmax").combine
    plain = Mistake("plain", "", "", "", "", {"x - x.amax(dim=dim, keepdim=True)": "x"})
    half = Mistake("half", "", "", "", "", {"exp / ": "0.5 * exp / "})
    double = Mistake("double", "", "", "", "", {"exp / ": "2 * exp / "})
    x = torch.randn(3, 4)
    assert torch.allclose(make([plain, half])(x, -1), x.softmax(-1) / 2)
    assert make([half]) is make([half])  # made once
    assert make([double, half]) is None


def rollout_of_plain_tensors(layers):
    """Multiply in the wrong order, with an identity that is always float32 and on the CPU."""
    rollout = torch.eye(layers[0].shape[-1])
    for weights in layers:
        step = (weights.mean(dim=1) + torch.eye(weights.shape[-1])) / 2
        rollout = rollout @ (step / step.sum(dim=-1, keepdim=True))
    return rollout


def test_mistake_is_named_where_float64_inputs_end_in_an_error():
    """The error of one dtype hides no mistake of all other calls, and is told beside it."""
    report = judge(rollout_of_plain_tensors, "attention_rollout", seed=0)
    assert report.misconceptions == ["order_reversed", "own_device"]
    assert "float64" in str(report)
