"""Drivers for exercises that are neither a plain function nor a layer; registered on import.

Standard library, numpy and torch only: see ``vitedu.checks.probing``.
"""

import torch
from torch import nn

from vitedu.checks.probing import (
    Case,
    Observation,
    build_args,
    changed_args,
    driver,
    keep,
    type_name,
)


@driver
def layer_from_layer(answer, case: Case, seen: Observation) -> None:
    """Call a function that turns one layer into an ``nn.Linear``; keep its parameters and whose memory they are."""
    args = build_args(case)
    result = answer(*args.values())
    seen.facts["type:result"] = "nn.Linear" if isinstance(result, nn.Linear) else type_name(result)
    seen.facts["modified"] = changed_args(case, args)
    if not isinstance(result, nn.Linear):
        return
    keep(seen, "weight", result.weight)
    seen.facts["fact:a bias if and only if conv has one"] = (
        "with a bias" if result.bias is not None else "without a bias"
    )
    if result.bias is not None:
        keep(seen, "bias", result.bias)
    (source,) = args.values()
    before = result.weight.detach().clone()
    with torch.no_grad():
        source.weight.add_(1.0)
    seen.facts["fact:a copy of its own"] = (
        "its own" if torch.equal(result.weight, before) else "memory shared with conv"
    )
