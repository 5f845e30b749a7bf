"""A second call with other values: what an answer remembers, overwrites, or leaves changed behind.

Role: the driver ``second_call`` and the case that it runs. For the grader's worker, so with the
standard library and torch only.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from vitedu.checks.case import Case, Recipe, other_values, recipe_fields
from vitedu.checks.drivers import DRIVERS, driver, replace_nan, run_driver
from vitedu.checks.observation import (
    FRESHNESS,
    INDEPENDENCE,
    OTHER,
    REPEATABILITY,
    SAME,
    SIDE_EFFECTS,
    STABILITY,
    Observation,
    is_informative,
)
from vitedu.checks.settings import seed_everything


def second_call_cases(cases: list[Case]) -> list[Case]:
    """Return the case of a second call: the first case with other values, in the part "again"."""
    main = [c for c in cases if c.part == "values" and not (c.raises or c.on_accelerator)]
    if not main:
        return []
    case = main[0]
    name = f"{case.name}, called again with other values"
    extra = case.extra | {"driver": case.driver, "options": _keyword_values(case, cases)}
    other = replace(case, name=name, part="again", driver="second_call", gradients=(), extra=extra)
    return [replace(other, args=other_values(case.args), state=other_values(case.state))]


def _keyword_values(case: Case, cases: list[Case]) -> dict[str, list]:
    """List the numbers that other cases pass by keyword for arguments that this case leaves out."""
    options: dict[str, list] = {}
    for name in [name for c in cases for name in c.keywords if name not in case.args]:
        values = [c.args.get(name) for c in cases]
        options[name] = list(dict.fromkeys(x for x in values if isinstance(x, int | float)))
    return options


@driver
def second_call(answer, case: Case, seen: Observation) -> None:
    """Make the case's call after a call with other values, on the same layer if there is one.

    Writes down whether the second result is the first one, whether the first result changed, which
    settings and random states either call changed for good, and which arguments have an effect.
    """
    own = ("driver", "options")
    extra = {n: x for n, x in case.extra.items() if n not in own} | {"instances": []}
    later = replace(case, driver=case.extra["driver"], extra=extra)
    others = {"args": other_values(case.args), "state": other_values(case.state)}
    before = replace(later, **others, record_operations=False)
    first = Observation()
    for seed, this, observation in ((0x5EED, before, first), (0x15EED, later, seen)):
        run_driver(answer, this, seed, observation)
        torch.set_grad_enabled(True)
    later = replace(later, record_operations=False)
    # who saves memory may do so only where no graph is built
    without_graph = [Observation(), Observation()]
    if later.driver in ("call", "module"):
        with contextlib.suppress(Exception), torch.no_grad():
            for this, observation in zip((before, later), without_graph, strict=True):
                this = replace(this, extra=this.extra | {"training": False})
                DRIVERS[this.driver](answer, this, observation)
    names = dict.fromkeys(name for observation in without_graph for name in observation.modified)
    seen.modified += tuple(f"{name} (under no_grad)" for name in names if name not in seen.modified)
    snapshots = [*first.snapshots, *without_graph[0].snapshots]
    stays = all(torch.equal(*replace_nan(*pair)) for pair in snapshots)
    seen.facts[STABILITY] = "they stay" if stays else "they changed"
    is_same = is_informative(seen.arrays) and any(
        _are_close(now.arrays, then.arrays)
        for now, then in ((seen, first), without_graph)
        if now.arrays
    )
    seen.facts[FRESHNESS] = "the earlier result" if is_same else "another result"
    changes = [words for each in (first, seen) for words in each.facts[SIDE_EFFECTS].split("; ")]
    seen.facts[SIDE_EFFECTS] = "; ".join(dict.fromkeys(words for words in changes if words))

    def results(this: Case) -> dict[str, torch.Tensor]:
        seed_everything(len(case.name))
        observation = Observation()
        try:
            DRIVERS[this.driver](answer, this, observation)
        except Exception:
            return {}
        return observation.arrays

    if later.driver in ("call", "module", "layer_from_layer"):
        seen.facts |= _repetition_facts(results, later, seen)
    if seen.arrays.keys() & set(case.outputs):
        seen.effects = _effects(results, later, case.extra["options"], seen)


def _repetition_facts(
    results: Callable[[Case], dict], case: Case, seen: Observation
) -> dict[str, str]:
    """Call again with the same values, and with one item of the batch.

    Returns:
        For each of these calls, whether the result is the same.
    """
    words = {True: SAME, False: "another result"}
    facts = {REPEATABILITY: words[_are_close(seen.arrays, results(case), 1e-3)]}
    sizes = {len(x) for x in seen.arrays.values() if x.ndim > 1}
    batch = sizes.pop() if len(sizes) == 1 else 1
    items = {
        name: value[:1]
        for name, value in case.args.items()
        if isinstance(value, torch.Tensor) and value.ndim > 1 and len(value) == batch
    }
    if items and batch > 1:
        alone, of_all = results(replace(case, args=case.args | items)), seen.arrays.items()
        expected = {name: x[:1] for name, x in of_all if x.ndim > 1 and len(x) == batch}
        alone = {name: x for name, x in alone.items() if name in expected}
        facts[INDEPENDENCE] = words[_are_close(expected, alone, 1e-3)]
    return facts


def _effects(results, case: Case, options: dict[str, list], seen: Observation) -> dict[str, str]:
    """Say for each argument and output whether other values of this argument alone change it."""
    effects: dict[str, list[str]] = {}
    for name, other in _single_changes(case, options):
        arrays = results(other)
        for output in (output for output in case.outputs if output in seen.arrays):
            is_same = output in arrays and _are_close(
                {"": seen.arrays[output]}, {"": arrays[output]}, 0.0 if case.number else 1e-5
            )
            words = SAME if is_same else OTHER if arrays else "no result"
            if is_same and not is_informative({output: seen.arrays[output]}):
                words = "too little to tell"
            effects.setdefault(f"{name} in {output}", []).append(words)
    return {place: ", ".join(words) for place, words in effects.items()}


def _single_changes(case: Case, options: dict[str, list]) -> Iterator[tuple[str, Case]]:
    """Yield (argument, the case with another value for this argument alone).

    Args:
        case: the call.
        options: values for arguments that the case leaves out; they are passed by keyword.
    """
    for name, value in case.init.items():
        for other in _list_other_values(value):
            yield (
                name,
                replace(case, init=case.init | {name: other}, extra=case.extra | {"instances": []}),
            )
    has_indices = any(_is_integers(value) for value in case.args.values())
    for name, value in case.args.items():
        for other in _list_other_values(value):
            if has_indices and isinstance(value, int) and other < value:
                continue  # a label past the last class is undefined in some of torch's functions
            yield name, replace(case, args=case.args | {name: other})
        fields = value.plain() if isinstance(value, Recipe) else {}
        for field_, plain in fields.items():
            for other in _list_other_values(plain) if isinstance(plain, int | float) else ():
                new = type(value)(**fields | {field_: other})
                yield f"{name}.{field_}", replace(case, args=case.args | {name: new})
    for name, values in options.items():
        for other in values:
            keywords = (*case.keywords, name)
            yield name, replace(case, args=case.args | {name: other}, keywords=keywords)


def _is_integers(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not value.is_floating_point()


def _list_other_values(value: Any) -> list:
    """List other values of the same kind; they need not be possible ones."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [x for x in (1, 2 * value) if x != value]
    if isinstance(value, float):
        return [value / 2, value + 1]
    if _is_integers(value):
        return [other_values(value), value.flatten()[:1].expand_as(value)]
    if any(isinstance(x, torch.Tensor) for x in tree_leaves(recipe_fields(value))):
        return [other_values(value)]
    if isinstance(value, tuple | list) and value:  # a size, or a list of sizes
        return [
            value[::-1],
            type(value)([*value[:-1], value[-1] + 1]),
            type(value)([value[0] + 1, *value[1:]]),
            type(value)([2 * x for x in value]),
        ]
    return []


def _are_close(some: dict[str, torch.Tensor], others: dict[str, torch.Tensor], off=0.0) -> bool:
    """Tell whether two sets of arrays agree up to ``off`` times the largest value of each array."""
    return some.keys() == others.keys() and all(
        one.shape == other.shape
        and float((one.double() - other.double()).abs().max())
        <= off * float(one.double().abs().max())
        for one, other in (replace_nan(x, others[name]) for name, x in some.items())
        if one.numel()
    )
