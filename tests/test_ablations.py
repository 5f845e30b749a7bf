"""The ablations: the list of changes, its runs, and the measurements that come with the package."""

from dataclasses import asdict

import pytest

from vitedu.__main__ import main
from vitedu.bench.experiments import ablations, measured, settings_of
from vitedu.bench.experiments.ablations import ARMS, CHANGES
from vitedu.fitting import TrainConfig
from vitedu.options import ViTConfigWithOptions, preset


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


def test_measured_rows_belong_to_the_list_of_changes():
    """What the notebook shows was made by the present list, on named data, and starts somewhere."""
    rows = measured("ablations")
    assert {row.arm for row in rows} == set(ARMS)
    assert all(row.data == "cifar10" and row.results["train_images"] == 45000 for row in rows)
    assert {row.seed for row in rows} == {0, 1}  # gains are differences within a seed
