"""The ablations: the list of changes, its runs, and the measurements that come with the package."""

from dataclasses import asdict

import pytest

from vitedu.__main__ import main
from vitedu.bench.experiments import Measurement, ablations, measured, settings_of
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


def test_bench_refuses_words_that_match_nothing(tmp_path, capsys):
    """The message lists the choices."""
    words = ["bench", "experiments", "ablations", "--json", str(tmp_path / "x")]
    assert main([*words, "--only", "convolution"]) == 2
    assert "rotary positions" in capsys.readouterr().err
    with pytest.raises(ValueError, match="rotary positions"):
        settings_of("convolution", ARMS)


def test_summary_averages_seeds_and_compares_with_the_start(rows):
    """Means, the spread over seeds, the gain over the row it starts from in the seed of both."""
    start, change = summary(rows)
    assert start["accuracy"] == pytest.approx(0.52) and start["gain"] is None
    assert (start["accuracies"], start["seeds"]) == ([0.50, 0.54], 2)
    assert change["gain"] == pytest.approx(-0.01) and len(change["gains"]) == 1  # of seed 0 alone
    longer = measurement(1, 0, 0.49, epochs=5)  # another experiment
    assert summary([*rows[:2], longer])[-1]["gain"] is None


def test_a_gain_is_a_mean_over_the_seeds_of_both(rows):
    """Differences are between runs of one seed; the table says how they scatter."""
    second = measurement(1, 1, 0.56)
    gains = summary([*rows, second])[1]["gains"]
    assert gains == [pytest.approx(-0.01), pytest.approx(0.02)]
    assert "+0.5   -1.0 to +2.0" in ablations.ablation_table([*rows, second])
    assert summary([rows[0], second])[1]["gain"] is None  # no seed in common


def test_measured_rows_belong_to_the_list_of_changes():
    """What the notebook shows was made by the present list, on named data, and starts somewhere."""
    rows = measured("ablations")
    assert {row.arm for row in rows} == set(ARMS)
    assert all(row.data == "cifar10" and row.results["train_images"] == 45000 for row in rows)
    assert all(line["gain"] is not None for line in summary(rows) if line["after"])


def test_nothing_is_averaged_or_compared_over_two_data_sets(rows):
    """A row of other data is a line of its own and gains nothing."""
    lines = summary([*rows, measurement(0, 2, 0.9, data="y"), measurement(1, 1, 0.1, data="y")])
    assert [line["data"] for line in lines] == ["x", "x", "y", "y"]
    assert lines[0]["accuracy"] == pytest.approx(0.52) and lines[3]["gain"] is None
