from copy import deepcopy

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from vitedu.checks import families, inputs
from vitedu.checks.kit import Case, Checker, Mistake, classifier_state, distinct, draw, draw_batches


def cases(g: torch.Generator) -> list[Case]:
    """Draw classifiers with running statistics, in all modes."""

    def case(words, sizes, keep, part="values", dtype=torch.float32, **extra):
        state = classifier_state(g, C * H * W, hidden, K, norm=True, dtype=dtype)
        batches = draw_batches(g, state, sizes, (C, H, W))
        args = {"model": None, "batches": batches}
        name = f"{words} (batches of {', '.join(map(str, sizes))})"
        rest = {"number": True, "outputs": ("mean_loss", "accuracy"), "rtol": 1e-4, "atol": 1e-5}
        extra = {"keep": (keep,), "training": False} | extra
        return Case(name, args, part, driver="evaluation", state=state, extra=extra, **rest)

    C, H, W = distinct(g, 3, 1, 4)
    K, hidden = distinct(g, 2, 3, 5)
    five, four, three = (size + draw(g, 0, 1) for size in (6, 4, 2))
    return [
        case("a model in eval mode", [five, four, three], "results"),
        case(
            "batches that can be read once", [four, five, 1], "results", "any iterable", once=True
        ),
        *inputs.mode_cases(case, [four, three, five], [four, three]),
        case("one batch, float64", [four], "results", "other sizes", dtype=torch.float64),
        case("one image", [1], "results", "other sizes"),
        case("one batch, a model in train mode", [four], "results", "other sizes", training=True),
    ]


MISTAKES = (
    *families.RESULTS_BANK,
    *families.MODES_BANK,
    Mistake(
        "graph_kept",
        "the mean loss still holds the graph of every batch",
        "Python numbers, and no graph",
        "A graph keeps the activations of its batch: memory would grow with every batch.",
        "Work under torch.no_grad(), and add loss.item(), not loss.",
        {"@torch.no_grad()": "@torch.enable_grad()", ".item() * len": " * len"},
        evidence=families.graph_of,
    ),
)


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


CHECKER = Checker(
    "evaluate",
    proves={
        "any iterable": "batches may come from a generator, and be of any size",
        "values": "mean loss and accuracy over all images, each counting the same",
        "eval mode": "measured in eval mode, parameters and running statistics untouched",
        "modes restored": "every part back in its mode, frozen parts too",
        "no gradients": "no graph is built, and gradients work again afterwards",
        "other sizes": "also for one batch, one image, and float64",
    },
    advice={
        "modes restored": (
            "The results are right; what the caller does next meets the model in another mode.",
            "Go through model.modules(), which gives the model, its parts and the parts inside them.",
        ),
    },
    special="model.training; not model.training; isinstance(batches, list) and len(batches) == 1",
    equivalent={
        **families.RESULTS_SURVIVORS,
        families.AS_MANY_LABELS: ("len(images)",),
    },
    left_open={
        families.TENSOR_AS_NUMBER: (
            "total_loss += cross_entropy(logits, labels) * len(labels)",
            "correct += (logits.argmax(dim=-1) == labels).sum()",
        ),
    },
)
