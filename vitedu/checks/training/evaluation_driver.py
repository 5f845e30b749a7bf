"""A small classifier that records how it is used, and the driver that has it evaluated."""

from dataclasses import replace

import torch
from torch import nn

from vitedu.checks.observing.case import Case, build_args
from vitedu.checks.observing.drivers import (
    call_answer,
    describe_changes,
    driver,
    find_modified_args,
    module_state,
)
from vitedu.checks.observing.observation import SIDE_EFFECTS, Observation, store_outputs

# of every call of a classifier: the modes of its parts, and whether its logits carry gradients
CALLS: list[tuple[str, bool]] = []


class Gate(nn.Module):
    """Halve x in eval mode. It depends on the mode as dropout does, but it is not random."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x in train mode, x / 2 in eval mode."""
        return x if self.training else 0.5 * x


class RecordingClassifier(nn.Module):
    """Two linear layers of a state's sizes, with a gate between them. It records its calls."""

    def __init__(self, state: dict[str, torch.Tensor]):
        super().__init__()
        (hidden, inputs), (classes, _) = state["body.0.weight"].shape, state["head.weight"].shape
        bias = "head.bias" in state
        self.body = nn.Sequential(nn.Linear(inputs, hidden, bias), Gate())
        if "body.2.running_mean" in state:
            self.body.append(nn.BatchNorm1d(hidden))
        self.head = nn.Linear(hidden, classes, bias)
        self.load_state_dict(state)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Compute the logits (B, K) of images (B, ...)."""
        logits = self.head(self.body(images.flatten(1)))
        modes = {"train" if part.training else "eval" for part in nn.Module.modules(self)}
        CALLS.append((" and ".join(sorted(modes)), logits.requires_grad))
        return logits


def batches_of(case: Case):
    """Return the batches as a list or, with ``extra["once"]``, as a generator that is read once."""
    batches = [(images.clone(), labels.clone()) for images, labels in case.args["batches"]]
    return (pair for pair in batches) if case.extra.get("once") else batches


def classifier_of(case: Case) -> RecordingClassifier:
    """Return the classifier of an earlier call, or a new one, with the case's weights and modes.

    The parts named in ``extra["other_mode"]`` are in the mode that the model is not in.
    """
    CALLS.clear()
    instances = case.extra.get("instances", [])
    if not instances:
        instances.append(RecordingClassifier(case.state))
    model = instances[0]
    model.load_state_dict(case.state)
    model.train(case.extra["training"])
    for name in case.extra.get("other_mode", ()):
        part = model.get_submodule(name)
        part.training = not part.training
    return model


@driver
def evaluation(answer, case: Case, seen: Observation) -> None:
    """Evaluate the case's classifier, which replaces ``args["model"]``.

    ``extra["aspects"]`` lists what to write down: "results", "eval", "modes", "gradients", "graph".
    """
    model, was_enabled = classifier_of(case), case.extra.get("enabled", True)
    for name in case.extra.get("frozen", ()):
        model.get_parameter(name).requires_grad_(False)
    for value in nn.Module.parameters(model):  # what an earlier loss.backward() left
        value.grad = torch.ones_like(value)
    state = module_state(model)
    torch.set_grad_enabled(was_enabled)
    args = build_args(case) | {"model": model}
    if "batches" in args:
        args["batches"] = batches_of(case)
    result = call_answer(answer, case, args)
    is_enabled = torch.is_grad_enabled()
    inputs = {n: value for n, value in case.args.items() if n not in ("model", "batches")}
    seen.modified = find_modified_args(replace(case, args=inputs), args)
    if "instances" in case.extra:
        seen.facts[SIDE_EFFECTS] = describe_changes(model, state)
    if "results" in case.extra["aspects"]:
        store_outputs(seen, case, result)
    setting = "as before" if is_enabled == was_enabled else f"possible: {is_enabled}"
    facts = {
        "eval": _describe_calls(case, model),
        "modes": {
            "every part in the mode it was in before": _changes(model, state, ("mode",))
            or ("as before" if CALLS else "never called")
        },
        "gradients": {
            "gradients possible or not, as before": setting,
            "gradients that were there before stay": _list_names(
                name
                for name, value in nn.Module.named_parameters(model)
                if value.grad is None or not torch.equal(value.grad, torch.ones_like(value))
            ),
            "every parameter frozen or not, as before": _changes(
                model, state, ("learning", "frozen")
            ),
        },
        "graph": _describe_graphs(result),
    }
    for aspect in case.extra["aspects"]:
        seen.facts |= facts.get(aspect, {})


def _changes(model: nn.Module, state: dict[str, str], kinds: tuple[str, ...]) -> str:
    """Say what changed of those whose state before ends with one of these words, or ""."""
    return describe_changes(model, {n: x for n, x in state.items() if x.endswith(kinds)})


def _list_names(changed) -> str:
    return f"changed: {', '.join(names)}" if (names := [*changed]) else "as before"


def _describe_calls(case: Case, model: nn.Module) -> dict[str, str]:
    """Say in which modes the model was called, and which of its values changed."""
    changed = (
        name
        for name, value in nn.Module.state_dict(model).items()
        if not torch.equal(value, case.state.get(name, value))
    )
    return {
        "every part of the model in eval mode": ", ".join(sorted({mode for mode, _ in CALLS}))
        or "never called",
        "parameters and running statistics as before": _list_names(changed),
    }


def _describe_graphs(result) -> dict[str, str]:
    """Say whether a graph was built, and whether a number has one behind it."""
    results = result if isinstance(result, (tuple, list)) else [result]
    is_attached = any(getattr(value, "requires_grad", False) for value in results)
    built = "a graph was built" if any(attached for _, attached in CALLS) else "none"
    return {
        "no graph for gradients": built if CALLS else "never called",
        "numbers without a graph": "a graph behind a number; look for a sum of losses without "
        ".item()"
        if is_attached
        else "none behind them",
    }
