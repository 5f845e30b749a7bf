"""The drivers of ``weight_decay_groups`` and ``layerwise_lr_groups``: who is in which group.

Imports the standard library and torch only, for the grader's worker.
"""

from collections.abc import Iterable, Mapping
from types import SimpleNamespace

import torch
from torch import nn

from vitedu.checks.arguments import ModuleRecipe, recipe
from vitedu.checks.case import Case, build_args
from vitedu.checks.drivers import call_answer, driver, find_modified_args
from vitedu.checks.observation import Observation, type_name


@driver
def groups(answer, case: Case, seen: Observation) -> None:
    """Call a function that sorts a model's parameters into groups; write down which are where."""
    args = build_args(case)
    names = {id(parameter): name for name, parameter in args["model"].named_parameters()}
    result = call_answer(answer, case, args)
    seen.modified = find_modified_args(case, args)
    rows, refusal = read_groups(result, "weight_decay")
    seen.types["result"] = refusal or "groups: dicts with params and weight_decay"
    if refusal:
        return
    seen.facts["two groups"] = f"{len(rows)} group(s)"
    seen.facts[MEMBERSHIP] = describe_membership(names, rows)
    decay = f"{case.args['weight_decay']:.6g}"
    fact = f"weight_decay {decay} for matrices and kernels, 0 for all others"
    seen.facts[fact] = values_by_parameter(names, rows)


@driver
def rates(answer, case: Case, seen: Observation) -> None:
    """Call a function that groups a model's parameters; write down each learning rate."""
    args = build_args(case)
    names = {id(parameter): name for name, parameter in args["model"].named_parameters()}
    result = call_answer(answer, case, args)
    seen.modified = find_modified_args(case, args)
    rows, refusal = read_groups(result, "lr")
    seen.types["result"] = refusal or "groups: dicts with params and lr"
    if not refusal:
        seen.facts[MEMBERSHIP] = describe_membership(names, rows)
        seen.facts["the learning rate of each parameter"] = values_by_parameter(names, rows)


MEMBERSHIP = "every parameter of the model in exactly one group"


def describe_membership(names: dict[int, str], rows: list[tuple[str, list[torch.Tensor]]]) -> str:
    """Say which parameters of a model are in no group or in several; "each once" if none are."""
    members = [id(parameter) for _, parameters in rows for parameter in parameters]
    who_is_wrong = {
        "left out": [name for key, name in names.items() if key not in members],
        "more than once": [name for key, name in names.items() if members.count(key) > 1],
        "not the model's own": ["tensors"] * any(key not in names for key in members),
    }
    wrong = "; ".join(f"{words}: {', '.join(who)}" for words, who in who_is_wrong.items() if who)
    return wrong or "each once"


def values_by_parameter(names: dict[int, str], rows: list[tuple[str, list[torch.Tensor]]]) -> str:
    """List the parameters of each value of the option, over all groups."""
    by_value: dict[str, list[str]] = {}
    for value, parameters in rows:
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
    """A small model for exercises about named parameters; ``kind`` chooses a method below."""

    def __init__(self, kind: str, width: int):
        self.kind, self.width = kind, width

    def build(self) -> nn.Module:
        """Build the model, with the same weights every time."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return getattr(self, f"_{self.kind}")(self.width)

    @staticmethod
    def _encoder(width: int, depth: int = 1) -> nn.Module:
        """Build a model whose parts are named as in the course's ViT."""
        model = nn.Module()
        model.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        model.pos_embed = nn.Parameter(torch.zeros(1, 5, width))
        model.patch_embed = nn.Module()
        model.patch_embed.proj = nn.Conv2d(1, width, 2, stride=2)
        model.config = SimpleNamespace(depth=depth)  # type: ignore[assignment]
        model.blocks = nn.ModuleList(Network._block(width) for _ in range(depth))
        model.norm = nn.LayerNorm(width)
        model.head = nn.Linear(width, 3)
        return model

    @staticmethod
    def _block(width: int) -> nn.Module:
        """Build a part whose own parts are named as in a block."""
        block = nn.Module()
        block.norm1 = nn.LayerNorm(width)
        block.qkv = nn.Linear(width, 3 * width)
        return block

    @staticmethod
    def _deep(width: int, depth: int = 12) -> nn.Module:
        """Build a model whose blocks have numbers of two digits."""
        return Network._encoder(width, depth)

    @staticmethod
    def _shallow(width: int) -> nn.Module:
        """Build a model with three blocks."""
        return Network._deep(width, 3)

    @staticmethod
    def _frozen_below(width: int) -> nn.Module:
        """Build a model with four blocks in which everything below the last two is frozen."""
        model = Network._deep(width, 4)
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name.startswith(("blocks.2", "blocks.3", "norm", "head")))
        return model

    @staticmethod
    def _other_names(width: int) -> nn.Module:
        """Build a model whose part names say nothing about their kind, or something misleading."""
        model = nn.Module()
        model.stem = nn.Sequential(nn.Conv1d(2, width, 3, bias=False), nn.BatchNorm1d(width))
        model.ln = nn.LayerNorm(width)
        model.attn = nn.MultiheadAttention(width, 1)
        model.groups = nn.GroupNorm(1, width)
        model.normalized_head = nn.Linear(width, 3)
        model.debias = nn.Linear(width, 2, bias=False)
        model.compose = nn.Linear(width, 2, bias=False)
        model.tokenizer = nn.Linear(width, 2, bias=False)
        return model

    @staticmethod
    def _nested(width: int) -> nn.Module:
        """Build a model whose class token and positions belong to a submodule."""
        model = nn.Module()
        model.encoder = Network._encoder(width)
        model.classifier = nn.Linear(3, 1)
        return model

    @staticmethod
    def _frozen(width: int) -> nn.Module:
        """Build a model with one frozen part."""
        model = Network._encoder(width)
        model.patch_embed.requires_grad_(False)
        return model

    @staticmethod
    def _shared(width: int) -> nn.Module:
        """Build a model in which two parts share one matrix."""
        model = Network._encoder(width)
        model.more = nn.Linear(width, 3 * width, bias=False)
        model.more.weight = model.get_parameter("blocks.0.qkv.weight")
        return model
