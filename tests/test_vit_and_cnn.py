"""vitedu.vit_and_cnn: the values that notebook 06 names, the small CNN, and the recommendation.

That the measurements equal other roads to the same result is proved by the right answers of their
banks.
"""

from statistics import fmean

import pytest
import torch
from torch import nn

from vitedu import vit_and_cnn
from vitedu.bench.experiments import measured
from vitedu.extras.options import build_model, preset
from vitedu.vit_and_cnn import (
    SmallCNN,
    effective_receptive_field,
    receptive_field,
    recommend,
)


def test_effective_receptive_field_works_where_gradients_are_off():
    """A caller's no_grad does not stop the measurement, and the images stay without a graph."""
    images = torch.rand(1, 1, 3, 3)
    with torch.no_grad():
        field = effective_receptive_field(nn.Conv2d(1, 1, 3, padding=1), images)
    assert field.max() == 1 and not images.requires_grad and not field.requires_grad


def test_values_of_the_notebook_are_what_they_say():
    """Each is measured or computed once more, from the definitions."""
    depth = vit_and_cnn.layers_to_see_all
    fields = [receptive_field([3] * n, [1] * n) for n in (depth - 1, depth)]
    assert fields[0] < 224 <= fields[1]
    stem = nn.Conv2d(3, 1, 7, stride=2, padding=3)
    places = stem(torch.zeros(1, 3, 224, 224)).numel()
    assert vit_and_cnn.weight_uses == (places, preset("vit_base_patch16_224").num_tokens)
    torch.manual_seed(0)
    vit, images = (
        build_model(preset("vit_micro_patch8_32", pool="mean")),
        torch.randn(2, 3, 32, 32),
    )
    with torch.no_grad():
        vit.pos_embed.zero_()

        def tokens(x):
            return vit.blocks[0](vit.patch_embed(x)).mT.unflatten(-1, (4, 4))

        rolled = [(images.roll(8, -1), tokens(images).roll(1, -1))]
        rolled += [(images.roll(1, -1), tokens(images))]
        same = [torch.isclose(tokens(x), y, atol=1e-4).all(dim=1).sum().item() for x, y in rolled]
    assert vit_and_cnn.token_shifts == tuple(same)


def test_small_cnn_has_the_receptive_field_that_the_notebook_names():
    """31 pixels, by the formula and by the gradient."""
    net = SmallCNN(width=4).eval()
    convolutions = [stage[0] for stage in net.stages]
    kernels, strides = [c.kernel_size[0] for c in convolutions], [c.stride[0] for c in convolutions]
    assert receptive_field(kernels, strides) == 31
    assert net(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


FAR, WEIGHTS = dict(relates_distant_places=True), dict(is_pretrained=True)


@pytest.mark.parametrize(
    ("images", "known", "network", "word"),
    [
        (4_999, {}, "CNN", "200 photographs"),
        (5_000, {}, "hybrid", "stem"),
        (99_999, {}, "hybrid", "CIFAR-10"),
        (100_000, {}, "CNN", "recipe"),
        (10_000_000, {}, "ViT", "21k"),
        (500, WEIGHTS, "ViT", "published"),
        (500, {**WEIGHTS, "gmacs": 0.5}, "CNN", "MobileNet"),
        (9_000, {"gmacs": 1.0}, "hybrid", "stem"),
        (500, FAR, "ViT", "attention joins"),
        (500, FAR | WEIGHTS, "ViT", "published"),
        (500, {"image_size": 449}, "hybrid", "square"),
        (10**9, {"image_size": 448}, "ViT", "21k"),
    ],
)
def test_recommend_gives_the_first_rule_that_fits(images, known, network, word):
    """Every rule is met, on both sides of its limit, and says where it comes from."""
    advice = recommend(train_images=images, **known)
    assert advice.network == network and word in advice.reason
    assert advice.source and str(advice).startswith(f"{network}: ")
    assert ("Folklore" in str(advice)) == advice.is_folklore


def test_recommend_quotes_the_measurements_that_come_with_the_package():
    """The accuracies with 200 photographs are those of the shipped rows."""
    reason = recommend(train_images=200).reason
    for network in ("CNN", "ViT"):
        runs = [r.results for r in measured("data_hunger") if r.arm == f"{network}, 200 images"]
        assert f"{100 * fmean(run['test_accuracy'] for run in runs):.0f} %" in reason
        assert all(run["train_accuracy"] > 0.9 for run in runs)


def test_recommend_calls_hearsay_by_its_name():
    """What no source measures is marked."""
    assert recommend(train_images=10**6).is_folklore
    assert not recommend(train_images=10**3).is_folklore


@pytest.mark.parametrize("wrong", [{"train_images": 0}, {"image_size": -1}, {"gmacs": 0.0}])
def test_recommend_refuses_what_cannot_be(wrong):
    """The message names the argument and its value."""
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=f"{name}={value}"):
        recommend(**{"train_images": 10} | wrong)
