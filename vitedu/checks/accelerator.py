"""A call with tensors on an accelerator, or on a simulated one.

For the grader's worker, so with the standard library and torch only.
"""

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from vitedu.checks.case import Case, build_args, tensors_in
from vitedu.checks.drivers import apply, construct
from vitedu.checks.errors import Clash, clash_of, is_raised_by_hand, text_of
from vitedu.checks.observation import Observation
from vitedu.checks.operations import Kernels


def on_accelerator(answer, case: Case, seen: Observation) -> None:
    """Call the answer with tensors on CUDA, or with meta tensors if there is no GPU.

    An error that has nothing to do with devices leaves the case undecided, for meta tensors have no
    values.
    """
    device = "cuda" if torch.cuda.is_available() else "meta"
    args = build_args(case)
    target = construct(answer, case, seen) if case.driver == "module" else answer
    if target is None:
        seen.undecided = True
        return
    if isinstance(target, nn.Module):
        target = target.to(device)
    for name, value in args.items():
        if isinstance(value, (torch.Tensor, nn.Module)):
            args[name] = value.to(device)
        elif tensors_in(name, value):
            args[name] = [x.to(device) for x in value]
    devices = _Devices()
    try:
        with torch.no_grad(), devices if device == "meta" else contextlib.nullcontext():
            result = apply(target, case, args)
    except Exception as error:
        if clash_of(text_of(error)) is not Clash.NONE:
            raise
        # The sizes are right, so the answer refuses the device; but it may have tested values,
        # which meta tensors do not have.
        if is_raised_by_hand(error) and not devices.was_read:
            raise
        seen.undecided = True
        return
    outputs = result if isinstance(result, (tuple, list)) else [result]
    for name, value in zip(case.outputs, outputs, strict=False):
        value = next(value.parameters(), None) if isinstance(value, nn.Module) else value
        if isinstance(value, torch.Tensor):
            seen.devices[name] = "accelerator" if value.device.type == device else value.device.type


class _Devices(TorchDispatchMode):
    """Simulate a GPU with meta tensors: refuse to mix devices, as CUDA does.

    Kernels run on zeros on the CPU, and their results become meta tensors. Torch's own meta kernels
    would import its compiler.
    """

    _should_skip_dynamo = Kernels._should_skip_dynamo
    was_read = False  # whether a number was read from a meta tensor, which has none

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = str(func.overloadpacket)
        handed = [*args, *kwargs.values()]
        if any(isinstance(x, list | tuple) for x in handed):
            handed = tree_leaves(handed)
        tensors = [x for x in handed if isinstance(x, torch.Tensor)]
        target = torch.device(kwargs.get("device") or "cpu").type if "device" in kwargs else None
        copies = name in ("aten._to_copy", "aten.copy", "aten.copy_")
        # copies may cross devices, and CUDA accepts indices on the CPU
        judged = tensors[:1] if copies or name.startswith("aten.index") else tensors
        if len({x.device.type for x in judged if x.ndim or x.device.type != "cpu"}) > 1:
            raise RuntimeError("expected all tensors to be on the same device, the accelerator")
        source = kwargs.get("generator")
        if source is not None and (target or "cpu") != source.device.type:
            raise RuntimeError("Expected another device type for generator, the accelerator's")
        if kwargs.get("device") is not None:
            kwargs["device"] = torch.device("cpu")
        zeros = [_on_each(_as_zeros, x) for x in args]
        result = func(*zeros, **{key: _on_each(_as_zeros, x) for key, x in kwargs.items()})
        if name.endswith("_"):
            return args[0]
        on_meta = target == "meta" if target else any(x.device.type == "meta" for x in judged)
        self.was_read |= on_meta and isinstance(result, bool | int | float)
        return _on_each(_as_meta, result) if on_meta else result


def _on_each(function: Callable, value: Any) -> Any:
    """Call a function on a value, or on all values in a list or tuple."""
    return tree_map(function, value) if isinstance(value, list | tuple) else function(value)


def _as_zeros(x: Any) -> Any:
    return (
        torch.zeros(x.shape, dtype=x.dtype)
        if isinstance(x, torch.Tensor) and x.device.type == "meta"
        else x
    )


def _as_meta(x: Any) -> Any:
    return torch.empty(x.shape, dtype=x.dtype, device="meta") if isinstance(x, torch.Tensor) else x
