"""The driver of ``VisionTransformer``'s starting values, and configurations as arguments."""

import re
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from vitedu.checks.observing.arguments import recipe
from vitedu.checks.observing.case import Case, Recipe
from vitedu.checks.observing.drivers import construct, driver
from vitedu.checks.observing.observation import Observation

SPREAD = (0.01, 0.028)  # ``initialise`` draws with 0.0176; torch's own start has more than 0.04


@recipe
class Config(Recipe):
    """A ``ViTConfig`` with these fields."""

    def __init__(self, **fields: Any):
        self.fields = fields

    def plain(self) -> dict[str, Any]:
        """Return the fields."""
        return dict(self.fields)

    def build(self):
        """Build the configuration."""
        from vitedu.vit import ViTConfig

        return ViTConfig(**self.fields)

    def __str__(self) -> str:
        fields = {name: x for name, x in self.fields.items() if (name, x) != ("qkv_bias", True)}
        return ", ".join(f"{re.sub('_size$|^in_|^num_', '', n)} {x}" for n, x in fields.items())


@driver
def starting_values(answer: Any, case: Case, seen: Observation) -> None:
    """Build a model, and name the parameters that do not start as ``initialise`` draws them."""
    model = construct(answer, replace(case, keeps_parameters=True), seen)
    if model is None:
        return
    drawn = {name: getattr(model, name, None) for name in ("cls_token", "pos_embed")}
    zero = {}
    for name, part in nn.Module.named_modules(model):
        if isinstance(part, nn.Linear):
            drawn[f"{name}.weight"], zero[f"{name}.bias"] = part.weight, part.bias
    wrong = [
        f"{name} has {float(value.std()):.2g}"
        for name, value in drawn.items()
        if isinstance(value, torch.Tensor) and not SPREAD[0] < value.std() < SPREAD[1]
    ]
    seen.facts["class token, positions and linear weights with a spread near 0.02"] = (
        ", ".join(wrong[:3]) or "near 0.02"
    )
    wrong = [name for name, value in zero.items() if value is not None and value.any()]
    seen.facts["linear biases of 0"] = f"drawn: {', '.join(wrong[:3])}" if wrong else "0"
