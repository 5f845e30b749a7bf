"""The drivers of ``weight_decay_groups`` and ``layerwise_lr_groups``: who is in which group."""

from collections.abc import Iterable, Mapping
from types import SimpleNamespace

import torch
from torch import nn

from vitedu.checks.observing.arguments import ModuleRecipe, recipe
from vitedu.checks.observing.case import Case, build_args
from vitedu.checks.observing.drivers import call_answer, driver, find_modified_args
from vitedu.checks.observing.observation import Observation, type_name

MEMBERSHIP = "every parameter of the model in exactly one group"
Rows = list[tuple[str, list[torch.Tensor]]]  # (value of an option, parameters) of each group


@driver
def groups(answer, case: Case, seen: Observation) -> None:
    """Call a function that sorts a model's parameters into groups; write down which are where."""
    decay = f"{case.args['weight_decay']:.6g}"
    fact = f"weight_decay {decay} for matrices and kernels, 0 for all others"
    _sort_parameters(answer, case, seen, "weight_decay", fact)


@driver
def rates(answer, case: Case, seen: Observation) -> None:
    """Call a function that groups a model's parameters; write down each learning rate."""
    _sort_parameters(answer, case, seen, "lr", "the learning rate of each parameter")


def _sort_parameters(answer, case: Case, seen: Observation, option: str, fact: str) -> None:
    args = build_args(case)
    names = {id(parameter): name for name, parameter in args["model"].named_parameters()}
    result = call_answer(answer, case, args)
    seen.modified = find_modified_args(case, args)
    rows, refusal = read_groups(result, option)
    seen.types["result"] = refusal or f"groups: dicts with params and {option}"
    if refusal:
        return
    if option == "weight_decay":
        seen.facts["two groups"] = f"{len(rows)} group(s)"
        if case.extra.get("order"):
            is_first = rows and rows[0][0] == f"{case.args['weight_decay']:.6g}"
            seen.facts["the group that decays first"] = "first" if is_first else "second"
    seen.facts[MEMBERSHIP] = describe_membership(names, rows)
    seen.facts[fact] = values_by_parameter(names, rows)


def describe_membership(names: dict[int, str], rows: Rows) -> str:
    """Say which parameters of a model are in no group or in several; "each once" if none are."""
    members = [id(parameter) for _, parameters in rows for parameter in parameters]
    who_is_wrong = {
        "left out": [name for key, name in names.items() if key not in members],
        "more than once": [name for key, name in names.items() if members.count(key) > 1],
        "not the model's own": ["tensors"] * any(key not in names for key in members),
    }
    wrong = "; ".join(f"{words}: {', '.join(who)}" for words, who in who_is_wrong.items() if who)
    return wrong or "each once"


def values_by_parameter(names: dict[int, str], rows: Rows) -> str:
    """List the parameters of each value of the option, over all groups."""
    by_value: dict[str, list[str]] = {}
    for value, parameters in rows:
        own = [names[id(parameter)] for parameter in parameters if id(parameter) in names]
        by_value.setdefault(value, []).extend(own)
    return "; ".join(f"{v}: {', '.join(sorted(who))}" for v, who in sorted(by_value.items()) if who)


def read_groups(result, option: str) -> tuple[Rows, str]:
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
        rows.append((value, parameters))
    return rows, ""


@recipe
class Network(ModuleRecipe):
    """A small model for exercises about named parameters.

    ``kind`` is one of those with the names of the course's ViT: "encoder", "shallow", "deep",
    "frozen", "frozen_below" (all but the last two blocks), "shared" (two parts share one matrix),
    "nested" (inside another model); or "other_names".
    """

    def __init__(self, kind: str, width: int):
        self.kind, self.width = kind, width

    def build(self) -> nn.Module:
        """Build the model, with the same weights every time."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            if self.kind == "other_names":
                return _misleading_names(self.width)
            depths = {"shallow": 3, "frozen_below": 4, "deep": 12}  # that has numbers of two digits
            model = _encoder(self.width, depths.get(self.kind, 1))
            if self.kind == "frozen":
                model.patch_embed.requires_grad_(False)
            elif self.kind == "frozen_below":
                for name, parameter in model.named_parameters():
                    last = ("blocks.2", "blocks.3", "norm", "head")
                    parameter.requires_grad_(name.startswith(last))
            elif self.kind == "shared":
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
