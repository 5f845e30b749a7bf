"""Recipes: arguments that are not plain data. Each is built anew for every call from plain fields.

Role: recipes that several chapters use, registered by name, so that a case can be sent to another
process; others stand beside drivers. Imports the standard library and torch only, and no reference.
"""

import torch
from torch import nn

from vitedu.checks.observing.case import Recipe
from vitedu.checks.observing.drivers import is_changed, module_state

RECIPES: dict[str, type[Recipe]] = {}


def recipe(kind: type[Recipe]) -> type[Recipe]:
    """Register a recipe under its class name; ``kind(**recipe.plain())`` makes an equal one."""
    RECIPES[kind.__name__] = kind
    return kind


class ModuleRecipe(Recipe):
    """A module, which a call must leave as it was built: an input is never modified."""

    def is_modified(self, module: nn.Module) -> bool:
        """Tell whether a value, the mode of a part, or what learns changed."""
        fresh = self.build()
        now, before = nn.Module.state_dict(module), nn.Module.state_dict(fresh)
        if module_state(module) != module_state(fresh) or now.keys() != before.keys():
            return True
        return any(is_changed(now[name], x) for name, x in before.items())


@recipe
class Layer(ModuleRecipe):
    """A layer with the given weight and bias: a norm, linear, or a convolution of patches."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        self.weight, self.bias = weight, bias

    def build(self) -> nn.Module:
        """Build a layer norm if the weight is a vector, a linear layer if it is a matrix."""
        shape, has_bias = list(self.weight.shape), self.bias is not None
        layer: nn.Module
        if len(shape) == 1:
            layer = nn.LayerNorm(shape, 1e-6, bias=has_bias)
        elif len(shape) == 2:
            layer = nn.Linear(shape[1], shape[0], bias=has_bias)
        else:  # (D, C, P, P)
            layer = nn.Conv2d(shape[1], shape[0], shape[2], stride=shape[2], bias=has_bias)
        layer = layer.to(self.weight.dtype)
        layer.load_state_dict({name: x for name, x in self.plain().items() if x is not None})
        return layer


@recipe
class Wrapped(Layer):
    """The same inside an ``nn.Sequential``, which has no weight: it can only be called."""

    def build(self) -> nn.Module:
        """Build the layer and wrap it."""
        return nn.Sequential(super().build())
