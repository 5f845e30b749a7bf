"""Other libraries' models become ours: the same logits, or a refusal that says why."""

import math
from functools import partial

import pytest
import torch
from torch import nn
from torchvision.models.vision_transformer import VisionTransformer as TorchvisionViT

from vitedu.encoder import EncoderBlock
from vitedu.extras.options import ViTConfigWithOptions, build_model
from vitedu.pretrained.conversions import (
    _ratio,
    convert_huggingface_weights,
    from_timm,
    from_torchvision,
)
from vitedu.transfer import interpolate_positions
from vitedu.vit import PRESETS, VisionTransformer, ViTConfig

pytestmark = pytest.mark.slow  # torchvision and timm take seconds to load
timm = pytest.importorskip("timm", reason="timm is an oracle here")
from timm.layers import resample_abs_pos_embed  # noqa: E402
from timm.models.vision_transformer import VisionTransformer as TimmViT  # noqa: E402

SMALL = dict(img_size=24, patch_size=8, embed_dim=12, depth=2, num_heads=3, num_classes=5)


@pytest.fixture(autouse=True)
def seed():
    """The same images every time."""
    torch.manual_seed(0)


def filled(model, seed=0):
    """Random numbers in every parameter, norms and biases too: a swap must show."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        fan_in = parameter[0].numel() if parameter.ndim > 1 and len(parameter) > 1 else 4
        nn.init.normal_(parameter, std=1.5 / fan_in**0.5, generator=generator)
        if parameter.ndim == 1 and name.endswith("weight"):
            parameter.data += 1  # a norm; so that the image reaches the logits
    return model.eval()


def torchvision_model(size=24, patch=8, depth=2, heads=3, width=12, hidden=48, **options):
    """A small torchvision model."""
    options = {"num_classes": 5, **options}
    return filled(TorchvisionViT(size, patch, depth, heads, width, hidden, **options))


def timm_model(**options):
    """A small timm model."""
    return filled(TimmViT(**{**SMALL, **options}))


def assert_same_logits(ours, theirs, images):
    """To 1e-5, on logits that change from image to image."""
    with torch.no_grad():
        expected = theirs(images)
        assert expected.std(dim=0).mean() > 0.05
        torch.testing.assert_close(ours(images), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("size", "patch", "depth", "heads", "width", "hidden", "classes"),
    [
        (24, 8, 2, 3, 12, 48, 5),
        (32, 4, 1, 1, 8, 21, 2),  # an MLP whose width is no multiple
        (28, 14, 3, 4, 32, 64, 1000),
    ],
)
def test_torchvision_logits_are_equal(size, patch, depth, heads, width, hidden, classes):
    """Any size of image, patch, width, depth, MLP and any number of heads, read from the model."""
    theirs = torchvision_model(size, patch, depth, heads, width, hidden, num_classes=classes)
    ours = from_torchvision(theirs)
    assert (ours.config.image_size, ours.config.patch_size) == (size, patch)
    assert (ours.config.depth, ours.config.num_heads) == (depth, heads)
    assert_same_logits(ours, theirs, torch.randn(4, 3, size, size))


@pytest.mark.parametrize(
    "options",
    [
        {},
        dict(img_size=32, patch_size=4, embed_dim=8, depth=1, num_heads=1, mlp_ratio=2.7),
        dict(qkv_bias=False),
        dict(proj_bias=False),
        dict(in_chans=1),
        dict(class_token=False, global_pool="avg", fc_norm=False),
        dict(no_embed_class=True),
        dict(dynamic_img_size=True),
        dict(init_values=0.1),
        dict(reg_tokens=4),
        dict(reg_tokens=3, no_embed_class=True, init_values=0.1),
        dict(mlp_layer=timm.layers.SwiGLUPacked, act_layer=nn.SiLU),
        dict(act_layer="quick_gelu"),
        dict(pre_norm=True, norm_layer=partial(nn.LayerNorm, eps=1e-5)),
        dict(num_classes=0),
        dict(class_token=False, global_pool="map"),
        dict(class_token=False, global_pool="map", qkv_bias=False, num_classes=0),
        dict(drop_rate=0.5, attn_drop_rate=0.5, drop_path_rate=0.5, patch_drop_rate=0.5),
    ],
    ids=lambda options: ", ".join(options) or "plain",
)
def test_timm_logits_are_equal(options):
    """Sizes, missing biases, pooling, prefix rows, what acts in training only, and later parts."""
    theirs = timm_model(**options)
    size, channels = theirs.patch_embed.img_size[0], theirs.patch_embed.proj.in_channels
    assert_same_logits(from_timm(theirs), theirs, torch.randn(4, channels, size, size))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vit_tiny_patch16_224", "deit_tiny_patch16_224"])
def test_named_timm_models_are_equal_at_full_size(name):
    """The published shapes, at 224 px."""
    theirs = filled(timm.create_model(name, num_classes=7))
    assert_same_logits(from_timm(theirs), theirs, torch.randn(2, 3, 224, 224))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("vit_small_patch14_dinov2", {"img_size": 126}),
        ("vit_small_patch14_reg4_dinov2", {}),
        # the real width has 1.1 billion
        ("vit_giant_patch14_dinov2", {"embed_dim": 96, "num_heads": 4}),
        ("vit_base_patch16_clip_224", {"num_classes": 0}),
        ("vit_base_patch16_clip_quickgelu_224", {}),
    ],
)
def test_features_of_dinov2_and_clip_are_equal(name, options):
    """Two blocks of the published widths; with registers at the published image size of 518 px."""
    theirs = filled(timm.create_model(name, depth=2, **options))
    size = theirs.patch_embed.img_size[0]
    ours, images = from_timm(theirs), torch.randn(2, 3, size, size)
    with torch.no_grad():
        expected = theirs(images)
        scale = expected.abs().max()
        assert scale > 0.1 and (ours(images) - expected).abs().max() < 1e-5 * scale.clamp(min=1)
    parts = {type(module).__name__ for module in ours.modules()}
    assert ("SwiGlu" in parts) == ("giant" in name)
    assert {type(block) for block in ours.blocks} == {EncoderBlock}
    assert getattr(ours.config, "num_registers", 0) == (4 if "reg4" in name else 0)


def in_names_of_transformers(state, version):
    """Write timm's names as transformers does: q, k and v apart, in its version 4 or 5."""
    inner = [
        ("norm1", "layernorm_before"),
        ("norm2", "layernorm_after"),
        ("attn.proj", "attention.output.dense" if version == 4 else "attention.o_proj"),
        ("blocks.", "encoder.layer." if version == 4 else "layers."),
    ]
    inner += [("mlp.fc1", "intermediate.dense"), ("mlp.fc2", "output.dense")] * (version == 4)
    outer = {
        "norm.": "vit.layernorm.",
        "head.": "classifier.",
        "cls_token": "vit.embeddings.cls_token",
    }
    outer |= {"pos_embed": "vit.embeddings.position_embeddings"}
    outer |= {"patch_embed.proj": "vit.embeddings.patch_embeddings.projection"}
    renamed = {}
    for name, tensor in state.items():
        for ours, theirs in outer.items():
            name = theirs + name.removeprefix(ours) if name.startswith(ours) else name
        for ours, theirs in inner:
            name = name.replace(ours, theirs)
        name = name.replace("layers.", "vit.layers.").replace("encoder.", "vit.encoder.")
        parts = [
            "attention.attention.query",
            "attention.attention.key",
            "attention.attention.value",
        ]
        parts = parts if version == 4 else [f"attention.{each}_proj" for each in "qkv"]
        if "attn.qkv" in name:
            renamed |= {
                name.replace("attn.qkv", p): t for p, t in zip(parts, tensor.chunk(3), strict=True)
            }
        else:
            renamed[name] = tensor
    return renamed | {"pooler.dense.weight": torch.zeros(12, 12)}


@pytest.mark.parametrize("version", [4, 5])
def test_names_of_transformers_are_read_with_q_k_v_stacked(version):
    """Of both versions, with all numbers at their place; timm's own names stay."""
    state = timm_model().state_dict()
    found = convert_huggingface_weights(in_names_of_transformers(state, version))
    assert found.keys() == state.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in state.items())
    assert convert_huggingface_weights(state).keys() == state.keys()


@pytest.mark.parametrize("kind", ["ViT", "Dinov2"])
def test_logits_of_transformers_are_equal(kind):
    """Its own model with random weights, read by names."""
    library = pytest.importorskip("transformers", reason="pip install transformers")
    sizes = dict(hidden_size=12, num_hidden_layers=2, num_attention_heads=3, image_size=24)
    sizes |= dict(intermediate_size=48, patch_size=8, layer_norm_eps=1e-6)
    if kind == "ViT":
        theirs = library.ViTForImageClassification(library.ViTConfig(**sizes, num_labels=5))
    else:
        theirs = library.Dinov2Model(library.Dinov2Config(**sizes))
    theirs, images = filled(theirs), torch.randn(4, 3, 24, 24)
    state = convert_huggingface_weights(theirs.state_dict())
    state.pop("mask_token", None)
    options = {} if kind == "ViT" else {"num_classes": 0, "init_values": 1.0}
    ours = TimmViT(**{**SMALL, **options})
    ours.load_state_dict(state)
    with torch.no_grad():
        outputs = theirs(images)
        expected = outputs.logits if kind == "ViT" else outputs.last_hidden_state[:, 0]
        found = from_timm(ours.eval())(images)
    assert expected.std(dim=0).mean() > 0.05
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


BOTH = {"torchvision": (torchvision_model, from_torchvision), "timm": (timm_model, from_timm)}
QKV_BIAS = {
    "torchvision": "encoder.layers.encoder_layer_1.self_attention.in_proj_bias",
    "timm": "blocks.1.attn.qkv.bias",
}


@pytest.mark.parametrize("library", BOTH)
def test_copy_keeps_every_number_and_is_independent(library):
    """No shared memory, dtype kept, in eval mode, everything trainable, no random number drawn.

    Those of the keys' biases, which no logit shows, arrive at their place.
    """
    make, convert = BOTH[library]
    theirs = make().double().train()
    before = torch.get_rng_state()
    ours = convert(theirs)
    assert torch.equal(torch.get_rng_state(), before)
    values = [torch.cat([p.flatten() for p in m.parameters()]) for m in (theirs, ours)]
    assert torch.equal(*(each.sort().values for each in values))
    found = ours.get_parameter("blocks.1.attn.qkv.bias")
    assert torch.equal(theirs.get_parameter(QKV_BIAS[library]), found)
    assert not ours.training and ours.head.weight.dtype == torch.float64
    assert all(p.requires_grad and not p.is_meta for p in ours.parameters())
    memory = [{p.data_ptr() for p in m.parameters()} for m in (theirs, ours)]
    assert not memory[0] & memory[1]
    rebuilt = build_model(ours.config)  # what a checkpoint of it needs
    rebuilt.load_state_dict(ours.state_dict())


def test_every_norm_of_ours_has_the_eps_that_is_asked_for():
    """A change there must change what is refused here."""
    model = VisionTransformer(PRESETS["vit_micro_patch8_32"])
    assert {m.eps for m in model.modules() if isinstance(m, nn.LayerNorm)} == {
        ViTConfigWithOptions().norm_eps
    }


def test_mlp_ratio_gives_back_every_hidden_width():
    """Also where hidden / embed_dim * embed_dim rounds to just below the whole number."""
    pairs = [(D, hidden) for D in range(1, 200) for hidden in range(1, 400)]
    assert any(int(D * (hidden / D)) != hidden for D, hidden in pairs)  # the trap exists
    assert all(int(D * _ratio(hidden, D)) == hidden for D, hidden in pairs)


def with_part(model, path, part):
    """Replace a part of a model."""
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent), name, part)
    return model


LAYER_1 = "encoder.layers.encoder_layer_1"
# what is wrong -> options of a model, or a part and what takes its place; words of the refusal
REFUSED_BY_TORCHVISION = {
    "pre_logits": (dict(representation_size=6), "parameters of other names.*heads.pre_logits"),
    "act": ((f"{LAYER_1}.mlp.1", nn.ReLU()), "without parameters: logits differ by"),
    "overlap": (("conv_proj", nn.Conv2d(3, 12, 9, 8, 1)), "patch_embed.proj.weight"),
    "extra": (("extra", nn.Linear(2, 2)), "parameters of other names.*extra.weight"),
}
AVERAGE, POOLS = dict(global_pool="avg", fc_norm=False), dict(global_pool="max", fc_norm=False)
PARALLEL = timm.models.vision_transformer.ParallelScalingBlock
ALONE = dict(reg_tokens=2, class_token=False, **AVERAGE)
REFUSED_BY_TIMM = {
    "fc_norm": (dict(fc_norm=True), "fc_norm.weight"),
    "final_norm": (dict(final_norm=False), "shapes: norm.weight"),
    "positions": (dict(pos_embed="none"), "shapes: pos_embed"),
    "qk_norm": (dict(qk_norm=True), "blocks.[*].attn.q_norm.weight"),
    "attn_norm": (dict(scale_attn_norm=True), "blocks.[*].attn.norm.weight"),
    "mlp_norm": (dict(scale_mlp_norm=True), "blocks.[*].mlp.norm.weight"),
    "embed_norm": (dict(embed_norm_layer="layernorm"), "patch_embed.norm.weight"),
    "gelu_tanh": (dict(act_layer="gelu_tanh"), "an MLP that is a Mlp with GELUTanh"),
    "rmsnorm": (dict(norm_layer="rmsnorm"), "logits differ by"),
    "map": (dict(global_pool="map"), "pooling by 'map' with a class token"),
    "max": (POOLS, "pooling by 'max' with a class token"),
    "avg_cls": (AVERAGE, "pooling by 'avg' with a class token"),
    "image": (dict(img_size=(24, 32)), "shapes: pos_embed"),
    "patch": (dict(patch_size=(8, 4)), "patch_embed.proj.weight"),
    "parallel": (dict(block_fn=PARALLEL), "a ParallelScalingBlock"),
    "uneven": (("blocks.1.mlp", timm.layers.Mlp(12, 20)), "blocks.[*].mlp.fc1.weight"),
    "remainder": (dict(img_size=25), "image_size=25, patch_size=8, remainder 1"),
    "two": (dict(qk_norm=True, fc_norm=True), "(?=.*q_norm)(?=.*fc_norm).*choose a plain model"),
    "registers_alone": (ALONE, "registers stand behind a class token"),
    "glu": (dict(mlp_layer=timm.layers.SwiGLUPacked), "an MLP that is a GluMlp with GELU"),
    "mlps": (("blocks.1.mlp.act", timm.layers.QuickGELU()), "logits differ by"),
}
REFUSED = [("torchvision", *case) for case in REFUSED_BY_TORCHVISION.values()]
REFUSED += [("timm", *case) for case in REFUSED_BY_TIMM.values()]
NAMES = [*REFUSED_BY_TORCHVISION, *REFUSED_BY_TIMM]


@pytest.mark.parametrize(("library", "what", "words"), REFUSED, ids=NAMES)
def test_refusals_name_the_part_and_a_plain_model(library, what, words):
    """What ours has no place for is said, not dropped."""
    make, convert = BOTH[library]
    model = make(**what) if isinstance(what, dict) else with_part(make(), *what)
    with pytest.raises(ValueError, match=f"(?s){words}"):
        convert(model)


OTHERS = {
    "linear": (from_torchvision, lambda: nn.Linear(2, 2), "a Linear, only for a torchvision"),
    "timm": (from_torchvision, timm_model, "a VisionTransformer, only for a torchvision"),
    "torchvision": (from_timm, torchvision_model, "a VisionTransformer, only for a timm"),
    "deit_tiny_distilled_patch16_224": (from_timm, None, "a VisionTransformerDistilled"),
    "vit_small_patch16_dinov3": (from_timm, None, "other angles than our rope"),
    "vit_relpos_small_patch16_224": (from_timm, None, "a VisionTransformerRelPos"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_models_of_another_kind_are_refused(name):
    """By what they are; the message says what to pass."""
    convert, make, words = OTHERS[name]
    with pytest.raises(ValueError, match=words):
        convert(make() if make else timm.create_model(name, depth=1))


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize(("old", "new"), [(14, (24, 24)), (8, (3, 5)), (7, (8, 6)), (2, (1, 1))])
@pytest.mark.parametrize("prefix", [0, 1, 5])
def test_positions_are_interpolated_as_timm_does(old, new, prefix, antialias):
    """Larger, smaller, oblong; prefix rows to the bit."""
    positions = torch.randn(1, prefix + old * old, 6)
    expected = resample_abs_pos_embed(
        positions, list(new), num_prefix_tokens=prefix, antialias=antialias
    )
    found = interpolate_positions(positions, new, prefix, antialias=antialias)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    assert torch.equal(found[:, :prefix], positions[:, :prefix])


def test_positions_of_the_same_grid_are_left_alone():
    """To the bit, so that nothing is lost by asking."""
    positions = torch.randn(1, 17, 6)
    assert interpolate_positions(positions, (4, 4)) is positions


def test_positions_of_no_square_are_refused():
    """Usually a prefix that was not counted."""
    with pytest.raises(ValueError, match="got 17 rows beside 0 of the prefix"):
        interpolate_positions(torch.zeros(1, 17, 4), (4, 4), num_prefix_tokens=0)


def test_a_bad_weight_would_show():
    """Two norms or biases exchanged move the logits by far more than the tolerance."""
    theirs = timm_model()
    images = torch.randn(4, 3, 24, 24)
    norms, weights = ("norm1", "norm2"), ("norm1.weight", "norm1.bias")
    for first, second in (norms, weights, ("attn.proj.bias", "mlp.fc2.bias")):
        ours = from_timm(theirs)
        state = ours.state_dict()
        for a in [k for k in state if k.startswith(f"blocks.0.{first}")]:
            b = a.replace(first, second)
            state[a], state[b] = state[b].clone(), state[a].clone()
        ours.load_state_dict(state)
        assert (ours(images) - theirs(images)).abs().max() > 1e-3


def test_configuration_is_read_from_shapes():
    """All fields of a converted configuration, and the rest at their defaults."""
    expected = ViTConfig(24, 8, 3, 5, 12, 2, 3, mlp_ratio=4.0, qkv_bias=True)
    assert from_timm(timm_model()).config == expected
    assert from_torchvision(torchvision_model()).config == expected
    assert math.isclose(from_timm(timm_model(mlp_ratio=2.7)).config.mlp_ratio, 32 / 12)
