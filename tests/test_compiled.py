"""vitedu.compiled: what stands in a compiled step is the plain form, to rounding."""

import pytest
import torch
import torch.nn.functional as F

from vitedu import compiled
from vitedu.options import build_model, preset


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_attention_and_its_gradients(dtype):
    """Against torch's own, whose gradients come from autograd; bfloat16 to its rounding."""
    generator = torch.Generator().manual_seed(0)
    q, k, v, dy = torch.randn(4, 2, 3, 7, 8, dtype=torch.float64, generator=generator).to(dtype)
    parts = [part.requires_grad_() for part in (q, k, v)]
    ours, expected = compiled.attend(*parts), F.scaled_dot_product_attention(*parts)
    limit = 1e-6 if dtype is torch.float64 else 0.03  # the softmax is computed in float32
    torch.testing.assert_close(ours, expected, rtol=limit, atol=limit)
    for our_grad, grad in zip(
        torch.autograd.grad(ours, parts, dy), torch.autograd.grad(expected, parts, dy), strict=True
    ):
        torch.testing.assert_close(our_grad, grad, rtol=limit, atol=limit)


def test_the_polynomials_are_gelu_and_its_slope():
    """Within 1e-4 and 3e-4, where bfloat16 rounds numbers near 1 by 39e-4."""
    x = torch.linspace(-8, 8, 16001, dtype=torch.float64)
    slope = torch.ops.aten.gelu_backward(torch.ones_like(x), x)
    wide = x.float()
    found = wide * compiled.evaluate(compiled.PROBABILITY, wide)
    assert (found - F.gelu(x)).abs().max() <= 1e-4
    assert (compiled.evaluate(compiled.SLOPE, wide) - slope).abs().max() <= 3e-4


def test_gelu_in_bfloat16_is_rounded_gelu():
    """To one step of bfloat16 or a ten-thousandth, with its gradient; float32 stays exact."""
    x = torch.linspace(-6, 6, 2001).bfloat16().requires_grad_()
    ours, expected = compiled.gelu(x), F.gelu(x)
    assert ours.dtype is torch.bfloat16
    torch.testing.assert_close(ours, expected, rtol=2**-7, atol=1e-4)
    slopes = [torch.autograd.grad(y.sum(), x)[0] for y in (ours, expected)]
    torch.testing.assert_close(*slopes, rtol=2**-7, atol=3e-4)
    assert torch.equal(compiled.gelu(x.float()), F.gelu(x.float()))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Torchinductor does not support code generation for complex")
@pytest.mark.parametrize(
    ("dtype", "options"),
    [(torch.float32, {"pool": "mean", "rope": True, "qk_norm": True}), (torch.bfloat16, {})],
    ids=["options in float32", "plain in bfloat16"],
)
@pytest.mark.timeout(900)  # a C++ compiler works for minutes on a slow machine
def test_a_compiled_model_learns_the_same(dtype, options, compiler):
    """Logits and every gradient of a small model, translated, against the same model as it is."""
    torch.manual_seed(0)
    config = preset("vit_pico_patch4_32", fused=True, depth=1, **options)
    model, images = build_model(config), torch.randn(4, 3, 32, 32)
    found = []
    for run in (model, torch.compile(model)):
        with torch.autocast("cpu", dtype=dtype, enabled=dtype is torch.bfloat16):
            logits = run(images)
        used = [parameter for parameter in model.parameters() if parameter.numel()]
        grads = torch.autograd.grad(logits.float().logsumexp(dim=1).sum(), used)
        found.append([logits, *grads])
    limit = 1e-5 if dtype is torch.float32 else 0.03
    for expected, ours in zip(*found, strict=True):
        assert (ours - expected).norm() <= limit * expected.norm() + 1e-7
