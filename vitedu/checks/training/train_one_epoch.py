"""Checker of train_one_epoch: its cases, its known mistakes, and what is said of them."""

import torch
from torch import nn

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
    own_results,
)


def epoch_cases(g: torch.Generator) -> list[Case]:
    """Draw classifiers and batches; each part of the contract shows in a case that shows little else."""

    def case(words, sizes, keep, lr=0.0, factor=1.0, training=True, once=False, **rest):
        dtype = rest.pop("dtype", torch.float32)
        state = classifier_state(g, C * H * W, hidden, K, dtype=dtype)
        scales = rest.pop("scales", (2.0,))
        batches = draw_batches(g, state, sizes, (C, H, W), scales)
        args = {"model": None, "batches": batches, "optimizer": lr, "scheduler": factor}
        extra = {"keep": keep, "training": training, "once": once}
        rest.setdefault("outputs", ("mean_loss", "accuracy"))
        return Case(
            f"{words} (batches of {', '.join(map(str, sizes))})", args, driver="epoch",
            state=state, extra=extra, number=True, rtol=1e-4, atol=1e-5, **rest,
        )  # fmt: skip

    C, H, W = distinct(g, 3, 1, 4)
    K, hidden = distinct(g, 2, 3, 5)
    five, four, three = (size + draw(g, 0, 1) for size in (6, 4, 2))
    results, learning = (
        ("results",),
        {"part": "learning", "scales": (0.1, 3.0, 0.2, 3.0), "lr": 0.5},
    )
    return [
        case("learning rate 0", [five, four, three], results),
        case("batches that can be read once", [four, five, 1], results, once=True, part="any iterable"),
        case("learning rate 0.5", [four, three, five, three], ("learning",), **learning),
        case("learning rate 0.5, float64", [four, five, three], ("learning",), dtype=torch.float64, **learning),
        case("results while it learns", [four, three, five], results, lr=0.5, part="before the update"),
        case("a model that comes in eval mode", [four, three], ("mode",), training=False, part="train mode"),
        case("the order of steps", [four, three, three], ("order",), factor=0.5, part="order"),
        case("one batch", [four], results, part="other sizes"),
    ]  # fmt: skip


def faulty_epoch(mistakes: frozenset[str]):
    """Learn with the named mistakes made."""
    price = faulty_price(mistakes)

    def train_one_epoch(model, batches, optimizer, scheduler):
        if "eval_mode" in mistakes:
            model.eval()
        elif "mode_untouched" in mistakes:
            pass
        elif "root_mode_only" in mistakes:
            model.training = True
        else:
            model.train()
        if "needs_len" in mistakes:
            len(batches)
        tally = Tally(mistakes)
        if "read_twice" in mistakes:
            for _ in batches:
                pass
        for images, labels in batches:
            if tally.drops(labels):
                break
            if "no_zero_grad" not in mistakes:
                optimizer.zero_grad()
            logits = model(images)
            loss = price(logits, labels)
            loss.backward()
            _clip(list(model.parameters()), mistakes)
            if "scheduler_first" in mistakes:
                scheduler.step()
            if "no_step" not in mistakes:
                optimizer.step()
            if not mistakes & {"scheduler_first", "scheduler_once", "no_scheduler"}:
                scheduler.step()
            if "measured_after" in mistakes:
                with torch.no_grad():
                    logits = model(images)
                    loss = price(logits, labels)
            tally.add(logits, labels, loss)
            if "one_batch_only" in mistakes:
                break
        if "scheduler_once" in mistakes:
            scheduler.step()
        return tally.results()

    return train_one_epoch


def _clip(parameters: list, mistakes: frozenset[str]) -> None:
    """Clip gradients, with the named mistakes made."""
    if "not_clipped" in mistakes:
        return
    if "clipped_by_value" in mistakes:
        nn.utils.clip_grad_value_(parameters, 1.0)
        return
    if "clipped_one_by_one" in mistakes:
        for parameter in parameters:
            nn.utils.clip_grad_norm_([parameter], 1.0)
        return
    if "always_norm_one" in mistakes:
        norm = torch.stack([p.grad.norm() for p in parameters]).norm()
        for parameter in parameters:
            parameter.grad /= norm
        return
    nn.utils.clip_grad_norm_(parameters, 5.0 if "another_norm" in mistakes else 1.0)


EPOCH_BANK = (
    *RESULTS_BANK,
    Misconception(
        "graph_kept", "the mean loss still holds the graph of every batch", "Python numbers",
        "A graph keeps the activations of its batch: memory would grow with every batch of the epoch.", "Add loss.item(), not loss.",
        evidence=graph_of,
    ),
    Misconception(
        "no_zero_grad", "gradients pile up from batch to batch", "gradients of this batch alone",
        "backward() adds to .grad; what the batches before left there is still in it.", "Clear the gradients once a batch.",
    ),
    Misconception(
        "not_clipped", "the optimizer steps on unclipped gradients", "a gradient norm of at most 1 at every step",
        "One odd batch can throw the weights far off.", "Clip between backward() and step().",
    ),
    Misconception(
        "clipped_by_value", "each gradient entry is clipped by itself", "the norm of all gradients together clipped to 1",
        "Clipping entries changes the direction of the step.", "Use clip_grad_norm_.",
    ),
    Misconception(
        "clipped_one_by_one", "each parameter's gradient is clipped by itself", "the norm of all gradients together clipped to 1",
        "The proportions between the layers would change.", "Give clip_grad_norm_ all parameters at once.",
    ),
    Misconception(
        "always_norm_one", "small gradients are blown up to norm 1", "gradients below norm 1 left as they are",
        "Close to the minimum the steps must become small.", "Scale only where the norm is above 1.",
    ),
    Misconception(
        "another_norm", "gradients are clipped to another norm", "a gradient norm of at most 1", "The text asks for 1.", "Look at max_norm.",
    ),
    Misconception(
        "no_step", "the optimizer never steps", "one optimizer step a batch", "Nothing is learned.", "Call optimizer.step() after clipping.",
    ),
    Misconception(
        "measured_after", "loss and accuracy are measured after the update", "measured before the update each batch causes",
        "On a batch just learned a model looks better than it is.", "Use the logits that gave the gradient.", evidence=own_results,
    ),
    Misconception(
        "scheduler_first", "the scheduler steps before the optimizer", "optimizer first, scheduler second",
        "The first learning rate of the schedule would be skipped.", "Swap the two lines.",
    ),
    Misconception(
        "scheduler_once", "the scheduler steps once an epoch", "one scheduler step a batch", "The schedule counts batches; it would hardly begin.",
        "Move scheduler.step() into the loop.",
    ),
    Misconception(
        "no_scheduler", "the scheduler never steps", "one scheduler step a batch", "The learning rate would stay where the climb begins.",
        "Call scheduler.step() after optimizer.step().",
    ),
    Misconception(
        "mode_untouched", "the model keeps the mode it came in", "train mode", "After an evaluation it would learn in eval mode, without dropout.",
        "Call model.train() first.",
    ),
    Misconception(
        "eval_mode", "the model learns in eval mode", "train mode", "Dropout would be off, and running statistics would stay still.", "Call model.train(), not model.eval().",
    ),
    Misconception(
        "root_mode_only", "only the model itself is in train mode, its parts are not", "train mode in every part",
        "The attribute training of a module says nothing about its parts.", "Call model.train(), which goes through all of them.",
    ),
)  # fmt: skip

CHECKER = Checker(
    "train_one_epoch",
    reference.train_one_epoch,
    epoch_cases,
    faulty_epoch,
    EPOCH_BANK,
    proves=ANY_ITERABLE
    | {
        "values": "mean loss and accuracy over all images, each counting the same",
        "learning": "every step on fresh gradients, clipped to norm 1",
        "before the update": "measured before the update each batch causes",
        "train mode": "learns in train mode, whatever the mode before",
        "order": "optimizer, then scheduler, once a batch",
        "other sizes": "also for one batch",
    },
)
