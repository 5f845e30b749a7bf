"""The checkers of notebook 02: forbidden operations, pairs of mistakes, what a student reads."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from replay_caches import judge
from torch import nn
from verdicts import failed_parts

from proof.bank import mistaken
from vitedu import attention as reference
from vitedu.checks.attention.multi_head_attention import Reference
from vitedu.checks.writing.checker import find_checker

pytestmark = pytest.mark.bank

PAIRS = {
    "softmax": ("always_last_axis", "not_shifted"),
    "scaled_dot_product_attention": ("softmax_over_queries", "not_scaled"),
    "split_heads": ("interleaved", "heads_behind_tokens"),
    "merge_heads": ("reshape_only", "heads_backwards"),
    "MultiHeadAttention": ("split_by_reshape", "scaled_by_embed_dim"),
    "attention_macs": ("flop", "no_output_projection"),
}


@pytest.mark.parametrize("exercise", PAIRS)
def test_two_likely_mistakes_are_named_as_the_two(exercise):
    """Two mistakes that do not hide each other are both named."""
    wrong = mistaken(exercise, *PAIRS[exercise])
    assert set(judge(wrong, exercise, seed=0).misconceptions) == set(PAIRS[exercise])


# --- forbidden operations -----------------------------------------------------------------------

SOFTMAX_SPELLINGS = {
    "torch.softmax": lambda x, dim=-1: torch.softmax(x, dim),
    "F.softmax": lambda x, dim=-1: F.softmax(x, dim=dim),
    "nn.Softmax": lambda x, dim=-1: nn.Softmax(dim=dim)(x),
    "Tensor.softmax": lambda x, dim=-1: x.softmax(dim),
    "torch.special.softmax": lambda x, dim=-1: torch.special.softmax(x, dim),
    "torch.ops.aten.softmax": lambda x, dim=-1: torch.ops.aten.softmax(x, dim),
    "torch.ops.aten.softmax.int": lambda x, dim=-1: torch.ops.aten.softmax.int(x, dim),
    "torch.ops.aten._softmax": lambda x, dim=-1: torch.ops.aten._softmax(x, dim, False),
    "torch.ops.aten._safe_softmax": lambda x, dim=-1: torch.ops.aten._safe_softmax(x, dim),
    "torch._softmax": lambda x, dim=-1: torch._softmax(x, dim, False),
    "torch.masked.softmax": lambda x, dim=-1: torch.masked.softmax(x, dim),
    "getattr": lambda x, dim=-1: getattr(torch, "soft" + "max")(x, dim),
    "out": lambda x, dim=-1: torch.softmax(x, dim, out=torch.empty_like(x)),
    "softmin": lambda x, dim=-1: F.softmin(-x, dim),
    "nn.Softmin": lambda x, dim=-1: nn.Softmin(dim)(-x),
    "torch.log_softmax": lambda x, dim=-1: torch.log_softmax(x, dim).exp(),
    "F.log_softmax": lambda x, dim=-1: F.log_softmax(x, dim).exp(),
    "nn.LogSoftmax": lambda x, dim=-1: nn.LogSoftmax(dim)(x).exp(),
    "torch.special.log_softmax": lambda x, dim=-1: torch.special.log_softmax(x, dim).exp(),
    "torch.sparse": lambda x, dim=-1: torch.sparse.softmax(x.to_sparse(), dim).to_dense(),
}


@pytest.mark.parametrize("spelling", SOFTMAX_SPELLINGS)
def test_softmax_is_forbidden_in_every_spelling(spelling):
    """Whoever lets torch do the whole work gets no point, however it is called."""
    report = judge(SOFTMAX_SPELLINGS[spelling], "softmax", seed=0)
    assert failed_parts(report)[0] == "allowed operations" and report.points == 0
    assert report.misconception is None


SOFTMAX_NEIGHBOURS = {
    "logsumexp": lambda x, dim=-1: (x - x.logsumexp(dim, keepdim=True)).exp(),
    "special": lambda x, dim=-1: (x - torch.special.logsumexp(x, dim, keepdim=True)).exp(),
    "normalize": lambda x, dim=-1: F.normalize(
        (x - x.amax(dim, keepdim=True)).exp(), p=1.0, dim=dim
    ),
    "logcumsumexp": lambda x, dim=-1: (
        x - x.logcumsumexp(dim).select(dim, -1).unsqueeze(dim)
    ).exp(),
}


@pytest.mark.parametrize("neighbour", SOFTMAX_NEIGHBOURS)
def test_neighbours_of_softmax_are_allowed(neighbour):
    """logsumexp and other helpers are no softmax; what they round at 1e4 passes."""
    for seed in range(4):
        assert judge(SOFTMAX_NEIGHBOURS[neighbour], "softmax", seed=seed).passed


FUSED_SPELLINGS = {
    "F": lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
    "torch._C._nn": lambda q, k, v: torch._C._nn.scaled_dot_product_attention(q, k, v),
    "torch.ops.aten": lambda q, k, v: torch.ops.aten.scaled_dot_product_attention(q, k, v),
    "overload": lambda q, k, v: torch.ops.aten.scaled_dot_product_attention.default(q, k, v),
    "math": lambda q, k, v: torch._scaled_dot_product_attention_math(q, k, v)[0],
    "math kernel": lambda q, k, v: torch.ops.aten._scaled_dot_product_attention_math(q, k, v)[0],
    "getattr": lambda q, k, v: getattr(F, "scaled_dot_" + "product_attention")(q, k, v),
}


@pytest.mark.parametrize("spelling", FUSED_SPELLINGS)
def test_fused_attention_is_forbidden_in_every_spelling(spelling):
    """The fused kernel is found in the function and in the layer, even beside honest weights."""

    def attend(q, k, v):
        _, weights = reference.scaled_dot_product_attention(q, k, v)
        return FUSED_SPELLINGS[spelling](q, k, v), weights

    class Layer(Reference):
        def forward(self, x):
            parts = [reference.split_heads(p, self.num_heads) for p in self.qkv(x).chunk(3, -1)]
            output, weights = attend(*parts)
            return self.proj(reference.merge_heads(output)), weights

    answers = {"scaled_dot_product_attention": attend, "MultiHeadAttention": Layer}
    for exercise, answer in answers.items():
        report = judge(answer, exercise, seed=0)
        assert "allowed operations" in failed_parts(report) and report.points == 0


class LayerOfTorch(Reference):
    """torch's layer, made on the fly with the given weights."""

    def forward(self, x):
        layer = nn.MultiheadAttention(
            x.shape[-1], self.num_heads, batch_first=True, bias=self.qkv.bias is not None
        ).to(x)
        layer.in_proj_weight, layer.in_proj_bias = self.qkv.weight, self.qkv.bias
        output, weights = layer(x, x, x, average_attn_weights=False)
        return self.proj(output), weights


class LayerOfFunction(Reference):
    """The function behind torch's layer."""

    def forward(self, x):
        x = x.transpose(0, 1)
        sizes = x.shape[-1], self.num_heads
        qkv, proj = (self.qkv.weight, self.qkv.bias), (self.proj.weight, self.proj.bias)
        output, weights = F.multi_head_attention_forward(
            x, x, x, *sizes, *qkv, None, None, False, 0.0, *proj, average_attn_weights=False
        )
        return output.transpose(0, 1), weights


@pytest.mark.parametrize("answer", [LayerOfTorch, LayerOfFunction])
def test_layer_of_torch_is_forbidden(answer):
    """nn.MultiheadAttention and the function behind it do the whole work."""
    report = judge(answer, "MultiHeadAttention", seed=0)
    assert "allowed operations" in failed_parts(report) and report.points == 0


def test_layer_with_other_parameters_says_which_are_missing():
    """A class that stores torch's layer has parameters of other names."""

    class MultiHeadAttention(nn.Module):
        def __init__(self, embed_dim, num_heads, qkv_bias=True):
            super().__init__()
            self.layer = nn.MultiheadAttention(embed_dim, num_heads, batch_first=True)

        def forward(self, x):
            return self.layer(x, x, x, average_attn_weights=False)

    report = judge(MultiHeadAttention, seed=0)
    assert report.status == "failed" and "qkv.weight" in str(report)


# --- no false names -----------------------------------------------------------------------------


def _damped_softmax(x, dim=-1):
    exp = (x - x.amax(dim, keepdim=True)).exp()
    return exp / (exp.sum(dim, keepdim=True) + 0.1)


def _warm_attention(q, k, v):
    weights = torch.softmax(0.9 * q @ k.mT / k.shape[-1] ** 0.5, -1)
    return weights @ v, weights


class _Rectified(reference.MultiHeadAttention):
    def forward(self, x):
        output, weights = super().forward(x)
        return output.relu(), weights


UNSEEN = {
    "softmax-damped": ("softmax", _damped_softmax),
    "softmax-sigmoid": ("softmax", lambda x, dim=-1: torch.sigmoid(x)),
    "attention-warm": ("scaled_dot_product_attention", _warm_attention),
    "layer-rectified": ("MultiHeadAttention", _Rectified),
    "macs-off-by-one": (
        "attention_macs",
        lambda num_tokens, embed_dim: reference.attention_macs(num_tokens, embed_dim) + 1,
    ),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_unknown_mistake_gets_no_name_of_the_bank(name):
    """A mistake that the bank does not know is rejected with its evidence and no false name."""
    exercise, wrong = UNSEEN[name]
    ids = {mistake.id for mistake in find_checker(exercise).mistakes}
    report = judge(wrong, exercise, seed=0)
    assert report.status == "failed" and report.points < report.max_points
    assert not ids & set(report.misconceptions), str(report)


# --- what else an answer may be -----------------------------------------------------------------


def test_missing_error_costs_little():
    """split_heads without its ValueError keeps most of its points."""
    report = judge(
        lambda x, num_heads: x.unflatten(2, (num_heads, -1)).transpose(1, 2), "split_heads", seed=0
    )
    assert report.misconceptions == ["wrong_error"]
    assert report.points >= 0.6 * report.max_points


def test_error_of_split_heads_may_have_any_words():
    """A ValueError is asked for, not its wording."""

    def split_heads(x, num_heads):
        if x.shape[-1] % num_heads:
            raise ValueError
        return torch.stack(x.chunk(num_heads, -1), 1)

    assert judge(split_heads, seed=0).passed


@pytest.mark.parametrize(
    "number", [int, float, np.int64, np.float64, torch.tensor, lambda n: torch.tensor(float(n))]
)
def test_counts_may_be_any_kind_of_number(number):
    """Python, NumPy and 0-d tensors are alike, float32 included."""
    macs = reference.attention_macs
    assert judge(lambda *sizes: number(macs(*sizes)), "attention_macs", seed=0).passed


# --- values -------------------------------------------------------------------------------------

VALUES = {
    "attention_megabytes": [59.6, 59.61, 60, np.float32(59.613), torch.tensor(59.613)],
    "order_blindness": [
        (False, True),
        [False, True],
        (np.bool_(False), np.bool_(True)),
        (torch.tensor(False), torch.tensor(True)),
        np.array([False, True]),
        torch.tensor([False, True]),
    ],
    "untrained_entropy": [0.9997, 0.99925, 0.9996, torch.tensor(0.99967), np.float64(0.99972)],
}


@pytest.mark.parametrize("exercise", VALUES)
def test_values_may_be_measured_or_rounded(exercise):
    """An honest value passes as a Python, NumPy or torch scalar, measured or rounded."""
    for value in VALUES[exercise]:
        assert judge(value, exercise).passed, value


NO_VALUES = {
    "attention_megabytes": [59.0, 61, "61", (61.0,), math.nan, -59.6],
    "order_blindness": [False, "False, True", (0, 1), (False, True, True), ()],
    "untrained_entropy": [1.0, 1, 0.999, 0.99, 1.01, math.inf, True, "uniform"],
}


@pytest.mark.parametrize("exercise", NO_VALUES)
def test_other_values_are_rejected(exercise):
    """What is near, or of another kind, does not pass."""
    for value in NO_VALUES[exercise]:
        assert judge(value, exercise).status == "failed", value


# --- what a student reads -----------------------------------------------------------------------


def test_finding_of_a_wrong_axis_reads_as_in_the_house_style():
    """The evidence of a softmax over queries is the student's own row and column sums."""
    wrong = mistaken("scaled_dot_product_attention", "softmax_over_queries")
    report = judge(wrong, "scaled_dot_product_attention", seed=0)
    head, right, expected, got, why, look, *rest = str(report).split("\n")
    assert head.startswith(
        "✗ 2.2 scaled_dot_product_attention: softmax runs over queries, not keys"
    )
    assert right.split(None, 1)[0] == "right"
    assert expected.split(None, 1) == ["expected", "weights.sum(dim=-1) == 1"]
    assert got.startswith("  got       row sums ") and got.endswith("; column sums all 1.000")
    assert why.split()[0] == "why" and look.split()[0] == "try"
    assert "<svg" in report._repr_html_() and "rows do not sum to 1" in str(report)
