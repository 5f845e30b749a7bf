"""A second call with other values: what an answer remembers, overwrites, or leaves changed behind.

Role: the driver ``second_call`` and the case that it runs.
"""

import contextlib
from dataclasses import replace
from typing import Any

import torch

from vitedu.checks.observing.case import Case, other_values
from vitedu.checks.observing.drivers import DRIVERS, driver, replace_nan, run_driver
from vitedu.checks.observing.observation import (
    FRESHNESS,
    SIDE_EFFECTS,
    STABILITY,
    Observation,
    is_informative,
)


def second_call_cases(cases: list[Case]) -> list[Case]:
    """Return the case of a second call: the first case with other values, in the part "again"."""
    case = next((c for c in cases if c.part == "values" and c.is_usual), None)
    if case is None:
        return []
    name = f"{case.name}, called again with other values"
    other = replace(case, name=name, part="again", driver="second_call", repeats=case.driver)
    return [replace(_with_other_values(other), gradients=())]


def _with_other_values(case: Case) -> Case:
    return replace(case, args=other_values(case.args), state=other_values(case.state))


@driver
def second_call(answer: Any, case: Case, seen: Observation) -> None:
    """Make the case's call after a call with other values, on the same layer if there is one.

    Writes down whether the second result is the first one, whether the first result changed, and
    which settings and random states either call changed for good.
    """
    later = replace(case, driver=case.repeats, instances=[])
    before = replace(_with_other_values(later), record_operations=False)
    first = Observation()
    for seed, this, observation in ((0x5EED, before, first), (0x15EED, later, seen)):
        run_driver(answer, this, seed, observation)
        torch.set_grad_enabled(True)
    stays = all(torch.equal(*replace_nan(*pair)) for pair in first.snapshots)
    seen.facts[STABILITY] = "they stay" if stays else "they changed"
    is_same = is_informative(seen.arrays) and seen.arrays.keys() == first.arrays.keys()
    is_same = is_same and all(
        x.dtype == first.arrays[name].dtype and torch.equal(*replace_nan(x, first.arrays[name]))
        for name, x in seen.arrays.items()
    )
    seen.facts[FRESHNESS] = "the earlier result" if is_same else "another result"
    if later.driver in ("call", "module"):  # where no gradients are needed it may write into inputs
        third = Observation()
        with torch.no_grad(), contextlib.suppress(Exception):
            DRIVERS[later.driver](answer, replace(later, record_operations=False), third)
        seen.modified = tuple(sorted({*seen.modified, *third.modified}))
    changes = [words for each in (first, seen) for words in each.facts[SIDE_EFFECTS].split("; ")]
    seen.facts[SIDE_EFFECTS] = "; ".join(dict.fromkeys(words for words in changes if words))
