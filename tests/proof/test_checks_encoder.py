"""The checkers of notebook 03: forbidden operations in every spelling, and what is left free."""

import pytest
import torch
import torch.nn.functional as F
from replay_caches import judge
from torch import nn
from verdicts import failed_parts

from vitedu import encoder as reference
from vitedu.attention import MultiHeadAttention
from vitedu.vit import VisionTransformer

pytestmark = pytest.mark.bank

# --- what is forbidden, in every spelling -------------------------------------------------------
ATEN = torch.ops.aten
LAYER_NORMS = {
    "F.layer_norm": lambda x, w, b, eps: F.layer_norm(x, w.shape, w, b, eps),
    "torch.layer_norm": lambda x, w, b, eps: torch.layer_norm(x, w.shape, w, b, eps),
    "torch.native": lambda x, w, b, eps: torch.native_layer_norm(x, w.shape, w, b, eps)[0],
    "getattr": lambda x, w, b, eps: getattr(F, "layer" + "_norm")(x, w.shape, w, b, eps),
    "torch.ops": lambda x, w, b, eps: ATEN.native_layer_norm(x, w.shape, w, b, eps)[0],
    "torch.ops.default": lambda x, w, b, eps: ATEN.layer_norm.default(x, w.shape, w, b, eps),
    "without weights": lambda x, w, b, eps: F.layer_norm(x, w.shape, eps=eps) * w + b,
    "nn.LayerNorm": lambda x, w, b, eps: nn.LayerNorm(len(w), eps, dtype=x.dtype)(x) * w + b,
}
GELUS = {
    "F.gelu": F.gelu,
    "nn.GELU": lambda x: nn.GELU()(x),
    "torch._C._nn": lambda x: torch._C._nn.gelu(x),
    "torch.ops": lambda x: torch.ops.aten.gelu(x),
    "torch.ops.default": lambda x: torch.ops.aten.gelu.default(x),
    "getattr": lambda x: getattr(F, "ge" + "lu")(x),
    "in place": lambda x: torch.ops.aten.gelu_(x.clone()),
    "in place, below": lambda x: torch._C._nn.gelu_(x.clone()),
    "of a layer": lambda x: nn.TransformerEncoderLayer(2, 1, 2, activation="gelu").activation(x),
}


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [("layer_norm", lambda x, w, b, eps=1e-6, f=f: f(x, w, b, eps)) for f in LAYER_NORMS.values()]
    + [("gelu", lambda x, f=f: f(x)) for f in GELUS.values()],
    ids=[*LAYER_NORMS, *GELUS],
)
def test_forbidden_operation_is_found_in_every_spelling(exercise, answer):
    """The forbidden call is found from what ran, and earns nothing."""
    report = judge(answer, exercise, seed=0)
    assert report.status == "failed" and report.points == 0, str(report)
    assert failed_parts(report)[0] == "allowed operations" and report.misconception is None


ALLOWED = {
    "group_norm": (
        "layer_norm",
        lambda x, w, b, eps=1e-6: F.group_norm(x.reshape(-1, x.shape[-1]), 1, w, b, eps).reshape(
            x.shape
        ),
    ),
    "var_mean": (
        "layer_norm",
        lambda x, w, b, eps=1e-6: (
            (x - x.mean(-1, True)) * (x.var(-1, unbiased=False, keepdim=True) + eps).rsqrt() * w + b
        ),
    ),
    "erf": ("gelu", lambda x: x * (1 + torch.special.erf(x / 2**0.5)) / 2),
    "ndtr": ("gelu", lambda x: x * torch.special.ndtr(x)),
    "Normal.cdf": (
        "gelu",
        lambda x: x * torch.distributions.Normal(x.new_zeros(()), x.new_ones(())).cdf(x),
    ),
}


@pytest.mark.parametrize(("exercise", "answer"), ALLOWED.values(), ids=ALLOWED)
def test_allowed_neighbours_pass(exercise, answer):
    """What is near the forbidden operation, and is not it, is allowed."""
    report = judge(answer, exercise, seed=0)
    assert report.passed, str(report)


def test_norms_inside_a_block_are_allowed():
    """nn.LayerNorm and F.gelu are forbidden in their own exercises only."""

    class EncoderBlock(reference.EncoderBlock):
        def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
            nn.Module.__init__(self)
            self.norm1, self.norm2 = (nn.LayerNorm(embed_dim, 1e-6) for _ in range(2))
            self.attn = MultiHeadAttention(embed_dim, num_heads)
            self.mlp = reference.Mlp(embed_dim, int(embed_dim * mlp_ratio))
            self.mlp.act = nn.GELU()

    assert judge(EncoderBlock, seed=0).passed


# --- contract -----------------------------------------------------------------------------------


def test_block_in_other_layers_with_the_same_names():
    """What counts are names, sizes and values: modules of one's own are as good."""

    class Norm(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.weight, self.bias = nn.Parameter(torch.ones(size)), nn.Parameter(torch.zeros(size))

        def forward(self, x):
            return reference.layer_norm(x, self.weight, self.bias)

    class EncoderBlock(reference.EncoderBlock):
        def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
            super().__init__(embed_dim, num_heads, mlp_ratio)
            self.norm1, self.norm2 = Norm(embed_dim), Norm(embed_dim)

    assert judge(EncoderBlock, seed=0).passed


def test_block_with_a_parameter_too_many():
    """A parameter that the text does not know is named."""

    class EncoderBlock(reference.EncoderBlock):
        def __init__(self, *args):
            super().__init__(*args)
            self.scale = nn.Parameter(torch.ones(()))

    report = judge(EncoderBlock, seed=0)
    assert report.status == "failed" and "unexpected: scale" in str(report)


def test_block_with_a_parameter_of_another_shape():
    """A matrix that stands the other way is named with its shape and with the right one."""

    class EncoderBlock(reference.EncoderBlock):
        def __init__(self, *args):
            super().__init__(*args)
            self.mlp.fc1.weight = nn.Parameter(self.mlp.fc1.weight.T)

    report = judge(EncoderBlock, seed=0)
    words = "misshapen: mlp.fc1.weight is (9, 36) instead of (36, 9)"
    assert report.status == "failed" and words in str(report)


def test_model_that_trains_in_forward_is_still_a_function():
    """Logits come from the weights that were loaded, not from new ones."""

    class Model(VisionTransformer):
        def forward(self, images):
            nn.init.zeros_(self.head.bias)
            return super().forward(images)

    assert not judge(Model, "VisionTransformer", seed=0).passed


def test_count_that_builds_the_model_earns_nothing():
    """A model that is built, not counted, is noticed at the first call, before the largest."""

    def by_building(config):
        return sum(p.numel() for p in VisionTransformer(config).parameters())

    report = judge(by_building, "count_parameters", seed=0)
    assert report.status in ("failed", "error") and report.points < report.max_points


def test_gelu_at_the_tanh_forms_distance_is_told_apart():
    """The tanh form is named, by any road to it."""

    def by_tanh(x):
        return 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)))

    assert judge(by_tanh, "gelu", seed=0).misconception == "tanh_approximation"
    answer = lambda x: x * torch.sigmoid(1.702 * x)  # noqa: E731
    assert judge(answer, "gelu", seed=0).misconception == "sigmoid_approximation"
