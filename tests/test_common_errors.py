"""Errors that everybody meets: each is provoked, explained, and shown with the student's line."""

import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from vitedu import encoder, less_data, patches, vit
from vitedu.attention import MultiHeadAttention
from vitedu.checks import api
from vitedu.checks.writing.mistake_files import read_errors
from vitedu.course import run_above
from vitedu.encoder import Mlp

pytestmark = pytest.mark.slow  # each error is explained beside a whole bank

# --- layers ---------------------------------------------------------------------------------------


class WithoutSuper(nn.Module):
    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
        self.norm1 = nn.LayerNorm(embed_dim, eps=1e-6)


class WithListCalled(vit.VisionTransformer):
    def forward(self, images):
        x = self.patch_embed(images)
        x = patches.add_class_token_and_positions(x, self.cls_token, self.pos_embed)
        x = self.blocks(x)
        return self.head(self.norm(x)[:, 0])


class WithPythonList(vit.VisionTransformer):
    def __init__(self, config):
        super().__init__(config)
        del self.blocks
        D, depth = config.embed_dim, config.depth
        self.blocks = [encoder.EncoderBlock(D, config.num_heads) for _ in range(depth)]


class WithNormsInForward(nn.Module):
    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0):
        super().__init__()
        self.attn = MultiHeadAttention(embed_dim, num_heads)
        self.mlp = Mlp(embed_dim, int(embed_dim * mlp_ratio))

    def forward(self, x):
        x = x + self.attn(nn.LayerNorm(x.shape[-1])(x))[0]
        return x + self.mlp(nn.LayerNorm(x.shape[-1])(x))


class WithoutSelf(encoder.EncoderBlock):
    def forward(self, x):
        x = x + attn(self.norm1(x))[0]  # noqa: F821
        return x + self.mlp(self.norm2(x))


class WithoutSelfOfAnArgument(MultiHeadAttention):
    def forward(self, x):
        return self.qkv(x).unflatten(-1, (3, num_heads, -1))  # noqa: F821


class WithAnotherNorm(encoder.EncoderBlock):
    def forward(self, x):
        x = x + self.attn(self.norm_1(x))[0]
        return x + self.mlp(self.norm2(x))


class WithLeafChanged(vit.VisionTransformer):
    def __init__(self, config):
        super().__init__(config)
        self.pos_embed.normal_(std=0.02)


# --- names ----------------------------------------------------------------------------------------


def softmax_with_typing_error(x, dim=-1):
    exps = torch.exp(x - x.amax(din, keepdim=True))  # noqa: F821
    return exps / exps.sum(dim, keepdim=True)


def softmax_of_a_pair(x, dim=-1):
    return (x - x.max(dim, keepdim=True)).exp()


def softmax_of_unknown(x, dim=-1):
    return numpy_softmax(x, axis=dim)  # noqa: F821


def layer_norm_with_typing_error(x, weight, bias, eps=1e-6):
    return x - x.meen(dim=-1, keepdim=True)


# --- sizes, axes and numbers ----------------------------------------------------------------------


def split_by_fraction(x, num_heads):
    B, T, D = x.shape
    return x.reshape(B, T, num_heads, D / num_heads).transpose(1, 2)


def split_with_four_names(x, num_heads):
    B, N, T, D = x.shape
    return x.reshape(B, T, num_heads, D // num_heads).transpose(1, 2)


class WithSplit(MultiHeadAttention):
    def forward(self, x):
        q, k, v = torch.split(self.qkv(x), 3, dim=-1)
        return self.proj(q), k @ v.mT


def attention_of_root(q, k, v):
    scores = q @ k.mT / torch.sqrt(k.shape[-1])
    return scores.softmax(-1) @ v, scores.softmax(-1)


def split_of_too_many(x, num_heads):
    B, T, D = x.shape
    return x.reshape(B, T, num_heads, D).transpose(1, 2)


def patchify_by_view(images, patch_size):
    B, C, H, W = images.shape
    P = patch_size
    x = images.reshape(B, C, H // P, P, W // P, P).permute(0, 2, 4, 1, 3, 5)
    return x.view(B, -1, C * P * P)


def tokens_beside(tokens, cls_token, pos_embed):
    cls = cls_token.expand(len(tokens), -1, -1)
    return torch.cat([cls, tokens], dim=2) + pos_embed


def norm_with_a_longer_bias(x, weight, bias, eps=1e-6):
    return x * weight + torch.cat([bias, bias])


def clip_loss_as_they_are(image_features, text_features, temperature):
    logits = image_features @ text_features / temperature
    return F.cross_entropy(logits, torch.arange(len(logits)))


def linear_attention_as_they_are(q, k, v):
    return (F.elu(q) + 1) @ (F.elu(k) + 1) @ v


def sincos_of_whole_numbers(num_positions, embed_dim):
    omega = 10000.0 ** (-torch.arange(embed_dim // 2) / (embed_dim // 2))
    angles = torch.arange(num_positions)[:, None] @ omega[None]
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def sincos_scaled_in_place(num_positions, embed_dim):
    positions = torch.arange(num_positions)
    positions *= 0.5
    return positions


def cross_entropy_from_one(logits, labels, label_smoothing=0.0):
    logp = logits - logits.logsumexp(-1, keepdim=True)
    return -logp.gather(1, labels[:, None] + 1).mean()


def cross_entropy_of_too_few(logits, labels, label_smoothing=0.0):
    targets = F.one_hot(labels, logits.shape[1] - 1)
    return -(targets * logits.log_softmax(-1)).sum(-1).mean()


# --- results --------------------------------------------------------------------------------------


def gelu_by_math(x):
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


def gelu_printed(x):
    print(0.5 * x * (1 + torch.erf(x / math.sqrt(2))))


def gelu_forgotten(x):
    y = 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))
    y = y.to(x.dtype)


def softmax_by_numpy(x, dim=-1):
    exps = np.exp(x.numpy() - x.numpy().max(dim, keepdims=True))
    return torch.from_numpy(exps / exps.sum(dim, keepdims=True))


def masking_of_two_results(tokens, mask_ratio, noise):
    return less_data.random_masking(tokens, mask_ratio, noise)[:2]


def lens_as_a_list(layers, norm, head):
    return [head(norm(tokens[:, : 1 + i])) for i, tokens in enumerate(layers)]


def lens_of_the_first(layers, norm, head):
    logits = []
    for tokens in layers:
        logits.append(head(norm(tokens[:, 0])))
        return torch.stack(logits)


def merge_of_one(x):
    x = x[0]
    return x.transpose(0, 1).reshape(x.shape[1], -1)


def unpatchify_of_one(patches, patch_size, image_size):
    P, (H, W) = patch_size, image_size
    x = patches[0].reshape(H // P, W // P, -1, P, P)
    return x.flip(-1).permute(2, 0, 3, 1, 4).reshape(-1, H, W)


def gelu_of_itself(x):
    return 0.5 * x * (1 + gelu_of_itself(x))


def softmax_yielded(x, dim=-1):
    yield x.softmax(dim)


def gelu_half_detached(x):
    return 2 * encoder.gelu(x) - encoder.gelu(x).detach()


# (id in the table, answer, exercise, words of "why", words of "try", the student's line)
PROVOKED = [
    ("super_missing", WithoutSuper, "EncoderBlock", "only after", "Write super", "norm1 ="),
    ("module_list_called", WithListCalled, "VisionTransformer", "stores", "loop", "blocks(x)"),
    ("python_list", WithPythonList, "VisionTransformer", "Python list", "self.blocks = nn.M", ""),
    ("made_in_forward", WithNormsInForward, "EncoderBlock", "made inside forward", "self.", ""),
    ("leaf_in_place", WithLeafChanged, "VisionTransformer", "in place", "no_grad", ".normal_("),
    ("self_forgotten", WithoutSelf, "EncoderBlock", "looks for attn", "Write self.attn", "attn("),
    (
        "self_forgotten",
        WithoutSelfOfAnArgument,
        "MultiHeadAttention",
        "looks for num_heads",
        "Write self.num_heads",
        "num_heads, -1",
    ),
    ("name_near", softmax_with_typing_error, "softmax", "is dim.", "Write dim", "amax(din"),
    ("name_unknown", softmax_of_unknown, "softmax", "numpy_softmax", "Define", "numpy_softmax("),
    ("attribute_near", layer_norm_with_typing_error, "layer_norm", "is mean", "mean", "x.meen("),
    ("attribute_near", WithAnotherNorm, "EncoderBlock", "is norm1", "norm1", "self.norm_1("),
    ("float_size", split_by_fraction, "split_heads", "8 / 2 is 4.0", "//", "D / num_heads"),
    ("view_after_transpose", patchify_by_view, "patchify", "permute leave", "reshape", ".view("),
    (
        "cat_dim",
        tokens_beside,
        "add_class_token_and_positions",
        r"dim=2.* size 1 .* and \d+ in",
        "the shapes",
        "dim=2",
    ),
    (
        "matmul_shapes",
        clip_loss_as_they_are,
        "clip_loss",
        r"left matrix is \d+x\d+ and the right one is \d+x\d+",
        "transposed",
        "@ text_features",
    ),
    (
        "batch_matmul_shapes",
        linear_attention_as_they_are,
        "linear_attention",
        r"sizes \[\d+, \d+\], but begins with \[\d+, \d+\]",
        r"transpose\(-2, -1\)",
        "F.elu(k)",
    ),
    (
        "sizes_meet",
        norm_with_a_longer_bias,
        "layer_norm",
        "element by element",
        "both shapes",
        "x * weight + ",
    ),
    ("reshape_count", split_of_too_many, "split_heads", "must be", "multiply", "num_heads, D)"),
    ("index_too_large", cross_entropy_from_one, "cross_entropy", "a label", "largest", "+ 1)"),
    ("label_too_large", cross_entropy_of_too_few, "cross_entropy", "K - 1", "min", "one_hot("),
    (
        "dtypes_mixed",
        sincos_of_whole_numbers,
        "sincos_positions",
        "long int, the other of type float",
        "torch.arange",
        "@ omega",
    ),
    ("whole_numbers", sincos_scaled_in_place, "sincos_positions", "int64", "float", "*= 0.5"),
    ("one_number_wanted", gelu_by_math, "gelu", "one number only", "torch.erf", "math.erf("),
    ("printed_not_returned", gelu_printed, "gelu", "print only shows", "Write return", ""),
    ("none_returned", gelu_forgotten, "gelu", "without return", "End with return", ""),
    ("numpy_array", softmax_by_numpy, "softmax", "no gradient", "with torch", ""),
    (
        "number_of_results",
        masking_of_two_results,
        "random_masking",
        "3 results: kept, mask, restore. The answer returned a tuple of 2",
        "Return all",
        "",
    ),
    ("tuple_for_tensor", lens_as_a_list, "logit_lens", "a list of", "torch.stack", ""),
    ("values_and_indices", softmax_of_a_pair, "softmax", "two tensors", r"\.values", "x.max("),
    ("unpacked", split_with_four_names, "split_heads", "has 4 names", "x.shape", "B, N, T, D ="),
    ("split_sizes", WithSplit, "MultiHeadAttention", "the size 3", r"chunk\(3", "torch.split("),
    (
        "tensor_wanted",
        attention_of_root,
        "scaled_dot_product_attention",
        "int",
        "n \\*\\* 0.5",
        "sqrt(",
    ),
    ("return_in_loop", lens_of_the_first, "logit_lens", "inside the loop", "indentation", ""),
    ("first_kept", merge_of_one, "merge_heads", r"x\[0\] keeps one", "all items", ""),
    ("first_kept", unpatchify_of_one, "unpatchify", r"x\[0\] keeps one", "all items at once", ""),
    ("generator", softmax_yielded, "softmax", "yield", "return", ""),
    ("another_gradient", gelu_half_detached, "gelu", "autograd", "detached", ""),
    ("recursion", gelu_of_itself, "gelu", "calls itself", "Write out", "1 + gelu_of_itself(x)"),
]


def line_of(report, label):
    """Give the one line of a report with this label."""
    (text,) = [text for name, text in report.lines if name == label]
    return text


@pytest.mark.parametrize(
    ("name", "answer", "exercise", "why", "step", "line"),
    PROVOKED,
    ids=[f"{row[0]}-{row[1].__name__}" for row in PROVOKED],
)
def test_error_is_explained_with_the_students_line(name, answer, exercise, why, step, line):
    """Why and try have its words, and an error names the line that raised it."""
    report = api.judge(answer, exercise, seed=3)
    assert re.search(why, line_of(report, "why")) and re.search(step, line_of(report, "try"))
    assert re.search(r"\(line \d+: .*" + re.escape(line), line_of(report, "got")) or not line
    assert report.points < report.max_points and "{" not in str(report)
    entry = next(entry for entry in read_errors() if entry["id"] == name)
    expected = re.escape(entry["why"])
    assert re.fullmatch(re.sub(r"\\\{\w+\\\}", ".+", expected), line_of(report, "why"))


def test_name_of_a_cell_above_is_told_from_a_typing_error(monkeypatch):
    """In a notebook whose file is not known an exercise counts, but goes after what self has."""
    shell = SimpleNamespace(kernel=True, user_ns={})
    monkeypatch.setattr(run_above, "find_shell", lambda: shell)
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)

    def merge_heads(x):
        return split_heads(x, 1)  # noqa: F821

    report = api.judge(merge_heads, seed=3)
    assert "A cell above defines it" in line_of(report, "why") and "{" not in str(report)
    assert line_of(report, "try") == "Run all above: Run > Run All Above Selected Cell."
    assert "Define or import" in line_of(api.judge(softmax_of_unknown, "softmax", seed=3), "try")
    assert "self.attn" in line_of(api.judge(WithoutSelf, "EncoderBlock", seed=3), "try")
    monkeypatch.undo()
    assert "cell above" not in str(api.judge(merge_heads, seed=3))


def test_table_is_sound():
    """Every entry is provoked above; sentences end, and ask and shout nothing."""
    provoked = {"cell_not_run", *(row[0] for row in PROVOKED)}
    assert {entry["id"] for entry in read_errors()} == provoked
    for entry in read_errors():
        for text in (entry["why"], entry["try"]):
            assert text.endswith(".") and "?" not in text and "!" not in text


def test_what_a_student_raises_is_not_explained():
    """It is said on purpose, whatever its words; so is an error that a case asks for."""

    def gelu(x):
        raise RecursionError("maximum recursion depth exceeded")

    assert "why" not in dict(api.judge(gelu, seed=3).lines)


def test_no_name_is_near_that_the_thing_does_not_have():
    """The layer has a norm1, and a text has not."""

    class EncoderBlock(encoder.EncoderBlock):
        def forward(self, x):
            return self.register_forward_hook.__doc__.norm_1

    report = api.judge(EncoderBlock, seed=3)
    assert "no attribute 'norm_1'" in line_of(report, "got") and "why" not in dict(report.lines)


def test_mistake_of_the_bank_goes_before():
    """A named mistake keeps its own words."""

    def merge_heads(x):
        return x.transpose(1, 2).view(x.shape[0], x.shape[2], -1)

    report = api.judge(merge_heads, seed=3)
    assert report.misconceptions and "permute leave" not in line_of(report, "why")
