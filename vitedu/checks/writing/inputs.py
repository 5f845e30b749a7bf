"""Random inputs of the cases: sizes that differ from each other, and values from a generator."""

import math
from collections.abc import Callable, Iterable
from functools import cache

import torch
from torch import nn

SPLIT = 2**24  # a seed this large has two halves: seed // SPLIT is common to a class of students


class CheckGenerator(torch.Generator):
    """The generator of a check.

    From a seed of ``SPLIT`` on it has a separate stream for sizes. All students of a class then get
    the same sizes, so equal answers earn equal points. The values differ from student to student.

    Example:
        >>> one, other = CheckGenerator(5 * SPLIT + 1), CheckGenerator(5 * SPLIT + 2)
        >>> same = (normal(one, 3) == normal(other, 3)).any()
        >>> draw(one, 0, 10**6) == draw(other, 0, 10**6), bool(same)
        (True, False)
    """

    sizes: torch.Generator

    def __new__(cls, seed: int) -> "CheckGenerator":
        return super().__new__(cls)

    def __init__(self, seed: int):
        self.manual_seed(seed % 2**63)
        one_stream = 0 <= seed < SPLIT  # a notebook's seeds are this small
        self.sizes = self if one_stream else torch.Generator().manual_seed(seed // SPLIT % 2**63)


def draw(generator: torch.Generator, low: int, high: int) -> int:
    """Draw an integer from low .. high, both included."""
    sizes = getattr(generator, "sizes", generator)
    return int(torch.randint(low, high + 1, (), generator=sizes))


def distinct(generator: torch.Generator, count: int, low: int, high: int) -> list[int]:
    """Draw different integers from low .. high, so that a swapped axis cannot go unnoticed."""
    sizes = getattr(generator, "sizes", generator)
    order = torch.randperm(high - low + 1, generator=sizes)
    return (order[:count] + low).tolist()


def normal(
    generator: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    """Draw standard normal values of the given shape."""
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def plural(count: int, noun: str) -> str:
    """Write a count with its noun.

    Example:
        >>> plural(1, "image"), plural(3, "image")
        ('1 image', '3 images')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


@cache
def _parameter_shapes(make: Callable[..., nn.Module], *args) -> dict[str, tuple[int, ...]]:
    """List the shapes of the parameters of ``make(*args)``, which is built without memory."""
    with torch.device("meta"):
        return {name: tuple(value.shape) for name, value in make(*args).named_parameters()}


def random_state(
    make: Callable[..., nn.Module],
    args: Iterable,
    g: torch.Generator,
    dtype: torch.dtype = torch.float32,
) -> dict[str, torch.Tensor]:
    """Draw parameters at which nothing hides: norms that scale and shift, biases that are not 0.

    ``make(*args)`` builds the module, once for the same arguments.
    """
    state = {}
    for name, shape in _parameter_shapes(make, *args).items():
        values = normal(g, *shape, dtype=dtype)
        if len(shape) >= 2 and not name.endswith(("cls_token", "pos_embed")):
            values = values / math.prod(shape[1:]) ** 0.5
        if "norm" in name and name.endswith("weight"):
            values = 1 + 0.5 * values
        state[name] = values
    return state
