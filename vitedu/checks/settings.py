"""Run a student's code without letting it, or the check, change the other's settings.

Role: ``neutral_settings`` (random states, default dtype and device, gradient modes, warnings), and
what tells which settings a call left changed. Imports the standard library, numpy and torch only,
for the grader's worker.
"""

import contextlib
import random
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import overrides
from torch.utils import _device


@contextlib.contextmanager
def neutral_settings():
    """Run the block with torch's default settings and restore the caller's afterwards.

    No verdict then depends on the caller's seeds, default dtype or device, ``no_grad``,
    ``inference_mode`` or ``autocast``. Nothing that the checked code sets stays. Blocks may be
    nested; only the outermost one restores the random states, because every call is seeded anew.
    """
    before = _read_settings()
    _change_settings(before, before | NEUTRAL)
    try:
        # leaving inference mode switches gradients on; at its end both come back
        with _restore_random_states(), torch.inference_mode(False), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        _change_settings(_read_settings(), before)


def _read_settings() -> dict[Callable, tuple]:
    """Return the settings, each as the function that sets it and the arguments of today."""
    devices = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None), _device.CURRENT_DEVICE
    return {
        _set_modes: (*devices, *overrides._get_current_function_mode_stack()),
        torch.set_default_dtype: (torch.get_default_dtype(),),
        _set_autocast: tuple(
            (device, torch.is_autocast_enabled(device), torch.get_autocast_dtype(device))
            for device in ("cpu", "cuda")
        ),
        torch.set_autocast_cache_enabled: (torch.is_autocast_cache_enabled(),),
        _set_autocast_depth: (_autocast_depth(),),
        _set_deterministic: (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ),
        torch.set_anomaly_enabled: (
            torch.is_anomaly_enabled(),
            torch.is_anomaly_check_nan_enabled(),
        ),
        torch.set_float32_matmul_precision: (torch.get_float32_matmul_precision(),),
        torch.set_num_threads: (torch.get_num_threads(),),
    }


def _change_settings(now: dict[Callable, tuple], wanted: dict[Callable, tuple]) -> None:
    """Set what is not as wanted, and no more: some setters are slow, or import a compiler."""
    for setter, arguments in wanted.items():
        if now.get(setter) != arguments:  # the checked code may have replaced a function of torch
            setter(*arguments)


def _set_modes(device_context: Any, device: Any, *modes: Any) -> None:
    """Set the stack of function modes, the bottom one first, and the default device.

    ``with torch.device("cpu")`` is not enough: a ``set_default_device`` inside the block would
    remove the modes that ``with`` has set.
    """
    for _ in overrides._get_current_function_mode_stack():
        overrides._pop_mode()
    for mode in modes:
        overrides._push_mode(mode)
    torch._GLOBAL_DEVICE_CONTEXT.device_context, _device.CURRENT_DEVICE = device_context, device


def _set_autocast(*states: tuple[str, bool, torch.dtype]) -> None:
    for device, is_on, dtype in states:
        torch.set_autocast_enabled(device, is_on)
        torch.set_autocast_dtype(device, dtype)


def _autocast_depth() -> int:
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()


def _set_autocast_depth(depth: int) -> None:
    """Set how deep ``torch.autocast`` is nested.

    Only the outermost ``autocast`` drops the copies of weights in a smaller type. Behind code that
    entered one for good, training in bfloat16 would go on with the copies of its first step.
    """
    while _autocast_depth() < depth:
        torch.autocast_increment_nesting()
    while _autocast_depth() > depth:
        torch.autocast_decrement_nesting()
    torch.clear_autocast_cache()


def _set_deterministic(is_on: bool, warn_only: bool) -> None:
    torch.use_deterministic_algorithms(is_on, warn_only=warn_only)


# what every block begins with; all other settings stay as the caller has them
NEUTRAL: dict[Callable, tuple] = {
    _set_modes: (None, None),
    torch.set_default_dtype: (torch.float32,),
    _set_autocast: (("cpu", False, torch.bfloat16), ("cuda", False, torch.float16)),
    _set_deterministic: (False, False),
    torch.set_anomaly_enabled: (False, True),
}
_OUTERMOST = threading.local()  # ``is_open`` within a block of this thread


@contextlib.contextmanager
def _restore_random_states():
    """Restore all global random states at the end of the outermost block of this thread."""
    if getattr(_OUTERMOST, "is_open", False):
        yield
        return
    numpy_state, python_state = np.random.get_state(), random.getstate()
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []
    _OUTERMOST.is_open = True
    try:
        with torch.random.fork_rng(devices=gpus):
            yield
    finally:
        _OUTERMOST.is_open = False
        np.random.set_state(numpy_state)
        random.setstate(python_state)


def speed_settings() -> tuple[int, str]:
    """Return the settings that decide how fast torch works; the caller's are kept in a check."""
    return torch.get_num_threads(), torch.get_float32_matmul_precision()


def changed_settings(speed: tuple[int, str]) -> list[str]:
    """List, in words, the torch settings that differ from those of ``neutral_settings``.

    ``speed`` is what ``speed_settings`` returned before the call.
    """
    dtype, device = torch.get_default_dtype(), _device.CURRENT_DEVICE
    words = {
        "gradients are switched off": not torch.is_grad_enabled(),
        f"the default dtype is {dtype}": dtype != torch.float32,
        f"the default device is {device}": device is not None,
        "inference mode is on": torch.is_inference_mode_enabled(),
        "deterministic algorithms are on": torch.are_deterministic_algorithms_enabled(),
        "anomaly detection is on": torch.is_anomaly_enabled(),
        "autocast is on": torch.is_autocast_enabled("cpu"),
        "torch has another number of threads or another precision of products": (
            speed_settings() != speed
        ),
    }
    return [text for text, is_changed in words.items() if is_changed]


_SEED = [0]  # the seed that ``seed_everything`` gave the generators


def seed_everything(seed: int) -> None:
    """Seed all global generators, for one call of the checked code."""
    # torch.manual_seed would format a stack trace if CUDA is not initialized
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)
    _SEED[:] = [seed]


def reseeded_generators() -> list[str]:
    """Name the libraries whose global generator was seeded anew since ``seed_everything``.

    Drawing keeps the seed of torch's generator, and moves the others along one known sequence.
    """
    seed = _SEED[0]
    names = ["torch"] if torch.default_generator.initial_seed() != seed else []
    _NUMPY_GENERATOR.seed(seed % 2**32)
    if np.random.random() != _NUMPY_GENERATOR.random():  # reading the states is slow
        states: list[Any] = [_NUMPY_GENERATOR.get_state(), np.random.get_state()]
        names += [] if _is_later(*(state[1] for state in states)) else ["NumPy"]
    own = random.Random(seed)
    if random.random() != own.random():
        words = (source.getstate()[1][:-1] for source in (own, random))
        names += [] if _is_later(*words) else ["Python"]
    return names


_NUMPY_GENERATOR = np.random.RandomState(0)


def _is_later(before: Any, now: Any) -> bool:
    """Tell whether at most 10**5 draws lead a Mersenne twister from one state to the other."""
    before, now = (np.array(state, dtype=np.uint32) for state in (before, now))
    twister, size = np.random.RandomState(0), len(before)
    state: Any = ("MT19937", before, size, 0, 0.0)
    twister.set_state(state)
    for _ in range(10**5 // size):
        if np.array_equal(state[1], now):
            return True
        twister.bytes(4 * size)
        state = twister.get_state()
    return False
