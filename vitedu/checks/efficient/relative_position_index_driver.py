"""The driver of ``relative_position_index``: integers of any dtype."""

from typing import Any

from vitedu.checks.observing.case import Case
from vitedu.checks.observing.drivers import call, driver
from vitedu.checks.observing.observation import Observation


@driver
def whole_numbers(answer: Any, case: Case, seen: Observation) -> None:
    """Call a function that returns a tensor of integers; any integer dtype is accepted."""
    call(answer, case, seen)
    for name, x in seen.arrays.items():
        if str(x.dtype).removeprefix("torch.").startswith(("int", "uint")):
            seen.arrays[name] = x.long()
