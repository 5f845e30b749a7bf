"""vitedu.transfer: the references of notebook 09 against other libraries, definitions and properties."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from vitedu.transfer import (
    LoRALinear,
    blind_losses,
    clip_loss,
    convert_torchvision_weights,
    interpolate_positions,
    layerwise_lr_groups,
    lora_parameters,
    sigmoid_contrastive_loss,
)
from vitedu.vit import VisionTransformer, ViTConfig

SMALL = ViTConfig(24, 8, 3, 5, embed_dim=12, depth=11, num_heads=3)


@pytest.fixture(autouse=True)
def seed():
    """The same numbers every time."""
    torch.manual_seed(0)


@pytest.mark.slow  # loads torchvision
def test_converted_weights_give_torchvisions_logits():
    """Eleven blocks, every parameter moved from its start."""
    from torchvision.models import VisionTransformer as Theirs

    theirs = Theirs(24, 8, 11, 3, 12, 48, num_classes=5).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    before = {name: tensor.clone() for name, tensor in theirs.state_dict().items()}
    ours = VisionTransformer(SMALL).eval()
    ours.load_state_dict(convert_torchvision_weights(theirs.state_dict()))
    images = torch.randn(4, 3, 24, 24)
    with torch.no_grad():
        expected = theirs(images)
        assert expected.std(dim=0).mean() > 0.05
        torch.testing.assert_close(ours(images), expected, rtol=0, atol=1e-5)
    assert all(torch.equal(x, before[name]) for name, x in theirs.state_dict().items())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_interpolated_positions_keep_dtype_and_carry_gradients(dtype):
    """In float64 no value is rounded to float32 on the way."""
    positions = torch.randn(1, 17, 6, dtype=dtype, requires_grad=True)
    found = interpolate_positions(positions, (6, 5))
    assert found.dtype == dtype and found.shape == (1, 31, 6)
    found.square().sum().backward()
    assert (positions.grad.abs().sum(dim=2) > 0).all()
    again = interpolate_positions(positions.detach().float(), (6, 5))
    gap = (again.double() - found.detach().double()).abs().max()
    assert (gap > 0) == (dtype == torch.float64)


def test_layerwise_groups_fall_from_head_to_patches():
    """Twelve different rates for eleven blocks and both ends, every parameter once, frozen ones too."""
    model = VisionTransformer(SMALL)
    model.blocks[0].requires_grad_(False)
    groups = layerwise_lr_groups(model, 0.01, 0.7)
    rates = {id(p): group["lr"] for group in groups for p in group["params"]}
    assert (
        sum(len(group["params"]) for group in groups) == len(rates) == len(list(model.parameters()))
    )
    expected = {
        "head.weight": 0,
        "norm.bias": 0,
        "blocks.10.norm1.weight": 1,
        "blocks.9.mlp.fc1.bias": 2,
        "blocks.1.attn.qkv.weight": 10,
        "blocks.0.attn.proj.bias": 11,
        "patch_embed.proj.weight": 12,
        "cls_token": 12,
        "pos_embed": 12,
    }
    named = dict(model.named_parameters())
    for name, exponent in expected.items():
        assert math.isclose(rates[id(named[name])], 0.01 * 0.7**exponent), name
    torch.optim.AdamW(groups)  # takes them as they are


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_lora_starts_as_the_frozen_layer_learns_and_merges(bias, dtype):
    """At the start nothing changes; after a step only the thin matrices have; merged it computes the same."""
    linear = nn.Linear(7, 5, bias=bias, dtype=dtype)
    before = {name: value.clone() for name, value in linear.state_dict().items()}
    layer, x = LoRALinear(linear, rank=3, alpha=6.0), torch.randn(4, 7, dtype=dtype)
    assert torch.equal(layer(x), linear(x))
    optimizer = torch.optim.SGD([p for p in layer.parameters() if p.requires_grad], lr=0.1)
    for _ in range(2):  # down has no gradient while up is zero
        layer(x).square().sum().backward()
        optimizer.step()
    assert all(torch.equal(value, before[name]) for name, value in linear.state_dict().items())
    assert not torch.equal(layer(x), linear(x))
    expected = linear(x) + 2.0 * x @ layer.down.weight.T @ layer.up.weight.T
    torch.testing.assert_close(layer(x), expected)
    merged = layer.merged()
    assert type(merged) is nn.Linear and (merged.bias is None) == (not bias)
    torch.testing.assert_close(merged(x), layer(x))
    with torch.no_grad():
        merged.weight.zero_()
    assert all(torch.equal(value, before[name]) for name, value in linear.state_dict().items())


def test_losses_equal_their_definitions():
    """Against sums over all pairs, in float64; the lengths of the features do not matter."""
    image, text = torch.randn(6, 4).double(), torch.randn(6, 4).double()
    cosines = F.cosine_similarity(image[:, None], text[None], dim=2)
    logits = cosines / 0.3
    clip = -sum(
        (logits[i, i] - logits[i].logsumexp(0)) + (logits[i, i] - logits[:, i].logsumexp(0))
        for i in range(6)
    )
    torch.testing.assert_close(clip_loss(image, text, 0.3), clip / 12)
    pairs = 4 * cosines - 2
    signs = 2 * torch.eye(6) - 1
    siglip = (1 + (-signs * pairs).exp()).log().sum() / 6
    torch.testing.assert_close(sigmoid_contrastive_loss(image, text, 4.0, -2.0), siglip)
    lengths = torch.rand(6, 1).double() + 0.5
    torch.testing.assert_close(clip_loss(image * lengths, text, 0.3), clip / 12)
    torch.testing.assert_close(sigmoid_contrastive_loss(image, text * lengths, 4.0, -2.0), siglip)


def test_losses_stay_finite_at_logits_of_ten_thousand():
    """With gradients, in float32."""
    image, text = torch.randn(5, 3, requires_grad=True), torch.randn(5, 3)
    for loss in (clip_loss(image, text, 1e-4), sigmoid_contrastive_loss(image, text, 1e4, -1e4)):
        (gradient,) = torch.autograd.grad(loss, image)
        assert loss.isfinite() and loss > 100 and gradient.isfinite().all()


def test_values_are_what_a_student_would_measure():
    """Adapters of ViT-B/16, and the losses of features that say nothing."""
    layer = LoRALinear(nn.Linear(768, 3 * 768), rank=8, alpha=8)
    assert 12 * sum(p.numel() for p in layer.parameters() if p.requires_grad) == lora_parameters
    image, text = torch.eye(128)[:64], torch.eye(128)[64:]
    measured = (
        clip_loss(image, text, 0.07),
        *(sigmoid_contrastive_loss(image, text, 10.0, b) for b in (0.0, -10.0)),
    )
    torch.testing.assert_close(torch.stack(measured), torch.tensor(blind_losses), rtol=1e-5, atol=0)
