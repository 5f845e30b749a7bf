"""The checkers of notebook 03: they reject and name every mistake, and accept every right answer."""

import functools
import itertools
import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from vitedu import encoder as reference
from vitedu.attention import MultiHeadAttention
from vitedu.checks.alternatives.encoder import ALTERNATIVES
from vitedu.checks.api import judge
from vitedu.checks.bank import right_answers, wrong_answers
from vitedu.checks.encoder import CHECKERS
from vitedu.checks.engine import find_checker
from vitedu.checks.values import ValueChecker
from vitedu.vit import VisionTransformer

SEEDS = range(5)
FUNCTIONS = [id_ for id_, checker in CHECKERS.items() if not isinstance(checker, ValueChecker)]
VALUES = [id_ for id_ in CHECKERS if id_ not in FUNCTIONS]
WRONG = [
    pytest.param(exercise, wrong, id_, id=f"{exercise}-{id_}")
    for exercise in CHECKERS
    for id_, wrong in wrong_answers(exercise)
]
RIGHT = [
    pytest.param(exercise, answer, id=f"{exercise}-{answer.__name__}")
    for exercise in FUNCTIONS
    for answer in right_answers(exercise)
]


def finding(report, name):
    """Get one finding of a report."""
    return next(finding for finding in report.findings if finding.name == name)


# --- the bank and the acceptance set ------------------------------------------------------------


@pytest.mark.parametrize(("exercise", "wrong", "id_"), WRONG)
def test_mistake_is_rejected_and_named(exercise, wrong, id_):
    """Every mistake of the bank fails and is named as itself and nothing else, whatever the seed."""
    for seed in SEEDS:
        report = judge(wrong, exercise, seed=seed)
        assert report.status in ("failed", "error")
        assert report.misconceptions == [id_], str(report)
        assert report.points < report.max_points


@pytest.mark.parametrize(("exercise", "answer"), RIGHT)
def test_right_answer_passes(exercise, answer):
    """Every right implementation earns full points, whatever the seed."""
    for seed in SEEDS:
        report = judge(answer, exercise, seed=seed)
        assert report.passed and report.points == report.max_points, str(report)


@pytest.mark.parametrize("exercise", FUNCTIONS)
def test_acceptance_set_has_four_roads(exercise):
    """At least four right implementations stand beside the reference."""
    assert len(ALTERNATIVES[exercise]) >= 4


@pytest.mark.parametrize("exercise", FUNCTIONS)
def test_two_mistakes_together_are_named_as_such(exercise):
    """A sample of pairs is rejected; most are named as both, or as the one that hides the other."""
    checker = find_checker(exercise)
    own = [mistake.id for mistake in checker.bank if mistake.build is None]
    pairs = list(itertools.combinations(own, 2))
    named = 0
    sample = random.Random(1).sample(pairs, min(5, len(pairs)))
    for pair in sample:
        report = judge(checker.faulty(frozenset(pair)), exercise, seed=1)
        assert not report.passed, pair
        named += bool(report.misconceptions) and set(report.misconceptions) <= set(pair)
    assert named > len(sample) / 2


@pytest.mark.parametrize("exercise", FUNCTIONS)
def test_stub_is_not_attempted(exercise):
    """A stub that raises NotImplementedError is no answer yet."""
    if isinstance(CHECKERS[exercise].reference, type):
        stub = type("Stub", (nn.Module,), {"__init__": _raise_stub})
    else:
        stub = _raise_stub
    assert judge(stub, exercise, seed=0).status == "not_attempted"


def _raise_stub(*args, **kwargs):
    raise NotImplementedError("a stub")


@pytest.mark.parametrize(
    "result",
    [
        None,
        [],
        "text",
        float("nan"),
        torch.full((2,), float("nan")),
        np.zeros(3),
        torch.zeros(2, 3).long(),
    ],
    ids=["None", "list", "text", "nan", "nans", "array", "integers"],
)
@pytest.mark.parametrize("exercise", FUNCTIONS)
def test_other_results_fail_without_a_false_name(exercise, result):
    """What is no result at all fails; a constant may be called one, and nothing else is claimed of its values."""
    reference_answer = CHECKERS[exercise].reference
    if isinstance(reference_answer, type):
        answer = type("Answer", (reference_answer,), {"forward": lambda self, x: result})
    else:
        answer = functools.wraps(reference_answer)(lambda *args, **kwargs: result)
    report = judge(answer, exercise, seed=0)
    assert report.status == "failed", str(report)
    facts = {"no_error", "own_device", "constant_output", "detached"}
    assert set(report.misconceptions) <= facts, str(report)


@pytest.mark.parametrize("exercise", FUNCTIONS)
def test_arguments_may_have_any_names(exercise):
    """Only order and keywords that the text uses count; the names of positional parameters are free."""
    reference_answer = CHECKERS[exercise].reference
    if not isinstance(reference_answer, type):
        assert judge(
            lambda *args, **kwargs: reference_answer(*args, **kwargs), exercise, seed=0
        ).passed


@pytest.mark.parametrize("exercise", VALUES)
def test_value_is_accepted_in_every_clothing(exercise):
    """Python, NumPy and torch values are alike; another value is not."""
    value = CHECKERS[exercise].reference
    if isinstance(value, tuple):
        for clothed in (
            value,
            list(value),
            [np.asarray(v) for v in value],
            [torch.tensor(v) for v in value],
        ):
            assert judge(clothed, exercise).passed
        assert not judge(value[::-1] + (1,), exercise).passed
        assert not judge(value[:1], exercise).passed
    else:
        for clothed in (
            value,
            float(value),
            np.float64(value),
            torch.tensor(float(value), dtype=torch.float64),
        ):
            assert judge(clothed, exercise).passed
        assert not judge(2 * value + 1, exercise).passed
    for other in ("eight", float("nan"), {}, [value, value, value], object(), np.zeros((2, 2))):
        assert judge(other, exercise).status == "failed"
    for nothing in (None, ...):
        assert judge(nothing, exercise).status == "not_attempted"


# --- what is forbidden, in every spelling -------------------------------------------------------

LAYER_NORMS = {
    "F.layer_norm": lambda x, w, b, eps: F.layer_norm(x, w.shape, w, b, eps),
    "torch.layer_norm": lambda x, w, b, eps: torch.layer_norm(x, w.shape, w, b, eps),
    "torch.native_layer_norm": lambda x, w, b, eps: torch.native_layer_norm(
        x, list(w.shape), w, b, eps
    )[0],
    "getattr": lambda x, w, b, eps: getattr(F, "layer" + "_norm")(x, w.shape, w, b, eps),
    "torch.ops": lambda x, w, b, eps: torch.ops.aten.native_layer_norm(x, list(w.shape), w, b, eps)[
        0
    ],
    "torch.ops.default": lambda x, w, b, eps: torch.ops.aten.layer_norm.default(
        x, list(w.shape), w, b, eps
    ),
    "without weights": lambda x, w, b, eps: F.layer_norm(x, w.shape, eps=eps) * w + b,
    "nn.LayerNorm": lambda x, w, b, eps: (
        nn.LayerNorm(w.shape[0], eps=eps, dtype=x.dtype)(x) * w + b
    ),
}
GELUS = {
    "F.gelu": F.gelu,
    "nn.GELU": lambda x: nn.GELU()(x),
    "torch._C._nn": lambda x: torch._C._nn.gelu(x),
    "torch.ops": lambda x: torch.ops.aten.gelu(x),
    "torch.ops.default": lambda x: torch.ops.aten.gelu.default(x),
    "getattr": lambda x: getattr(F, "ge" + "lu")(x),
    "in place": lambda x: torch.ops.aten.gelu_(x.clone()),
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
    assert not finding(report, "allowed operations").passed


ALLOWED = {
    "group_norm": ("layer_norm", lambda x, w, b, eps=1e-6: F.group_norm(x.reshape(-1, x.shape[-1]), 1, w, b, eps).reshape(x.shape)),
    "var_mean": ("layer_norm", lambda x, w, b, eps=1e-6: (x - x.mean(-1, True)) * (x.var(-1, unbiased=False, keepdim=True) + eps).rsqrt() * w + b),
    "erf": ("gelu", lambda x: x * (1 + torch.special.erf(x / 2**0.5)) / 2),
    "ndtr": ("gelu", lambda x: x * torch.special.ndtr(x)),
    "Normal.cdf": ("gelu", lambda x: x * torch.distributions.Normal(torch.zeros((), dtype=x.dtype, device=x.device), torch.ones((), dtype=x.dtype, device=x.device)).cdf(x)),
}  # fmt: skip


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


def test_model_that_trains_in_forward_is_still_a_function():
    """Logits come from the weights that were loaded, not from new ones."""

    class Model(VisionTransformer):
        def forward(self, images):
            nn.init.zeros_(self.head.bias)
            return super().forward(images)

    assert not judge(Model, "VisionTransformer", seed=0).passed


def test_count_that_builds_the_model_earns_nothing():
    """The formula is asked for: a model that is built is noticed at the first call, before the one too large to build."""

    def by_building(config):
        return sum(p.numel() for p in VisionTransformer(config).parameters())

    report = judge(by_building, "count_parameters", seed=0)
    assert report.status in ("failed", "error") and report.points < report.max_points


@pytest.mark.parametrize(
    "number", [float, np.int64, torch.tensor], ids=["float", "int64", "tensor"]
)
def test_count_may_be_any_kind_of_number(number):
    """Python, NumPy and 0-d tensor numbers are alike."""
    assert judge(
        lambda config: number(reference.count_parameters(config)), "count_parameters", seed=0
    ).passed


def test_gelu_at_the_tanh_forms_distance_is_told_apart():
    """The tanh form is named, by any road to it."""
    answer = lambda x: 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)))  # noqa: E731
    for seed in SEEDS:
        assert judge(answer, "gelu", seed=seed).misconception == "tanh_approximation"
    assert (
        judge(lambda x: x * torch.sigmoid(1.702 * x), "gelu", seed=0).misconception
        == "sigmoid_approximation"
    )
