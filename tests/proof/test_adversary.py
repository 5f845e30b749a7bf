"""Unusual right answers pass, quiet wrong ones do not: what an unfriendly reader tried."""

import dataclasses
import functools
import inspect
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from replay_caches import judge
from torch import nn

from vitedu import attention, encoder, patches, training, vit
from vitedu.checks import engine
from vitedu.checks.api import check
from vitedu.checks.judging import compare
from vitedu.checks.writing.checker import find_checker

pytestmark = pytest.mark.bank


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """Judge right and wrong however crowded the machine is: a limit of time is tested elsewhere."""
    monkeypatch.setenv("VITEDU_TIME_LIMIT", "60")


# --- right answers in unusual clothes -----------------------------------------------------------


class SizeError(ValueError):
    """An error class of one's own."""


class PatchifyObject:
    """A function in the shape of an object."""

    __slots__ = ()

    def __call__(self, images, patch_size):
        H, W = images.shape[-2:]
        for side in (W, H):
            if side % patch_size:
                raise SizeError(f"{patch_size} does not divide {side}")
        return F.unfold(images, patch_size, stride=patch_size).mT


def patchify_one_by_one(x, p, *, verbose=False):
    """Map over the images, with other names and an option."""
    (_, C, H, W) = x.shape
    if H % p or W % p:
        raise ValueError(f"{p}: {W} x {H}")

    def cut(image):
        return image.reshape(C, H // p, p, W // p, p).permute(1, 3, 0, 2, 4).flatten(2)

    return torch.vmap(cut)(x).flatten(1, 2)


def unpatchify_by_pullback(x, p, size):
    """Unpatchify is the transpose of patchify."""
    C = x.shape[2] // p**2
    image = torch.zeros(len(x), C, *size, dtype=x.dtype, device=x.device)
    return torch.func.vjp(lambda image: patches.patchify(image, p), image)[1](x)[0]


def softmax_as_gradient(x, dim=-1):
    """Softmax is the gradient of logsumexp."""
    return torch.func.grad(lambda z: z.logsumexp(dim).sum())(x)


def attention_in_a_list(query, key, value, scale=None):
    """Give a list, take an option, scale both sides."""
    root = key.shape[-1] ** 0.25
    weights = torch.softmax((key / root) @ (query / root).mT, dim=-2).mT
    return [weights @ value, weights]


class AttentionBySlices(attention.MultiHeadAttention):
    """Project with slices of qkv, sum over heads with slices of proj."""

    def forward(self, tokens):
        (B, T, D), heads = tokens.shape, self.num_heads
        q, k, v = self.qkv(tokens).view(B, T, 3, heads, D // heads).unbind(2)
        scores = torch.einsum("bihd,bjhd->bhij", q, k)
        weights = (scores / math.sqrt(D / heads)).softmax(-1)
        slices = self.proj.weight.view(D, heads, D // heads)
        mixed = torch.einsum("bhij,bjhd,ehd->bie", weights, v, slices)
        return mixed + self.proj.bias, weights


class BlockOfOwnParts(nn.Module):
    """Other norms, other MLP, the same names."""

    def __init__(self, dim, heads, ratio=4.0):
        super().__init__()
        hidden = int(dim * ratio)
        self.mlp = nn.Sequential()
        self.mlp.add_module("fc1", nn.Linear(dim, hidden))
        self.mlp.add_module("bend", nn.GELU())
        self.mlp.add_module("fc2", nn.Linear(hidden, dim))
        self.attn = attention.MultiHeadAttention(dim, heads)
        self.norm2, self.norm1 = nn.GroupNorm(1, dim, eps=1e-6), nn.LayerNorm(dim, 1e-6)

    def forward(self, tokens):
        tokens = self.attn(self.norm1(tokens))[0] + tokens
        normed = self.norm2(tokens.flatten(0, 1)).view_as(tokens)
        return self.mlp(normed) + tokens


class ModelImageByImage(vit.VisionTransformer):
    """No batch at all."""

    def forward(self, images):
        logits = []
        for image in images:
            x = torch.cat([self.cls_token, self.patch_embed(image[None])], 1) + self.pos_embed
            for block in self.blocks:
                x = block(x)
            logits.append(self.head(self.norm(x[0, 0])))
        return torch.stack(logits)


class GeluWithOwnBackward(torch.autograd.Function):
    """The derivative written by hand."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.special.ndtr(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * (torch.special.ndtr(x) + x * (-x * x / 2).exp() / math.sqrt(2 * math.pi))


def crop_by_one_number(images, padding, generator):
    """Draw top, left and coin as one number."""
    B, _, H, W = images.shape
    side = 2 * padding + 1
    framed = F.pad(images.double(), (padding,) * 4, mode="reflect").to(images.dtype)
    ones = torch.ones(2 * side * side, device=generator.device)
    drawn = torch.multinomial(ones, B, replacement=True, generator=generator).tolist()
    out = []
    for image, number in zip(framed, drawn, strict=True):
        top, left = divmod(number // 2, side)
        window = image[:, top : top + H, left : left + W]
        out.append(window.flip(-1) if number % 2 else window)
    return torch.stack(out)


def train_with_closure(model, batches, optimizer, scheduler):
    """Hand the optimizer a closure."""
    model.train()
    seen = []
    for images, labels in batches:

        def closure(images=images, labels=labels):
            optimizer.zero_grad()
            logits = model(images)
            loss = F.cross_entropy(logits, labels)
            loss.backward()
            nn.utils.clip_grad_norm_([*model.parameters()], 1.0)
            hits = (logits.argmax(1) == labels).sum().item()
            seen.append((loss.item() * len(labels), hits, len(labels)))
            return loss

        optimizer.step(closure)
        scheduler.step()
    loss, hits, count = np.array(seen).sum(axis=0)
    return [loss / count, hits / count]


def evaluate_at_the_end(model, loader):
    """Collect all logits, then measure once."""
    modes = {name: module.training for name, module in model.named_modules()}
    try:
        model.train(False)
        with torch.inference_mode():
            logits, labels = map(torch.cat, zip(*[(model(x), y) for x, y in loader], strict=True))
            loss = F.cross_entropy(logits, labels)
            return loss, np.float64((logits.argmax(1) == labels).double().mean())
    finally:
        for name, module in model.named_modules():
            module.training = modes[name]


RIGHT = {
    "patchify": [
        PatchifyObject(),
        patchify_one_by_one,
        functools.partial(patchify_one_by_one, verbose=True),
        functools.lru_cache(None)(patches.patchify),
        lambda *given, **named: patches.patchify(*given, **named),
    ],
    "unpatchify": [unpatchify_by_pullback],
    "softmax": [softmax_as_gradient],
    "scaled_dot_product_attention": [attention_in_a_list],
    "MultiHeadAttention": [AttentionBySlices],
    "attention_macs": [lambda n, d: Fraction(2 * n * d * (2 * d + n))],
    "gelu": [
        GeluWithOwnBackward.apply,
        lambda x: x.relu() - x.abs() * torch.special.ndtr(-x.abs()),
    ],
    "EncoderBlock": [BlockOfOwnParts],
    "VisionTransformer": [ModelImageByImage],
    "count_parameters": [lambda config: Fraction(encoder.count_parameters(config))],
    "random_crop_flip": [crop_by_one_number],
    "train_one_epoch": [train_with_closure],
    "evaluate": [evaluate_at_the_end],
}


# --- wrong answers that are quiet about it ------------------------------------------------------


def patchify_checks_the_area(images, patch_size):
    """Refuse by the area alone; sides that do not divide slip through."""
    B, C, H, W = images.shape
    if (H * W) % patch_size**2:
        return patches.patchify(images, patch_size)
    if H % patch_size or W % patch_size:
        return images.reshape(B, -1, C * patch_size**2)
    return patches.patchify(images, patch_size)


def patchify_now_and_then(images, patch_size):
    """Be right seven times in ten."""
    right = patches.patchify(images, patch_size)
    return right if torch.rand(()) < 0.7 else right.flip(1)


def linear_with_the_same_bias(conv):
    """Share the memory of the bias."""
    linear = patches.linear_from_conv(conv)
    if conv.bias is not None:
        linear.bias.data = conv.bias.data
    return linear


def linear_that_can_not_learn(conv):
    """Freeze the copy."""
    return patches.linear_from_conv(conv).requires_grad_(False)


def linear_without_parameter(conv):
    """Leave a tensor where a parameter should be."""
    linear = patches.linear_from_conv(conv)
    weight = linear.weight.detach().clone()
    del linear.weight
    linear.weight = weight
    return linear


def linear_that_freezes(conv):
    """Change the convolution."""
    linear = patches.linear_from_conv(conv)
    conv.requires_grad_(False)
    return linear


class AttentionWrongInEval(attention.MultiHeadAttention):
    """Right while it trains."""

    def forward(self, x):
        return super().forward(x if self.training else 0.5 * x)


class BlockWrongInEval(encoder.EncoderBlock):
    """Right while it trains."""

    def forward(self, x):
        return super().forward(x) if self.training else self.norm2(super().forward(x))


class ModelWrongInTraining(vit.VisionTransformer):
    """Right in eval mode."""

    def forward(self, images):
        return super().forward(images) * (0.9 if self.training else 1.0)


class ModelWrongInEval(vit.VisionTransformer):
    """Right while it trains."""

    def forward(self, images):
        return super().forward(images) * (1.0 if self.training else 0.9)


def groups_that_freeze(model, weight_decay):
    """Switch off what does not decay."""
    groups = training.weight_decay_groups(model, weight_decay)
    for parameter in groups[1]["params"]:
        parameter.requires_grad_(False)
    return groups


def groups_by_part_of_a_name(model, weight_decay):
    """Take every name with "pos" in it for a position."""
    groups = [{"params": [], "weight_decay": weight_decay}, {"params": [], "weight_decay": 0.0}]
    for name, parameter in model.named_parameters():
        spared = parameter.ndim < 2 or "pos" in name or "cls" in name
        groups[spared]["params"].append(parameter)
    return groups


def crop_with_a_second_generator(images, padding, generator):
    """Start a new generator from the seed of the old one."""
    again = torch.Generator().manual_seed(generator.initial_seed())
    return training.random_crop_flip(images, padding, again)


WRONG = {
    "patchify": [patchify_checks_the_area, patchify_now_and_then],
    "linear_from_conv": [
        linear_with_the_same_bias,
        linear_that_can_not_learn,
        linear_without_parameter,
        linear_that_freezes,
    ],
    "MultiHeadAttention": [AttentionWrongInEval],
    "attention_macs": [
        lambda n, d: min(2**31 - 1, attention.attention_macs(n, d)),
        lambda n, d: torch.tensor(attention.attention_macs(n, d)).int(),
    ],
    "EncoderBlock": [BlockWrongInEval],
    "VisionTransformer": [ModelWrongInEval, ModelWrongInTraining],
    "count_parameters": [
        lambda config: encoder.count_parameters(dataclasses.replace(config, mlp_ratio=4.0)),
    ],
    "weight_decay_groups": [groups_that_freeze, groups_by_part_of_a_name],
    "random_crop_flip": [crop_with_a_second_generator],
}


def rows(table):
    """List (exercise, answer) with a readable id."""
    return [
        pytest.param(exercise, answer, id=f"{exercise}-{getattr(answer, '__name__', number)}")
        for exercise, answers in table.items()
        for number, answer in enumerate(answers)
    ]


@pytest.mark.parametrize(("exercise", "answer"), rows(RIGHT))
def test_right_answer_passes_whatever_its_style(exercise, answer):
    """No style of a right answer costs a point."""
    report = judge(answer, exercise, seed=0)
    assert report.passed, str(report)


@pytest.mark.parametrize(("exercise", "answer"), rows(WRONG))
def test_quiet_mistake_is_found(exercise, answer, monkeypatch):
    """What is wrong in one mode, one size or one attribute alone does not pass."""
    monkeypatch.setattr(engine, "diagnose", lambda *seen: [])  # a verdict needs no name
    assert not judge(answer, exercise, seed=0).is_flawless


def test_training_without_the_optimizer_is_not_called_constant():
    """Steps that an optimizer never saw are no output that ignores its input."""

    def train_one_epoch(model, batches, optimizer, scheduler):
        batches, optimizer = list(batches), torch.optim.SGD(model.parameters(), lr=0.5)
        return training.train_one_epoch(model, batches, optimizer, scheduler)

    report = judge(train_one_epoch, seed=0)
    assert not report.passed
    assert report.misconception != "constant_output"


# --- random results ------------------------------------------------------------------------------


def test_random_results_without_a_reader_are_an_error(monkeypatch, capsys):
    """Nobody passes because nothing looked; the notebook goes on with the reference."""
    find_checker("random_crop_flip")  # registers its readers where nothing has asked for it yet
    monkeypatch.setattr(compare, "READERS", {})
    report = check(lambda images, padding, generator: 0 * images, "random_crop_flip")
    assert report.status == "error" and "no reader" in capsys.readouterr().out
    assert report.implementation is not None and report.to_dict()["points"] == 0
    assert inspect.unwrap(report.implementation) is training.random_crop_flip
