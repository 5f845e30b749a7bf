"""The ablations: the list of changes, its runs, and the measurements that come with the package."""

from dataclasses import asdict

import pytest

from vitedu.bench.experiments import Measurement, ablations, settings_of
from vitedu.bench.experiments.ablations import ARMS, CHANGES, summary
from vitedu.fitting import TrainConfig
from vitedu.options import ViTConfigWithOptions, preset


@pytest.fixture
def rows():
    """Two seeds of the start, one of the first change."""
    return [measurement(0, 0, 0.50), measurement(0, 1, 0.54), measurement(1, 0, 0.49)]


def measurement(number, seed, accuracy, epochs=2, data="x"):
    """One run of the change of this number."""
    arm = list(CHANGES)[number]
    results = {"validation_accuracy": accuracy, "seconds": 3.0}
    options, settings = {"epochs": epochs}, ARMS[arm]
    return Measurement("ablations", arm, settings, seed, options, results, "cpu", {}, "", data)


def test_every_change_changes_one_thing_that_exists():
    """Names are known to both configs; one field differs; a row starts from an earlier."""
    fields = {}
    for name, (start, _) in CHANGES.items():
        model, train = settings_of(name, ARMS)
        config = preset(ablations.PRESET, **model)
        everything = vars(ViTConfigWithOptions(**vars(config))) | asdict(TrainConfig(**train))
        if start is not None:
            before = fields[start]
            assert len([k for k in everything if everything[k] != before[k]]) == 1, name
        fields[name] = everything


def test_summary_averages_seeds_and_compares_with_the_start(rows):
    """Means, the spread over seeds, the gain over the row it starts from in the seed of both."""
    start, change = summary(rows)
    assert start["accuracy"] == pytest.approx(0.52) and start["gain"] is None
    assert (start["accuracies"], start["seeds"]) == ([0.50, 0.54], 2)
    assert change["gain"] == pytest.approx(-0.01) and len(change["gains"]) == 1  # of seed 0 alone
    longer = measurement(1, 0, 0.49, epochs=5)  # another experiment
    assert summary([*rows[:2], longer])[-1]["gain"] is None


def test_nothing_is_averaged_or_compared_over_two_data_sets(rows):
    """A row of other data is a line of its own and gains nothing."""
    lines = summary([*rows, measurement(0, 2, 0.9, data="y"), measurement(1, 1, 0.1, data="y")])
    assert [line["data"] for line in lines] == ["x", "x", "y", "y"]
    assert lines[0]["accuracy"] == pytest.approx(0.52) and lines[3]["gain"] is None
