"""The figures of the data."""

from vitedu.data import load_data
from vitedu.plots.data import show_samples


def test_samples_stand_under_the_names_of_their_classes():
    """Twenty drawn images, each under the name of its class."""
    data = load_data("shapes", limit=100, held_out=50)
    drawn = [ax for ax in show_samples(data).axes if ax.images]
    names = [data.class_names[label] for label in data.train.labels[:20]]
    assert [ax.get_title() for ax in drawn] == names
    pixels = drawn[7].images[0].get_array() * 255
    assert abs(pixels - data.train.images[7].permute(1, 2, 0).numpy()).max() < 1e-3
