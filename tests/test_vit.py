"""The whole model: against timm, and what ``capture`` sees of it."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from vitedu.encoder import EncoderBlock
from vitedu.vit import VisionTransformer, ViTConfig, capture, preset

SMALL = ViTConfig(image_size=12, patch_size=4, num_classes=7, embed_dim=12, depth=2, num_heads=3)


@pytest.fixture
def model():
    """A small model with random weights everywhere."""
    torch.manual_seed(0)
    model = VisionTransformer(SMALL)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


@pytest.mark.slow  # loads timm and torchvision
@pytest.mark.parametrize(
    ("patch", "width", "depth", "heads", "bias"), [(4, 12, 2, 3, True), (8, 24, 3, 2, False)]
)
def test_logits_equal_those_of_timm(patch, width, depth, heads, bias):
    """timm's weights load by name, without a change, and give the same logits to 1e-5."""
    timm = pytest.importorskip("timm", reason="timm is the oracle here")
    torch.manual_seed(0)
    sizes = dict(patch_size=patch, embed_dim=width, depth=depth, num_heads=heads, qkv_bias=bias)
    oracle = timm.models.vision_transformer.VisionTransformer(24, num_classes=7, **sizes).eval()
    for parameter in oracle.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    model = VisionTransformer(ViTConfig(24, patch, 3, 7, width, depth, heads, qkv_bias=bias))
    model.load_state_dict(oracle.state_dict())
    images = torch.randn(2, 3, 24, 24)
    with torch.no_grad():
        torch.testing.assert_close(model(images), oracle(images), rtol=1e-5, atol=1e-5)


def test_every_parameter_gets_a_gradient(model):
    """Nothing stands idle."""
    model(torch.randn(2, 3, 12, 12)).square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in model.parameters())


def test_capture_names_every_intermediate(model):
    """Names are attribute names; the weights' rows sum to 1; the logits are those of the model."""
    images = torch.randn(2, 3, 12, 12)
    found = capture(model, images)
    shapes = {name: tuple(value.shape) for name, value in found.items()}
    assert shapes["patch_embed"] == (2, 9, 12)
    assert shapes["tokens"] == shapes["blocks.0"] == shapes["norm"] == (2, 10, 12)
    assert shapes["blocks.1.mlp.fc1"] == (2, 10, 48)
    assert shapes["blocks.1.attn.weights"] == (2, 3, 10, 10)
    torch.testing.assert_close(found["blocks.1.attn.weights"].sum(-1), torch.ones(2, 3, 10))
    assert torch.equal(found["logits"], model(images))


def test_capture_leaves_no_trace(model):
    """Modes of all parts as before, no hooks, no graph."""
    model.train()
    model.blocks[1].eval()
    before = [module.training for module in model.modules()]
    found = capture(model, torch.randn(1, 3, 12, 12))
    assert [module.training for module in model.modules()] == before
    assert not any(module._forward_hooks for module in model.modules())
    assert not any(value.requires_grad for value in found.values())


def test_capture_looks_into_the_fused_form():
    """The fused form has no weights to show; while capture looks, it is longhand."""
    torch.manual_seed(0)
    model = VisionTransformer(preset("vit_micro_patch8_32", fused=True))
    images = torch.randn(1, 3, 32, 32)
    assert capture(model, images)["blocks.0.attn.weights"].shape == (1, 4, 17, 17)
    assert model.blocks[0].attn(torch.zeros(1, 3, 128))[1] is None


@pytest.mark.parametrize(
    "options",
    [{}, {"qkv_bias": False, "num_registers": 2}],
    ids=["textbook", "no bias, registers"],
)
def test_a_last_block_makes_what_the_head_reads(options):
    """The class token alone: logits and gradients of a longhand block that makes all tokens."""
    torch.manual_seed(0)
    model = VisionTransformer(preset("vit_micro_patch8_32", fused=True, depth=2, **options))
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)  # biases begin at 0 and would hide
    whole = VisionTransformer(preset("vit_micro_patch8_32", depth=2, **options))
    whole.load_state_dict(model.state_dict())
    images = torch.randn(3, 3, 32, 32)
    shapes = []
    model.blocks[-1].register_forward_hook(lambda *call: shapes.append(call[2].shape))
    torch.testing.assert_close(model(images), whole(images), rtol=0, atol=1e-5)
    assert shapes == [(3, 1, 128)]
    for each in (model, whole):
        each(images).square().sum().backward()
    for (name, ours), theirs in zip(model.named_parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-4, msg=name)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(model(images), whole(images), rtol=0.05, atol=0.05)
    tokens = model.config.num_tokens
    assert capture(model, images)["norm"].shape == (3, tokens, 128)  # who looks sees all


@pytest.mark.parametrize(
    "options", [{"pool": "mean"}, {"rope": True}, {"qk_norm": True}, {"fused": False}], ids=str
)
def test_a_last_block_makes_all_tokens_where_its_short_way_is_not_the_same(options):
    """A mean reads all tokens, and a query that meets the tokens has no key to turn or to norm."""
    model = VisionTransformer(preset("vit_micro_patch8_32", **{"fused": True, **options}))
    assert type(model.blocks[-1]) is EncoderBlock
    if "pool" in options:  # one token fewer, two vectors fewer
        assert model.cls_token.numel() == 0 and model.pos_embed.shape[1] == 16
    assert model(torch.zeros(1, 3, 32, 32)).shape == (1, 10)


def test_a_last_block_calls_what_took_the_place_of_its_projection():
    """A layer with more than weight and bias keeps what it adds."""

    class Doubled(nn.Linear):
        def forward(self, x):
            return 2 * super().forward(x)

    torch.manual_seed(0)
    model = VisionTransformer(preset("vit_micro_patch8_32", fused=True))
    images = torch.randn(3, 3, 32, 32)
    before = model(images)
    model.blocks[-1].attn.qkv.__class__ = Doubled
    after = model(images)
    model.blocks[-1].__class__ = EncoderBlock
    torch.testing.assert_close(after, model(images), rtol=0, atol=1e-5)
    assert not torch.allclose(after, before, rtol=0, atol=1e-3)


def test_with_a_conv_stem_an_image_does_not_depend_on_its_batch():
    """In eval mode its norms use what training counted."""
    torch.manual_seed(0)
    model = VisionTransformer(preset("vit_pico_convstem_patch4_rope_32"))
    images = torch.randn(4, 3, 32, 32)
    model(images)  # counts
    found = capture(model, images)
    assert found["patch_embed"].shape == (4, 64, 96)
    alone = model.eval()(images[:1])
    torch.testing.assert_close(found["logits"][:1], alone, rtol=0, atol=1e-5)


def test_the_larger_conv_stem_has_72_percent_of_the_products():
    """The README says so, that nobody takes the model for a ViT of patches."""
    counts, images = [], torch.zeros(1, 3, 32, 32)
    model = VisionTransformer(preset("vit_tiny_convstem_patch4_rope_32"))
    for part in (model.patch_embed, model):
        with FlopCounterMode(display=False) as counter:
            part(images)
        counts.append(counter.get_total_flops())
    assert round(counts[0] / counts[1], 2) == 0.72


@pytest.mark.parametrize(
    "options",
    [{}, {"qkv_bias": False}, {"qk_norm": True}, {"fused": True, "rope": True}],
    ids=["textbook", "no bias", "QK-norm", "fused"],
)
def test_no_layer_is_built_to_be_thrown_away(options, monkeypatch):
    """Every linear layer that is made is a layer of the model."""
    made, build = [], torch.nn.Linear.__init__

    def count(self, *args, **kwargs):
        made.append(self)
        build(self, *args, **kwargs)

    monkeypatch.setattr(torch.nn.Linear, "__init__", count)
    model = VisionTransformer(replace(SMALL, **options))
    assert set(made) == {m for m in model.modules() if isinstance(m, torch.nn.Linear)}


def test_textbook_model_is_built_of_the_block_as_the_exercise_asks_for_it(monkeypatch):
    """A block of embed_dim, num_heads and mlp_ratio is used as it is; options bring their own."""

    class Block(EncoderBlock):
        def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
            super().__init__(embed_dim, num_heads, mlp_ratio)

    monkeypatch.setattr("vitedu.vit.EncoderBlock", Block)
    assert {type(block) for block in VisionTransformer(SMALL).blocks} == {Block}
    monkeypatch.undo()
    model = VisionTransformer(replace(SMALL, qkv_bias=False))
    assert {type(block) for block in model.blocks} == {EncoderBlock}
    assert model.blocks[0].attn.qkv.bias is None


FINGERPRINT = """
import hashlib, torch
from vitedu.vit import PRESETS, VisionTransformer
torch.manual_seed({seed})
weights = VisionTransformer(PRESETS["vit_micro_patch8_32"]).state_dict().values()
print(hashlib.sha256(b"".join(tensor.numpy().tobytes() for tensor in weights)).hexdigest())
"""


@pytest.mark.slow
def test_a_seed_gives_the_same_weights_to_the_bit_in_fresh_processes(capsys):
    """A fresh kernel gets what this process gets, after all that it drew; another seed, others."""
    found = []
    for seed in (42, 43):
        exec(FINGERPRINT.format(seed=seed))
        found.append(capsys.readouterr().out)
    code = [sys.executable, "-c", FINGERPRINT.format(seed=42)]
    fresh = subprocess.run(code, capture_output=True, text=True, check=True).stdout
    assert fresh == found[0] != found[1]


def test_registers_are_tokens_behind_the_class_token_that_no_head_reads():
    """They join the sequence, take part in attention, and the logits still come from token 0."""
    config = replace(SMALL, num_registers=3)
    model = VisionTransformer(config).eval()
    assert config.num_prefix_tokens == 4 and model.cls_token.shape[1] == 4
    assert model.pos_embed.shape[1] == config.num_tokens == SMALL.num_tokens + 3
    images = torch.randn(2, 3, SMALL.image_size, SMALL.image_size)
    found = capture(model, images)
    assert torch.equal(found["logits"], model.head(found["norm"][:, 0]))
    with torch.no_grad():
        model.cls_token[:, 1:] += torch.randn(1, 3, 12)
        assert not torch.equal(model(images), found["logits"])


WRONG = {
    "patch": (dict(image_size=30, patch_size=4), "image_size=30, patch_size=4, remainder 2"),
    "heads": (dict(embed_dim=100), "embed_dim=100, num_heads=3, remainder 1"),
    "pool": (dict(pool="max"), "'cls' or 'mean'"),
    "stem": (dict(stem="resnet"), "'patch' or 'conv' .got 'resnet'"),
    "stem depth": (dict(stem="conv", stem_depth=-1), "at least 0 .got stem_depth=-1"),
    "a depth without a conv stem": (dict(stem_depth=3), "got stem_depth=3.*; use stem='conv'"),
    "registers alone": (dict(num_registers=2, pool="mean"), "num_registers=2, pool='mean'"),
    "fewer than no registers": (dict(num_registers=-1), "num_registers=-1"),
}


@pytest.mark.parametrize(("fields", "words"), WRONG.values(), ids=WRONG)
def test_bad_configurations_name_their_numbers(fields, words):
    """The message holds the numbers or the choices."""
    with pytest.raises(ValueError, match=words):
        ViTConfig(**fields)


def test_unknown_preset_is_answered_with_choices():
    """The nearest name comes first."""
    with pytest.raises(ValueError, match="Did you mean 'vit_tiny_patch4_32'.*Choices: vit_micro"):
        preset("vit_tiny_patch4")
