"""vitedu.bench.experiments.sizes: every arm changes one field, and the table compares equal seeds."""

import pytest
import torch
from torch import nn

from vitedu.bench.experiments import Measurement, sizes
from vitedu.data import load_data
from vitedu.hardware import Profile


@pytest.fixture(scope="module")
def data():
    """A few drawn shapes."""
    return load_data("shapes", limit=40)


@pytest.mark.parametrize("arm", sizes.ARMS)
def test_arm_changes_one_field_and_runs(arm, data):
    """The start changes none; every model gives logits."""
    assert len(sizes.ARMS[arm]) == (arm != sizes.START)
    model = sizes.build(arm, 0, data)
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


def test_rms_norm_replaces_every_layer_norm(data):
    """Two norms a block and one at the end, without a bias."""
    model = sizes.build("RMSNorm", 0, data)
    norms = [part for part in model.modules() if isinstance(part, nn.RMSNorm)]
    assert len(norms) == 2 * sizes.CONFIG.depth + 1
    assert not any(isinstance(part, nn.LayerNorm) for part in model.modules())


def test_table_subtracts_within_each_seed():
    """A gain is a difference of two runs of one seed; time is a ratio to the start."""
    results = {"parameters": 10, "train_accuracy": 0.9, "cpu_seconds": 2.0}
    runs = [
        Measurement("sizes", arm, sizes.ARMS[arm], seed, {}, {**results, "test_accuracy": value}, "", {}, "")
        for arm, values in ((sizes.START, (0.5, 0.6)), ("P = 4", (0.55, 0.5)))
        for seed, value in enumerate(values)
    ]  # fmt: skip
    lines = sizes.size_table(runs).splitlines()
    assert len(lines) == 3 and lines[1].split()[-1] == "1.0x"
    assert lines[2].split()[-3:] == ["1.0x", "+5.0", "-10.0"]


def test_run_gives_accuracies_and_seconds():
    """A short run of one arm."""
    found = sizes.run("depth 2", 0, Profile("quick", "", ""))
    assert 0 <= found["test_accuracy"] <= 1 and found["cpu_seconds"] > 0
