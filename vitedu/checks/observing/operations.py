"""Watch a call's operations: write down which run, or run them as an accelerator would."""

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from vitedu.checks.observing.case import Case, build_args
from vitedu.checks.observing.observation import Observation


def record_operations(
    seen: Observation, case: Case, call: Callable[[dict], Any]
) -> tuple[dict[str, Any], Any]:
    """Call on the case's arguments, and write down which operations ran, if somebody asks for them.

    This makes a call several times slower, so it is left out where the exercise forbids nothing and
    in the first call of ``second_call``. A call that fails is repeated without, because recording
    itself may have been the reason.

    Returns:
        The arguments and the result.
    """
    if case.record_operations:
        args = build_args(case)
        names: set[str] = set()
        try:
            with contextlib.suppress(Exception), _FunctionRecorder(names), _KernelRecorder(names):
                return args, call(args)
        finally:
            seen.operations = frozenset(names)
    args = build_args(case)
    return args, call(args)


class _FunctionRecorder(TorchFunctionMode):
    """Collect the names of the torch functions and methods that are called."""

    def __init__(self, names: set[str]):
        super().__init__()
        self.names = names

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.add(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


class _KernelRecorder(TorchDispatchMode):
    """Collect the names of the kernels that run."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # otherwise torch imports its compiler, which takes two seconds

    def __init__(self, names: set[str]):
        super().__init__()
        self.names = names

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.add(str(func.overloadpacket))
        return func(*args, **(kwargs or {}))


class SimulatedGPU(TorchDispatchMode):
    """Simulate a GPU with meta tensors: refuse to mix devices, as CUDA does.

    Kernels run on zeros on the CPU, and their results become meta tensors. Torch's own meta kernels
    would import its compiler.
    """

    _should_skip_dynamo = _KernelRecorder._should_skip_dynamo
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
