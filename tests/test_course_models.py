"""The weights that notebook 09 ends with: the stand-in offline, else the published ones."""

import pytest
import torch

from vitedu.data import load_data
from vitedu.data.photograph import FOLDER
from vitedu.pretrained import course_models
from vitedu.pretrained.course_models import prepare_demo
from vitedu.pretrained.reading import read_course_model
from vitedu.vit import PRESETS, VisionTransformer

pytestmark = pytest.mark.slow
PHOTOGRAPH = FOLDER / "chelsea.jpg"  # a cat


def answers(demo):
    """Give the classes that a model with these weights names."""
    model = VisionTransformer(demo.config).eval()
    model.load_state_dict(demo.weights)
    with torch.no_grad():
        return [demo.class_names[k] for k in model(demo.images).argmax(dim=1).tolist()]


def test_stand_in_names_photographs_that_it_was_not_trained_on():
    """Its weights fit the textbook model by name; a photograph of the caller stands at the end."""
    demo = prepare_demo([PHOTOGRAPH], download=False)
    assert demo.source.startswith("a stand-in") and "downloads nothing" in demo.source
    assert demo.config.grid_size == (8, 8) and len(demo.pictures) == len(demo.images) == 7
    data = load_data(limit=10, held_out=10)
    right = [data.class_names[k] for k in data.test.labels[:6]]
    assert sum(map(str.__eq__, answers(demo), right)) >= 4 and answers(demo)[-1] == "cat"


def test_model_that_notebook_05_looks_into_knows_shapes_it_has_not_seen():
    """An 8 x 8 grid, four blocks of four heads, and well above 90 % on another draw."""
    config, weights, known = read_course_model("shapes_patch4", "shapes")
    assert (config.grid_size, config.depth, config.num_heads) == ((8, 8), 4, 4)
    model = VisionTransformer(config).eval()
    model.load_state_dict(weights)
    test = load_data("shapes", seed=1, limit=10, held_out=200).test
    mean, std = (torch.tensor(known[key]).view(-1, 1, 1) for key in ("mean", "std"))
    with torch.no_grad():
        answers = model((test.images[:200] / 255 - mean) / std).argmax(dim=1)
    assert (answers == test.labels[:200]).float().mean() > 0.93


def test_course_models_refuse_images_that_they_were_not_trained_on():
    """One line names both data sets and the remedy."""
    data = load_data(limit=10, held_out=10)
    with pytest.raises(ValueError) as refusal:
        read_course_model("shapes_patch4", data)
    message = str(refusal.value)
    assert "model shapes_patch4 was trained on shapes, not on cifar10. Train one" in message
    assert "load_data('shapes')" in message and "\n" not in message


def test_stand_in_takes_the_place_of_a_failed_download(monkeypatch):
    """The reason is said."""

    def no_network(name):
        raise OSError("the weights could not be fetched. Without a network, do this")

    monkeypatch.setattr(course_models, "load_pretrained", no_network)
    assert prepare_demo().source.endswith("the weights could not be fetched.")


def test_published_weights_come_with_the_photograph_and_their_own_classes(monkeypatch):
    """The photograph is prepared as the authors of the weights did; nothing here is downloaded."""
    model = VisionTransformer(PRESETS["vit_tiny_patch16_224"]).eval()
    monkeypatch.setattr(course_models, "load_pretrained", lambda name: model)
    demo = prepare_demo()
    assert demo.source.startswith("published weights")
    assert demo.images.shape == (1, 3, 224, 224) and len(demo.class_names) == 1000
    assert answers(demo)[0] in demo.class_names


def test_a_photograph_that_is_not_there_is_named():
    """Before anything is downloaded."""
    with pytest.raises(ValueError, match="there is no image at nowhere.jpg"):
        prepare_demo(["nowhere.jpg"])
