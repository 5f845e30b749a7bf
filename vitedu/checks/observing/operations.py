"""Which torch operations run during a call."""

import contextlib
from collections.abc import Callable
from typing import Any

from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

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
