"""extras.options: what an option changes in the model, and which class a configuration gets."""

from dataclasses import asdict

import pytest
import torch

from vitedu.encoder import EncoderBlock
from vitedu.extras.options import (
    PRESETS_WITH_OPTIONS,
    VisionTransformerWithOptions,
    ViTConfigWithOptions,
    build_model,
    preset,
    with_options,
)
from vitedu.vit import PRESETS, VisionTransformer, ViTConfig, capture

SMALL = ViTConfig(image_size=12, patch_size=4, num_classes=7, embed_dim=12, depth=2, num_heads=3)


def test_a_configuration_has_the_class_that_its_options_need():
    """The textbook's where every option is off, also from a file that lists all of them."""
    assert {type(preset(name)) for name in PRESETS} == {ViTConfig}
    assert {type(preset(name)) for name in PRESETS_WITH_OPTIONS} == {ViTConfigWithOptions}
    rotated = preset("vit_pico_patch4_32", rope=True)
    assert type(rotated) is ViTConfigWithOptions and rotated.rope and not rotated.fused
    for config in (SMALL, with_options(SMALL, pool="mean")):
        written = asdict(ViTConfigWithOptions(**vars(config)))
        assert with_options(ViTConfig(), **written) == config
    assert with_options(rotated, rope=False) == PRESETS["vit_pico_patch4_32"]


def test_a_model_is_the_textbook_one_unless_an_option_is_on():
    """The other class has the same weights, by name and by seed, and the same logits."""
    models = []
    for kind in (build_model, VisionTransformerWithOptions):
        torch.manual_seed(0)
        models.append(kind(SMALL).eval())
    assert type(models[0]) is VisionTransformer
    assert type(build_model(with_options(SMALL, rope=True))) is VisionTransformerWithOptions
    ours, theirs = (model.state_dict() for model in models)
    assert list(ours) == list(theirs) and all(map(torch.equal, ours.values(), theirs.values()))
    images = torch.randn(2, 3, 12, 12)
    assert torch.equal(*(model(images) for model in models))


def test_a_textbook_model_refuses_options():
    """It would leave them out in silence; the message says who builds them."""
    for kind in (VisionTransformer, type("Mine", (VisionTransformer,), {})):
        with pytest.raises(TypeError, match=f"{kind.__name__} takes a ViTConfig .*build_model"):
            kind(with_options(SMALL, fused=True))


def test_capture_looks_into_the_fused_form():
    """The fused form has no weights to show; while capture looks, it is longhand."""
    torch.manual_seed(0)
    model = build_model(preset("vit_micro_patch8_32", fused=True))
    images = torch.randn(1, 3, 32, 32)
    assert capture(model, images)["blocks.0.attn.weights"].shape == (1, 4, 17, 17)
    assert model.blocks[0].attn(torch.zeros(1, 3, 128))[1] is None


@pytest.mark.parametrize(
    "options",
    [{}, {"qkv_bias": False, "num_registers": 2}, {"rope": True, "qk_norm": True}],
    ids=["textbook", "no bias, registers", "rope, QK-norm"],
)
def test_a_last_block_makes_what_the_head_reads(options):
    """The class token alone: logits and gradients of a longhand block that makes all tokens."""
    torch.manual_seed(0)
    model = build_model(preset("vit_micro_patch8_32", fused=True, depth=2, **options))
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)  # biases begin at 0 and would hide
    whole = build_model(preset("vit_micro_patch8_32", depth=2, **options))
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


@pytest.mark.parametrize("options", [{"pool": "mean"}, {"fused": False}], ids=str)
def test_a_last_block_makes_all_tokens_where_they_are_read(options):
    """By a mean, or by whoever looks at a longhand form."""
    model = build_model(preset("vit_micro_patch8_32", **{"fused": True, **options}))
    assert type(model.blocks[-1]) is EncoderBlock
    if "pool" in options:  # one token fewer, two vectors fewer
        assert model.cls_token.numel() == 0 and model.pos_embed.shape[1] == 16
    assert model(torch.zeros(1, 3, 32, 32)).shape == (1, 10)


def test_with_a_conv_stem_an_image_does_not_depend_on_its_batch():
    """In eval mode its norms use what training counted."""
    torch.manual_seed(0)
    model = build_model(preset("vit_pico_convstem_patch4_rope_32"))
    images = torch.randn(4, 3, 32, 32)
    model(images)  # counts
    found = capture(model, images)
    assert found["patch_embed"].shape == (4, 64, 96)
    alone = model.eval()(images[:1])
    torch.testing.assert_close(found["logits"][:1], alone, rtol=0, atol=1e-5)


def test_registers_are_tokens_behind_the_class_token_that_no_head_reads():
    """They join the sequence, take part in attention, and the logits still come from token 0."""
    config = with_options(SMALL, num_registers=3)
    model = build_model(config).eval()
    assert config.num_prefix_tokens == 4 and model.cls_token.shape[1] == 4
    assert model.pos_embed.shape[1] == config.num_tokens == SMALL.num_tokens + 3
    images = torch.randn(2, 3, SMALL.image_size, SMALL.image_size)
    found = capture(model, images)
    assert torch.equal(found["logits"], model.head(found["norm"][:, 0]))
    with torch.no_grad():
        model.cls_token[:, 1:] += torch.randn(1, 3, 12)
        assert not torch.equal(model(images), found["logits"])


WRONG = {
    "pool": (dict(pool="sum"), "one of cls, mean, max, map"),
    "stem": (dict(stem="resnet"), "one of patch, conv .got 'resnet'"),
    "stem depth": (dict(stem="conv", stem_depth=-1), "at least 0 .got stem_depth=-1"),
    "a depth without a conv stem": (dict(stem_depth=3), "got stem_depth=3.*; use stem='conv'"),
    "registers alone": (dict(num_registers=2, pool="mean"), "num_registers=2, pool='mean'"),
    "fewer than no registers": (dict(num_registers=-1), "num_registers=-1"),
}


@pytest.mark.parametrize(("fields", "words"), WRONG.values(), ids=WRONG)
def test_bad_configurations_name_their_numbers(fields, words):
    """The message holds the numbers or the choices."""
    with pytest.raises(ValueError, match=words):
        ViTConfigWithOptions(**fields)


def test_unknown_preset_is_answered_with_choices():
    """The nearest name comes first."""
    with pytest.raises(ValueError, match="Did you mean 'vit_tiny_patch4_32'.*Choices: vit_micro"):
        preset("vit_tiny_patch4")
