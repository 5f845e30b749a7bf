"""Pieces of work timed in turn, which is how all that is timed in this course compares.

Role: round after round each piece runs once, so that whatever slows the machine for a while slows
all of them; the ratio of two pieces is taken within a round. Not here: any work.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

import torch

Times = dict[str, list[float]]  # name -> seconds, one for each round
Name = TypeVar("Name", bound=Hashable)


def seconds_in_turn(
    work: Mapping[Name, Callable[[], object]],
    rounds: int,
    device: torch.device | str = "cpu",
    warmup: int = 2,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[Name, list[float]]:
    """Run each piece of work once a round and time it.

    Args:
        work: name -> function without arguments.
        rounds: that are counted, at least one.
        device: whose queue is waited for before and after each piece.
        warmup: rounds before, not counted: kernels are chosen, memory is taken, code is compiled.

    Example:
        >>> times = seconds_in_turn({"a": lambda: 0, "b": lambda: 1}, rounds=3)
        >>> [len(seconds) for seconds in times.values()]
        [3, 3]
    """
    if rounds < 1:
        raise ValueError(f"rounds must be at least 1 (got rounds={rounds}).")
    device = torch.device(device)
    times: dict[Name, list[float]] = {name: [] for name in work}
    for i in range(warmup + rounds):
        for name, run in work.items():
            wait_for(device)
            start = clock()
            run()
            wait_for(device)
            seconds = clock() - start
            if i >= warmup:
                times[name].append(seconds)
    return times


def least_milliseconds(work: Mapping[Name, Callable[[], object]], rounds: int) -> dict[Name, float]:
    """Time pieces of work on the CPU in turn, without gradients: the least of the rounds of each.

    What else a busy machine does can only add to a round. Computing time leaves most of it out;
    Windows counts that in steps of 16 ms, so there it is the time on the clock.
    """
    clock = time.perf_counter if sys.platform == "win32" else time.process_time
    with torch.no_grad():
        times = seconds_in_turn(work, rounds, warmup=1, clock=clock)
    return {name: 1000 * min(seconds) for name, seconds in times.items()}


def wait_for(device: torch.device) -> None:
    """Return when the device has done all that it was asked to do."""
    if device.type in ("cuda", "mps"):
        getattr(torch, device.type).synchronize()


def median_speedup(times: Times, name: str, base: str) -> float:
    """Say how many times as fast as ``base`` a piece ran: the median of the rounds' own ratios.

    Example:
        >>> median_speedup({"a": [1.0, 2.0], "b": [2.0, 4.0]}, "a", "b")
        2.0
    """
    return statistics.median(b / a for a, b in zip(times[name], times[base], strict=True))


def spread(seconds: list[float]) -> float:
    """Give half the distance between the quartiles over the median; 0 for a single value.

    Example:
        >>> spread([1.0, 2.0, 3.0])
        0.5
    """
    if len(seconds) < 2:
        return 0.0
    low, median, high = statistics.quantiles(seconds, n=4)
    return (high - low) / 2 / median


def machine(device: torch.device | str) -> str:
    """Describe what a figure was measured on, in one line."""
    device = torch.device(device)
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name(device)}, torch {torch.__version__}"
    cores = os.cpu_count() if not hasattr(os, "sched_getaffinity") else len(os.sched_getaffinity(0))
    return (
        f"{device.type}, {torch.get_num_threads()} threads on {cores} cores "
        f"({torch.backends.cpu.get_cpu_capability()}), torch {torch.__version__}"
    )
