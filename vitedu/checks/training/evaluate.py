"""evaluate: its cases, its known mistakes with their words, and other right answers."""

from copy import deepcopy

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from vitedu.checks.checker import Checker
from vitedu.checks.families import AS_MANY_LABELS, TENSOR_AS_NUMBER
from vitedu.checks.inputs import distinct, draw
from vitedu.checks.mistakes import Mistake
from vitedu.checks.probing import Case
from vitedu.checks.training.results import (
    ANY_ITERABLE,
    RESULTS_BANK,
    SURVIVORS,
    classifier_state,
    draw_batches,
    graph_of,
)


def cases(g: torch.Generator) -> list[Case]:
    """Draw classifiers with running statistics, in all modes."""

    def case(words, sizes, keep, part="values", training=False, dtype=torch.float32, **extra):
        state = classifier_state(g, C * H * W, hidden, K, norm=True, dtype=dtype)
        batches = draw_batches(g, state, sizes, (C, H, W))
        return Case(
            f"{words} (batches of {', '.join(map(str, sizes))})", {"model": None, "batches": batches}, part,
            driver="evaluation", state=state, extra={"keep": (keep,), "training": training} | extra,
            number=True, outputs=("mean_loss", "accuracy"), rtol=1e-4, atol=1e-5,
        )  # fmt: skip

    C, H, W = distinct(g, 3, 1, 4)
    K, hidden = distinct(g, 2, 3, 5)
    five, four, three = (size + draw(g, 0, 1) for size in (6, 4, 2))
    train, two = "a model in train mode", [four, three]
    part_awake = "a model in eval mode with a part in train mode"
    return [
        case("a model in eval mode", [five, four, three], "results"),
        case("batches that can be read once", [four, five, 1], "results", "any iterable", once=True),
        case(train, [four, three, five], "eval", "eval mode", training=True),
        case(part_awake, [four, five], "eval", "eval mode", other_mode=("body.1",)),
        case(train, two, "modes", "modes restored", training=True),
        case("a model in eval mode", two, "modes", "modes restored"),
        case(f"{train} with a part in eval mode", two, "modes", "modes restored", training=True, other_mode=("body.2",)),
        case(part_awake, two, "modes", "modes restored", other_mode=("body", "body.1")),
        case("gradients", two, "gradients", "no gradients", frozen=("body.0.weight",)),
        case("gradients that were switched off before", two, "gradients", "no gradients", enabled=False),
        case("one batch, float64", [four], "results", "other sizes", dtype=torch.float64),
        case("one image", [1], "results", "other sizes"),
    ]  # fmt: skip


PARTS = {"modes.items()": "[(part, modes[part]) for part in (model, *model.children())]"}
GRAPH = {"@torch.no_grad()": "@torch.enable_grad()"}

MISTAKES = (
    *RESULTS_BANK,
    Mistake("no_eval", "the model keeps the mode it came in", "eval mode",
            "Dropout would hide parts of the model, and running statistics would move.",
            "Call model.eval() first.", {"model.eval()": "pass"}),
    Mistake("train_mode", "the model is measured in train mode", "eval mode",
            "Dropout would hide parts of the model, and running statistics would move.",
            "Call model.eval(), not model.train().", {"model.eval()": "model.train()"}),
    Mistake("left_in_eval", "the model stays in eval mode", "every part in the mode it was in before",
            "The next epoch would train without dropout.",
            "Remember the modes before model.eval(), and put them back.", {"module.training = training": "pass"}),
    Mistake("always_train", "the model is in train mode afterwards, whatever it was before",
            "every part in the mode it was in before",
            "A frozen part, or a model that only predicts, would wake up.",
            "Remember the modes before model.eval(), and put them back.",
            {"module.training = training": "module.training = True"}),
    Mistake("root_mode_only", "the model's own mode is restored, and forced on all its parts",
            "every part in the mode it was in before",
            "model.train(mode) sets every part alike; a frozen part would wake up.",
            "Remember the mode of each of model.modules().",
            {"module.training = training": "module.train(modes[model])"}),
    Mistake("children_only", "a part inside a part does not get its mode back",
            "every part in the mode it was in before",
            "model.children() gives the parts and not what is inside them, but model.eval() reaches all.",
            "Go through model.modules(), not children().", PARTS),
    Mistake("children_forced", "a part inside a part gets the mode of the part around it",
            "every part in the mode it was in before",
            "model.children() gives the parts and not what is inside them, and train(mode) sets both alike; a frozen part would wake up.",
            "Go through model.modules(), not children(), and set the attribute training.",
            PARTS | {"module.training = training": "module.train(training)"}),
    Mistake("graph_kept", "the mean loss still holds the graph of every batch", "Python numbers, and no graph",
            "A graph keeps the activations of its batch: memory would grow with every batch.",
            "Work under torch.no_grad(), and add loss.item(), not loss.", GRAPH | {".item() * len": " * len"},
            evidence=graph_of),
    Mistake("graph_built", "a graph for gradients is built", "no gradients",
            "It costs memory for every batch and serves nobody.", "Work under torch.no_grad().", GRAPH),
    Mistake("gradients_cleared", "gradients that the caller holds are wiped or changed", "gradients as they were before",
            "An accumulated gradient would be lost if someone measures between two steps.", "Leave out zero_grad() and backward().",
            {"model.eval()": "model.eval()\nmodel.zero_grad()"}),
    Mistake("gradients_left_off", "gradients stay switched off afterwards", "gradients possible again",
            "The next loss.backward() would fail.",
            "Use torch.no_grad() as a context or decorator, which ends by itself.",
            {"@torch.no_grad()\ndef": "def", "model.eval()": "model.eval()\ntorch.set_grad_enabled(False)"}),
)  # fmt: skip


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
    return float(F.cross_entropy(logits, labels)), float(
        (logits.argmax(1) == labels).float().mean()
    )


CHECKER = Checker(
    "evaluate",
    cases=cases,
    bank=MISTAKES,
    proves={
        **ANY_ITERABLE,
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
    right=(with_inference_mode, with_copied_modes, by_a_copy, all_at_once),
    equivalent={
        **SURVIVORS,
        AS_MANY_LABELS: (
            "total_loss += cross_entropy(logits, labels).item() * len(images)",
            "seen += len(images)",
        ),
    },
    left_open={
        TENSOR_AS_NUMBER: (
            "total_loss += cross_entropy(logits, labels) * len(labels)",
            "correct += (logits.argmax(dim=-1) == labels).sum()",
        ),
    },
)
