"""Read groups of parameters as an optimizer would: for two exercises that make them.

Imports the standard library and torch only, for the grader's worker.
"""

from collections.abc import Iterable, Mapping

import torch

from vitedu.checks.observation import type_name

ONCE = "every parameter of the model in exactly one group"


def not_once(names: dict[int, str], found: list[tuple[str, list[torch.Tensor]]]) -> str:
    """Say which parameters of a model are in no group or in several; "each once" if none are."""
    members = [id(parameter) for _, parameters in found for parameter in parameters]
    who_is_wrong = {
        "left out": [name for key, name in names.items() if key not in members],
        "more than once": [name for key, name in names.items() if members.count(key) > 1],
        "not the model's own": ["tensors"] * any(key not in names for key in members),
    }
    wrong = "; ".join(f"{words}: {', '.join(who)}" for words, who in who_is_wrong.items() if who)
    return wrong or "each once"


def values_by_parameter(names: dict[int, str], found: list[tuple[str, list[torch.Tensor]]]) -> str:
    """List the parameters of each value of the option, over all groups."""
    by_value: dict[str, list[str]] = {}
    for value, parameters in found:
        own = [names[id(parameter)] for parameter in parameters if id(parameter) in names]
        by_value.setdefault(value, []).extend(own)
    return "; ".join(f"{v}: {', '.join(sorted(who))}" for v, who in sorted(by_value.items()) if who)


def read_groups(result, option: str) -> tuple[list[tuple[str, list[torch.Tensor]]], str]:
    """Read the groups as an optimizer would.

    Returns:
        (value of the option, parameters) for each group, and "" or why an optimizer would refuse
        the groups.
    """
    if isinstance(result, (torch.Tensor, str, dict)) or not isinstance(result, Iterable):
        return [], type_name(result)
    found = []
    for group in result:
        if not isinstance(group, Mapping) or "params" not in group:
            return [], f"a group that is a {type_name(group)} without 'params'"
        parameters = group["params"]
        if isinstance(parameters, torch.Tensor):
            parameters = [parameters]
        if isinstance(parameters, (set, frozenset, str)) or not isinstance(parameters, Iterable):
            return [], f"params of type {type_name(parameters)}, which no optimizer takes"
        parameters = [pair[1] if isinstance(pair, tuple) else pair for pair in parameters]
        for parameter in parameters:
            if not isinstance(parameter, torch.Tensor):
                return [], f"params that hold a {type_name(parameter)}"
        value = group.get(option)
        value = "the optimizer's default" if value is None else f"{float(value):.6g}"
        found.append((value, parameters))
    return found, ""
