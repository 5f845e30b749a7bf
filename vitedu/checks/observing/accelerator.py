"""A call with tensors on a simulated accelerator, the same on every machine."""

from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from vitedu.checks.observing.case import Case, build_args
from vitedu.checks.observing.drivers import call_answer, construct
from vitedu.checks.observing.errors import describe_error, is_raised_by_student
from vitedu.checks.observing.observation import Observation
from vitedu.checks.observing.operations import KernelRecorder


def call_on_accelerator(answer: Any, case: Case, seen: Observation) -> None:
    """Call the answer with meta tensors, as if they were on a GPU.

    An error that has nothing to do with devices leaves the case undecided, for meta tensors have no
    values.
    """
    target = construct(answer, case, seen) if case.driver == "module" else answer
    if target is None:
        seen.undecided = True
        return
    movable = torch.Tensor, nn.Module
    target, args = tree_map_only(movable, lambda x: x.to("meta"), (target, build_args(case)))
    devices = _SimulatedGPU()
    try:
        with torch.no_grad(), devices:
            result = call_answer(target, case, args)
    except Exception as error:
        if describe_error(error).device_mismatch:
            raise
        # The sizes are right, so the answer refuses the device; but it may have tested values,
        # which meta tensors do not have.
        if is_raised_by_student(error) and not devices.has_read_value:
            raise
        seen.undecided = True
        return
    outputs = result if isinstance(result, (tuple, list)) else [result]
    for name, value in zip(case.outputs, outputs, strict=False):
        value = next(value.parameters(), None) if isinstance(value, nn.Module) else value
        if isinstance(value, torch.Tensor):
            kind = value.device.type
            seen.devices[name] = "accelerator" if kind == "meta" else kind


class _SimulatedGPU(TorchDispatchMode):
    """Simulate a GPU with meta tensors: refuse to mix devices, as CUDA does.

    Kernels run on zeros on the CPU, and their results become meta tensors. Torch's own meta kernels
    would import its compiler.
    """

    _should_skip_dynamo = KernelRecorder._should_skip_dynamo
    has_read_value = False  # whether a number was read from a meta tensor, which has none

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = str(func.overloadpacket)
        target = torch.device(kwargs.get("device") or "cpu").type if "device" in kwargs else None
        operands = _operands(name, args, kwargs)
        if len({x.device.type for x in operands if x.ndim or x.device.type != "cpu"}) > 1:
            raise RuntimeError("expected all tensors to be on the same device, the accelerator")
        source = kwargs.get("generator")
        if source is not None and (target or "cpu") != source.device.type:
            raise RuntimeError("Expected another device type for generator, the accelerator's")
        if kwargs.get("device") is not None:
            kwargs["device"] = torch.device("cpu")
        zeros, kwargs = tree_map_only(
            torch.Tensor,
            lambda x: torch.zeros(x.shape, dtype=x.dtype) if x.device.type == "meta" else x,
            (args, kwargs),
        )
        result = func(*zeros, **kwargs)
        if name.endswith("_"):
            return args[0]
        on_meta = target == "meta" if target else any(x.device.type == "meta" for x in operands)
        self.has_read_value |= on_meta and isinstance(result, bool | int | float)
        if not on_meta:
            return result
        meta = partial(torch.empty, device="meta")
        return tree_map_only(torch.Tensor, lambda x: meta(x.shape, dtype=x.dtype), result)


def _operands(name: str, args, kwargs) -> list[torch.Tensor]:
    """List the tensors of a kernel's call that must be on one device.

    Copies may cross devices, and CUDA accepts indices on the CPU.
    """
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    is_copy = name in ("aten._to_copy", "aten.copy", "aten.copy_")
    return tensors[:1] if is_copy or name.startswith("aten.index") else tensors
