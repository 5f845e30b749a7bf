"""The driver of ``linear_from_conv``: a function that turns one layer into another."""

from typing import Any

import torch
from torch import nn

from vitedu.checks.observing.case import Case, build_args
from vitedu.checks.observing.drivers import call_answer, driver, find_modified_args
from vitedu.checks.observing.observation import Observation, store_output, type_name

# as torch has them, whatever a cell of the answer's notebook puts in their place
STORAGE, ADDRESS = torch.Tensor.untyped_storage, torch.UntypedStorage._cdata.__get__


def memory(layer: nn.Module) -> list[torch.UntypedStorage]:
    """Hold the memory of a layer's own parameters, whatever it shows."""
    return [STORAGE(value) for value in vars(layer)["_parameters"].values() if value is not None]


def store_linear(
    layer: Any, seen: Observation, source: str, given: list[torch.UntypedStorage]
) -> dict[str, torch.Tensor]:
    """Store weight and bias of an ``nn.Linear``, whether it needs the bias and has its own memory.

    A subclass must compute with them. Returns them by name, or {} if there are none to judge.
    """
    seen.types["result"] = "nn.Linear" if isinstance(layer, nn.Linear) else type_name(layer)
    if not isinstance(layer, nn.Linear):
        return {}
    shown = {"weight": layer.weight, "bias": layer.bias}
    # what an ``nn.Linear`` has, whatever it shows
    has = vars(layer)["_parameters"] if type(layer) is nn.Linear else shown
    values = {name: value for name, value in has.items() if value is not None}
    if type(layer) is not nn.Linear:
        x = torch.randn(3, layer.weight.shape[1]).to(layer.weight)
        if not torch.allclose(layer(x), nn.functional.linear(x, **values), atol=1e-4):
            seen.types["result"] = f"{type_name(layer)}, which computes something else"
            return {}
    bias = "with a bias" if "bias" in values else "without a bias"
    seen.facts[f"a bias if and only if {source} has one"] = bias
    for name, value in values.items():
        store_output(seen, name, value)
    own = {*map(ADDRESS, given)}.isdisjoint(map(ADDRESS, memory(layer)))
    seen.facts["a copy of its own"] = "its own" if own else f"memory shared with {source}"
    return values


@driver
def layer_from_layer(answer: Any, case: Case, seen: Observation) -> None:
    """Call a function that makes an ``nn.Linear`` of a layer; note what it shows and shares."""
    args = build_args(case)
    (conv,) = args.values()
    given = memory(conv)
    result = call_answer(answer, case, args)
    values = store_linear(result, seen, "conv", given + memory(conv))
    seen.modified = find_modified_args(case, args)
    if values:
        fixed = " and ".join(name for name, value in values.items() if not value.requires_grad)
        learns = f"{fixed} cannot learn" if fixed else "they are"
        seen.facts["weight and bias are parameters that learn"] = learns
