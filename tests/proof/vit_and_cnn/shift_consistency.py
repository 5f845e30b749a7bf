"""Right answers to 6.3 shift_consistency, and what becomes of its mutants."""

from copy import deepcopy

import numpy as np
import torch

from proof.reasons import TENSOR_AS_NUMBER


def both_at_once(model, images, shift):
    awake = [part for part in model.modules() if part.training]
    dy, dx = shift
    try:
        model.train(False)
        with torch.inference_mode():
            moved = torch.roll(torch.roll(images, dy, 2), dx, 3)
            first, second = model(torch.cat([images, moved])).max(dim=1).indices.chunk(2)
    finally:
        for part in awake:
            part.training = True
    return (first == second).double().mean()


def by_a_copy(model, images, shift):
    twin = deepcopy(model).eval().requires_grad_(False)
    before, after = (twin(x).topk(1).indices for x in (images, images.roll(shift, (2, 3))))
    return torch.eq(before, after).sum() / len(images)


def image_by_image(model, images, shift):
    modes = {name: part.training for name, part in model.named_modules()}
    model.eval()
    hits = []
    with torch.no_grad():
        for image in images:
            pair = torch.stack([image, torch.roll(image, shift, dims=(1, 2))])
            a, b = model(pair).argmax(1).tolist()
            hits.append(a == b)
    for name, part in model.named_modules():
        part.training = modes[name]
    return np.mean(hits)


def by_indices(model, images, shift):
    modes = [part.training for part in model.modules()]
    model.apply(lambda part: setattr(part, "training", False))
    H, W = images.shape[2:]
    rows = (torch.arange(H, device=images.device) - shift[0]) % H
    columns = (torch.arange(W, device=images.device) - shift[1]) % W
    with torch.set_grad_enabled(False):
        before, after = model(images), model(images[:, :, rows][..., columns])
    for part, training in zip(model.modules(), modes, strict=True):
        part.training = training
    same = before.argmax(-1) == after.argmax(-1)
    return float(same.sum()) / same.numel()


EQUIVALENT = {
    "a share of so few images has all its digits in float32": ("same.double",),
}


LEFT_OPEN = {TENSOR_AS_NUMBER: ("return same.float().mean()",)}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "shift == (0, 0)",
    "shift[0] == 0",
    "shift[1] == 0",
    "shift[0] == shift[1]",
    "len(images) == 1",
)
