"""A small classifier that records how it is used, and the driver that has it evaluated."""

from dataclasses import replace
from typing import Any

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
SUM = "; look for a sum of losses without .item()"


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
    """Return the batches as a list or, with the option "once", as a generator."""
    batches = [(images.clone(), labels.clone()) for images, labels in case.args["batches"]]
    return (pair for pair in batches) if "once" in case.options else batches


def classifier_of(case: Case) -> RecordingClassifier:
    """Return the classifier of an earlier call, or a new one, with the case's weights and modes."""
    CALLS.clear()
    instances = [] if case.instances is None else case.instances
    if not instances:
        instances.append(RecordingClassifier(case.state))
    model = instances[0]
    model.load_state_dict(case.state)
    model.train(bool(case.training))
    for name in case.other_mode:
        part = model.get_submodule(name)
        part.training = not part.training
    return model


@driver
def evaluation(answer: Any, case: Case, seen: Observation) -> None:
    """Evaluate the case's classifier, which replaces ``args["model"]``.

    It writes down the results or, where the options name them, "eval", "modes", "gradients" and
    "graph". With "gradients off" the caller has switched gradients off.
    """
    model, was_enabled = classifier_of(case), "gradients off" not in case.options
    for name in case.frozen:
        model.get_parameter(name).requires_grad_(False)
    for value in nn.Module.parameters(model):  # what an earlier loss.backward() left
        value.grad = torch.ones_like(value)
    state, kinds = module_state(model), [(part, type(part)) for part in nn.Module.modules(model)]
    torch.set_grad_enabled(was_enabled)
    args = build_args(case) | {"model": model}
    if "batches" in args:
        args["batches"] = batches_of(case)
    result = call_answer(answer, case, args)
    is_enabled = torch.is_grad_enabled()
    for part, kind in kinds:  # an answer may leave a class that lies about its mode
        object.__setattr__(part, "__class__", kind)
    inputs = {n: value for n, value in case.args.items() if n not in ("model", "batches")}
    seen.modified = find_modified_args(replace(case, args=inputs), args)
    if case.instances is not None:
        seen.facts[SIDE_EFFECTS] = describe_changes(model, state)
    facts = _describe_use(model, state, case.state, result)
    was, now = ("possible" if x else "switched off" for x in (was_enabled, is_enabled))
    facts["gradients"][f"gradients {was} afterwards, as before"] = now
    asked = [facts[aspect] for aspect in facts if aspect in case.options]
    for found in asked:
        seen.facts |= found
    if not asked:
        store_outputs(seen, case, result)


def _describe_use(
    model: nn.Module, state: dict[str, str], weights: dict, result
) -> dict[str, dict[str, str]]:
    """Say what became of a model since ``module_state`` returned ``state``, by aspect."""

    def changes(*kinds: str) -> str:  # of those whose state before ends with one of these words
        return describe_changes(model, {n: x for n, x in state.items() if x.endswith(kinds)})

    def names(changed) -> str:
        return ", ".join(changed) or "as before"

    results = result if isinstance(result, (tuple, list)) else [result]
    has_graph = any(getattr(value, "requires_grad", False) for value in results)
    built = "a graph was built" if any(attached for _, attached in CALLS) else "none"
    values = nn.Module.state_dict(model).items()
    return {
        "eval": {
            "every part of the model in eval mode": ", ".join(sorted({mode for mode, _ in CALLS}))
            or "never called",
            "parameters and running statistics as before": names(
                name for name, x in values if not torch.equal(x, weights.get(name, x))
            ),
        },
        "modes": {
            "every part in the mode it was in before": (
                changes("mode") or ("as before" if CALLS else "never called")
            ),
        },
        "gradients": {
            "the caller's gradients as before": names(
                name
                for name, x in nn.Module.named_parameters(model)
                if x.grad is None or not torch.equal(x.grad, torch.ones_like(x))
            ),
            "every parameter frozen or not, as before": changes("learning", "frozen"),
        },
        "graph": {
            "no graph for gradients": built if CALLS else "never called",
            "numbers without a graph": f"a graph behind a number{SUM}" if has_graph else "none",
        },
    }
