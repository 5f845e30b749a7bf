"""A challenge counts which broken parts a student's test stops, and never raises or hangs."""

import random
import sys

import pytest
import torch

from vitedu import attention, challenge, progress, reset, training
from vitedu.checks.explaining import challenges
from vitedu.checks.explaining.challenges import broken_parts, hold_challenge
from vitedu.checks.writing.checker import find_checker
from vitedu.course import results
from vitedu.exercises import EXERCISES

INPUTS = [torch.linspace(-2, 2, 12).reshape(3, 4), torch.linspace(-3, 1, 16).reshape(4, 4).sin()]
LARGE = [torch.tensor([[1e4, -1e4, 9990.0], [-1e4, -9e3, -9001.0], [60, -60, 0]])]


def sums_only(softmax):
    """Catches few mistakes."""
    assert torch.allclose(softmax(INPUTS[0]).sum(-1), torch.ones(3))


def compares(softmax):
    """Catches every one."""
    return all(
        torch.allclose(softmax(x, dim=dim), x.softmax(dim))
        for x in INPUTS + LARGE
        for dim in (0, 1)
    )


def test_a_good_test_stops_all_and_a_weak_one_lets_one_slip_by_name(capsys):
    """The report counts, and tells the words of one that slips through, which can be called."""
    total = len(broken_parts("softmax"))
    good = challenge("softmax", compares)
    assert good.passed and (good.stopped, good.total, good.slipped) == (total, total, None)
    assert f"stops all {total} broken ones" in capsys.readouterr().out
    weak = challenge(attention.softmax, sums_only)
    names = [m.name for m in find_checker("softmax").bank if m.name in str(weak)]
    assert weak.status == "failed" and 0 < weak.stopped < total and names == [names[0]]
    headline = f"your test stops {weak.stopped} of {total}; this one slips through: {names[0]}"
    assert str(weak).startswith(f"✗ challenge 2.1 softmax: {headline}\n  expected ")
    assert headline in weak._repr_html_() and capsys.readouterr().out == f"{weak}\n"
    assert sums_only(weak.slipped) is None and not compares(weak.slipped)


def test_a_test_that_stops_three_of_four_has_passed(monkeypatch):
    """Nobody need stop them all: the one that slips through is named below a tick."""
    weak = hold_challenge("softmax", sums_only)
    monkeypatch.setattr(challenges, "AIM", weak.stopped / weak.total)
    most = hold_challenge("softmax", sums_only)
    assert weak.status == "failed" and most.passed and "slips through" in str(most)


def test_classes_are_handed_out_and_keep_name_and_signature():
    """A layer is built and called as the right one is, and shapes stop few of its mistakes."""

    def shapes(layer):
        assert layer.__name__ == "MultiHeadAttention" and issubclass(layer, torch.nn.Module)
        output, weights = layer(12, num_heads=3)(torch.randn(2, 5, 12))
        return output.shape == (2, 5, 12) and weights.shape == (2, 3, 5, 5)

    result = challenge("MultiHeadAttention", shapes)
    assert 0 < result.stopped < result.total and issubclass(result.slipped, torch.nn.Module)


def rejects(softmax):
    print("looking")
    assert softmax(INPUTS[0]).shape == (4, 3), "the shape is odd"


@pytest.mark.parametrize(
    ("test", "words"),
    [
        (rejects, f"(line {rejects.__code__.co_firstlineno + 2}: assert softmax(INPUTS[0]).shape"),
        (rejects, "AssertionError: the shape is odd"),
        (lambda f: f(INPUTS[0], axis=0), "TypeError: softmax() got an unexpected keyword"),
        (lambda f: f(INPUTS[0]) is None, "it returned False"),
        (lambda: None, "takes 0 positional arguments but 1 was given"),
        (lambda f: f(INPUTS[0]) > 0.5, "more than one value is ambiguous; return True, False or"),
        (lambda f: sys.exit(f(INPUTS[0]).shape), "SystemExit"),
    ],
    ids=["line", "assert", "error", "False", "no argument", "tensor", "exit"],
)
def test_a_rejected_right_part_is_said_first_with_the_students_own_error(test, words):
    """No broken one counts as stopped by a test that stops the right one too."""
    result = challenge("softmax", test)
    assert result.headline == "your test rejects the right one" and result.status == "failed"
    assert words in dict(result.lines)["got"] and result.stopped == 0
    assert ("printed", "looking") in result.rows() or test is not rejects


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sofmax", compares), "there is no exercise 'sofmax'; did you mean softmax?"),
        (("x" * 1000, compares), "there is no exercise"),
        ((None, compares), "there is no exercise"),
        (("tokens_at_224", compares), "its answer is a value"),
        (("softmax",), "must be a function, not a value of type NoneType"),
        (("softmax", "compares"), 'type str; write challenge("softmax", my_test)'),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_input_is_one_clear_sentence_and_is_not_stored(words, said):
    """Nothing raises; the report is one line."""
    result = challenge(*words)
    assert result.status == "error" and said in str(result)
    assert "\n" not in str(result) and len(str(result)) < 400
    assert results.load() == {}


def test_a_test_that_never_ends_on_a_broken_part_stops_it(monkeypatch):
    """Each run has its limit; on the right part the report says which."""
    monkeypatch.setattr(challenges, "REPLAY_SECONDS", 0.2)
    one = [mistake for mistake in broken_parts("softmax") if mistake.id == "not_normalised"]
    monkeypatch.setattr(challenges, "broken_parts", lambda exercise: one)

    def waits(softmax):
        while not torch.allclose(softmax(INPUTS[0]).sum(-1), torch.ones(3)):
            pass

    result = challenge("softmax", waits)
    assert result.passed and result.stopped == result.total == 1
    monkeypatch.setenv("VITEDU_TIME_LIMIT", "0.2")

    def endless(softmax):
        while softmax(INPUTS[0]) is not None:
            pass

    result = challenge("softmax", endless)
    assert "no result within 0.2 s" in str(result) and "while softmax" in str(result)


def test_settings_and_random_states_are_those_of_before_and_every_run_draws_alike():
    """What a test switches, seeds or prints reaches neither the next run nor the notebook."""
    drawn = set()

    def careless(softmax):
        assert torch.get_default_dtype() == torch.float32 and torch.is_grad_enabled()
        drawn.add((float(torch.rand(())), random.random()))
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        softmax(INPUTS[0])

    before = torch.get_rng_state(), random.getstate()
    with torch.no_grad():
        assert challenge("softmax", careless).total
        assert not torch.is_grad_enabled() and torch.get_default_dtype() == torch.float32
    assert len(drawn) == 1
    assert torch.equal(before[0], torch.get_rng_state()) and before[1] == random.getstate()


def test_stop_by_hand_ends_the_challenge():
    """The key that stops a cell is no verdict on a broken part."""

    def stopped(softmax):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        challenge("softmax", stopped)
    assert results.load() == {}


def test_a_fault_of_ours_is_said(monkeypatch):
    """The notebook goes on."""
    monkeypatch.setattr(challenges, "broken_parts", lambda exercise: 1 / 0)
    assert "not your fault (ZeroDivisionError" in str(challenge("softmax", compares))


def test_progress_shows_it_without_points_and_reset_forgets_it(capsys):
    """The best is kept beside the latest; exercise and points are as if it had not been."""
    challenge("softmax", compares)
    challenge("softmax", sums_only)
    stored, total = results.load()["softmax"], len(broken_parts("softmax"))
    assert list(stored) == ["challenge"] and stored["challenge"]["best"] == total
    latest = stored["challenge"]["stopped"]
    results.record({"exercise": "softmax", "status": "failed", "points": 1, "max_points": 4})
    capsys.readouterr()
    progress("attention")
    row = next(line for line in capsys.readouterr().out.splitlines() if " softmax " in line)
    assert "1/4  failed" in row
    assert row.endswith(f"challenge: {total} of {total} stopped (latest: {latest})")
    assert f"{total} of {total} stopped" in results.progress_html("attention")
    results.record_challenge("softmax", 1, total + 1)  # of another bank: the old best says nothing
    assert results.load()["softmax"]["challenge"]["best"] == 1
    reset("softmax")
    assert results.load() == {}


@pytest.mark.bank
@pytest.mark.parametrize("exercise", [e.id for e in EXERCISES if e.kind != "value"])
def test_every_exercise_has_broken_parts_that_an_ordinary_call_shows(exercise):
    """Most mistakes of a bank; none whose only fault is an error's text or a device."""
    checker = find_checker(exercise)
    broken = broken_parts(exercise)
    assert 8 < len(broken) <= len(checker.bank) <= 2 * len(broken)
    assert not {m.part for m in broken} & {"errors", "any device", "unchanged", "gradients"}


def test_loops_over_batches_are_challenged_too():
    """A reference that a driver of its own checks is handed to the student's test as it is."""

    def shares(evaluate):
        model = torch.nn.Linear(2, 2)
        batches = [
            (torch.randn(3, 2), torch.tensor([0, 1, 1])),
            (torch.randn(1, 2), torch.ones(1).long()),
        ]
        loss, accuracy = evaluate(model, batches)
        assert 0 <= accuracy <= 1 and loss > 0

    assert training.evaluate and 0 < challenge("evaluate", shares).stopped
