"""The driver of ``warmup_cosine``: a function that is called for every step."""

from typing import Any

import torch

from vitedu.checks.observing.case import Case
from vitedu.checks.observing.drivers import call_answer, driver
from vitedu.checks.observing.observation import Observation, store_output


@driver
def schedule(answer: Any, case: Case, seen: Observation) -> None:
    """Call a function for every step in ``args["step"]`` and store its numbers as one array."""
    rates = []
    for step in case.args["step"]:
        one = Observation()
        rate = call_answer(answer, case, {**case.args, "step": step})
        store_output(one, "rate", rate, number=True)
        seen.types["output"] = one.types["rate"]
        if one.types["rate"] != "number":
            return
        rates.append(one.arrays["rate"])
    seen.arrays["output"] = torch.stack(rates)
