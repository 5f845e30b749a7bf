"""vitedu.fast: whichever way it goes, it is the linear layer."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from vitedu import fast as module
from vitedu.encoder import Mlp
from vitedu.fast import fast_linear


@pytest.fixture(params=[True, False], ids=["convolution", "product"])
def called(request, monkeypatch):
    """Choose a way on any machine, and count the convolutions."""
    calls = []
    convolve = F.conv2d
    monkeypatch.setattr(module, "PREFERS_CONVOLUTION", request.param)
    monkeypatch.setattr(module.F, "conv2d", lambda *a: calls.append(a) or convolve(*a))
    return lambda: bool(calls) == request.param


@pytest.mark.parametrize("bias", [True, False])
def test_values_and_gradients_are_those_of_the_layer(called, bias):
    """To rounding, for input, weight and bias."""
    generator = torch.Generator().manual_seed(0)
    layer, x = nn.Linear(24, 40, bias=bias), torch.randn(3, 64, 24, generator=generator)
    x.requires_grad_()
    at = [x, *layer.parameters()]
    outputs = [fast_linear(layer, x), layer(x)]
    assert called() and outputs[0].is_contiguous()
    grads = [torch.autograd.grad(output.square().sum(), at) for output in outputs]
    torch.testing.assert_close(*outputs, rtol=0, atol=1e-5)
    for ours, expected in zip(*grads, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-4)


def test_short_sequences_and_other_types_stay_products(monkeypatch):
    """So few tokens, float64, and bfloat16 through autocast gain nothing from the other library."""
    monkeypatch.setattr(module, "PREFERS_CONVOLUTION", True)
    monkeypatch.setattr(module.F, "conv2d", None)  # calling it would be an error
    layer, x = nn.Linear(4, 6), torch.zeros(2, 64, 4)
    assert fast_linear(layer, x[:, :63]).shape == (2, 63, 6)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert fast_linear(layer, x).dtype is torch.bfloat16
    assert fast_linear(layer.double(), x.double()).dtype is torch.float64


@pytest.mark.parametrize(
    ("flags", "maker", "expected"),
    [
        ({"avx512f"}, "AuthenticAMD", True),
        ({"avx512f"}, "GenuineIntel", False),
        ({"avx2"}, "AuthenticAMD", False),
    ],
)
def test_the_processor_decides(flags, maker, expected, monkeypatch):
    """AVX-512 of another maker than Intel."""
    monkeypatch.setattr(module, "cpu_flags", lambda: frozenset(flags))
    monkeypatch.setattr(module.Path, "read_text", lambda self: f"vendor_id\t: {maker}\n")
    assert module.prefers_convolution() is expected


def test_fused_mlp_is_the_mlp_with_other_kernels(called):
    """The same layers, values and gradients; switched back, its layers are called as modules."""
    mlp, x = Mlp(12, 30), torch.randn(2, 64, 12, generator=torch.Generator().manual_seed(0))
    fused = module.FusedMlp(12, 30)
    fused.load_state_dict(mlp.state_dict())
    outputs = [fused(x), mlp(x)]
    assert called()
    grads = [
        torch.autograd.grad(output.square().sum(), list(layer.parameters()))
        for output, layer in zip(outputs, (fused, mlp), strict=True)
    ]
    torch.testing.assert_close(*outputs, rtol=0, atol=1e-5)
    for ours, expected in zip(*grads, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-4)
    fused.fused, seen = False, []
    fused.fc1.register_forward_hook(lambda *_: seen.append("fc1"))
    fused(x)
    assert seen == ["fc1"]


def test_what_took_the_place_of_a_layer_is_called():
    """A layer with more than weight and bias keeps what it adds."""

    class Doubled(nn.Linear):
        def forward(self, x):
            return 2 * super().forward(x)

    layer, x = Doubled(8, 12), torch.randn(2, 64, 8)
    assert torch.equal(fast_linear(layer, x), layer(x))
