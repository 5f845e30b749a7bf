"""Right answers to 4.3 evaluate, and what becomes of its mutants."""

from copy import deepcopy

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from proof.reasons import AS_MANY_LABELS, RESULTS_SURVIVORS, TENSOR_AS_NUMBER


def with_inference_mode(model, batches):
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


def with_copied_modes(model, batches):
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


def by_a_copy(model, batches):
    twin = deepcopy(model).eval().requires_grad_(False)
    loss = right = count = 0
    for images, labels in batches:
        logits = twin(images)
        log_probs = logits - torch.logsumexp(logits, dim=1, keepdim=True)
        loss -= log_probs.gather(1, labels.unsqueeze(1)).sum()
        right += torch.sum(torch.argmax(logits, dim=1) == labels)
        count += images.size(0)
    return (loss / count).numpy(), right / count


def all_at_once(model, batches):
    modes = [part.training for part in model.modules()]
    model.apply(lambda part: setattr(part, "training", False))
    with torch.set_grad_enabled(False):
        pairs = [(model(images), labels) for images, labels in batches]
    logits, labels = map(torch.cat, zip(*pairs, strict=True))
    for part, training in zip(model.modules(), modes, strict=True):
        part.training = training
    hits = (logits.argmax(1) == labels).float()
    return float(F.cross_entropy(logits, labels)), float(hits.mean())


EQUIVALENT = {
    **RESULTS_SURVIVORS,
    AS_MANY_LABELS: ("len(images)",),
}


LEFT_OPEN = {
    TENSOR_AS_NUMBER: (
        "total_loss += cross_entropy(logits, labels) * len(labels)",
        "correct += (logits.argmax(dim=-1) == labels).sum()",
    ),
}


# conditions on the arguments: a mutant that is wrong only under one of them must fail
SPECIAL = (
    "model.training",
    "not model.training",
    "isinstance(batches, list) and len(batches) == 1",
)
