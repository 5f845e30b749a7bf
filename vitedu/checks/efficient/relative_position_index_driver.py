"""The driver of ``relative_position_index``: integers of any dtype."""

from typing import Any

import torch

from vitedu.checks.observing.case import Case, build_args
from vitedu.checks.observing.drivers import call_answer, driver, find_modified_args
from vitedu.checks.observing.observation import Observation, store_outputs


@driver
def whole_numbers(answer: Any, case: Case, seen: Observation) -> None:
    """Call a function that returns a tensor of integers; any integer dtype is accepted."""
    args = build_args(case)
    result = call_answer(answer, case, args)
    seen.modified = find_modified_args(case, args)
    if isinstance(result, torch.Tensor) and result.dtype in _INTEGERS:
        result = result.long()
    store_outputs(seen, case, result)


_INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32)
