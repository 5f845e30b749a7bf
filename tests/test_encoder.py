"""The references of notebook 03, against torch's own layers."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from vitedu.encoder import (
    GELU,
    EncoderBlock,
    class_token_alone,
    count_parameters,
    gelu,
    layer_norm,
    mlp_share,
)
from vitedu.vit import PRESETS, VisionTransformer, preset


@pytest.mark.parametrize("eps", [1e-6, 0.1])
@pytest.mark.parametrize("spread", [1.0, 1e-3])
def test_layer_norm_equals_torch(eps, spread):
    """Also where the variance is as small as eps."""
    x, weight, bias = spread * torch.randn(2, 5, 12), torch.randn(12), torch.randn(12)
    expected = F.layer_norm(x, (12,), weight, bias, eps)
    torch.testing.assert_close(layer_norm(x, weight, bias, eps), expected, rtol=0, atol=1e-5)


def test_gelu_equals_torch_and_not_its_approximation():
    """The exact form to 1e-6; the tanh form is up to 4.73e-4 away, near x = -2.70."""
    x = torch.linspace(-6, 6, 12_001, dtype=torch.float64)
    torch.testing.assert_close(gelu(x), F.gelu(x), rtol=0, atol=1e-12)
    assert torch.equal(GELU()(x), F.gelu(x))
    away = (gelu(x) - F.gelu(x, approximate="tanh")).abs()
    assert away.max().item() == pytest.approx(4.73e-4, abs=1e-6)
    assert abs(x[away.argmax()].item()) == pytest.approx(2.70, abs=0.02)


def test_block_equals_torch_pre_norm_layer():
    """torch's encoder layer with norm_first and exact GELU, after its weights are copied."""
    ours = EncoderBlock(12, 3, 2.0)
    theirs = nn.TransformerEncoderLayer(
        12,
        3,
        24,
        dropout=0.0,
        activation="gelu",
        layer_norm_eps=1e-6,
        batch_first=True,
        norm_first=True,
    )
    names = {
        "norm1": ours.norm1,
        "norm2": ours.norm2,
        "linear1": ours.mlp.fc1,
        "linear2": ours.mlp.fc2,
        "self_attn.out_proj": ours.attn.proj,
    }
    state = {
        f"{name}.{key}": value
        for name, part in names.items()
        for key, value in part.state_dict().items()
    }
    state |= {
        "self_attn.in_proj_weight": ours.attn.qkv.weight,
        "self_attn.in_proj_bias": ours.attn.qkv.bias,
    }
    theirs.load_state_dict(state)
    x = torch.randn(2, 5, 12)
    torch.testing.assert_close(ours(x), theirs(x), rtol=0, atol=1e-5)


def test_block_with_silent_branches_is_the_identity():
    """Zeroed last layers leave only the paths around, exactly."""
    block = EncoderBlock(12, 3)
    for layer in (block.attn.proj, block.mlp.fc2):
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
    x = torch.randn(2, 5, 12)
    assert torch.equal(block(x), x)


@pytest.mark.parametrize("name", [n for n, config in PRESETS.items() if config.stem == "patch"])
def test_count_parameters_equals_the_model(name):
    """For every preset that cuts patches; the model is built without memory."""
    with torch.device("meta"):
        model = VisionTransformer(PRESETS[name])
    assert count_parameters(PRESETS[name]) == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("changes", [{"pool": "mean"}, {"qkv_bias": False}, {"mlp_ratio": 2.7}])
def test_count_parameters_follows_the_options(changes):
    """Options of the config change the sum as they change the model."""
    config = preset("vit_micro_patch8_32", **changes)
    assert count_parameters(config) == sum(
        p.numel() for p in VisionTransformer(config).parameters()
    )


def test_values_of_notebook_03_are_measured():
    """Without blocks every image gets the same logits and the patches no gradient; the MLP's share."""
    torch.manual_seed(0)
    model = VisionTransformer(preset("vit_micro_patch8_32", depth=1))
    model.blocks = nn.ModuleList()
    logits = model(torch.randn(8, 3, 32, 32))
    F.cross_entropy(logits, torch.arange(8)).backward()
    gradient = model.patch_embed.proj.weight.grad.abs().max().item()
    assert (len(torch.unique(logits.detach(), dim=0)), gradient) == class_token_alone
    block = EncoderBlock(768, 12)
    shares = [sum(p.numel() for p in part.parameters()) for part in (block.mlp, block)]
    assert shares[0] / shares[1] == pytest.approx(mlp_share, rel=1e-12)


def walk(blocks, step):
    """Give the tokens of two images, random at first, after each block."""
    torch.manual_seed(0)
    x = torch.randn(2, 65, 64)
    with torch.no_grad():
        for block in blocks:
            x = step(block, x)
            yield x


def test_without_skips_the_tokens_of_an_image_point_one_way_after_two_blocks():
    """What notebook 03 says of random blocks; with skips they stay apart, and the two images do too."""
    torch.manual_seed(0)
    blocks = [EncoderBlock(64, 4) for _ in range(12)]

    def bare(block, x):
        x = block.attn(block.norm1(x))[0]
        return block.mlp(block.norm2(x))

    def spread(x):
        return F.normalize(x, dim=-1).mean(dim=1).norm(dim=-1).min()  # 1: all point one way

    without, whole = list(walk(blocks, bare)), list(walk(blocks, lambda block, x: block(x)))
    assert spread(without[1]) > 0.99 and spread(whole[11]) < 0.7
    images = [F.cosine_similarity(*x.mean(dim=1), dim=0) for x in (without[1], without[11])]
    assert images[0] < 0.9 < images[1]


def test_pre_norm_lets_tokens_grow_and_post_norm_does_not():
    """24 random blocks: longer by more than 30 % with pre-norm, of length 8 with post-norm."""
    torch.manual_seed(0)
    blocks = [EncoderBlock(64, 4) for _ in range(24)]

    def post_norm(block, x):
        x = block.norm1(x + block.attn(x)[0])
        return block.norm2(x + block.mlp(x))

    *_, pre = walk(blocks, lambda block, x: block(x))
    *_, post = walk(blocks, post_norm)
    assert pre.norm(dim=-1).mean() > 1.3 * 8
    assert abs(post.norm(dim=-1).mean() - 8) < 0.1
