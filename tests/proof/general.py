"""The mistakes that every exercise of a kind can show, made by wrapping a reference.

Role: ``general_answers`` makes those that the cases of an exercise can show. The checks know their
words, and recognise them from facts (``vitedu.checks.explaining.diagnose``).
"""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves, tree_map_only

from vitedu.checks.observing.case import Case, is_float, tensors_in
from vitedu.checks.observing.observe import observe
from vitedu.checks.writing.checker import Checker


def general_answers(checker: Checker) -> dict[str, Any]:
    """Make the general mistakes that the cases of an exercise can show: id -> wrong answer."""
    cases = checker.draw(0)
    refused = [case for case in cases if case.raises]
    shown = _shown_in_calls(checker.reference, cases) | _shown_later(cases)
    shown |= {"no_error", "wrong_error"} if refused else set()
    shown |= {"error_without_numbers"} if any(case.mentions for case in refused) else set()
    own = {mistake.id for mistake in checker.bank}
    return {
        name: make(checker.reference)
        for name, make in _MAKERS.items()
        if name in shown and name not in own
    }


def _shown_in_calls(reference: Any, cases: list[Case]) -> set[str]:
    """Name the general mistakes that show in a call by itself."""
    main = [case for case in cases if case.part == "values"]
    usual = [case for case in cases if not case.raises and case.driver in ("call", "module")]
    results = [observe(reference, case).arrays for case in usual if not case.on_accelerator]
    values = [x for c in cases if not c.number for x in c.args.values()]  # a number has no dtype
    tensors = [tensor for value in values for _, tensor in tensors_in("", value)]
    inputs = [x for c in main[:1] if c.driver in ("call", "module") for x in c.args.values()]
    is_shown = {
        "squeezed": any(1 in x.shape for arrays in results for x in arrays.values()),
        "modifies_input": any(map(is_float, inputs)),
        "detached": any(case.gradients for case in main),
        "single_precision": any(x.dtype == torch.float64 for x in tensors),
        "own_device": any(case.on_accelerator for case in cases),
    }
    return {name for name, shows in is_shown.items() if shows}


def _shown_later(cases: list[Case]) -> set[str]:
    """Name those that show only in a second call, or in what the call leaves behind."""
    again = [case for case in cases if case.part == "again"]
    drivers = {case.repeats for case in again}
    shown = {"seeded"} if again else set()
    if drivers & {"call", "module", "layer_from_layer"}:
        shown |= {"gradients_left_off", "dtype_left"}
    if drivers & {"call", "module"} and any(is_float(x) for x in again[0].args.values()):
        shown |= {"cached_by_shape"} | ({"buffer_overwritten"} if not again[0].number else set())
    return shown


def wrap_call(reference: Any, run: Callable) -> Any:
    """Return the reference, a function or a module class, with ``run(call, ...)`` for its call."""
    if isinstance(reference, type) and issubclass(reference, nn.Module):

        class Changed(reference):
            def forward(self, *args, **kwargs):
                return run(super().forward, *args, **kwargs)

        return Changed
    return partial(run, reference)


def change_results(reference: Any, change: Callable) -> Any:
    """Return the reference, a function or a module class, with every tensor of a result changed."""
    return wrap_call(
        reference,
        lambda call, *args, **named: tree_map_only(torch.Tensor, change, call(*args, **named)),
    )


def to_float32(x: torch.Tensor) -> torch.Tensor:
    """Round what is a float."""
    return x.float() if x.is_floating_point() else x


def cache_results(reference: Any) -> Any:
    """Return the reference with a cache whose key is shapes, dtypes, devices and gradient flags."""
    cache: dict = {}

    def run(call, *args, **kwargs):
        kinds = [
            (tuple(x.shape), x.dtype, x.device, x.requires_grad)
            if isinstance(x, torch.Tensor)
            else repr(x)
            for x in tree_leaves((args, kwargs))
        ]
        key = (torch.is_grad_enabled(), *kinds)
        if key not in cache:
            cache[key] = call(*args, **kwargs)
        return cache[key]

    return wrap_call(reference, run)


def reuse_buffers(reference: Any) -> Any:
    """Return the reference with all CPU results of one shape and dtype sharing one buffer."""
    buffers: dict = {}

    def run(call, *args, **kwargs):
        numbers = itertools.count()

        def reuse(x: torch.Tensor) -> torch.Tensor:
            key = next(numbers), tuple(x.shape), x.dtype
            if x.device.type != "cpu":
                return x
            buffer = buffers.setdefault(key, torch.empty_like(x))
            buffer.data.copy_(x.detach())
            x = x + (buffer - x).detach() if x.requires_grad else buffer
            x.data = buffer.data
            return x

        return tree_map_only(torch.Tensor, reuse, call(*args, **kwargs))

    return wrap_call(reference, run)


def change_settings(reference: Any, change: Callable) -> Any:
    """Return the reference with ``change`` called after each call, to change a setting."""

    def run(call, *args, **kwargs):
        result = call(*args, **kwargs)
        change()
        return result

    return wrap_call(reference, run)


def _change_error(reference, kind: type[Exception] | None = None, message: str = ""):
    """Return the reference with another error, or with a result, in place of its ValueError."""

    def run(call, *args, **kwargs):
        try:
            return call(*args, **kwargs)
        except ValueError:
            if kind:
                raise kind(message) from None
            return torch.zeros(1)

    return wrap_call(reference, run)


def _modify_in_place(x):
    """Pass a copy of a tensor on and edit the original in place."""
    copy = x.clone()
    if x.is_floating_point() and not (x.is_leaf and x.requires_grad):
        x.mul_(1.5).add_(0.25)
    return copy


def _change_inputs(reference, change: Callable) -> Any:
    """Return the reference with every input tensor changed."""
    return wrap_call(
        reference,
        lambda call, *args, **named: call(*tree_map_only(torch.Tensor, change, args), **named),
    )


# id of a family -> what makes it of a reference
_MAKERS: dict[str, Callable[[Any], Any]] = {
    "no_error": _change_error,
    "wrong_error": partial(_change_error, kind=RuntimeError, message="shape is invalid"),
    "error_without_numbers": partial(_change_error, kind=ValueError, message="bad size"),
    "squeezed": partial(change_results, change=torch.squeeze),
    "modifies_input": partial(_change_inputs, change=_modify_in_place),
    "detached": partial(change_results, change=torch.Tensor.detach),
    "single_precision": partial(change_results, change=to_float32),
    "own_device": partial(change_results, change=torch.Tensor.cpu),
    "cached_by_shape": cache_results,
    "buffer_overwritten": reuse_buffers,
    "gradients_left_off": partial(change_settings, change=partial(torch.set_grad_enabled, False)),
    "dtype_left": partial(change_settings, change=partial(torch.set_default_dtype, torch.float64)),
    "seeded": partial(change_settings, change=partial(torch.manual_seed, 0)),
}
