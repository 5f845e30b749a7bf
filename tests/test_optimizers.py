"""vitedu.fitting.optimizers: who steps which parameter, and what happens on an overflow."""

import pytest
import torch
from torch import nn

from vitedu.extras.options import VisionTransformerWithOptions, ViTConfigWithOptions
from vitedu.fitting.config import TrainConfig
from vitedu.fitting.optimizers import MuonAndAdamW, make_optimizer

CPU = torch.device("cpu")


def make_model(**options):
    torch.manual_seed(0)
    config = ViTConfigWithOptions(8, 4, num_classes=3, embed_dim=8, depth=2, num_heads=2, **options)
    return VisionTransformerWithOptions(config)


def with_muon(model):
    return make_optimizer(model, TrainConfig(optimizer="muon"), CPU)


def names_of(model, *groups):
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {names[id(p)] for group in groups for p in group["params"]}


def test_muon_has_the_matrices_of_the_blocks_and_adamw_the_rest():
    """Head, embedding, class token, positions, norms and biases stay with AdamW."""
    model = make_model()
    muon, *adamw = with_muon(model).param_groups
    layers = ("attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2")
    inner = {f"blocks.{i}.{layer}.weight" for i in (0, 1) for layer in layers}
    assert names_of(model, muon) == inner
    assert names_of(model, *adamw) == {name for name, _ in model.named_parameters()} - inner
    assert [group["weight_decay"] for group in (muon, *adamw)] == [0.05, 0.05, 0.0]


def test_muon_has_the_convolutions_of_a_stem_too():
    """Five of 3 x 3 and one of 1 x 1, each a matrix; their norms stay with AdamW."""
    model = make_model(stem="conv")
    muon = with_muon(model).param_groups[0]
    of_stem = {name for name in names_of(model, muon) if "patch" in name}
    layers = [f"layers.{i}.0" for i in range(5)]
    assert of_stem == {f"patch_embed.{layer}.weight" for layer in (*layers, "proj")}


def test_muon_moves_each_matrix_evenly():
    """In all its directions; AdamW moves the rest, and without a gradient nothing moves."""
    model = make_model()
    optimizer = with_muon(model)
    inner = names_of(model, optimizer.param_groups[0])
    for group in optimizer.param_groups:
        group.update(lr=1e-2, weight_decay=0.0)
    for is_given in (False, True):
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        for parameter in model.parameters():
            parameter.grad = torch.randn_like(parameter) if is_given else None
        optimizer.step()
        for name, tensor in model.state_dict().items():
            moved = tensor - before[name]
            assert moved.any() == is_given, name
            if is_given and name in inner:
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
    muon = MuonAndAdamW([{"params": ours, "muon": True}], dtype, **settings)
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
    assert with_muon(make_model()).dtype is (
        torch.bfloat16 if "avx512_bf16" in flags else torch.float32
    )


def test_muon_is_refused_where_it_can_not_work():
    """A model without inner matrices; the remedy is named."""
    words = "needs matrices besides the last .* use optimizer='adamw'"
    with pytest.raises(ValueError, match=words):
        make_optimizer(nn.Linear(3, 2), TrainConfig(optimizer="muon"), CPU)
