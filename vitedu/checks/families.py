"""Mistakes that every exercise of a kind can show.

Role: ``general_mistakes`` lists those that the cases of an exercise can show, and makes them by
wrapping the reference. Their words are families of ``families.toml``.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves, tree_map

from vitedu.checks.case import Case, tensors_in
from vitedu.checks.mistake_files import family
from vitedu.checks.mistakes import Mistake
from vitedu.checks.observe import observe

# kernels that compute attention in one call
FUSED_NAMES = frozenset(
    """
    scaled_dot_product_attention _scaled_dot_product_attention_math
    aten.scaled_dot_product_attention aten._scaled_dot_product_attention_math
    aten._scaled_dot_product_attention_math_for_mps aten._scaled_dot_product_flash_attention
    aten._scaled_dot_product_flash_attention_for_cpu aten._scaled_dot_product_efficient_attention
    aten._scaled_dot_product_cudnn_attention aten._scaled_dot_product_fused_attention_overrideable
    aten._flash_attention_forward aten._efficient_attention_forward aten._cudnn_attention_forward
    multi_head_attention_forward aten._native_multi_head_attention
    aten._transformer_encoder_layer_fwd
    """.split()
)


def general_mistakes(reference: Any, cases: list[Case]) -> list[Mistake]:
    """List the general mistakes that these cases can show, each made of the reference.

    Raises:
        WordsError: their words, in ``families.toml``, are missing or wrong.
    """
    main = [case for case in cases if case.part == "values"]
    errors = [case for case in cases if case.raises]
    usual = [case for case in cases if not case.raises and case.driver in ("call", "module")]
    results = [observe(reference, case).arrays for case in usual if not case.on_accelerator]
    # cases that return a plain number do not count: it has no dtype
    values = [value for case in cases if not case.number for value in case.args.values()]
    is_called = bool(main) and main[0].driver in ("call", "module")
    builds: dict[str, Callable[[], Any]] = {}
    if errors:
        builds["no_error"] = lambda: _change_error(reference)
        builds["wrong_error"] = lambda: _change_error(reference, RuntimeError, "shape is invalid")
    if any(case.mentions for case in errors):
        builds["error_without_numbers"] = lambda: _change_error(reference, ValueError, "bad size")
    if any(1 in x.shape for arrays in results for x in arrays.values()):
        builds["squeezed"] = lambda: wrap_tensors(reference, after=torch.squeeze)
    if is_called and any(_is_float(value) for case in main for value in case.args.values()):
        builds["modifies_input"] = lambda: wrap_tensors(reference, before=_modify_in_place)
    if any(case.gradients for case in main):
        builds["detached"] = lambda: wrap_tensors(reference, after=torch.Tensor.detach)
    if any(_is_float(value, torch.float64) for value in values):
        builds["single_precision"] = lambda: wrap_tensors(reference, after=_to_float32)
    if any(case.on_accelerator for case in cases):
        builds["own_device"] = lambda: wrap_tensors(reference, after=torch.Tensor.cpu)
    builds |= _second_call_mistakes(reference, [case for case in cases if case.part == "again"])
    return [replace(family(name), build=build) for name, build in builds.items()]


def _second_call_mistakes(reference: Any, cases: list[Case]) -> dict[str, Callable[[], Any]]:
    """List the mistakes that show only in a second call, or in what the call leaves behind."""
    kinds = {case.extra["driver"] for case in cases}
    builds: dict[str, Callable[[], Any]] = {}
    if kinds & {"call", "module"} and any(_is_float(x) for x in cases[0].args.values()):
        builds["cached_by_shape"] = lambda: cache_results(reference)
        if not cases[0].number:
            builds["buffer_overwritten"] = lambda: reuse_buffers(reference)
    if kinds & {"call", "module", "layer_from_layer"}:
        gradients_off = partial(torch.set_grad_enabled, False)
        builds["gradients_left_off"] = lambda: change_settings(reference, gradients_off)
        double = partial(torch.set_default_dtype, torch.float64)
        builds["dtype_left"] = lambda: change_settings(reference, double)
    if cases:
        builds["seeded"] = lambda: change_settings(reference, partial(torch.manual_seed, 0))
    return builds


def _wrap_call(reference: Any, change: Callable) -> Any:
    """Return the reference, a function or a module class, with its call wrapped by ``change``."""
    if isinstance(reference, type) and issubclass(reference, nn.Module):

        class Changed(reference):
            def forward(self, *args, **kwargs):
                return change(super().forward)(*args, **kwargs)

        return Changed
    return change(reference)


def cache_results(reference: Any) -> Any:
    """Return the reference with a cache whose key is shapes, dtypes, devices and gradient flags."""
    cache: dict = {}

    def change(call):
        def run(*args, **kwargs):
            key = (
                torch.is_grad_enabled(),
                *(
                    (tuple(x.shape), x.dtype, x.device, x.requires_grad)
                    if isinstance(x, torch.Tensor)
                    else repr(x)
                    for x in tree_leaves((args, kwargs))
                ),
            )
            if key not in cache:
                cache[key] = call(*args, **kwargs)
            return cache[key]

        return run

    return _wrap_call(reference, change)


def reuse_buffers(reference: Any) -> Any:
    """Return the reference with all CPU results of one shape and dtype sharing one buffer."""
    buffers: dict = {}

    def change(call):
        def run(*args, **kwargs):
            result = call(*args, **kwargs)
            results = result if isinstance(result, tuple) else (result,)
            out = []
            for i, x in enumerate(results):
                if isinstance(x, torch.Tensor) and x.device.type == "cpu":
                    buffer = buffers.setdefault((i, tuple(x.shape), x.dtype), torch.empty_like(x))
                    buffer.data.copy_(x.detach())
                    x = x + (buffer - x).detach() if x.requires_grad else buffer
                    x.data = buffer.data
                out.append(x)
            return tuple(out) if isinstance(result, tuple) else out[0]

        return run

    return _wrap_call(reference, change)


def change_settings(reference: Any, change: Callable) -> Any:
    """Return the reference with ``change`` called after each call, to change a setting."""

    def wrapper(call):
        def run(*args, **kwargs):
            result = call(*args, **kwargs)
            change()
            return result

        return run

    return _wrap_call(reference, wrapper)


def _is_float(value: Any, dtype: torch.dtype | None = None) -> bool:
    return any(
        x.is_floating_point() and (dtype is None or x.dtype == dtype)
        for _, x in tensors_in("", value)
    )


def _change_error(reference, *error):
    """Return the reference with another error, or with a result, in place of its ValueError."""

    def change(call):
        def run(*args, **kwargs):
            try:
                return call(*args, **kwargs)
            except ValueError:
                if error:
                    raise error[0](error[1]) from None
                return torch.zeros(1)

        return run

    return _wrap_call(reference, change)


def _modify_in_place(x):
    """Pass a copy of a tensor on and edit the original in place."""
    copy = x.clone()
    if x.is_floating_point() and not (x.is_leaf and x.requires_grad):
        x.mul_(1.5).add_(0.25)
    return copy


def _to_float32(x):
    return x.float() if x.is_floating_point() else x


def wrap_tensors(reference, after: Callable | None = None, before: Callable | None = None) -> Any:
    """Return the reference, a function or a module class, with its tensors changed.

    ``before`` is applied to every input tensor, ``after`` to every output tensor.
    """

    def change(call):
        def run(*args, **kwargs):
            if before:
                args = tree_map(lambda x: before(x) if isinstance(x, torch.Tensor) else x, args)
            result = call(*args, **kwargs)
            parts = result if isinstance(result, tuple) else (result,)
            if after:
                parts = tuple(after(x) if isinstance(x, torch.Tensor) else x for x in parts)
            return parts if isinstance(result, tuple) else parts[0]

        return run

    return _wrap_call(reference, change)
