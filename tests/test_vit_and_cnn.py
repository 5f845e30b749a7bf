"""vitedu.vit_and_cnn: its measurements against independent ones, the small CNN, and the recommendation."""

from statistics import fmean

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from vitedu import vit_and_cnn
from vitedu.bench.experiments import measured
from vitedu.encoder import EncoderBlock
from vitedu.patches import patchify
from vitedu.vit import VisionTransformer, preset
from vitedu.vit_and_cnn import (
    SmallCNN,
    effective_receptive_field,
    linear_cka,
    receptive_field,
    recommend,
    shift_consistency,
    shuffle_patches,
)


@pytest.mark.parametrize(
    ("kernel_sizes", "strides"),
    [
        ([3] * 5, [1] * 5),
        ([7, 3, 3], [2, 2, 1]),
        ([16], [16]),
        ([2, 4, 3], [1, 3, 2]),
        ([1, 5], [2, 1]),
    ],
)
def test_receptive_field_is_what_the_gradient_can_reach(kernel_sizes, strides):
    """One cell of a real stack of convolutions with positive weights reaches exactly so far."""
    x = torch.ones(1, 1, 200, dtype=torch.float64, requires_grad=True)
    y = x
    for kernel_size, stride in zip(kernel_sizes, strides, strict=True):
        y = F.conv1d(y, torch.full((1, 1, kernel_size), 1.0, dtype=torch.float64), stride=stride)
    y[0, 0, 0].backward()
    assert receptive_field(kernel_sizes, strides) == int(x.grad.nonzero()[-1, -1]) + 1


def test_receptive_field_of_known_networks():
    """VGG-16 before its dense layers sees 212 pixels; no layer sees one."""
    vgg = [(3, 1), (3, 1), (2, 2)] * 2 + [(3, 1), (3, 1), (3, 1), (2, 2)] * 3
    assert receptive_field(*zip(*vgg, strict=True)) == 212
    assert receptive_field([], []) == 1


def test_effective_receptive_field_of_a_linear_map_is_its_kernel():
    """A single convolution gives the sizes of its own weights, whatever the image."""
    conv = nn.Conv2d(2, 3, 5, padding=2, bias=False)
    field = effective_receptive_field(conv, torch.randn(4, 2, 9, 9))
    kernel = conv.weight.detach().sum(dim=0).abs().sum(dim=0)  # (3, 2, 5, 5) -> (5, 5)
    expected = torch.zeros(9, 9)
    expected[2:7, 2:7] = kernel / kernel.max()
    assert torch.allclose(field, expected, atol=1e-6)
    assert conv.weight.grad is None


def test_effective_receptive_field_agrees_with_finite_differences():
    """For a network with curvature, moving each pixel a little gives the same map."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.Tanh(), nn.Conv2d(4, 2, 3, padding=1)
    ).double()
    images = torch.randn(3, 1, 5, 7, dtype=torch.float64)
    step = 1e-5
    size = torch.zeros(5, 7, dtype=torch.float64)
    for row in range(5):
        for column in range(7):
            up, down = images.clone(), images.clone()
            up[:, :, row, column] += step
            down[:, :, row, column] -= step
            with torch.no_grad():
                change = (net(up) - net(down))[:, :, 2, 3].sum(dim=1) / (2 * step)
            size[row, column] = change.abs().mean()
    assert torch.allclose(effective_receptive_field(net, images), size / size.max(), atol=1e-7)


def test_effective_receptive_field_works_where_gradients_are_off():
    """It is a measurement: a caller's no_grad does not stop it, and the images stay without a graph."""
    images = torch.rand(1, 1, 3, 3)
    with torch.no_grad():
        field = effective_receptive_field(nn.Conv2d(1, 1, 3, padding=1), images)
    assert field.max() == 1 and not images.requires_grad and not field.requires_grad


def test_one_layer_of_attention_reaches_every_pixel():
    """No token is out of reach, in a single block."""
    block = EncoderBlock(16, 2)

    def tokens(images):
        x = block(patchify(images, 4))
        return x.mT.unflatten(-1, (3, 3))

    assert (effective_receptive_field(tokens, torch.randn(2, 1, 12, 12)) > 0).all()


def test_shift_consistency_counts_what_a_shift_changes():
    """A model that names the column of the one bright pixel changes its mind wherever the pixel moves."""

    class Column(nn.Module):
        def forward(self, images):
            return images.sum(dim=(1, 2))

    images = torch.eye(4)[:, None, None, :].repeat(1, 1, 3, 1)
    assert shift_consistency(Column(), images, (2, 0)) == 1.0
    assert shift_consistency(Column(), images, (0, 1)) == 0.0
    assert shift_consistency(Column(), images, (0, 4)) == 1.0


def test_shift_consistency_leaves_every_mode_as_it_was():
    """A frozen part stays frozen, and running statistics do not move."""
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(2 * 4 * 4, 3)
    )
    model.train()
    model[1].eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    shift_consistency(model, torch.randn(5, 1, 6, 6), (1, 2))
    assert [part.training for part in model.modules()] == [True, True, False, True, True]
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize("shape", [(2, 3, 12, 8), (1, 1, 4, 4)])
def test_shuffle_patches_agrees_with_unfold(shape):
    """Fold and unfold give the same picture, and the inverse order gives the image back."""
    images, P = torch.randn(shape), 4
    columns = F.unfold(images, P, stride=P)
    permutation = torch.randperm(columns.shape[-1])
    shuffled = shuffle_patches(images, P, permutation)
    assert torch.equal(shuffled, F.fold(columns[..., permutation], shape[2:], P, stride=P))
    assert torch.equal(shuffle_patches(shuffled, P, permutation.argsort()), images)


def test_shuffle_patches_keeps_bytes():
    """Images that are not normalised yet can be shuffled, too."""
    assert (
        shuffle_patches(torch.zeros(1, 3, 4, 4, dtype=torch.uint8), 2, torch.arange(4)).dtype
        == torch.uint8
    )


def test_linear_cka_agrees_with_numpy_and_gram_matrices():
    """The other form of the paper, from likenesses of images, in float64."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 5)) + 3, rng.normal(size=(30, 8)) - 1
    y[:, :3] += x[:, :3]
    centre = np.eye(30) - 1 / 30
    K, L = centre @ x @ x.T @ centre, centre @ y @ y.T @ centre
    expected = (K * L).sum() / np.linalg.norm(K) / np.linalg.norm(L)
    assert linear_cka(torch.tensor(x), torch.tensor(y)).item() == pytest.approx(expected, abs=1e-12)


def test_linear_cka_is_one_for_rotations_and_lies_between_its_ends():
    """Rotation, scale and offset change nothing; unrelated features come near 0 where images are many."""
    g = torch.Generator().manual_seed(0)
    x, y = (torch.randn(2_000, 10, generator=g, dtype=torch.float64) for _ in range(2))
    rotation = torch.linalg.qr(torch.randn(10, 10, generator=g, dtype=torch.float64)).Q
    assert linear_cka(x, 5 * x @ rotation + 2).item() == pytest.approx(1, abs=1e-12)
    assert linear_cka(x, y).item() == pytest.approx(linear_cka(y, x).item(), abs=1e-12)
    assert 0 < linear_cka(x, y) < 0.02
    assert linear_cka(x, y[:, :3]).shape == ()


def test_values_of_the_notebook_are_what_they_say():
    """Each is measured or computed once more, from the definitions."""
    depth = vit_and_cnn.layers_to_see_all
    assert (
        receptive_field([3] * depth, [1] * depth)
        >= 224
        > receptive_field([3] * (depth - 1), [1] * (depth - 1))
    )
    stem = nn.Conv2d(3, 1, 7, stride=2, padding=3)
    places = stem(torch.zeros(1, 3, 224, 224)).numel()
    assert vit_and_cnn.weight_uses == (places, preset("vit_base_patch16_224").num_tokens)
    torch.manual_seed(0)
    vit = VisionTransformer(preset("vit_micro_patch8_32", pool="mean")).eval()
    with torch.no_grad():
        vit.pos_embed.zero_()
        images = torch.randn(2, 3, 32, 32)

        def tokens(x):
            return vit.blocks[0](vit.patch_embed(x)).mT.unflatten(-1, (4, 4))

        pairs = (
            (tokens(images.roll(8, -1)), tokens(images).roll(1, -1)),
            (tokens(images.roll(1, -1)), tokens(images)),
        )
    counts = (torch.isclose(*pair, atol=1e-4).all(dim=1).sum().item() for pair in pairs)
    assert vit_and_cnn.token_shifts == tuple(counts)


def test_small_cnn_has_the_receptive_field_that_the_notebook_names():
    """31 pixels, by the formula and by the gradient."""
    net = SmallCNN(width=4).eval()
    convolutions = [stage[0] for stage in net.stages]
    kernels, strides = [c.kernel_size[0] for c in convolutions], [c.stride[0] for c in convolutions]
    assert receptive_field(kernels, strides) == 31
    assert net(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


@pytest.mark.parametrize(
    ("known", "network", "word"),
    [
        (dict(train_images=4_999), "CNN", "drawn shapes"),
        (dict(train_images=5_000), "hybrid", "stem"),
        (dict(train_images=99_999), "hybrid", "CIFAR-10"),
        (dict(train_images=100_000), "CNN", "recipe"),
        (dict(train_images=10_000_000), "ViT", "21k"),
        (dict(train_images=500, is_pretrained=True), "ViT", "published"),
        (dict(train_images=500, is_pretrained=True, gmacs=0.5), "CNN", "MobileNet"),
        (dict(train_images=9_000, gmacs=1.0), "hybrid", "stem"),
        (dict(train_images=500, relates_distant_places=True), "ViT", "attention joins"),
        (
            dict(train_images=500, relates_distant_places=True, is_pretrained=True),
            "ViT",
            "published",
        ),
        (dict(train_images=500, image_size=449), "hybrid", "square"),
        (dict(train_images=10**9, image_size=448), "ViT", "21k"),
    ],
)
def test_recommend_gives_the_first_rule_that_fits(known, network, word):
    """Every rule is met, on both sides of its limit, and says where it comes from."""
    advice = recommend(**known)
    assert advice.network == network and word in advice.reason
    assert advice.source and str(advice).startswith(f"{network}: ")
    assert ("Folklore" in str(advice)) == advice.is_folklore


def test_recommend_quotes_the_measurements_that_come_with_the_package():
    """The accuracies with 200 images are those of the shipped rows."""
    reason = recommend(train_images=200).reason
    for network in ("CNN", "ViT"):
        runs = [r.results for r in measured("data_hunger") if r.arm == f"{network}, 200 images"]
        assert f"{100 * fmean(run['test_accuracy'] for run in runs):.0f} %" in reason
        assert all(run["train_accuracy"] == 1 for run in runs)


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
