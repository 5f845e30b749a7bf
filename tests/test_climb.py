"""vitedu.bench.experiments.climb: arms that differ in one thing, and what the notebook reads."""

import pytest

from vitedu.bench.experiments import Measurement, climb
from vitedu.bench.experiments.climb import ARMS, STEPS
from vitedu.plots.training import show_climb


def row(arm, seed, accuracy, **more):
    """One measurement of an arm."""
    results = {"validation_accuracy": accuracy, **more}
    return Measurement("climb", arm, ARMS[arm], seed, {}, results, "cpu", {}, "", "cifar10")


def test_rows_are_read_by_rate_and_by_step():
    """Accuracies in % by rate, in [0, 1] by step."""
    constant, schedule = STEPS["constant rate"], STEPS["+ schedule"]
    rows = [row(constant, seed, 0.4 + seed / 10) for seed in (0, 1)] + [row(schedule, 0, 0.7)]
    assert climb.by_rate(rows, climb.CONSTANT) == {0.001: [40, 50]}
    assert climb.steps(rows)["constant rate"] == [0.4, 0.5]


def test_figure_shows_means_gains_seeds_and_horizons():
    """A step without measurements is left out; the student's run has no gain."""
    steps = {"start": [0.4, 0.5], "+ nothing": [], "+ more": [0.6]}
    ax = show_climb(steps, {"yours": 0.55}, {"guessing": 0.1}).axes[0]
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == ["start", "+ more   (+15.0)", "yours"]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([45, 60, 55])
    words = [text.get_text() for text in ax.texts]
    assert words == ["45.0", "60.0", "55.0", "guessing 10%"]
    (dots,) = [line for line in ax.lines if line.get_marker() == "o"]
    assert dots.get_xdata().tolist() == pytest.approx([40, 50])
