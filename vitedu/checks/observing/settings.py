"""Run a student's code without letting it, or the check, change the other's settings.

Role: ``neutral_settings`` (random states, default dtype and device, gradient modes, warnings), and
what tells which settings a call left changed. No guard against sabotage: that belongs to the
grader.
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
    ``inference_mode`` or ``autocast``. Nothing of this that the checked code sets stays. Blocks may
    be nested; only the outermost one restores the random states, because every call is seeded anew.
    """
    dtype, is_autocast = torch.get_default_dtype(), torch.is_autocast_enabled("cpu")
    depth = _autocast_depth()
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    devices = context, _device.CURRENT_DEVICE, *overrides._get_current_function_mode_stack()
    _set(torch.float32, False, None, None)
    try:
        # leaving inference mode switches gradients on; at its end both come back
        with _restore_random_states(), torch.inference_mode(False), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        _set(dtype, is_autocast, *devices)
        for _ in range(_autocast_depth() - depth):  # entered and never left: casts would be kept
            if torch.autocast_decrement_nesting() == 0:
                torch.clear_autocast_cache()


def _autocast_depth() -> int:
    """Return how many ``autocast`` blocks are open in this thread."""
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()


def _set(dtype: torch.dtype, is_autocast: bool, context: Any, device: Any, *modes: Any) -> None:
    """Set default dtype, autocast, default device and the stack of function modes, from its bottom.

    ``with torch.device("cpu")`` is not enough: a ``set_default_device`` inside the block would
    remove the modes that ``with`` has set.
    """
    torch.set_default_dtype(dtype)
    torch.set_autocast_enabled("cpu", is_autocast)
    for _ in overrides._get_current_function_mode_stack():
        overrides._pop_mode()
    for mode in modes:
        overrides._push_mode(mode)
    torch._GLOBAL_DEVICE_CONTEXT.device_context, _device.CURRENT_DEVICE = context, device


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


def changed_settings() -> list[str]:
    """List, in words, the settings that differ from those of ``neutral_settings``."""
    dtype, device = torch.get_default_dtype(), _device.CURRENT_DEVICE
    words = {
        "gradients are switched off": not torch.is_grad_enabled(),
        f"the default dtype is {dtype}": dtype != torch.float32,
        f"the default device is {device}": device is not None,
        "autocast is on": torch.is_autocast_enabled("cpu"),
        SEED_CHANGE: torch.default_generator.initial_seed() != _SEED[0],
    }
    return [text for text, is_changed in words.items() if is_changed]


SEED_CHANGE = "another seed for torch's global random numbers"
_SEED = [0]  # what ``seed_everything`` was given


def seed_everything(seed: int) -> None:
    """Seed all global generators, for one call of the checked code."""
    # torch.manual_seed would format a stack trace if CUDA is not initialized
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)
    _SEED[:] = [seed]
