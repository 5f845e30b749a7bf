"""The driver of ``train_one_epoch``: one epoch, with a record of every step."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from vitedu.checks.observing.case import Case
from vitedu.checks.observing.drivers import call_answer, describe_changes, driver, module_state
from vitedu.checks.observing.observation import SIDE_EFFECTS, Observation, store_outputs
from vitedu.checks.training.evaluation_driver import CALLS, SUM, batches_of, classifier_of

# of every step: whose it is, and the norm of the gradient if it is the optimizer's
STEPS: list[tuple[str, float]] = []


class PlainDescent(torch.optim.Optimizer):
    """Gradient descent with two groups. It records its steps.

    The base class's ``__init__`` is not called, because its hooks import torch's compiler, which
    takes seconds.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float):
        first, *others = parameters
        self.param_groups = [
            {"params": some, "lr": lr, "weight_decay": 0.0} for some in ([first], others)
        ]
        self.defaults = {"lr": lr}
        self.state = defaultdict(dict)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Delete the gradients."""
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    def step(self, closure: Callable | None = None):
        """Take one step of gradient descent and record it."""
        loss = closure() if closure else None
        squares = 0.0
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in (p for p in group["params"] if p.grad is not None):
                    squares += float(parameter.grad.double().square().sum())
                    parameter -= group["lr"] * parameter.grad
        STEPS.append(("optimizer", math.sqrt(squares)))
        return loss


class Decay:
    """A scheduler that multiplies the learning rate by ``factor`` and records its steps."""

    def __init__(self, optimizer: PlainDescent, factor: float):
        self.optimizer, self.factor = optimizer, factor

    def step(self, epoch: int | None = None) -> None:
        """Multiply the learning rate of every group."""
        STEPS.append(("scheduler", 0.0))
        for group in self.optimizer.param_groups:
            group["lr"] *= self.factor

    def get_last_lr(self) -> list[float]:
        """Return the current learning rate of every group."""
        return [group["lr"] for group in self.optimizer.param_groups]


@driver
def epoch(answer: Any, case: Case, seen: Observation) -> None:
    """Train the case's classifier for an epoch.

    It writes down the results or, where the options name them, "learning", "mode" and "order".
    With "gradients left" the model comes with gradients.
    """
    STEPS.clear()
    model = classifier_of(case)
    if "gradients left" in case.options:  # by whoever used the model before
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
    before = module_state(model)
    optimizer = PlainDescent(model.parameters(), case.args["optimizer"])
    scheduler = Decay(optimizer, case.args["scheduler"])
    args = {"model": model, "batches": batches_of(case)}
    result = call_answer(answer, case, args | {"optimizer": optimizer, "scheduler": scheduler})
    if case.instances is not None:
        # The exercise does not say in which mode the model is left.
        model.train(bool(case.training))
        seen.facts[SIDE_EFFECTS] = describe_changes(model, before)
    count = len(case.args["batches"])
    if {"learning", "mode", "order"}.isdisjoint(case.options):
        _store_means(seen, case, result)
    if "learning" in case.options:
        norms = [norm for who, norm in STEPS if who == "optimizer"] + [-1.0] * count
        measured = torch.tensor(norms[:count], dtype=torch.float64, device="cpu")
        seen.arrays["gradient norm at each step"] = measured
        state = [value.detach().flatten() for value in nn.Module.state_dict(model).values()]
        seen.arrays["parameters after the epoch"] = torch.cat(state)
        options = [{n: v for n, v in g.items() if n != "params"} for g in optimizer.param_groups]
        seen.facts["the optimizer's groups as the scheduler leaves them"] = str(options)
    if "mode" in case.options:
        modes = sorted({mode for mode, learns in CALLS if learns})
        seen.facts["every part of the model in train mode"] = ", ".join(modes) or "never called"
    if "order" in case.options:
        walk = " ".join(who for who, _ in STEPS) or "neither is stepped"
        seen.facts["for every batch one step of the optimizer, then one of the scheduler"] = walk


def _store_means(seen: Observation, case: Case, result) -> None:
    """Store the returned numbers. One whose graph keeps every batch in memory has its own type."""
    store_outputs(seen, case, result)
    if isinstance(result, (tuple, list)) and len(result) == len(case.outputs):
        for name, value in zip(case.outputs, result, strict=True):
            if seen.types[name] == "number" and getattr(value, "requires_grad", False):
                seen.types[name] = f"number with a graph behind it{SUM}"
