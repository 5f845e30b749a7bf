"""Which torch operations run during a call."""

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from vitedu.checks.observing.case import Case, build_args
from vitedu.checks.observing.observation import Observation


def record_operations(
    seen: Observation, case: Case, call: Callable[[dict], Any]
) -> tuple[dict[str, Any], Any]:
    """Call on the case's arguments, and write down which operations ran, if somebody asks for them.

    This makes a call several times slower, so it is left out where the exercise forbids nothing and
    no float64 could be rounded, and in the further calls of ``second_call``. A call that fails is
    repeated without, because recording itself may have been the reason.

    Returns:
        The arguments and the result.
    """
    if case.record_operations:
        args = build_args(case)
        names: set[str] = set()
        try:
            with contextlib.suppress(Exception), _FunctionRecorder(names), KernelRecorder(names):
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


class KernelRecorder(TorchDispatchMode):
    """Collect the names of the kernels that run, and ``narrowed`` for float64 rounded to less."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # otherwise torch imports its compiler, which takes two seconds

    def __init__(self, names: set[str]):
        super().__init__()
        self.names = names

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.add(str(func.overloadpacket))
        result = func(*args, **(kwargs or {}))
        sources = [x for x in args[:2] if isinstance(x, torch.Tensor)]
        if (
            isinstance(result, torch.Tensor)
            and any(x.dtype == torch.float64 and x.numel() > 1 for x in sources)
            and result.is_floating_point()
            and result.dtype != torch.float64
        ):
            self.names.add("narrowed")
        return result
