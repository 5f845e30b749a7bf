"""Horizons are numbers that were measured, on the images that they stand beside."""

import json
from functools import partial
from statistics import fmean

import pytest

from vitedu.bench import experiments
from vitedu.bench.experiments import horizons as experiment
from vitedu.data import horizons as module
from vitedu.data import load_data
from vitedu.data.horizons import RECORD, ROWS, horizons
from vitedu.hardware import Profile

ACCURACY = 0.781


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A package with rows of a quick run of the experiment, and the record of a shipped model."""
    folder = tmp_path_factory.mktemp("package")
    run = partial(experiment.run, profile=Profile("quick", "", ""))
    experiments.complete("horizons", folder / ROWS, run, {}, data="cifar10", seeds=[0, 1])
    (folder / ROWS).with_suffix(".py").touch()  # an experiment is a module of that folder
    (folder / RECORD).parent.mkdir(parents=True)
    record = {"data": {"name": "cifar10"}, "shipped": {"epochs": 40, "accuracy": ACCURACY}}
    (folder / RECORD).write_text(json.dumps(record))
    return folder


def test_horizons_are_those_of_rows_and_record(package, monkeypatch):
    """Means over seeds of the rows that ``measured`` gives, and the shipped model's accuracy."""
    monkeypatch.setattr(module, "PACKAGE", package)
    monkeypatch.setattr(experiments, "FOLDER", (package / ROWS).parent)
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
    assert len({row.results["test_accuracy"] for row in rows}) > 1


def test_other_images_have_no_horizons(package, monkeypatch):
    """The rows are refused and their levels absent."""
    monkeypatch.setattr(module, "PACKAGE", package)
    monkeypatch.setattr(experiments, "FOLDER", (package / ROWS).parent)
    shapes = load_data("shapes", limit=10, held_out=10)
    assert horizons(shapes) == horizons("cifar10-original") == {}
    with pytest.raises(ValueError, match="made on cifar10, not on shapes"):
        experiments.measured("horizons", shapes)
