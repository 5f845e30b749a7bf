"""The ablations: the list of changes, its runs, and the measurements that come with the package."""

from dataclasses import asdict

from vitedu.bench.experiments import ablations, settings_of
from vitedu.bench.experiments.ablations import ARMS, CHANGES
from vitedu.extras.options import ViTConfigWithOptions, preset
from vitedu.fitting import TrainConfig


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
