"""What the libraries state about published weights: whose a name is, preprocessing, class names."""

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.models import ViT_B_16_Weights, ViT_L_16_Weights

from vitedu.pretrained.published import library_of, preprocessing

pytestmark = pytest.mark.slow  # torchvision and timm take seconds to load
timm = pytest.importorskip("timm", reason="timm is an oracle here")


@pytest.fixture
def picture():
    """A picture that is no square."""
    pixels = np.random.default_rng(0).integers(0, 256, (300, 420, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def test_names_belong_to_a_library():
    """With or without the name of the weights."""
    for name in ("vit_b_16", "vit_h_14.IMAGENET1K_SWAG_LINEAR_V1"):
        assert library_of(name) == "torchvision"
    for name in ("vit_tiny_patch16_224", "vit_base_patch16_224.mae"):
        assert library_of(name) == "timm"


def test_unknown_names_are_answered_with_choices():
    """Near ones first."""
    with pytest.raises(ValueError, match="no model .*mean .*vit_tiny_patch16_224"):
        library_of("vit_tiny_patch16")


@pytest.mark.parametrize("name", ["vit_b_16.X", "vit_tiny_patch16_224.X"])
def test_unknown_weights_are_answered_with_choices(name):
    """In the form in which they can be asked for."""
    with pytest.raises(ValueError, match=r"no weights .*Choices: vit_\w+\.\w+, vit_"):
        preprocessing(name)


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("vit_b_16", ViT_B_16_Weights.IMAGENET1K_V1),
        ("vit_l_16", ViT_L_16_Weights.IMAGENET1K_V1),
        ("vit_b_16.IMAGENET1K_SWAG_E2E_V1", ViT_B_16_Weights.IMAGENET1K_SWAG_E2E_V1),
    ],
)
def test_torchvision_pictures_are_prepared_as_it_states(name, entry, picture):
    """The same tensor to the bit, and the same class names in the same order."""
    prepare = preprocessing(name)
    assert torch.equal(prepare(picture), entry.transforms()(picture))
    assert list(prepare.class_names) == entry.meta["categories"]
    assert prepare(picture).shape == (3, prepare.image_size, prepare.image_size)


@pytest.mark.parametrize("name", ["vit_tiny_patch16_224", "vit_tiny_patch16_384"])
def test_timm_pictures_are_prepared_as_it_states(name, picture):
    """The same tensor to the bit as by timm's own advice for a model."""
    config = timm.data.resolve_model_data_config(timm.create_model(name))
    prepare = preprocessing(name)
    assert torch.equal(prepare(picture), timm.data.create_transform(**config)(picture))
    assert (prepare.mean, prepare.std) == (config["mean"], config["std"]) == ((0.5,) * 3,) * 2
    assert prepare.class_names[207].startswith("golden retriever")


@pytest.mark.parametrize(
    ("name", "resize"), [("vit_b_16", 439), ("vit_tiny_patch16_224", 426)]
)  # 384 * 256/224, rounded; 384 / 0.9, rounded down
def test_another_image_size_keeps_the_proportion(name, resize, picture):
    """As much of the picture is seen as at the size of the weights."""
    prepare = preprocessing(name, image_size=384)
    steps = prepare.transform
    sizes = getattr(steps, "resize_size", None) or [steps.transforms[0].size]
    assert (prepare.image_size, *sizes) == (384, resize)
    assert prepare(picture).shape == (3, 384, 384)
    assert preprocessing(name).image_size == 224  # the library's own is unchanged


def test_weights_without_classes_have_no_names():
    """Features of self-supervised training."""
    assert preprocessing("vit_base_patch16_224.mae").class_names is None
