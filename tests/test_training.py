"""The references of notebook 04, against torch's own functions and by hand."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from vitedu.training import (
    cross_entropy,
    evaluate,
    last_batch_weight,
    random_crop_flip,
    smoothing_floor,
    train_one_epoch,
    views_of_one_image,
    warmup_cosine,
    weight_decay_groups,
)
from vitedu.vit import VisionTransformer, preset


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
def test_cross_entropy_equals_torch(smoothing):
    """To 1e-5, gradients too, also for logits of a thousand."""
    logits = (100 * torch.randn(7, 5)).requires_grad_()
    labels = torch.randint(5, (7,))
    ours = cross_entropy(logits, labels, smoothing)
    theirs = F.cross_entropy(logits, labels, label_smoothing=smoothing)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    gradients = [torch.autograd.grad(loss, logits)[0] for loss in (ours, theirs)]
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-5)


def test_schedule_meets_its_peak_once_and_its_end_exactly():
    """100 steps, 10 of warm-up."""
    rates = [warmup_cosine(step, 100, 10, 1e-3, 1e-5) for step in range(100)]
    assert rates.count(1e-3) == 1 and rates[9] == max(rates) == 1e-3
    assert rates[0] == pytest.approx(1e-4) and rates[-1] == pytest.approx(1e-5, abs=1e-12)
    assert all(a > b for a, b in zip(rates[9:], rates[10:], strict=False))
    assert (
        warmup_cosine(0, 4, 0, 1.0) < 1.0
    )  # without warm-up the first step is already on the way down


def test_groups_hold_every_parameter_once():
    """Matrices decay; vectors, class token and positions do not."""
    model = VisionTransformer(preset("vit_micro_patch8_32"))
    groups = weight_decay_groups(model, 0.05)
    ids = [id(p) for group in groups for p in group["params"]]
    assert sorted(ids) == sorted(id(p) for p in model.parameters())
    assert {p.ndim for p in groups[0]["params"]} == {2, 4} and groups[0]["weight_decay"] == 0.05
    spared = {id(p) for p in groups[1]["params"]}
    assert {id(model.cls_token), id(model.pos_embed), id(model.norm.weight)} <= spared
    assert groups[1]["weight_decay"] == 0.0


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_crops_are_windows_of_the_padded_image(dtype):
    """Every result is one of the windows, of the same dtype; the input stays as it was."""
    images = torch.randint(0, 256, (64, 3, 6, 7), dtype=torch.uint8).to(dtype)
    before = images.clone()
    views = random_crop_flip(images, 2, torch.Generator().manual_seed(0))
    assert views.dtype == dtype and torch.equal(images, before)
    padded = F.pad(images.float(), (2, 2, 2, 2), mode="reflect").to(dtype)
    windows = padded.unfold(2, 6, 1).unfold(3, 7, 1).permute(0, 2, 3, 1, 4, 5).flatten(1, 2)
    windows = torch.cat([windows, windows.flip(-1)], dim=1)  # (B, 2 * 25, C, H, W)
    assert (windows == views[:, None]).flatten(2).all(-1).any(1).all()


def test_crops_draw_from_their_generator_alone():
    """The same generator seed gives the same views, whatever the global one."""
    images = torch.randint(0, 256, (8, 3, 6, 6), dtype=torch.uint8)
    first = random_crop_flip(images, 2, torch.Generator().manual_seed(1))
    torch.manual_seed(99)
    assert torch.equal(random_crop_flip(images, 2, torch.Generator().manual_seed(1)), first)


def tiny_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))


def uneven_batches():
    generator = torch.Generator().manual_seed(1)
    for size in (5, 5, 2):
        yield torch.randn(size, 3, 2, 2, generator=generator), torch.arange(size) % 3


def test_one_epoch_equals_the_loop_by_hand():
    """Loss before each update, clipped to norm 1, both steppers once a batch, weighted by size."""
    model, other = tiny_model(), tiny_model()
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.5, momentum=0.9) for m in (model, other)]
    schedulers = [torch.optim.lr_scheduler.ExponentialLR(o, 0.5) for o in optimizers]
    loss, accuracy = train_one_epoch(model, uneven_batches(), optimizers[0], schedulers[0])
    total = correct = 0
    for images, labels in uneven_batches():
        logits = other(images)
        batch_loss = F.cross_entropy(logits, labels)
        optimizers[1].zero_grad()
        batch_loss.backward()
        nn.utils.clip_grad_norm_(other.parameters(), 1.0)
        optimizers[1].step()
        schedulers[1].step()
        total += batch_loss.item() * len(labels)
        correct += int((logits.argmax(1) == labels).sum())
    assert loss == pytest.approx(total / 12, rel=1e-5) and accuracy == correct / 12
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
    assert optimizers[0].param_groups[0]["lr"] == 0.5 * 0.5**3


def test_evaluate_changes_nothing():
    """Statistics, modes and gradients are what they were; the mean is over images."""
    model = tiny_model().train()
    model[1].eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    loss, accuracy = evaluate(model, uneven_batches())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert model.training and model[2].training and not model[1].training
    assert all(parameter.grad is None for parameter in model.parameters())
    images, labels = (torch.cat(part) for part in zip(*uneven_batches(), strict=True))
    with torch.no_grad():
        logits = model.eval()(images)
    assert loss == pytest.approx(F.cross_entropy(logits, labels).item(), rel=1e-5)
    assert accuracy == (logits.argmax(1) == labels).double().mean().item()


def test_values_of_notebook_04_are_what_they_say():
    """The entropy of a smoothed target, the number of views, the weight of a short batch."""
    logits = torch.full((1, 10), math.log(0.01), dtype=torch.float64)
    logits[0, 0] = math.log(0.91)
    floor = cross_entropy(logits, torch.tensor([0]), 0.1).item()
    assert floor == pytest.approx(smoothing_floor, rel=1e-9)
    assert views_of_one_image == 2 * 9 * 9
    assert last_batch_weight == 128 / 16
