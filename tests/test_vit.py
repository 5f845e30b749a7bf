"""The whole model: against timm, and what ``capture`` sees of it."""

import inspect
import pickle
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from vitedu.encoder import EncoderBlock
from vitedu.vit import PRESETS, VisionTransformer, ViTConfig, capture

SMALL = ViTConfig(image_size=12, patch_size=4, num_classes=7, embed_dim=12, depth=2, num_heads=3)


@pytest.fixture
def model():
    """A small model with random weights everywhere."""
    torch.manual_seed(0)
    model = VisionTransformer(SMALL)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def test_starting_weights_have_the_spread_and_the_bound_that_are_promised():
    """0.02 cut at two deviations leaves 0.0176; biases 0; the patch convolution keeps torch's."""
    torch.manual_seed(0)
    model = VisionTransformer(ViTConfig())
    linear = [module for module in model.modules() if isinstance(module, torch.nn.Linear)]
    for drawn in (*(layer.weight for layer in linear), model.pos_embed, model.cls_token):
        assert drawn.abs().max() <= 0.04
        assert drawn.std().item() == pytest.approx(0.0176, abs=0.1 / drawn.numel() ** 0.5)
    assert not any(layer.bias.any() for layer in linear)
    assert model.patch_embed.proj.weight.abs().max() > 0.1


@pytest.mark.parametrize(
    "shape, parameters",
    [
        (replace(PRESETS["vit_micro_patch8_32"], patch_size=4), 809_354),
        (PRESETS["vit_tiny_patch4_32"], 2_693_578),
        (replace(PRESETS["vit_tiny_patch4_32"], embed_dim=384, depth=8, num_heads=6), 14_244_490),
    ],
    ids=["micro with patches of 4", "tiny", "small with 8 blocks"],
)
def test_models_have_as_many_parameters_as_counted_by_hand(shape, parameters):
    """Weights and biases of every layer, class token and positions included."""
    with torch.device("meta"):
        model = VisionTransformer(shape)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


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


WRONG = {
    "patch": (dict(image_size=30, patch_size=4), "image_size=30, patch_size=4, remainder 2"),
    "heads": (dict(embed_dim=100), "embed_dim=100, num_heads=3, remainder 1"),
}


@pytest.mark.parametrize(("fields", "words"), WRONG.values(), ids=WRONG)
def test_bad_configurations_name_their_numbers(fields, words):
    """The message holds the numbers."""
    with pytest.raises(ValueError, match=words):
        ViTConfig(**fields)


@pytest.mark.parametrize(
    "make",
    [lambda: ViTConfig(8, rope=True), lambda: replace(SMALL, rope=True)],
    ids="new replace".split(),
)
def test_an_option_of_the_textbook_configuration_is_answered_with_the_class_that_has_it(make):
    """One line; what Python shows as arguments are the fields, and copies are equal."""
    with pytest.raises(TypeError, match="no field rope, .*options.ViTConfigWithOptions") as error:
        make()
    assert "\n" not in str(error.value)
    assert list(inspect.signature(ViTConfig).parameters) == list(vars(SMALL))
    assert pickle.loads(pickle.dumps(SMALL)) == SMALL
