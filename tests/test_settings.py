"""vitedu.fitting.config: name=value words become typed fields, or are refused by name."""

from dataclasses import dataclass

import pytest

from vitedu.fitting.config import TrainConfig, read_settings


@dataclass
class First:
    count: int = 1
    share: float = 0.0
    padding: int | None = 4
    betas: tuple[float, float] = (0.9, 0.95)


@dataclass
class Second:
    is_on: bool = False
    name: str = ""
    image_size: int = 32


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("count=3", {"count": 3}),
        ("share=1e-3", {"share": 1e-3}),
        ("padding=none", {"padding": None}),
        ("padding=2", {"padding": 2}),
        ("betas=0.8, 0.9", {"betas": (0.8, 0.9)}),
        ("betas=(0.8,0.9)", {"betas": (0.8, 0.9)}),
        ("is-on=True", {"is_on": True}),
        ("is_on=false", {"is_on": False}),
        ("name=a=b", {"name": "a=b"}),
    ],
)
def test_value_has_the_type_of_its_field(word, expected):
    """And goes to the dataclass that has the field."""
    first, second = read_settings([word], First, Second)
    values = {**first, **second}
    assert values == expected
    assert type(next(iter(values.values()))) is type(next(iter(expected.values())))
    assert (second == {}) == (next(iter(expected)) in vars(First()))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["count"], "a setting is written name=value .got 'count'."),
        (["cuont=1"], "no setting is named 'cuont'. Did you mean count. There are count, share,"),
        (["zzz=1"], "no setting is named 'zzz'. There are"),
        (["image_size=1"], "--set does not set image_size: another word does."),
        (["count=1.5"], "count must be a whole number .got '1.5'."),
        (["share=much"], "share must be a number"),
        (["padding=x"], "padding must be a whole number or none"),
        (["betas=0.9"], "betas must be 2 numbers with a comma"),
        (["is_on=1"], "is_on must be true or false"),
        (["count=1", "count=2"], "count is set twice"),
        (["is_on=__import__('os')"], "is_on must be true or false"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_what_can_not_be_read_is_named(words, message):
    """With the nearest name, or with the type that the field has."""
    with pytest.raises(ValueError, match=message):
        read_settings(words, First, Second, reserved={"image_size": "another word does"})


def test_every_field_of_the_configs_can_be_set():
    """No two configs share a name, and each default, written out, is read back as itself."""
    from vitedu.extras.options import ViTConfigWithOptions

    for kind in (TrainConfig, ViTConfigWithOptions):
        defaults = vars(kind())
        words = [
            f"{name}={','.join(map(str, value)) if isinstance(value, tuple) else value}"
            for name, value in defaults.items()
        ]
        assert read_settings(words, kind) == [defaults]
    assert not vars(TrainConfig()).keys() & vars(ViTConfigWithOptions()).keys()
