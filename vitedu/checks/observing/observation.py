"""An observation: what an answer did on one case, as arrays and facts in words.

Role: ``Observation`` and what writes results into it. Nothing is judged here.
"""

import contextlib
import numbers
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from vitedu.checks.observing.case import Case
from vitedu.checks.observing.errors import RaisedError
from vitedu.checks.observing.limits import capture_output

MAX_VALUES = 10**7  # a result with more values is not stored; no right answer has so many


@dataclass
class Observation:
    """What an answer did on one case. Names are those of the case's outputs and arguments."""

    arrays: dict[str, torch.Tensor] = field(default_factory=dict)  # outputs, compared by value
    draws: dict[str, torch.Tensor] = field(default_factory=dict)  # random outputs
    gradients: dict[str, torch.Tensor] = field(default_factory=dict)  # by argument or parameter
    types: dict[str, str] = field(default_factory=dict)  # of outputs, as a student names them
    devices: dict[str, str] = field(default_factory=dict)  # of outputs that are tensors
    facts: dict[str, str] = field(default_factory=dict)  # what should hold -> what was observed
    parameters: dict[str, tuple[str, ...]] = field(default_factory=dict)  # missing ... -> names
    modified: tuple[str, ...] = ()  # arguments that the call changed
    detached: bool = False  # an output carries no gradient
    gradient_error: str = ""  # the error that ended the backward pass
    seconds: float = 0.0  # the time limit, if it was reached
    is_read: bool = False  # the reader has added its facts; see compare.reader
    # (returned tensor, its values at that time), used by the driver ``second_call`` only
    snapshots: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
    error: RaisedError | None = None
    operations: frozenset[str] = frozenset()  # names of the torch operations that ran
    printed: str = ""  # the beginning of what it printed
    undecided: bool = False  # the call could not be made with meta tensors

    @property
    def error_kind(self) -> str:
        """The class name of the error, or ""."""
        return self.error.kind if self.error else ""

    @property
    def is_open(self) -> bool:
        """Whether the student's code says that it is still to be written."""
        is_by_hand = self.error is not None and self.error.raised_by_student
        return is_by_hand and self.error_kind == "NotImplementedError"

    def tensors(self) -> list[torch.Tensor]:
        """Return all arrays, draws and gradients."""
        return [*self.arrays.values(), *self.draws.values(), *self.gradients.values()]

    def behaviour(self) -> tuple[dict, ...]:
        """Return all that is judged exactly, but for what is left: types, facts, parameters."""
        facts = {name: text for name, text in self.facts.items() if name != SIDE_EFFECTS}
        return self.types, facts, self.parameters


CONSTRUCTION = "the class can be constructed"
FRESHNESS = "other values give another result"
STABILITY = "earlier results stay as they were"
SIDE_EFFECTS = "everything is left as it was"
Observations = dict[str, Observation]  # by name of the case


def store_outputs(seen: Observation, case: Case, result: Any) -> None:
    """Store what a call returned under the case's output names."""
    results = [result] if len(case.outputs) == 1 else result
    if not isinstance(results, (tuple, list)) or len(results) != len(case.outputs):
        seen.types["result"] = type_name(result)
        return
    for name, value in zip(case.outputs, results, strict=True):
        store_output(seen, name, value, case.number)


def store_output(
    seen: Observation, name: str, value: Any, number: bool = False, is_random: bool = False
) -> None:
    """Store one value: its type, and its numbers if it is a tensor on the CPU.

    Args:
        seen: the observation to write to.
        name: of the output.
        value: what was returned.
        number: accept Python, NumPy and torch numbers alike, as float64.
        is_random: store the numbers as random (``draws``) instead of as values (``arrays``).
    """
    is_tensor = type(value) in (torch.Tensor, nn.Parameter)
    is_number = is_tensor or isinstance(value, (numbers.Number, np.generic, np.ndarray))
    if number and is_number and not isinstance(value, (complex, np.complexfloating)):
        if (value.numel() if is_tensor else getattr(value, "size", 1)) == 1:
            flat = value.detach().reshape(()) if is_tensor else np.asarray(value).reshape(())
            seen.types[name] = "number"
            seen.arrays[name] = torch.tensor(float(flat), dtype=torch.float64, device="cpu")
            return
    kind = seen.types[name] = type_name(value)
    if kind == "tensor":
        seen.devices[name] = value.device.type
        if value.device.type == "cpu":
            arrays = seen.draws if is_random else seen.arrays
            arrays[name] = value.detach().resolve_conj().resolve_neg().clone()
            seen.snapshots.append((value, arrays[name]))
    elif not is_random:  # the judge may take its numbers for those of a tensor
        with contextlib.suppress(Exception):  # whatever is no table of numbers
            cast = stack(float(value) if isinstance(value, str) else value)
            if type_name(cast) == "tensor" and cast.device.type == "cpu":
                seen.arrays[name] = cast.detach().resolve_conj().resolve_neg().clone()


def stack(value: Any) -> torch.Tensor:
    """Return a tensor, a list of equal ones, or a table of numbers as one tensor."""
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, (tuple, list)) and any(isinstance(x, torch.Tensor) for x in value):
        return torch.stack([stack(x) for x in value])
    return torch.from_numpy(np.array(value))


def type_name(value: Any) -> str:
    """Name the type of a value in a student's words; "tensor" means an ordinary dense tensor."""
    if value is None:
        return "None"
    if isinstance(value, np.ndarray):
        return "NumPy array"
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__} of {len(value)}"
    if type(value) in (torch.Tensor, nn.Parameter):
        if value.is_nested or value.is_quantized or value.layout != torch.strided:
            return "nested, sparse or quantized tensor"
        if value.numel() > MAX_VALUES:  # an expanded tensor can be larger than the memory
            return f"tensor of shape {tuple(value.shape)}"
        return "tensor"
    return type(value).__name__


def store_gradients(
    seen: Observation, case: Case, run: Callable, leaves: dict[str, torch.Tensor]
) -> None:
    """Store the gradients of a fixed weighted sum of the outputs with respect to the leaves."""
    with capture_output():  # what the call prints was stored the first time
        result = run()
    torch.set_grad_enabled(True)
    if isinstance(result, (tuple, list)) and len(case.outputs) == 1:
        with contextlib.suppress(Exception):  # the items of a batch in place of one tensor
            result = stack(result)
    results = result if isinstance(result, (tuple, list)) else [result]
    outputs = [x for x in results if isinstance(x, torch.Tensor)][: case.through]
    attached = [x for x in outputs if x.requires_grad]
    # a Python number counts as detached
    seen.detached = len(attached) < max(1, sum(x.is_floating_point() for x in outputs))
    if not attached:
        return
    total = sum(((x * fixed_weights(x)).sum() for x in attached), start=attached[0].new_zeros(()))
    gradients = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    for (name, leaf), gradient in zip(leaves.items(), gradients, strict=True):
        gradient = torch.zeros_like(leaf) if gradient is None else gradient.detach()
        seen.gradients[name] = gradient


def fixed_weights(x: torch.Tensor) -> torch.Tensor:
    """Return fixed weights of x's shape, all different, so that no gradients cancel."""
    steps = torch.arange(1, x.numel() + 1, dtype=torch.float64, device=x.device)
    return steps.cos().reshape(x.shape).to(x.dtype)
