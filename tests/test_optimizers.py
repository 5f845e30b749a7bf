"""vitedu.fitting.optimizers: who steps which parameter, and what happens on an overflow."""

import pytest
import torch
from torch import nn

from vitedu.extras.options import VisionTransformerWithOptions, ViTConfigWithOptions
from vitedu.fitting.config import TrainConfig
from vitedu.fitting.optimizers import Muon, make_optimizer

CPU = torch.device("cpu")


def make_model(**options):
    torch.manual_seed(0)
    config = ViTConfigWithOptions(8, 4, num_classes=3, embed_dim=8, depth=2, num_heads=2, **options)
    return VisionTransformerWithOptions(config)


def muon_and_adamw(model):
    return make_optimizer(model, TrainConfig(optimizer="muon"), CPU).optimizers


def names_of(model, optimizer):
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {names[id(p)] for group in optimizer.param_groups for p in group["params"]}


def test_muon_has_the_matrices_of_the_blocks_and_adamw_the_rest():
    """Head, embedding, class token, positions, norms and biases stay with AdamW."""
    model = make_model()
    muon, adamw = muon_and_adamw(model)
    layers = ("attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2")
    inner = {f"blocks.{i}.{layer}.weight" for i in (0, 1) for layer in layers}
    assert names_of(model, muon) == inner
    assert names_of(model, adamw) == {name for name, _ in model.named_parameters()} - inner
    decayed, spared = (group["weight_decay"] for group in adamw.param_groups)
    assert (decayed, spared, muon.param_groups[0]["weight_decay"]) == (0.05, 0.0, 0.05)


def test_muon_has_the_convolutions_of_a_stem_too():
    """Five of 3 x 3 and one of 1 x 1, each a matrix; their norms stay with AdamW."""
    model = make_model(stem="conv")
    of_stem = {name for name in names_of(model, muon_and_adamw(model)[0]) if "patch" in name}
    layers = [f"layers.{i}.0" for i in range(5)]
    assert of_stem == {f"patch_embed.{layer}.weight" for layer in (*layers, "proj")}


def test_muon_steps_the_matrices_and_nothing_else():
    """Its step moves each inner matrix evenly in all directions, and leaves the rest."""
    model = make_model()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    muon, _ = muon_and_adamw(model)
    muon.param_groups[0].update(lr=1e-2, weight_decay=0.0)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    muon.step()
    inner = names_of(model, muon)
    for name, tensor in model.state_dict().items():
        moved = tensor - before[name]
        if name not in inner:
            assert not moved.any(), name
            continue
        # 0.2 sqrt(longer side) is the scaling to AdamW's size; five Newton-Schulz steps, in
        # bfloat16, leave singular values around 1
        values = torch.linalg.svdvals(moved) / (1e-2 * 0.2 * max(moved.shape) ** 0.5)
        assert values.median() > 0.6, name
        assert values.max() < 1.5, name


def test_overflow_stops_both_optimizers():
    """Where one gradient is not finite, a gradient scaler lets no parameter step; else all do."""
    for broken in (True, False):
        model = make_model()
        optimizer = make_optimizer(model, TrainConfig(optimizer="muon"), CPU)
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
        scaler.scale(model(torch.randn(4, 3, 8, 8)).square().sum()).backward()
        if broken:
            model.head.bias.grad[0] = float("nan")  # belongs to AdamW alone
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        for name, parameter in model.named_parameters():
            assert parameter.isfinite().all(), name
            assert torch.equal(parameter, before[name]) == broken, name


@pytest.mark.parametrize(("dtype", "limit"), [(torch.bfloat16, 0), (torch.float32, 2e-3)])
def test_muon_is_torchs_own(dtype, limit):
    """In bfloat16 to the last bit; in float32 to bfloat16's rounding of steps of 0.05."""
    generator = torch.Generator().manual_seed(0)
    shapes = (24, 8), (8, 24), (16, 16)
    ours = [nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]
    theirs = [nn.Parameter(matrix.detach().clone()) for matrix in ours]
    settings = {"lr": 0.01, "weight_decay": 0.05}
    muon = Muon(ours, **settings, dtype=dtype)
    oracle = torch.optim.Muon(theirs, **settings, adjust_lr_fn="match_rms_adamw")
    for _ in range(5):
        for matrix, other in zip(ours, theirs, strict=True):
            matrix.grad = torch.randn(matrix.shape, generator=generator)
            other.grad = matrix.grad.clone()
        muon.step()
        oracle.step()
    for matrix, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(matrix, other, rtol=0, atol=limit)


@pytest.mark.parametrize("flags", [{"avx512_bf16"}, {"avx2"}])
def test_muon_multiplies_in_a_type_that_the_cpu_multiplies(flags, monkeypatch):
    """bfloat16 where the CPU has it; emulated it took 70 % of a step."""
    monkeypatch.setattr("vitedu.ground.hardware.cpu_flags", lambda: frozenset(flags))
    muon, _ = muon_and_adamw(make_model())
    assert muon.dtype is (torch.bfloat16 if "avx512_bf16" in flags else torch.float32)


def test_muon_is_refused_where_it_can_not_work():
    """A model without inner matrices; the remedy is named."""
    words = "needs matrices besides the last .* use optimizer='adamw'"
    with pytest.raises(ValueError, match=words):
        make_optimizer(nn.Linear(3, 2), TrainConfig(optimizer="muon"), CPU)
