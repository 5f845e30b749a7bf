"""The checkers of notebook 01: what their contract leaves free, and what it does not."""

import pytest
import torch
import torch.nn.functional as F
from replay_caches import judge
from torch import nn

from vitedu import patches as reference

pytestmark = pytest.mark.bank


@pytest.mark.parametrize("wrong_size", ["H", "W"])
def test_patchify_must_refuse_both_sides(wrong_size):
    """A missing error for one of the sides is found, and costs only the points for errors."""

    def patchify(images, patch_size):
        H, W = images.shape[-2:]
        P = patch_size
        size = W if wrong_size == "H" else H
        if size % P:
            raise ValueError(f"{size} is not divisible by {P}")
        return reference.patchify(images[..., : H // P * P, : W // P * P], P)

    report = judge(patchify, seed=0)
    assert report.misconception == "no_error" and report.points > report.max_points / 2


def test_patchify_error_names_both_numbers():
    """A message with one of the two numbers is not enough, one with both in any words is."""

    def patchify(images, patch_size, both):
        H, W = images.shape[-2:]
        for side in (H, W):
            if side % patch_size:
                raise ValueError(f"{side} / {patch_size}" if both else f"{side} is bad")
        return reference.patchify(images, patch_size)

    assert judge(lambda i, p: patchify(i, p, True), "patchify", seed=0).passed
    assert (
        judge(lambda i, p: patchify(i, p, False), "patchify", seed=0).misconception
        == "error_without_numbers"
    )


def test_patchify_may_raise_an_error_of_its_own_kind():
    """A subclass of ValueError is a ValueError."""

    class BadSize(ValueError):
        pass

    def patchify(images, patch_size):
        H, W = images.shape[-2:]
        if H % patch_size or W % patch_size:
            raise BadSize(f"{H} x {W}, {patch_size}")
        return F.unfold(images, patch_size, stride=patch_size).mT

    assert judge(patchify, seed=0).passed


def test_linear_from_conv_may_be_made_by_assignment():
    """Parameters may be new objects, as long as the values are copied."""

    def linear_from_conv(conv):
        linear = nn.Linear(1, 1)
        linear.weight = nn.Parameter(conv.weight.detach().clone().flatten(1))
        linear.bias = None if conv.bias is None else nn.Parameter(conv.bias.detach().clone())
        return linear

    assert judge(linear_from_conv, seed=0).passed


def test_tables_are_float32_whatever_the_formula():
    """A table computed in float32 throughout is near enough, one in float64 has the wrong dtype."""

    def sincos_positions(n, D):
        if D % 2:
            raise ValueError(D)
        angle = torch.arange(n).float()[:, None] * 10000.0 ** (-torch.arange(0, D, 2) / D)
        return torch.stack([angle.sin(), angle.cos()], dim=2).reshape(n, D)

    for seed in range(4):
        assert judge(sincos_positions, seed=seed).passed
    report = judge(lambda n, D: sincos_positions(n, D).double(), "sincos_positions", seed=0)
    assert report.misconception == "double_table"


def test_grid_may_be_any_pair():
    """grid_size comes as a tuple; what is done with it is free."""

    def sincos_positions_2d(grid_size, embed_dim):
        return reference.sincos_positions_2d(list(grid_size), embed_dim)

    assert judge(sincos_positions_2d, seed=0).passed


def test_refusal_of_a_layer_counts_whatever_its_parameters_are():
    """A layer with a parameter of another name fails, and its ValueError is right all the same."""

    class PatchEmbed(nn.Module):
        def __init__(self, patch_size, in_channels, embed_dim):
            super().__init__()
            self.embed = reference.PatchEmbed(patch_size, in_channels, embed_dim)

        def forward(self, images):
            return self.embed(images)

    report = judge(PatchEmbed, seed=0)
    assert report.status == "failed" and "unexpected: embed.proj.bias" in str(report)
    assert [finding.passed for finding in report.findings if finding.name == "errors"] == [True]
