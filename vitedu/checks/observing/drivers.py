"""Drivers: the ways to exercise an answer. ``call`` calls a function, ``module`` builds a layer.

Role: these two, ``second_call``, which does it again with other values to see what an answer
remembers, overwrites or leaves changed, and what every driver needs. Others stand in files that
several exercises share (``evaluation_driver``, ``random_draws_driver``), and beside the checker
of the one exercise that uses them (``<chapter>/<exercise>_driver.py``). Imports the standard
library, numpy and torch only, and no reference: the grader's worker, which must not hold the
solutions, has these files too.
"""

import contextlib
import importlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_map

from vitedu.checks.observing.case import (
    Case,
    Recipe,
    build,
    build_args,
    other_values,
    tensors_in,
)
from vitedu.checks.observing.observation import (
    CONSTRUCTION,
    FRESHNESS,
    SIDE_EFFECTS,
    STABILITY,
    Observation,
    store_gradients,
    store_outputs,
    type_name,
)
from vitedu.checks.observing.operations import record_operations
from vitedu.checks.observing.settings import changed_settings, seed_everything

DRIVERS: dict[str, Callable] = {}


def driver(function: Callable) -> Callable:
    """Register a driver ``(answer, case, seen: Observation) -> None`` under its name."""
    DRIVERS[function.__name__] = function
    return function


def run_driver(answer: Any, case: Case, seed: int, seen: Observation) -> None:
    """Let the case's driver work, and write down what it leaves behind for good."""
    seed_everything(seed)
    DRIVERS[case.driver](answer, case, seen)
    changes = [*seen.facts.get(SIDE_EFFECTS, "").split("; "), *changed_settings()]
    seen.facts[SIDE_EFFECTS] = "; ".join(dict.fromkeys(words for words in changes if words))


def after_answer() -> None:
    """Do nothing once an answer has run; the grader puts ``ModuleState.restore`` here."""


def call_answer(function: Callable, case: Case, args: dict[str, Any]) -> Any:
    """Call a function with the case's positional and keyword arguments."""
    positional = [value for name, value in args.items() if name not in case.keywords]
    try:
        return function(*positional, **{name: args[name] for name in case.keywords})
    finally:
        after_answer()


def import_drivers() -> None:
    """Import every file of a driver, so that a case may name any of them."""
    folder = Path(__file__).parents[1]
    for path in sorted(folder.rglob("*_driver.py")):
        names = path.relative_to(folder).with_suffix("").parts
        importlib.import_module(".".join(["vitedu.checks", *names]))


@driver
def call(
    answer: Any, case: Case, seen: Observation, parameters: dict[str, torch.Tensor] | None = None
) -> None:
    """Call a function, or a layer whose ``parameters`` learn, on the case's arguments."""
    args, result = record_operations(seen, case, partial(call_answer, answer, case))
    store_outputs(seen, case, result)
    seen.modified = find_modified_args(case, args)
    if not (case.gradients or case.learns):
        return
    torch.set_grad_enabled(True)  # if the call switched it off, the part "again" reports that
    args, leaves = build_args(case), {}
    for name in case.gradients:
        for place, leaf in tensors_in(name, args[name]):
            leaves[place] = leaf.requires_grad_()
        # copies, because autograd does not allow in-place edits of leaves
        args[name] = tree_map(lambda leaf: leaf.clone(), args[name])
    leaves |= parameters or {}
    try:
        store_gradients(seen, case, lambda: call_answer(answer, case, args), leaves)
    except Exception as error:
        seen.gradient_error = f"{type(error).__name__}: {error}"[:300]


@driver
def module(answer: Any, case: Case, seen: Observation) -> None:
    """Construct a layer class, load the case's parameters by name, and call the instance."""
    layer = construct(answer, case, seen)
    if layer is None:
        return
    seen.facts[CONSTRUCTION] = "yes"
    layer.train(in_train_mode(case))
    before, parameters = module_state(layer), nn.Module.named_parameters(layer)
    call(layer, case, seen, {name: x for name, x in parameters if name not in case.frozen})
    if case.instances is not None:
        seen.facts[SIDE_EFFECTS] = describe_changes(layer, before)


def in_train_mode(case: Case) -> bool:
    """Tell whether a case calls its layer in train mode. A right layer returns the same in both."""
    usual = bool(case.gradients) or case.instances is not None
    return usual if case.training is None else case.training


def describe_case(case: Case) -> str:
    """Name a case; of a layer, say in which mode it is called."""
    mode = "in train mode" if in_train_mode(case) else "in eval mode"
    return (
        f"{case.name}, {mode}" if case.driver == "module" and mode not in case.name else case.name
    )


def construct(answer: Any, case: Case, seen: Observation) -> nn.Module | None:
    """Build ``answer(*init)`` and load the case's parameters; write down how they differ.

    Returns:
        The layer, or None if it is no module or its parameters have other names or shapes.
    """
    instances = [] if case.instances is None else case.instances
    try:
        layer = instances[0] if instances else answer(*[build(x) for x in case.init.values()])
    finally:
        after_answer()
    instances.append(layer)
    if not isinstance(layer, nn.Module):
        seen.types["instance"] = type_name(layer)
        return None
    if case.raises or case.keeps_parameters:
        return layer  # only the refusal counts
    # called through nn.Module, because the class may override named_parameters
    parameters = dict(nn.Module.named_parameters(layer))
    own = {name: tuple(value.shape) for name, value in parameters.items()}
    wanted = {name: tuple(value.shape) for name, value in case.state.items()}
    shapes = [(name, own[name], wanted[name]) for name in own.keys() & wanted.keys()]
    differences = {
        "missing": set(wanted) - set(own),
        "unexpected": set(own) - set(wanted),
        "misshapen": {f"{n} is {x} instead of {y}" for n, x, y in shapes if x != y},
    }
    seen.parameters = {kind: tuple(sorted(names)) for kind, names in differences.items() if names}
    if own != wanted:
        return None
    with torch.no_grad():
        for name, parameter in parameters.items():
            value = case.state[name]
            if len(instances) > 1 and parameter.dtype == value.dtype and parameter.is_contiguous():
                parameter.copy_(value)  # in place, as an optimizer does
            else:
                parameter.data = value.clone()
    return layer


def module_state(model: nn.Module) -> dict[str, str]:
    """Describe what a call must not change: the modes of a model's parts, and frozen parameters."""
    modes = {
        name or "the model itself": "in train mode" if part.training is True else "in eval mode"
        for name, part in nn.Module.named_modules(model)
    }
    learn = {
        name: "learning" if value.requires_grad else "frozen"
        for name, value in nn.Module.named_parameters(model)
    }
    return modes | learn


def describe_changes(model: nn.Module, before: dict[str, str]) -> str:
    """Say what a call changed since ``module_state`` returned ``before``, or ""."""
    now = module_state(model)
    changed = [
        f"{name} is {now[name]}" for name in before if now.get(name, "") not in ("", before[name])
    ]
    more = f" and {len(changed) - 2} more" if len(changed) > 2 else ""
    return ", ".join(changed[:2]) + more


def find_modified_args(case: Case, args: dict[str, Any]) -> tuple[str, ...]:
    """Name the arguments that a call modified."""
    names = []
    for name, value in case.args.items():
        if isinstance(value, Recipe):
            differs = value.is_modified(args[name])
        else:
            (before, form), (after, now) = tree_flatten(value), tree_flatten(args[name])
            differs = form != now or any(map(is_changed, after, before))
        if differs:
            names.append(name)
    return tuple(names)


def is_changed(now: Any, before: Any) -> bool:
    """Tell whether a call changed a value: what it holds, its kind, or what belongs to it."""
    if not isinstance(before, torch.Tensor):
        return type(now) is not type(before) or now != before
    if type(now) not in (torch.Tensor, nn.Parameter):
        return True  # a subclass may say of itself that it equals everything
    kinds = [(x.shape, x.dtype, x.device, x.requires_grad) for x in (now, before)]
    return kinds[0] != kinds[1] or not torch.equal(*replace_nan(now, before))


def replace_nan(*arrays: torch.Tensor) -> list[torch.Tensor]:
    """Replace NaN by numbers in arrays, because NaN does not equal itself."""
    return [x.detach().nan_to_num() if x.is_floating_point() else x for x in arrays]


def second_call_case(cases: list[Case]) -> Case:
    """Return the case of a second call: that of the values, with others, in the part "again"."""
    case = next((c for c in cases if c.part == "values" and c.is_usual), cases[0])
    name = f"{case.name}, called again with other values"
    other = replace(case, name=name, part="again", driver="second_call", repeats=case.driver)
    return replace(_with_other_values(other), gradients=())


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
    # many other calls give a share of 0 or 1 as well
    tells = any(x.numel() != 1 or x.item() not in (0, 1) for x in seen.arrays.values())
    is_same = tells and seen.arrays.keys() == first.arrays.keys()
    is_same = is_same and not any(is_changed(x, first.arrays[n]) for n, x in seen.arrays.items())
    seen.facts[FRESHNESS] = "the earlier result" if is_same else "another result"
    if later.driver in ("call", "module"):  # where no gradients are needed it may write into inputs
        third = Observation()
        with torch.no_grad(), contextlib.suppress(Exception):
            DRIVERS[later.driver](answer, replace(later, record_operations=False), third)
        seen.modified = tuple(sorted({*seen.modified, *third.modified}))
    seen.facts[SIDE_EFFECTS] = "; ".join(each.facts[SIDE_EFFECTS] for each in (first, seen))
