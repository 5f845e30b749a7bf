"""vitedu.bench.experiments.climb: arms that differ in one thing, and what the notebook reads."""

import pytest

from vitedu.bench.experiments import Measurement, climb, measured
from vitedu.bench.experiments.climb import ARMS, RATES, STEPS
from vitedu.fitting import TrainConfig
from vitedu.plots.training import show_climb


def row(arm, seed, accuracy, **more):
    """One measurement of an arm."""
    results = {"validation_accuracy": accuracy, **more}
    return Measurement("climb", arm, ARMS[arm], seed, {}, results, "cpu", {}, "", "cifar10")


def test_each_step_changes_one_thing():
    """The schedule is two fields of ``TrainConfig``; everything else is one."""
    arms = [vars(TrainConfig(**ARMS[arm])) for arm in STEPS.values()]
    changed = [
        {key for key in after if after[key] != before[key]}
        for before, after in zip(arms, arms[1:], strict=False)
    ]
    assert changed[0] == {"final_lr", "warmup_share"}
    assert changed[1:] == [{"crop_padding"}, {"optimizer"}, {"lr"}, {"epochs"}]


@pytest.mark.parametrize("recipe", RATES)
def test_best_measured_rate_has_a_worse_one_on_either_side(recipe):
    """Else the list of rates is too short, and the notebook says so itself."""
    rows = measured("climb", "cifar10")
    if not rows:
        pytest.skip(climb.NOT_MEASURED)
    found = climb.by_rate(rows, recipe)
    means = {rate: sum(seeds) / len(seeds) for rate, seeds in found.items()}
    assert len(means) == len(RATES[recipe]) and all(len(seeds) == 3 for seeds in found.values())
    assert max(means, key=means.get) not in (min(means), max(means))


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
