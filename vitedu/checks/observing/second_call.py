"""A second call with other values: what an answer remembers, overwrites, or leaves changed behind.

Role: the driver ``second_call`` and the case that it runs.
"""

from dataclasses import replace
from typing import Any

import torch

from vitedu.checks.observing.case import Case, other_values
from vitedu.checks.observing.drivers import DRIVERS, driver, replace_nan, run_driver
from vitedu.checks.observing.observation import (
    FRESHNESS,
    INDEPENDENCE,
    REPEATABILITY,
    SAME,
    SIDE_EFFECTS,
    STABILITY,
    Observation,
    is_informative,
)
from vitedu.checks.observing.settings import seed_everything

WORDS = {True: SAME, False: "another result"}


def second_call_cases(cases: list[Case]) -> list[Case]:
    """Return the case of a second call: the first case with other values, in the part "again"."""
    main = [c for c in cases if c.part == "values" and not (c.raises or c.on_accelerator)]
    if not main:
        return []
    case = main[0]
    name = f"{case.name}, called again with other values"
    other = replace(case, name=name, part="again", driver="second_call", repeats=case.driver)
    others = {"args": other_values(case.args), "state": other_values(case.state)}
    return [replace(other, **others, gradients=())]


@driver
def second_call(answer: Any, case: Case, seen: Observation) -> None:
    """Make the case's call after a call with other values, on the same layer if there is one.

    Writes down whether the second result is the first one, whether the first result changed, which
    settings and random states either call changed for good, and what a third call gives.
    """
    later = replace(case, driver=case.repeats, instances=[])
    others = {"args": other_values(case.args), "state": other_values(case.state)}
    before = replace(later, **others, record_operations=False)
    first = Observation()
    for seed, this, observation in ((0x5EED, before, first), (0x15EED, later, seen)):
        run_driver(answer, this, seed, observation)
        torch.set_grad_enabled(True)
    stays = all(torch.equal(*replace_nan(*pair)) for pair in first.snapshots)
    seen.facts[STABILITY] = "they stay" if stays else "they changed"
    is_same = is_informative(seen.arrays) and _are_close(seen.arrays, first.arrays)
    seen.facts[FRESHNESS] = "the earlier result" if is_same else "another result"
    changes = [words for each in (first, seen) for words in each.facts[SIDE_EFFECTS].split("; ")]
    seen.facts[SIDE_EFFECTS] = "; ".join(dict.fromkeys(words for words in changes if words))
    if later.driver in ("call", "module", "layer_from_layer"):
        _call_thrice(answer, replace(later, record_operations=False), seen)


def _call_thrice(answer: Any, case: Case, seen: Observation) -> None:
    """Write down what the same call gives once more, and the first item of the batch alone.

    Once more without gradients, where an answer may write into its inputs.
    """

    def run(this: Case) -> Observation:
        seed_everything(len(case.name))
        observation = Observation()
        try:
            DRIVERS[this.driver](answer, this, observation)
        except Exception:
            observation.arrays.clear()
        return observation

    with torch.no_grad():
        seen.modified = tuple(sorted({*seen.modified, *run(case).modified}))
    seen.facts[REPEATABILITY] = WORDS[_are_close(seen.arrays, run(case).arrays, 1e-3)]
    sizes = {len(x) for x in seen.arrays.values() if x.ndim > 1}
    batch = sizes.pop() if len(sizes) == 1 else 1
    items = {
        name: value[:1]
        for name, value in case.args.items()
        if isinstance(value, torch.Tensor) and value.ndim > 1 and len(value) == batch
    }
    if items and batch > 1:
        alone = run(replace(case, args=case.args | items)).arrays
        expected = {n: x[:1] for n, x in seen.arrays.items() if x.ndim > 1 and len(x) == batch}
        alone = {name: x for name, x in alone.items() if name in expected}
        seen.facts[INDEPENDENCE] = WORDS[_are_close(expected, alone, 1e-3)]


def _are_close(some: dict[str, torch.Tensor], others: dict[str, torch.Tensor], off=0.0) -> bool:
    """Tell whether two sets of arrays agree up to ``off`` times the largest value of each array."""
    return some.keys() == others.keys() and all(
        one.shape == other.shape
        and float((one.double() - other.double()).abs().max())
        <= off * float(one.double().abs().max())
        for one, other in (replace_nan(x, others[name]) for name, x in some.items())
        if one.numel()
    )
