"""Other libraries' models become ours: the same logits, or a refusal that says why."""

import math
from functools import partial

import pytest
import torch
from torch import nn
from torchvision.models.vision_transformer import ConvStemConfig
from torchvision.models.vision_transformer import VisionTransformer as TorchvisionViT

from vitedu.pretrained.conversions import NORM_EPS, _ratio, from_timm, from_torchvision
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
        (48, 16, 4, 12, 96, 384, 10),
        (16, 16, 2, 2, 10, 40, 3),  # one patch
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
        dict(img_size=28, patch_size=14, embed_dim=32, depth=3, num_heads=4, num_classes=1000),
        dict(embed_dim=96, depth=4, num_heads=12),
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
        dict(drop_rate=0.5, attn_drop_rate=0.5, drop_path_rate=0.5, patch_drop_rate=0.5),
    ],
    ids=lambda options: ", ".join(options) or "plain",
)
def test_timm_logits_are_equal(options):
    """Sizes, missing biases, average pooling, prefix rows, what acts in training only, and what came after 2020."""
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
        (
            "vit_giant_patch14_dinov2",
            {"embed_dim": 96, "num_heads": 4},
        ),  # the real width: 1.1 billion
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
    assert ("LayerScale" in parts) == ("dinov2" in name)
    assert ("SwiGlu" in parts) == ("giant" in name)
    assert ours.config.num_registers == (4 if "reg4" in name else 0)


@pytest.mark.parametrize(
    ("make", "convert", "source", "target"),
    [
        (
            torchvision_model,
            from_torchvision,
            "encoder.layers.encoder_layer_1.self_attention.in_proj_bias",
            "blocks.1.attn.qkv.bias",
        ),
        (timm_model, from_timm, "blocks.1.attn.qkv.bias", "blocks.1.attn.qkv.bias"),
    ],
    ids=["torchvision", "timm"],
)
def test_every_number_is_kept(make, convert, source, target):
    """All values arrive; those of the keys' biases, which no logit shows, at their place."""
    theirs = make()
    ours = convert(theirs)
    values = [
        torch.cat([p.flatten() for p in m.parameters()]).sort().values for m in (theirs, ours)
    ]
    assert torch.equal(*values)
    assert torch.equal(theirs.get_parameter(source), ours.get_parameter(target))


@pytest.mark.parametrize(
    "make, convert", [(torchvision_model, from_torchvision), (timm_model, from_timm)]
)
def test_copy_is_independent(make, convert):
    """No shared memory, dtype and mode kept, everything trainable, no random number drawn."""
    theirs = make().double().train()
    before = torch.get_rng_state()
    ours = convert(theirs)
    assert torch.equal(torch.get_rng_state(), before)
    assert ours.training and ours.head.weight.dtype == torch.float64
    assert not any(p.is_meta for p in ours.parameters())
    assert all(parameter.requires_grad for parameter in ours.parameters())
    shared = {p.data_ptr() for p in theirs.parameters()} & {p.data_ptr() for p in ours.parameters()}
    assert not shared
    rebuilt = VisionTransformer(ours.config)  # what a checkpoint of it needs
    rebuilt.load_state_dict(ours.state_dict())


def test_torchvision_head_may_be_replaced_by_one_linear_layer():
    """As fine-tuning does: ``model.heads = nn.Linear(...)``, with or without a bias."""
    theirs = torchvision_model()
    theirs.heads = nn.Linear(12, 4, bias=False)
    assert_same_logits(from_torchvision(theirs), theirs, torch.randn(3, 3, 24, 24))


def test_every_norm_of_ours_has_the_eps_that_is_asked_for():
    """A change there must change what is refused here."""
    model = VisionTransformer(PRESETS["vit_micro_patch8_32"])
    assert {m.eps for m in model.modules() if isinstance(m, nn.LayerNorm)} == {NORM_EPS}


def test_mlp_ratio_gives_back_every_hidden_width():
    """Also where hidden / embed_dim * embed_dim rounds to just below the whole number."""
    pairs = [(D, hidden) for D in range(1, 200) for hidden in range(1, 400)]
    assert any(int(D * (hidden / D)) != hidden for D, hidden in pairs)  # the trap exists
    assert all(int(D * _ratio(hidden, D)) == hidden for D, hidden in pairs)


stem = [ConvStemConfig(8, 3, 2), ConvStemConfig(8, 3, 2), ConvStemConfig(8, 3, 2)]


def with_part(model, path, part):
    """Replace a part of a model."""
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent), name, part)
    return model


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: nn.Linear(2, 2), "a Linear .pass a torchvision"),
        (lambda: timm_model(), "a VisionTransformer .pass a torchvision"),
        (lambda: torchvision_model(conv_stem_configs=stem), "conv stem.*conv_stem_configs=None"),
        (lambda: torchvision_model(representation_size=6), "pre_logits.*representation_size=None"),
        (
            lambda: torchvision_model(norm_layer=partial(nn.LayerNorm, eps=1e-5)),
            "eps=1e-05, ours is 1e-06 .norm_layer=partial",
        ),
        (lambda: torchvision_model(norm_layer=nn.Identity), "norm of type Identity"),
        (lambda: torchvision_model(depth=0), "blocks with \\[\\] heads"),
        (
            lambda: with_part(torchvision_model(), "heads.head", nn.Identity()),
            "not one linear layer .set model.heads",
        ),
        (
            lambda: with_part(
                torchvision_model(), "encoder.layers.encoder_layer_1.mlp.1", nn.ReLU()
            ),
            "activation ReLU.*act_layer",
        ),
        (
            lambda: with_part(torchvision_model(), "conv_proj", nn.Conv2d(3, 12, 9, 8, 1)),
            "not side by side",
        ),
        (
            lambda: with_part(torchvision_model(), "extra", nn.Linear(2, 2)),
            "other parameters.*extra.weight",
        ),
    ],
    ids="linear timm stem pre_logits eps norm depth head act overlap extra".split(),
)
def test_torchvision_refusals_name_the_part_and_the_remedy(make, words):
    """What ours has no place for is said, not dropped."""
    with pytest.raises(ValueError, match=f"(?s){words}"):
        from_torchvision(make())


def squeezed(model):
    """A model whose second block has another MLP."""
    model.blocks[1].mlp = type(model.blocks[1].mlp)(12, 20)
    return model


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: torchvision_model(), "a VisionTransformer .pass a timm"),
        (
            lambda: timm.create_model("deit_tiny_distilled_patch16_224"),
            "distillation token .*deit_base_patch16_224",
        ),
        (
            lambda: timm.create_model("vit_relpos_small_patch16_224", depth=1),
            "a VisionTransformerRelPos",
        ),
        (lambda: timm_model(fc_norm=True), "fc_norm.*fc_norm=False"),
        (lambda: timm_model(final_norm=False), "last norm .final_norm=True"),
        (lambda: timm_model(pos_embed="none"), "without learned positions .pos_embed='learn'"),
        (lambda: timm_model(qk_norm=True), "QK-norm .qk_norm=False"),
        (lambda: timm_model(scale_attn_norm=True), "inside attention.*scale_attn_norm=False"),
        (lambda: timm_model(scale_mlp_norm=True), "inside attention or MLP.*scale_mlp_norm=False"),
        (lambda: timm_model(embed_norm_layer="layernorm"), "inside the patch embedding"),
        (lambda: timm_model(act_layer="gelu_tanh"), "activation GELUTanh"),
        (lambda: timm_model(norm_layer="rmsnorm"), "norm of type RmsNorm"),
        (lambda: timm_model(global_pool="map"), "pooling by 'map'"),
        (lambda: timm_model(global_pool="max", fc_norm=False), "pooling by 'max'"),
        (
            lambda: timm_model(global_pool="avg", fc_norm=False),
            "class token beside average pooling",
        ),
        (lambda: timm_model(img_size=(24, 32)), r"not square, \(24, 32\)"),
        (lambda: timm_model(patch_size=(8, 4)), r"not square, .*\(8, 4\)"),
        (
            lambda: timm_model(block_fn=timm.models.vision_transformer.ParallelScalingBlock),
            "blocks made of ParallelScalingBlock",
        ),
        (lambda: squeezed(timm_model()), "its blocks differ"),
        (lambda: timm_model(img_size=25), "image_size=25, patch_size=8, remainder 1"),
        (
            lambda: timm_model(qk_norm=True, fc_norm=True),
            "(?=.*QK-norm)(?=.*fc_norm).*choose a plain model",
        ),
        (
            lambda: timm_model(reg_tokens=2, class_token=False, global_pool="avg", fc_norm=False),
            "registers, 2 without a class token",
        ),
        (lambda: timm_model(mlp_layer=timm.layers.SwiGLUPacked), "gated MLP other than SwiGLU"),
        (
            lambda: with_part(timm_model(), "blocks.1.norm2", nn.LayerNorm(12, eps=1e-5)),
            "LayerNorm with eps=1e-05",
        ),
        (
            lambda: with_part(timm_model(), "blocks.1.mlp.act", timm.layers.QuickGELU()),
            "MLPs differ",
        ),
    ],
    ids=(
        "torchvision distilled relpos fc_norm final_norm positions qk_norm attn_norm mlp_norm embed_norm gelu_tanh "
        "rmsnorm map max avg_cls image patch parallel uneven remainder two registers_alone glu eps mlps"
    ).split(),
)
def test_timm_refusals_name_the_part_and_the_remedy(make, words):
    """What ours has no place for is said, all of it at once."""
    with pytest.raises(ValueError, match=f"(?s){words}"):
        from_timm(make())


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


def test_positions_vary_along_their_own_axis():
    """A ramp over the columns stays a ramp over the columns, the same in every row."""
    ramp = torch.arange(8.0).repeat(8).reshape(1, 64, 1)
    grid = interpolate_positions(ramp, (8, 16), num_prefix_tokens=0).reshape(8, 16)
    assert (grid - grid[:1]).abs().max() < 1e-5
    assert (grid.diff(dim=1)[:, 2:-2] > 0.4).all()  # half a step each, edges apart


def test_positions_of_no_square_are_refused():
    """Usually a prefix that was not counted."""
    with pytest.raises(ValueError, match="got 17 rows beside 0 of the prefix"):
        interpolate_positions(torch.zeros(1, 17, 4), (4, 4), num_prefix_tokens=0)


def test_a_bad_weight_would_show():
    """The tolerance is no comfort: q and k swapped, or two norms, move the logits by far more than 1e-5."""
    theirs = timm_model()
    images = torch.randn(4, 3, 24, 24)
    for first, second in [
        ("norm1", "norm2"),
        ("norm1.weight", "norm1.bias"),
        ("attn.proj.bias", "mlp.fc2.bias"),
    ]:
        ours = from_timm(theirs)
        state = ours.state_dict()
        for a in [k for k in state if k.startswith(f"blocks.0.{first}")]:
            b = a.replace(first, second)
            state[a], state[b] = state[b].clone(), state[a].clone()
        ours.load_state_dict(state)
        assert (ours(images) - theirs(images)).abs().max() > 1e-3


def test_configuration_is_read_from_shapes():
    """All fields of a converted configuration, and the rest at their defaults."""
    expected = ViTConfig(24, 8, 3, 5, 12, 2, 3, mlp_ratio=4.0, qkv_bias=True, pool="cls")
    assert from_timm(timm_model()).config == expected
    assert from_torchvision(torchvision_model()).config == expected
    assert math.isclose(from_timm(timm_model(mlp_ratio=2.7)).config.mlp_ratio, 32 / 12)
