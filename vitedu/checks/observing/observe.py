"""Observe an answer: run it on a case, whatever it does, and write down what happened."""

import zlib
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_map_only

from vitedu.checks.observing.case import Case, build_args
from vitedu.checks.observing.drivers import call_answer, construct, run_driver
from vitedu.checks.observing.errors import describe_error, is_raised_by_student
from vitedu.checks.observing.limits import TimeUp, capture_output, time_limit
from vitedu.checks.observing.observation import Observation
from vitedu.checks.observing.operations import SimulatedGPU
from vitedu.checks.observing.settings import neutral_settings


def observe(
    answer: Any, case: Case, seconds: float = 10.0, waiting: float | None = None
) -> Observation:
    """Run one case on an answer, a function or a class, with the limits of ``time_limit``.

    Never raises because of the answer, and leaves no setting changed.
    """
    seen = Observation()
    with capture_output() as output, neutral_settings():
        try:
            with time_limit(seconds, waiting):
                if case.on_accelerator:
                    _call_on_accelerator(answer, case, seen)
                else:
                    seed = zlib.crc32(case.name.encode()) if case.seed is None else case.seed
                    run_driver(answer, case, seed, seen)
        except BaseException as error:  # the student's code may raise anything at all
            seen.error = describe_error(error)
            if isinstance(error, TimeUp):
                seen.seconds = seconds
    seen.snapshots.clear()
    seen.printed = (
        output.head
        if output.length == len(output.head)
        else f"{output.head}…\n({output.length:,} characters in all)"
    )
    return seen


def _call_on_accelerator(answer: Any, case: Case, seen: Observation) -> None:
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
    devices = SimulatedGPU()
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
