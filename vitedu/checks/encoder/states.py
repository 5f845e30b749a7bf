"""Parameters to test a block or a model with."""

import math

import torch

from vitedu.checks.inputs import normal


def random_state(
    shapes: dict[str, tuple[int, ...]], g: torch.Generator, dtype=torch.float32
) -> dict:
    """Draw parameters at which nothing hides: norms that scale and shift, biases that are not 0."""
    state = {}
    for name, shape in shapes.items():
        values = normal(g, *shape, dtype=dtype)
        if len(shape) >= 2 and not name.endswith(("cls_token", "pos_embed")):
            values = values / math.prod(shape[1:]) ** 0.5
        if "norm" in name and name.endswith("weight"):
            values = 1 + 0.5 * values
        state[name] = values
    return state
