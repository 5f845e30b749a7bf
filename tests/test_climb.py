"""vitedu.bench.experiments.climb: arms that differ in one thing, and what the notebook reads."""

from vitedu.bench.experiments import Measurement, climb
from vitedu.bench.experiments.climb import ARMS, STEPS


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
