"""Run a student's code without letting it, or the check, change the other's settings.

Role: ``neutral_settings`` (random states, default dtype and device, gradient modes, warnings), and
what tells which settings a call left changed. No guard against sabotage: that belongs to the
grader.
"""

import contextlib
import random
import warnings

import numpy as np
import torch


@contextlib.contextmanager
def neutral_settings():
    """Run the block with torch's default settings and restore the caller's afterwards.

    No verdict then depends on the caller's seeds, default dtype or device, ``no_grad``,
    ``inference_mode`` or ``autocast``. Nothing of this that the checked code sets stays. Blocks may
    be nested.
    """
    dtype, is_autocast = torch.get_default_dtype(), torch.is_autocast_enabled("cpu")
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    numpy_state, python_state = np.random.get_state(), random.getstate()
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []
    _set(torch.float32, False, None)
    try:
        # leaving inference mode switches gradients on; at its end both come back
        with torch.random.fork_rng(gpus), torch.inference_mode(False), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        _set(dtype, is_autocast, context and context.device)
        np.random.set_state(numpy_state)
        random.setstate(python_state)


def _set(dtype: torch.dtype, is_autocast: bool, device: torch.device | None) -> None:
    torch.set_default_dtype(dtype)
    torch.set_autocast_enabled("cpu", is_autocast)
    torch.set_default_device(device)


def changed_settings() -> list[str]:
    """List, in words, the settings that differ from those of ``neutral_settings``."""
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    words = {
        "gradients are switched off": not torch.is_grad_enabled(),
        f"the default dtype is {dtype}": dtype != torch.float32,
        f"the default device is {device}": device.type != "cpu",
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
