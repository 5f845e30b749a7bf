"""vitedu.fitting.runs: name=value words become typed fields, or are refused by name."""

import pytest

from vitedu.extras.options import ViTConfigWithOptions
from vitedu.fitting.config import TrainConfig
from vitedu.fitting.runs import DATA_FIELDS, read_settings


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("epochs=3", {"epochs": 3}),
        ("lr=1e-3", {"lr": 1e-3}),
        ("crop_padding=none", {"crop_padding": None}),
        ("crop_padding=2", {"crop_padding": 2}),
        ("betas=0.8, 0.9", {"betas": (0.8, 0.9)}),
        ("betas=(0.8,0.9)", {"betas": (0.8, 0.9)}),
        ("qk-norm=True", {"qk_norm": True}),
        ("rope=false", {"rope": False}),
        ("pool=a=b", {"pool": "a=b"}),
    ],
)
def test_value_has_the_type_of_its_field(word, expected):
    """And goes to the dataclass that has the field."""
    of_training, of_model = read_settings([word])
    values = {**of_training, **of_model}
    assert values == expected
    assert type(next(iter(values.values()))) is type(next(iter(expected.values())))
    assert (of_model == {}) == (next(iter(expected)) in vars(TrainConfig()))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["epochs"], "a setting is written name=value .got 'epochs'."),
        (["epohcs=1"], "no setting is named 'epohcs'. Did you mean epochs. There are epochs, "),
        (["zzz=1"], "no setting is named 'zzz'. There are"),
        (["image_size=1"], "--set does not set image_size: --image-size does"),
        (["epochs=1.5"], "epochs must be a whole number .got '1.5'."),
        (["lr=much"], "lr must be a number"),
        (["crop_padding=x"], "crop_padding must be a whole number or none"),
        (["betas=0.9"], "betas must be 2 numbers with a comma"),
        (["rope=1"], "rope must be true or false"),
        (["epochs=1", "epochs=2"], "epochs is set twice"),
        (["rope=__import__('os')"], "rope must be true or false"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_what_can_not_be_read_is_named(words, message):
    """With the nearest name, or with the type that the field has."""
    with pytest.raises(ValueError, match=message):
        read_settings(words)


def test_every_field_of_the_configs_can_be_set():
    """No two configs share a name, and each default, written out, is read back as itself."""
    training, model = (vars(kind()) for kind in (TrainConfig, ViTConfigWithOptions))
    assert not training.keys() & model.keys()
    model = {name: value for name, value in model.items() if name not in DATA_FIELDS}
    words = [
        f"{name}={','.join(map(str, value)) if isinstance(value, tuple) else value}"
        for name, value in {**training, **model}.items()
    ]
    assert read_settings(words) == (training, model)
