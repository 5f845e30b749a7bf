"""Horizons are numbers that were measured, on the images that they stand beside."""

import json
from statistics import fmean

import pytest

from vitedu.bench import experiments
from vitedu.bench.experiments import horizons as experiment
from vitedu.data import horizons as module
from vitedu.data import load_data
from vitedu.data.horizons import RECORD, ROWS, horizons

ACCURACY = 0.781


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Let there be rows of two seeds of the experiment, and the record of a shipped model."""
    (tmp_path / ROWS).parent.mkdir(parents=True)
    (tmp_path / ROWS).with_suffix(".py").touch()  # an experiment is a module of that folder
    (tmp_path / RECORD).parent.mkdir(parents=True)
    record = {"data": {"name": "cifar10"}, "shipped": {"epochs": 40, "accuracy": ACCURACY}}
    (tmp_path / RECORD).write_text(json.dumps(record))
    monkeypatch.setattr(module, "PACKAGE", tmp_path)
    monkeypatch.setattr(experiments, "FOLDER", (tmp_path / ROWS).parent)

    def run(arm, seed):
        return {"test_accuracy": 0.1 * len(arm) / 10 + seed / 100}

    experiments.complete("horizons", tmp_path / ROWS, run, {}, data="cifar10", seeds=[0, 1])


def test_horizons_are_those_of_rows_and_record(package):
    """Means over seeds of the rows that ``measured`` gives, and the shipped model's accuracy."""
    rows = experiments.measured("horizons", "cifar10")
    assert [(row.arm, row.seed) for row in rows] == [
        (arm, seed) for seed in (0, 1) for arm in experiment.ARMS
    ]
    expected = {
        arm: fmean(row.results["test_accuracy"] for row in rows if row.arm == arm)
        for arm in experiment.ARMS
    }
    expected["vit_pico, 40 epochs"] = ACCURACY
    assert horizons("cifar10") == horizons(load_data(limit=10, held_out=10)) == expected


def test_other_images_have_no_horizons(package):
    """The rows are refused and their levels absent."""
    shapes = load_data("shapes", limit=10, held_out=10)
    assert horizons(shapes) == horizons("cifar10-original") == {}
    with pytest.raises(ValueError, match="made on cifar10, not on shapes"):
        experiments.measured("horizons", shapes)
