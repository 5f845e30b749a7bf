"""Run a student's code without letting it, or the check, change the other's settings.

Role: ``neutral_settings`` (random states, default dtype and device, gradient modes, warnings), and
what tells which settings a call left changed. Imports the standard library, numpy and torch only,
for the grader's worker.
"""

import contextlib
import random
import threading
import warnings
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
    nested; only the outermost one restores the random states, because every call is seeded anew. An
    inner one usually finds neutral settings and restores only what its block has changed.
    """
    if getattr(_OUTERMOST, "is_open", False) and _read_settings() == NEUTRAL:
        with _inner_settings():
            yield
        return
    dtype, precision = torch.get_default_dtype(), torch.get_float32_matmul_precision()
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    anomaly, threads = torch.is_anomaly_enabled(), torch.get_num_threads()
    on_gpu = torch.autocast("cuda", enabled=False) if torch.cuda.is_available() else None
    with (
        _restore_autocast_nesting(),
        _remove_function_modes(),
        _restore_random_states(),
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.autocast("cpu", enabled=False),
        on_gpu or contextlib.nullcontext(),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        torch.set_default_dtype(torch.float32)
        if deterministic:
            torch.use_deterministic_algorithms(False)
        torch.autograd.set_detect_anomaly(False)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
            torch.set_float32_matmul_precision(precision)
            if torch.are_deterministic_algorithms_enabled() != deterministic:
                torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
            torch.autograd.set_detect_anomaly(anomaly)
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)


@contextlib.contextmanager
def _restore_autocast_nesting():
    """Restore how deep ``torch.autocast`` is nested.

    Only the outermost ``autocast`` drops the copies of weights in a smaller type. Behind code that
    entered one for good, training in bfloat16 would go on with the copies of its first step.
    """
    before = _autocast_depth()
    try:
        yield
    finally:
        if change := _autocast_depth() - before:
            move = (
                torch.autocast_decrement_nesting if change > 0 else torch.autocast_increment_nesting
            )
            for _ in range(abs(change)):
                move()
            torch.clear_autocast_cache()


def _autocast_depth() -> int:
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()


# what ``_read_settings`` returns if nothing is switched
NEUTRAL = (torch.float32, 0, None, None, False, False, False, False)


def _read_settings() -> tuple:
    """Return the settings that must have one value in every block, except modes of gradients."""
    return (
        torch.get_default_dtype(),
        torch._C._len_torch_function_stack(),
        _device.CURRENT_DEVICE,
        getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None),
        torch.is_autocast_enabled("cpu"),
        torch.is_autocast_enabled("cuda"),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_anomaly_enabled(),
    )


@contextlib.contextmanager
def _inner_settings():
    """Run a block whose settings are neutral already; a third of the work of an outer block."""
    precision, threads = torch.get_float32_matmul_precision(), torch.get_num_threads()
    half = torch.get_autocast_dtype("cpu")
    try:
        # leaving inference mode restores grad mode as well
        with _restore_autocast_nesting(), torch.inference_mode(False), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if _read_settings() != NEUTRAL:
            _clear_modes()
            torch._GLOBAL_DEVICE_CONTEXT.device_context = _device.CURRENT_DEVICE = None
            torch.set_default_dtype(torch.float32)
            torch.set_autocast_enabled("cpu", False)
            torch.set_autocast_enabled("cuda", False)
            if torch.are_deterministic_algorithms_enabled():  # it imports what a worker must not
                torch.use_deterministic_algorithms(False)
            torch.autograd.set_detect_anomaly(False)
        torch.set_autocast_dtype("cpu", half)
        torch.set_float32_matmul_precision(precision)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)


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
    words = []
    if not torch.is_grad_enabled():
        words.append("gradients are switched off")
    if torch.get_default_dtype() != torch.float32:
        words.append(f"the default dtype is {torch.get_default_dtype()}")
    if _device.CURRENT_DEVICE is not None:
        words.append(f"the default device is {_device.CURRENT_DEVICE}")
    if torch.is_inference_mode_enabled():
        words.append("inference mode is on")
    if torch.are_deterministic_algorithms_enabled():
        words.append("deterministic algorithms are on")
    if torch.is_anomaly_enabled():
        words.append("anomaly detection is on")
    if torch.is_autocast_enabled("cpu"):
        words.append("autocast is on")
    if speed_settings() != speed:
        words.append("torch has another number of threads or another precision of products")
    return words


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
    seed, names = _SEED[0], []
    if torch.default_generator.initial_seed() != seed:
        names.append("torch")
    if np.random.random() != _seeded_generator(seed).random():  # reading the states is slow
        states: list[Any] = [_seeded_generator(seed).get_state(), np.random.get_state()]
        if not _is_later(*(state[1] for state in states)):
            names.append("NumPy")
    if random.random() != random.Random(seed).random():
        before, now = (source.getstate()[1][:-1] for source in (random.Random(seed), random))
        if not _is_later(before, now):
            names.append("Python")
    return names


_NUMPY_GENERATOR = np.random.RandomState(0)


def _seeded_generator(seed: int) -> np.random.RandomState:
    """Return a generator in the state in which ``seed_everything`` left NumPy's."""
    _NUMPY_GENERATOR.seed(seed % 2**32)
    return _NUMPY_GENERATOR


def _is_later(before: Any, now: Any) -> bool:
    """Tell whether at most 10**5 draws lead a Mersenne twister from one state to the other."""
    before, now = (np.array(state, dtype=np.uint32) for state in (before, now))
    if np.array_equal(before, now):
        return True
    twister, size = np.random.RandomState(0), len(before)
    twister.set_state(("MT19937", before, size, 0, 0.0))
    for _ in range(10**5 // size):
        twister.bytes(4 * size)
        state: Any = twister.get_state()
        if np.array_equal(state[1], now):
            return True
    return False


@contextlib.contextmanager
def _remove_function_modes():
    """Remove all torch function modes, default devices above all, and restore them afterwards.

    ``with torch.device("cpu")`` is not enough: a ``set_default_device`` inside the block would
    remove the modes that ``with`` has set.
    """
    devices = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None), _device.CURRENT_DEVICE
    modes = _clear_modes()
    torch._GLOBAL_DEVICE_CONTEXT.device_context = _device.CURRENT_DEVICE = None
    try:
        yield
    finally:
        _clear_modes()
        for mode in modes:
            overrides._push_mode(mode)
        torch._GLOBAL_DEVICE_CONTEXT.device_context, _device.CURRENT_DEVICE = devices


def _clear_modes() -> list:
    """Empty the stack of function modes and return them, the bottom one first."""
    modes = overrides._get_current_function_mode_stack()
    for _ in modes:
        overrides._pop_mode()
    return modes
