"""Right answers to the exercises of notebook 04, each by another road."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

# --- weight_decay_groups ------------------------------------------------------------------------

TOKENS = ("cls_token", "pos_embed")


def groups_by_comprehension(model, weight_decay):
    """The spared ones first."""
    named = dict(model.named_parameters())
    spared = {n for n, p in named.items() if p.dim() <= 1 or n.rpartition(".")[2] in TOKENS}
    return [
        {"params": [named[n] for n in named if n in spared], "weight_decay": 0.0},
        {"params": [named[n] for n in named if n not in spared], "weight_decay": weight_decay},
    ]


def groups_by_module_kind(model, weight_decay):
    """Ask every module what it is."""
    decay, rest = [], []
    norms = (nn.LayerNorm, nn.GroupNorm, nn.BatchNorm1d, nn.BatchNorm2d)
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            spared = isinstance(module, norms) or name in TOKENS or name.endswith("bias")
            (rest if spared else decay).append(parameter)
    return (
        dict(weight_decay=weight_decay, params=decay, name="decay"),
        dict(weight_decay=0, params=rest, name="rest"),
    )


def groups_by_generator(model, weight_decay):
    """Yield the groups, each with its own pass."""
    for decays in (True, False):
        yield {
            "weight_decay": weight_decay if decays else 0.0,
            "params": (
                p
                for n, p in model.named_parameters()
                if (len(p.shape) > 1 and not n.endswith(TOKENS)) is decays
            ),
        }


def groups_by_named_pairs(model, weight_decay):
    """Give (name, parameter) pairs, as newer optimizers take them."""
    groups = {weight_decay: [], 0.0: []}
    for name, parameter in model.named_parameters():
        matrix = parameter.squeeze().ndim > 1 and name.split(".")[-1] not in TOKENS
        groups[weight_decay if matrix or parameter.ndim == 4 else 0.0].append((name, parameter))
    return [{"params": pairs, "weight_decay": decay} for decay, pairs in groups.items()]


# --- random_crop_flip ---------------------------------------------------------------------------


def crop_flip_by_loop(images, padding, generator):
    """Pad, slice and mirror one image after the other."""
    H, W = images.shape[2:]
    on_cpu = {"generator": generator, "device": generator.device}
    padded = F.pad(images.double(), [padding] * 4, mode="reflect").to(images.dtype)
    results = []
    for image in padded:
        top, left = torch.randint(2 * padding + 1, (2,), **on_cpu).tolist()
        image = image[:, top : top + H, left : left + W]
        if torch.rand((), **on_cpu).item() < 0.5:
            image = torch.flip(image, dims=[-1])
        results.append(image)
    return torch.stack(results)


def crop_flip_by_unfold(images, padding, generator):
    """Look the windows up among all of them."""
    B, C, H, W = images.shape
    side = 2 * padding + 1
    pick = torch.randint(0, 2 * side * side, (B,), generator=generator).to(images.device)
    padded = F.pad(images.float(), (padding, padding, padding, padding), "reflect")
    if images.dtype == torch.float64:
        padded = F.pad(images, (padding, padding, padding, padding), "reflect")
    windows = padded.unfold(2, H, 1).unfold(3, W, 1)  # (B, C, side, side, H, W)
    chosen = windows[torch.arange(B), :, pick // 2 // side, pick // 2 % side]
    mirrored = (pick % 2).bool()[:, None, None, None]
    return torch.where(mirrored, chosen.flip(3), chosen).to(images.dtype)


def crop_flip_by_gather(images, padding, generator):
    """Mirror first, then gather rows and columns."""
    B, C, H, W = images.shape
    out = images.clone()
    coins = torch.randint(2, (B,), generator=generator).bool().to(images.device)
    out[coins] = out[coins].flip(-1)

    def shifted(size):
        start = torch.randint(-padding, padding + 1, (B, 1), generator=generator)
        index = (start + torch.arange(size)).abs()
        return torch.minimum(index, 2 * (size - 1) - index).to(images.device)

    rows = shifted(H)[:, None, :, None].expand(B, C, H, W)
    columns = shifted(W)[:, None, None, :].expand(B, C, H, W)
    return out.gather(2, rows).gather(3, columns)


def crop_flip_by_concatenation(images, padding, generator):
    """Build the border out of flipped strips, and roll."""
    p, H, W = padding, images.shape[2], images.shape[3]
    x = images
    if p:
        x = torch.cat([x[:, :, 1 : p + 1].flip(2), x, x[:, :, -p - 1 : -1].flip(2)], dim=2)
        x = torch.cat([x[..., 1 : p + 1].flip(3), x, x[..., -p - 1 : -1].flip(3)], dim=3)
    out = torch.empty_like(images)
    for i in range(len(images)):
        dy = int(torch.randint(0, 2 * p + 1, (1,), generator=generator))
        dx = int(torch.randint(0, 2 * p + 1, (1,), generator=generator))
        window = x[i].roll((-dy, -dx), (1, 2))[:, :H, :W]
        heads = bool(torch.randint(0, 2, (1,), generator=generator))
        out[i] = window.flip(2) if heads else window
    return out


# --- evaluate -----------------------------------------------------------------------------------


def evaluate_with_inference_mode(model, batches):
    """Remember the modes by name."""
    before = {name: part.training for name, part in model.named_modules()}
    model.eval()
    losses, hits = [], []
    with torch.inference_mode():
        for images, labels in batches:
            logits = model(images)
            losses += F.cross_entropy(logits, labels, reduction="none").tolist()
            hits += (logits.argmax(1) == labels).tolist()
    for name, training in before.items():
        model.get_submodule(name).training = training
    return np.mean(losses), np.mean(hits)


def evaluate_with_copied_modes(model, batches):
    """Keep a list of those in train mode; sums as tensors."""
    awake = [part for part in model.modules() if part.training]
    try:
        model.train(False)
        total = torch.zeros(3, dtype=torch.float64)
        with torch.no_grad():
            for images, labels in batches:
                logits = model(images)
                loss = nn.CrossEntropyLoss(reduction="sum")(logits, labels)
                total += torch.tensor([loss, (logits.argmax(1) == labels).sum(), len(labels)])
    finally:
        for part in awake:
            part.training = True
    return total[0] / total[2], total[1] / total[2]


def evaluate_a_copy(model, batches):
    """Measure a frozen copy and leave the model alone."""
    from copy import deepcopy

    twin = deepcopy(model).eval().requires_grad_(False)
    loss = right = count = 0
    for images, labels in batches:
        logits = twin(images)
        log_probs = logits - torch.logsumexp(logits, dim=1, keepdim=True)
        loss -= log_probs.gather(1, labels.unsqueeze(1)).sum()
        right += torch.sum(torch.argmax(logits, dim=1) == labels)
        count += images.size(0)
    return (loss / count).numpy(), right / count


def evaluate_all_at_once(model, batches):
    """Join the logits of all batches."""
    modes = [part.training for part in model.modules()]
    model.apply(lambda part: setattr(part, "training", False))
    with torch.set_grad_enabled(False):
        pairs = [(model(images), labels) for images, labels in batches]
    logits, labels = map(torch.cat, zip(*pairs, strict=True))
    for part, training in zip(model.modules(), modes, strict=True):
        part.training = training
    return float(F.cross_entropy(logits, labels)), float(
        (logits.argmax(1) == labels).float().mean()
    )


ALTERNATIVES = {
    "weight_decay_groups": [
        groups_by_comprehension,
        groups_by_module_kind,
        groups_by_generator,
        groups_by_named_pairs,
    ],
    "random_crop_flip": [
        crop_flip_by_loop,
        crop_flip_by_unfold,
        crop_flip_by_gather,
        crop_flip_by_concatenation,
    ],
    "evaluate": [
        evaluate_with_inference_mode,
        evaluate_with_copied_modes,
        evaluate_a_copy,
        evaluate_all_at_once,
    ],
}
