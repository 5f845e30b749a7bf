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


class Gate(nn.Module):
    """Halve x in eval mode. It depends on the mode as dropout does, but it is not random."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x in train mode, x / 2 in eval mode."""
        return x if self.training else 0.5 * x


class CallLog(list):
    """A list that a copy of a model shares with the original."""

    def __deepcopy__(self, memo) -> "CallLog":
        return self


class RecordingClassifier(nn.Module):
    """Two linear layers of a state's sizes, with a gate between them. It records how it is used.

    Every call adds (modes of all modules, whether the logits carry gradients) to ``log``. A copy of
    the model writes to the same log.
    """

    def __init__(self, state: dict[str, torch.Tensor]):
        super().__init__()
        (hidden, inputs), (classes, _) = state["body.0.weight"].shape, state["head.weight"].shape
        bias, dtype = "head.bias" in state, state["head.weight"].dtype
        body = [nn.Linear(inputs, hidden, bias, dtype=dtype), Gate()]
        if "body.2.running_mean" in state:
            body += [nn.BatchNorm1d(hidden, dtype=dtype)]
        self.body = nn.Sequential(*body)
        self.head = nn.Linear(hidden, classes, bias, dtype=dtype)

    def use_log(self, log: CallLog) -> None:
        """Use this log from now on."""
        self.__log = log  # a mangled name, so that an answer does not use it by accident

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Compute the logits (B, K) of images (B, ...)."""
        logits = self.head(self.body(images.flatten(1)))
        modes = {"train" if part.training else "eval" for part in nn.Module.modules(self)}
        self.__log.append((" and ".join(sorted(modes)), logits.requires_grad))
        return logits


def batches_of(case: Case):
    """Return the batches as a list or, with ``extra["once"]``, as a generator that is read once."""
    batches = [(images.clone(), labels.clone()) for images, labels in case.args["batches"]]
    return (pair for pair in batches) if case.extra.get("once") else batches


def store_means(seen: Observation, case: Case, result) -> None:
    """Store the returned numbers. A number with a graph gets a type of its own.

    Such a number is wrong because its graph keeps every batch in memory.
    """
    store_outputs(seen, case, result)
    if isinstance(result, (tuple, list)) and len(result) == len(case.outputs):
        for name, value in zip(case.outputs, result, strict=True):
            if seen.types[name] == "number" and getattr(value, "requires_grad", False):
                seen.types[name] = "number with a graph behind it"


def classifier_of(case: Case, log: CallLog) -> RecordingClassifier:
    """Return the classifier of an earlier call, or a new one, with the case's weights and modes.

    The parts named in ``extra["other_mode"]`` are in the mode that the model is not in.
    """
    instances = case.extra.get("instances", [])
    if not instances:
        instances.append(RecordingClassifier(case.state))
    model = instances[0]
    model.load_state_dict(case.state)
    model.use_log(log)
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
    log = CallLog()
    model = classifier_of(case, log)
    for name in case.extra.get("frozen", ()):
        model.get_parameter(name).requires_grad_(False)
    parts = {
        name: (part, type(part), part.training) for name, part in nn.Module.named_modules(model)
    }
    state = module_state(model)
    for value in nn.Module.parameters(model):  # what an earlier loss.backward() left
        value.grad = torch.ones_like(value)
    torch.set_grad_enabled(case.extra.get("enabled", True))
    args = build_args(case) | {"model": model}
    if "batches" in args:
        args["batches"] = batches_of(case)
    result = call_answer(answer, case, args)
    inputs = {n: value for n, value in case.args.items() if n not in ("model", "batches")}
    seen.modified = find_modified_args(replace(case, args=inputs), args)
    enabled = torch.is_grad_enabled()
    if "instances" in case.extra:
        seen.facts[SIDE_EFFECTS] = describe_changes(model, state)
    aspects = case.extra["aspects"]
    if "results" in aspects:
        store_outputs(seen, case, result)
    if "eval" in aspects:
        seen.facts |= _eval_facts(case, model, log)
    if "modes" in aspects:
        seen.facts["every part in the mode it was in before"] = _changed_modes(parts) or (
            "as before" if log else "never called"
        )
    if "gradients" in aspects:
        seen.facts |= _gradient_facts(case, model, enabled)
    if "graph" in aspects:
        seen.facts |= _graph_facts(result, log)


def _eval_facts(case: Case, model: nn.Module, log: CallLog) -> dict[str, str]:
    """Say in which modes the model was called, and which of its values changed."""
    modes = ", ".join(sorted({mode for mode, _ in log})) or "never called"
    changed = [
        name
        for name, value in nn.Module.state_dict(model).items()
        if not torch.equal(value, case.state.get(name, value))
    ]
    return {
        "every part of the model in eval mode": modes,
        "parameters and running statistics as before": (
            f"changed: {', '.join(changed)}" if changed else "unchanged"
        ),
    }


def _changed_modes(parts: dict[str, tuple[nn.Module, type, bool]]) -> str:
    """Name the parts that are in another mode than before, or ""."""
    words = {True: "train", False: "eval"}
    # compared by identity, because an answer may leave an object that equals everything
    changed = [
        f"{name or 'the model itself'} went from {words[before]} to {words[not before]}"
        for name, (part, kind, before) in parts.items()
        if type(part) is not kind or part.training is not before
    ]
    ways = {text[text.index(" went from ") :] for text in changed}
    if len(changed) == len(parts) and len(ways) == 1:
        return f"all parts{ways.pop()}"
    return "; ".join(changed)


def _gradient_facts(case: Case, model: nn.Module, enabled: bool) -> dict[str, str]:
    """Say what became of gradients: the setting, those that were there, and what learns."""
    if case.extra.get("enabled", True):
        setting = {"gradients possible again afterwards": "yes" if enabled else "switched off"}
    else:
        fact = "gradients switched off afterwards, as they were before"
        setting = {fact: "switched on" if enabled else "yes"}
    parameters = list(nn.Module.named_parameters(model))
    lost = [
        name
        for name, value in parameters
        if value.grad is None or not torch.equal(value.grad, torch.ones_like(value))
    ]
    frozen = case.extra.get("frozen", ())
    switched = [
        f"{name} {'learns' if value.requires_grad else 'is frozen'}"
        for name, value in parameters
        if value.requires_grad is (name in frozen)
    ]
    return setting | {
        "gradients that were there before stay": (
            f"changed: {', '.join(lost)}" if lost else "they stay"
        ),
        "every parameter frozen or not, as before": "; ".join(switched) or "yes",
    }


def _graph_facts(result, log: CallLog) -> dict[str, str]:
    """Say whether a graph was built, and whether a number has one behind it."""
    has_graph = any(attached for _, attached in log)
    results = result if isinstance(result, (tuple, list)) else [result]
    is_attached = any(getattr(value, "requires_grad", False) for value in results)
    return {
        "no graph for gradients": (
            ("a graph was built" if has_graph else "none") if log else "never called"
        ),
        "numbers without a graph": (
            "a graph behind a number; look for a sum of losses without .item()"
            if is_attached
            else "none behind them"
        ),
    }
