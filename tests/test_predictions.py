"""vitedu.course.predictions: a guess beside its measurement, whatever was guessed."""

import numpy as np
import pytest
import torch

from vitedu.course.predictions import compare, confirm


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
        ("about nine", 9, {}, "predicted about nine, measured 9"),
        (1, float("nan"), {}, "predicted 1, measured nan"),
        (float("nan"), float("nan"), {}, "predicted nan, measured nan, right"),
        (float("inf"), 1.0, {}, "predicted inf, measured 1"),
        (3, ["b"], {}, "predicted 3, measured ['b']"),
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
    ],
    ids=["right", "shape", "order", "open"],
)
def test_confirm_tells_shape_and_order_apart(capsys, yours, expected):
    """One line, whatever was written."""
    confirm(yours, [[0, 1], [2, 3]])
    assert capsys.readouterr().out == expected + "\n"
