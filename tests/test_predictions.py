"""vitedu.course.predictions: a guess beside its measurement, whatever was guessed."""

import numpy as np
import pytest
import torch

from vitedu.course import results
from vitedu.course.predictions import again, compare, confirm, predictions_in


@pytest.mark.parametrize(
    ("guess", "measured", "options", "expected"),
    [
        (8, 9, {}, "predicted 8, measured 9, off by -1"),
        (9, 9, {}, "predicted 9, measured 9, right"),
        (None, 9, {}, "measured 9 (no prediction)"),
        (0, 1_234_567, {}, "predicted 0, measured 1234567, off by -1234567"),
        (0.5, 0.123456, {}, "predicted 0.5, measured 0.1235, off by +0.3765"),
        (0.35, 0.3482, {"form": ".2f"}, "predicted 0.35, measured 0.35, right"),
        (0.3, 0.25, {"form": ".0%"}, "predicted 30%, measured 25%, off by +5%"),
        (8, torch.tensor(7.5), {}, "predicted 8, measured 7.5, off by +0.5"),
        (np.float32(8), np.int64(7), {}, "predicted 8, measured 7, off by +1"),
        (True, False, {}, "predicted True, measured False"),
        (True, True, {}, "predicted True, measured True, right"),
        ("MLP", "attention", {}, "predicted MLP, measured attention"),
        ("80 %", 9, {}, "'80 %' is not a number. Write one above, such as 8, and run again."),
        (1, float("nan"), {}, "predicted 1, measured nan"),
        (float("nan"), float("nan"), {}, "predicted nan, measured nan, right"),
        (float("inf"), 1.0, {}, "predicted inf, measured 1"),
        (3, ["b"], {}, "predicted 3, measured ['b']"),
        (10**400, 9, {}, "predicted inf, measured 9"),  # no float holds it
        ((1, 2), (1, 2, 3), {}, "predicted (1, 2), measured (1, 2, 3)"),
        ([3], [3], {}, "predicted [3], measured [3], right"),
        ([0, 1], [3, 4], {}, "predicted [0, 1], measured [3, 4]"),
        (2, 1, {"what": "epochs"}, "epochs: predicted 2, measured 1, off by +1"),
    ],
)
def test_compare_prints_one_line(capsys, guess, measured, options, expected):
    """Numbers get a signed error, everything else is shown as it is, None is no prediction."""
    compare(guess, measured, **options)
    assert capsys.readouterr().out == expected + "\n"


def test_compare_takes_tuples_item_by_item(capsys):
    """Each item has its own line, its own name, and may be left open."""
    compare([0.5, None], (0.25, 0.75), ("with", "without"), form=".0%")
    assert capsys.readouterr().out.splitlines() == [
        "with: predicted 50%, measured 25%, off by +25%",
        "without: measured 75% (no prediction)",
    ]


def test_compare_repeats_a_single_name(capsys):
    """One name serves all items of a tuple."""
    compare(None, (1, 2), "loss")
    lines = [f"loss: measured {number} (no prediction)" for number in (1, 2)]
    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize(
    ("yours", "expected"),
    [
        (torch.tensor([[0, 1], [2, 3]]), "✓ shape (2, 2), every number in its place"),
        (np.arange(4), "✗ your line gives the shape (4,); (2, 2) is asked for"),
        ([[0, 2], [1, 3]], "✗ right shape, wrong order: your line gives [[0, 2], [1, 3]]"),
        (None, "None so far: write your line, then run the cell again"),
        (
            torch.arange(4.0, requires_grad=True).reshape(2, 2),
            "✓ shape (2, 2), every number in its place",
        ),
        ([[0], [1, 2]], "✗ your line gives rows of different lengths; (2, 2) is asked for"),
    ],
    ids=["right", "shape", "order", "open", "gradient", "ragged"],
)
def test_confirm_tells_shape_and_order_apart(capsys, yours, expected):
    """One line, whatever was written."""
    confirm(yours, [[0, 1], [2, 3]])
    assert capsys.readouterr().out == expected + "\n"


@pytest.fixture
def _store(monkeypatch, tmp_path):
    monkeypatch.setenv("VITEDU_HOME", str(tmp_path))


def said(capsys):
    return capsys.readouterr().out


@pytest.mark.usefixtures("_store")
def test_the_most_wrong_guess_comes_back(capsys):
    """The first guess is kept, a second is taken, and both stand beside the measurement."""
    compare = predictions_in("01_patches")
    compare(80, 52.1, "accuracy in %", form=".1f")
    compare(760, 768, "numbers in a patch")
    compare(None, 3, "no guess")
    compare(52, 52.1, "accuracy in %", form=".1f")  # run again by who has seen it
    said(capsys)
    again("01_patches")
    assert "accuracy in %" in (words := said(capsys)) and "You said 80.0; it was 52.1" in words
    again("01_patches", 55)
    assert said(capsys) == "accuracy in %: first 80.0, now 55.0, measured 52.1\n"
    again()
    assert [line.split() for line in said(capsys).splitlines()] == [
        ["first", "again", "measured"],
        ["01", "accuracy", "in", "%", "80.0", "55.0", "52.1"],
        ["01", "numbers", "in", "a", "patch", "760", "768"],
    ]


@pytest.mark.usefixtures("_store")
@pytest.mark.parametrize(
    ("guesses", "notebook", "expected"),
    [
        ([], "", "No prediction is kept"),
        ([], "01_patches", "what many people miss"),
        ([], "05_inside", "nothing to bring back"),
        ([(8, 8)], "01_patches", "each of your 1 guesses was right"),
        ([("MLP", "attention"), (8, 8)], "01_patches", "You said MLP; it was attention"),
        ([("about 9", 9), (9.5, 9)], "01_patches", "You said 9.5; it was 9"),
        ([(float("nan"), 9)], "01_patches", "You said nan; it was 9"),
    ],
)
def test_again_has_a_line_for_all_that_was_guessed(capsys, guesses, notebook, expected):
    """Nothing, something right, and what is no number, which a number replaces."""
    for guess, measured in guesses:
        predictions_in("01_patches")(guess, measured, str(measured))
    said(capsys)
    again(notebook)
    assert expected in said(capsys)


@pytest.mark.usefixtures("_store")
def test_one_switch_keeps_no_guess(capsys, monkeypatch):
    """Results are stored as before."""
    monkeypatch.setenv("VITEDU_KEEP_PREDICTIONS", "0")
    predictions_in("01_patches")(80, 52)
    assert results.load_table("predictions") == {}
    with results.edit("exercises", "patchify") as entry:
        entry["hints_used"] = 1
    again("01_patches", 30)
    assert "predicted 30, measured 51, off by -21" in said(capsys)
