"""The figures of the data."""

from dataclasses import replace

import pytest

from vitedu.data import load_data
from vitedu.plots.data import show_class_balance, show_masks, show_samples


@pytest.fixture(scope="module")
def data():
    """A hundred drawn training images."""
    return load_data("shapes", limit=100, held_out=50)


def test_samples_stand_under_the_names_of_their_classes(data):
    """Each drawn image is the one whose class its title names."""
    figure = show_samples(data, count=12, columns=5)
    drawn = [ax for ax in figure.axes if ax.images]
    assert [ax.get_title() for ax in drawn] == [
        data.class_names[label] for label in data.train.labels[:12]
    ]
    pixels = drawn[7].images[0].get_array() * 255
    assert abs(pixels - data.train.images[7].permute(1, 2, 0).numpy()).max() < 1e-3


def test_what_is_not_there_is_refused_by_name(data):
    """A wrong split is answered with the choices, data without masks by its name."""
    with pytest.raises(ValueError, match="no split named 'valid'.*train, validation, test"):
        show_samples(data, split="valid")
    bare = replace(data, name="photos", train=replace(data.train, masks=None))
    with pytest.raises(ValueError, match="'photos' has no masks"):
        show_masks(bare)


def test_masks_are_drawn_below_their_images(data):
    """The second row shows the masks, in the order of the images above."""
    figure = show_masks(data, split="test", count=4)
    assert len(figure.axes) == 12
    mask = figure.axes[5].images[0].get_array()
    assert (mask == data.test.masks[1].numpy()).all()


def test_balance_shows_the_counts_of_every_split(data):
    """Each bar is as long as its class is large."""
    figure = show_class_balance(data)
    widths = [[bar.get_width() for bar in ax.patches] for ax in figure.axes]
    assert widths == [[10] * 10, [5] * 10, [5] * 10]
