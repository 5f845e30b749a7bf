"""Checker of evaluate: its cases, its known mistakes, and what is said of them."""

import torch

from vitedu import training as reference
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, draw
from vitedu.checks.probing import Case
from vitedu.checks.training.results import (
    ANY_ITERABLE,
    RESULTS_BANK,
    Tally,
    classifier_state,
    draw_batches,
    faulty_price,
    graph_of,
)


def evaluation_cases(g: torch.Generator) -> list[Case]:
    """Draw classifiers with running statistics, in all modes."""

    def case(words, sizes, keep, training=False, other_mode=(), once=False, **rest):
        dtype = rest.pop("dtype", torch.float32)
        state = classifier_state(g, C * H * W, hidden, K, norm=True, dtype=dtype)
        batches = draw_batches(g, state, sizes, (C, H, W))
        extra = {"keep": keep, "training": training, "other_mode": other_mode, "once": once}
        return Case(
            f"{words} (batches of {', '.join(map(str, sizes))})",
            {"model": None, "batches": batches}, driver="evaluation", state=state, extra=extra,
            number=True, outputs=("mean_loss", "accuracy"), rtol=1e-4, atol=1e-5, **rest,
        )  # fmt: skip

    C, H, W = distinct(g, 3, 1, 4)
    K, hidden = distinct(g, 2, 3, 5)
    five, four, three = (size + draw(g, 0, 1) for size in (6, 4, 2))
    results, modes = ("results",), ("modes",)
    return [
        case("a model in eval mode", [five, four, three], results),
        case("batches that can be read once", [four, five, 1], results, once=True, part="any iterable"),
        case("a model in train mode", [four, three, five], ("eval",), training=True, part="eval mode"),
        case("a model in train mode", [four, three], modes, training=True, part="modes restored"),
        case("a model in eval mode", [four, three], modes, part="modes restored"),
        case(
            "a model in train mode with a part in eval mode", [four, three], modes, training=True,
            other_mode=("body.2",), part="modes restored",
        ),
        case(
            "a model in eval mode with a part in train mode", [four, three], modes,
            other_mode=("body", "body.1"), part="modes restored",
        ),
        case("gradients", [four, three], ("gradients",), part="no gradients"),
        case("one batch, float64", [four], results, dtype=torch.float64, part="other sizes"),
        case("one image", [1], results, part="other sizes"),
    ]  # fmt: skip


def faulty_evaluation(mistakes: frozenset[str]):
    """Measure with the named mistakes made."""
    price = faulty_price(mistakes)

    def evaluate(model, batches):
        modes = {module: module.training for module in model.modules()}
        if "no_eval" not in mistakes:
            model.eval()
        if "train_mode" in mistakes:
            model.train()
        if "needs_len" in mistakes:
            len(batches)
        tally = Tally(mistakes)
        if "read_twice" in mistakes:
            for _ in batches:
                pass
        with torch.set_grad_enabled(bool(mistakes & {"graph_built", "graph_kept"})):
            for images, labels in batches:
                if tally.drops(labels):
                    break
                logits = model(images)
                tally.add(logits, labels, price(logits, labels))
                if "one_batch_only" in mistakes:
                    break
        if "gradients_left_off" in mistakes:
            torch.set_grad_enabled(False)
        if "left_in_eval" in mistakes:
            return tally.results()
        if "always_train" in mistakes:
            model.train()
        elif "root_mode_only" in mistakes:
            model.train(modes[model])
        elif mistakes & {"children_only", "children_forced"}:
            model.training = modes[model]
            for child in model.children():
                child.training = modes[child]
                if "children_forced" in mistakes:
                    child.train(modes[child])
        else:
            for module, training in modes.items():
                module.training = training
        return tally.results()

    return evaluate


EVALUATION_BANK = (
    *RESULTS_BANK,
    Misconception(
        "no_eval", "the model keeps the mode it came in", "eval mode", "Dropout would hide parts of the model, and running statistics would move.",
        "Call model.eval() first.",
    ),
    Misconception(
        "train_mode", "the model is measured in train mode", "eval mode", "Dropout would hide parts of the model, and running statistics would move.",
        "Call model.eval(), not model.train().",
    ),
    Misconception(
        "left_in_eval", "the model stays in eval mode", "every part in the mode it was in before", "The next epoch would train without dropout.",
        "Remember the modes before model.eval(), and put them back.",
    ),
    Misconception(
        "always_train", "the model is in train mode afterwards, whatever it was before", "every part in the mode it was in before",
        "A frozen part, or a model that only predicts, would wake up.", "Remember the modes before model.eval(), and put them back.",
    ),
    Misconception(
        "root_mode_only", "the model's own mode is restored, and forced on all its parts", "every part in the mode it was in before",
        "model.train(mode) sets every part alike; a frozen part would wake up.", "Remember the mode of each of model.modules().",
    ),
    Misconception(
        "children_only", "a part inside a part does not get its mode back", "every part in the mode it was in before",
        "model.children() gives the parts and not what is inside them, but model.eval() reaches all.", "Go through model.modules(), not children().",
    ),
    Misconception(
        "children_forced", "a part inside a part gets the mode of the part around it", "every part in the mode it was in before",
        "model.children() gives the parts and not what is inside them, and train(mode) sets both alike; a frozen part would wake up.",
        "Go through model.modules(), not children(), and set the attribute training.",
    ),
    Misconception(
        "graph_kept", "the mean loss still holds the graph of every batch", "Python numbers, and no graph",
        "A graph keeps the activations of its batch: memory would grow with every batch.", "Work under torch.no_grad(), and add loss.item(), not loss.",
        evidence=graph_of,
    ),
    Misconception(
        "graph_built", "a graph for gradients is built", "no gradients", "It costs memory for every batch and serves nobody.",
        "Work under torch.no_grad().",
    ),
    Misconception(
        "gradients_left_off", "gradients stay switched off afterwards", "gradients possible again", "The next loss.backward() would fail.",
        "Use torch.no_grad() as a context or decorator, which ends by itself.",
    ),
)  # fmt: skip

CHECKER = Checker(
    "evaluate",
    reference.evaluate,
    evaluation_cases,
    faulty_evaluation,
    EVALUATION_BANK,
    proves=ANY_ITERABLE
    | {
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
)
