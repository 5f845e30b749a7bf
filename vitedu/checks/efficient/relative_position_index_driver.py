"""The driver of ``relative_position_index``: integers of any dtype.

Imports the standard library and torch only, for the grader's worker.
"""

import torch

from vitedu.checks.case import Case, build_args
from vitedu.checks.drivers import apply, changed_args, driver
from vitedu.checks.observation import Observation, keep_results


@driver
def whole_numbers(answer, case: Case, seen: Observation) -> None:
    """Call a function that returns a tensor of integers; any integer dtype is accepted."""
    args = build_args(case)
    result = apply(answer, case, args)
    seen.modified = changed_args(case, args)
    if isinstance(result, torch.Tensor) and result.dtype in _WHOLE:
        result = result.long()
    keep_results(seen, case, result)


_WHOLE = (torch.int8, torch.uint8, torch.int16, torch.int32)
