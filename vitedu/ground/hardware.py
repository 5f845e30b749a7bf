"""What this machine can do: the device, its native precision, the size of experiments.

Role: what the training loop, the commands and the notebooks ask for. Not here: training, models.

Reference: Micikevicius et al. 2017, "Mixed Precision Training" (arXiv 1710.03740), for why float16
needs a gradient scaler and bfloat16, with the exponent range of float32, does not.
"""

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch

Value = TypeVar("Value")


def pick_device() -> torch.device:
    """Choose the fastest device at hand: CUDA, then Apple's MPS, then the CPU.

    Example:
        >>> pick_device().type in ("cuda", "mps", "cpu")
        True
    """
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


def pick_precision(device: torch.device | str) -> torch.dtype:
    """Choose the type in which matrix products run.

    bfloat16 only where the hardware multiplies it: torch also emulates it, on a T4 for instance,
    and emulation is slower than float32.

    Args:
        device: where the model will run.

    Returns:
        ``torch.bfloat16`` on CUDA of capability 8.0 and up and on CPUs with AMX or AVX512-BF16;
        ``torch.float16``, which needs a scaler, on older CUDA; ``torch.float32`` elsewhere.

    Example:
        >>> pick_precision("mps")
        torch.float32
    """
    device = torch.device(device)
    if device.type == "cuda":
        capability = torch.cuda.get_device_capability(device)
        return torch.bfloat16 if capability >= (8, 0) else torch.float16
    if device.type == "cpu" and cpu_flags() & {"amx_bf16", "avx512_bf16"}:
        return torch.bfloat16
    return torch.float32


def keep_freed_memory() -> None:
    """Let the C library keep what tensors on the CPU free, instead of handing it back at once.

    A training step frees what the next one takes again. By default glibc gives large pieces back to
    the system in between, and every page of 4 KB is then cleared anew, tens of thousands in a step
    of ``vit_tiny_patch4_32``. The process keeps its largest size from here on.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt:
        mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD of malloc.h
        mallopt(-3, 2**30)  # M_MMAP_THRESHOLD


def cpu_flags() -> frozenset[str]:
    """Read what the CPU can do, such as ``"avx512_bf16"``; empty where Linux does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    flags = next((line for line in lines if line.startswith("flags")), ":")
    return frozenset(flags.split(":", 1)[1].split())


@dataclass(frozen=True)
class Profile:
    """How large a notebook's experiments are. ``print`` tells which one runs and what it costs."""

    name: str  # "quick", "laptop" or "gpu"
    cost: str  # what a notebook takes, in words
    reason: str  # why this profile was chosen

    def pick(self, *, quick: Value, laptop: Value, gpu: Value) -> Value:
        """Return the value meant for this profile.

        Example:
            >>> Profile("laptop", "", "").pick(quick=1, laptop=15, gpu=100)
            15
        """
        return {"quick": quick, "laptop": laptop, "gpu": gpu}[self.name]

    def __str__(self) -> str:
        return f"profile {self.name}: {self.reason}\n{self.cost}"


COSTS = {
    "quick": "Experiments are cut to seconds, to show that everything runs; their numbers mean "
    "little.",
    "laptop": "About two minutes of training a notebook on two CPU cores.",
    "gpu": "The full experiments, sized for a CUDA device.",
}


def current_profile() -> Profile:
    """Choose the profile: ``VITEDU_PROFILE`` if it is set, else ``gpu`` with CUDA, else ``laptop``.

    Raises:
        ValueError: ``VITEDU_PROFILE`` names no profile; the message lists the choices.
    """
    name, reason = os.environ.get("VITEDU_PROFILE", ""), "VITEDU_PROFILE asks for it."
    device = pick_device()
    if not name and device.type == "cuda":
        name, reason = "gpu", f"found {torch.cuda.get_device_name(device)}."
    elif not name:
        name, reason = "laptop", f"the device is {device.type}; VITEDU_PROFILE overrides."
    if name not in COSTS:
        raise ValueError(f"VITEDU_PROFILE={name!r} names no profile. Choices: {', '.join(COSTS)}.")
    return Profile(name, COSTS[name], reason)


def check_device(name: str) -> None:
    """Refuse a device that torch does not know or this machine does not have."""
    if name == "auto":
        return
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError) as error:  # torch built without CUDA asserts
        reason = str(error).split(". ")[0].splitlines()[0]
        raise ValueError(
            f"device {name!r} cannot be used here. Choices: auto, cpu, cuda, mps. ({reason})"
        ) from None
