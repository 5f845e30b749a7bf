"""The driver of ``weight_decay_groups`` and ``layerwise_lr_groups``: who is in which group."""

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from vitedu.checks.observing.arguments import ModuleRecipe, recipe
from vitedu.checks.observing.case import Case, build_args
from vitedu.checks.observing.drivers import call_answer, driver, find_modified_args
from vitedu.checks.observing.observation import Observation, type_name

Rows = list[tuple[str, list[torch.Tensor]]]  # (value of an option, parameters) of each group


@driver
def groups(answer: Any, case: Case, seen: Observation) -> None:
    """Call a function that sorts a model's parameters into groups; write down which are where."""
    args = build_args(case)
    names = {id(parameter): name for name, parameter in args["model"].named_parameters()}
    result = call_answer(answer, case, args)
    seen.modified = find_modified_args(case, args)
    option = "weight_decay" if "weight_decay" in args else "lr"
    rows, refusal = read_groups(result, option)
    seen.types["result"] = refusal or f"groups: dicts with params and {option}"
    if refusal:
        return
    if option == "weight_decay":
        seen.facts["two groups"] = f"{len(rows)} group(s)"
        if "order" in case.options:
            is_first = rows and rows[0][0] == f"{args['weight_decay']:.6g}"
            seen.facts["the group that decays first"] = "first" if is_first else "second"
            return
    seen.facts[f"every parameter once, each with its {option}"] = describe_groups(names, rows)


def describe_groups(names: dict[int, str], rows: Rows) -> str:
    """List the parameters of each value of the option, over all groups, and those of no group."""
    rest = dict(names)
    by_value: dict[str, list[str]] = {}
    for value, parameters in rows:
        for key in map(id, parameters):
            if key not in names:
                by_value["not the model's own"] = ["tensors"]
                continue
            once = rest.pop(key, f"{names[key]} once more")
            by_value.setdefault(value, []).append(once)
    by_value["in no group"] = [*rest.values()]
    return "; ".join(f"{v}: {', '.join(sorted(who))}" for v, who in sorted(by_value.items()) if who)


def read_groups(result: Any, option: str) -> tuple[Rows, str]:
    """Read the groups as an optimizer would.

    Returns:
        (value of the option, parameters) for each group, and "" or why an optimizer would refuse
        the groups.
    """
    if isinstance(result, (torch.Tensor, str, dict)) or not isinstance(result, Iterable):
        return [], type_name(result)
    rows = []
    for group in result:
        if not isinstance(group, Mapping) or "params" not in group:
            return [], f"a group that is a {type_name(group)} without 'params'"
        parameters = group["params"]
        if isinstance(parameters, (set, frozenset, str)) or not isinstance(parameters, Iterable):
            return [], f"params of type {type_name(parameters)}, which no optimizer takes"
        parameters = [parameters] if isinstance(parameters, torch.Tensor) else parameters
        parameters = [pair[1] if isinstance(pair, tuple) else pair for pair in parameters]
        for parameter in parameters:
            if not isinstance(parameter, torch.Tensor):
                return [], f"params that hold a {type_name(parameter)}"
        value = group.get(option)
        value = "the optimizer's default" if value is None else f"{float(value):.6g}"
        rows.append((value, parameters))
    return rows, ""


@recipe
class Network(ModuleRecipe):
    """A small model with the names of the course's ViT, for exercises about named parameters.

    Parameters whose names begin with ``frozen`` do not learn. ``kind`` may be "shared" (two parts
    share one matrix), "nested" (inside another model) or "other names".
    """

    def __init__(self, width: int, depth: int = 1, kind: str = "", frozen: tuple[str, ...] = ()):
        self.width, self.depth, self.kind, self.frozen = width, depth, kind, frozen

    def build(self) -> nn.Module:
        """Build the model, with the same weights every time."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            if self.kind == "other names":
                return _misleading_names(self.width)
            model = _encoder(self.width, self.depth)
            for name, parameter in model.named_parameters():
                parameter.requires_grad_(not name.startswith(self.frozen))
            if self.kind == "shared":
                model.more = nn.Linear(self.width, 3 * self.width, bias=False)
                model.more.weight = model.get_parameter("blocks.0.qkv.weight")
            elif self.kind == "nested":
                return nn.ModuleDict({"encoder": model, "classifier": nn.Linear(3, 1)})
            return model


def _encoder(width: int, depth: int) -> nn.Module:
    """Build a model whose parts are named as in the course's ViT."""
    model = nn.Module()
    model.cls_token = nn.Parameter(torch.zeros(1, 1, width))
    model.pos_embed = nn.Parameter(torch.zeros(1, 5, width))
    model.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(1, width, 2, stride=2)})
    model.config = SimpleNamespace(depth=depth)  # type: ignore[assignment]
    model.blocks = nn.ModuleList(
        nn.ModuleDict({"norm1": nn.LayerNorm(width), "qkv": nn.Linear(width, 3 * width)})
        for _ in range(depth)
    )
    model.norm, model.head = nn.LayerNorm(width), nn.Linear(width, 3)
    return model


def _misleading_names(width: int) -> nn.Module:
    """Build a model whose part names say nothing about their kind, or something misleading."""
    parts = {
        "stem": nn.Sequential(nn.Conv1d(2, width, 3, bias=False), nn.BatchNorm1d(width)),
        "ln": nn.LayerNorm(width),
        "attn": nn.MultiheadAttention(width, 1),
        "groups": nn.GroupNorm(1, width),
        "normalized_head": nn.Linear(width, 3),
        "debias": nn.Linear(width, 2, bias=False),
        "compose": nn.Linear(width, 2, bias=False),
        "tokenizer": nn.Linear(width, 2, bias=False),
    }
    return nn.ModuleDict(parts)
