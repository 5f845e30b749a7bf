"""Parameters to test a block or a model with."""

import math
from collections.abc import Callable

import torch
from torch import nn

from vitedu.checks.inputs import normal


def random_state(
    make: Callable[[], nn.Module], g: torch.Generator, dtype=torch.float32
) -> dict[str, torch.Tensor]:
    """Draw parameters at which nothing hides: norms that scale and shift, biases that are not 0.

    ``make`` builds the module; it is built without memory.
    """
    with torch.device("meta"):
        shapes = {name: tuple(value.shape) for name, value in make().named_parameters()}
    state = {}
    for name, shape in shapes.items():
        values = normal(g, *shape, dtype=dtype)
        if len(shape) >= 2 and not name.endswith(("cls_token", "pos_embed")):
            values = values / math.prod(shape[1:]) ** 0.5
        if "norm" in name and name.endswith("weight"):
            values = 1 + 0.5 * values
        state[name] = values
    return state
