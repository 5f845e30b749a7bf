"""Random inputs of the cases: sizes that differ from each other, and values from a generator."""

import math
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import torch
from torch import nn

SPLIT = 2**24  # a seed this large has two halves: seed // SPLIT is common to a class of students


class Deal(torch.Generator):
    """The generator of a check.

    From a seed of ``SPLIT`` on it has a separate stream for sizes. All students of a class then get
    the same sizes, so equal answers earn equal points. The values differ from student to student.

    Example:
        >>> one, other = Deal(5 * SPLIT + 1), Deal(5 * SPLIT + 2)
        >>> same = (normal(one, 3) == normal(other, 3)).any()
        >>> draw(one, 0, 10**6) == draw(other, 0, 10**6), bool(same)
        (True, False)
    """

    sizes: torch.Generator

    def __new__(cls, seed: int) -> "Deal":
        return super().__new__(cls)

    def __init__(self, seed: int):
        self.manual_seed(seed % 2**63)
        one_stream = 0 <= seed < SPLIT  # a notebook's seeds are this small
        self.sizes = self if one_stream else torch.Generator().manual_seed(seed // SPLIT % 2**63)


def _of_sizes(generator: torch.Generator) -> torch.Generator:
    return generator.sizes if isinstance(generator, Deal) else generator


def draw(generator: torch.Generator, low: int, high: int) -> int:
    """Draw an integer from low .. high, both included."""
    return int(torch.randint(low, high + 1, (), generator=_of_sizes(generator)))


def distinct(generator: torch.Generator, count: int, low: int, high: int) -> list[int]:
    """Draw different integers from low .. high, so that a swapped axis cannot go unnoticed."""
    return (torch.randperm(high - low + 1, generator=_of_sizes(generator))[:count] + low).tolist()


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
def _shapes(make: Callable[..., nn.Module], *args) -> dict[str, tuple[int, ...]]:
    """List the shapes of the parameters of ``make(*args)``, which is built without memory."""
    with torch.device("meta"):
        return {name: tuple(value.shape) for name, value in make(*args).named_parameters()}


def random_state(
    make: Callable[..., nn.Module], args: Iterable, g: torch.Generator, dtype=torch.float32
) -> dict[str, torch.Tensor]:
    """Draw parameters at which nothing hides: norms that scale and shift, biases that are not 0.

    ``make(*args)`` builds the module, once for the same arguments.
    """
    state = {}
    for name, shape in _shapes(make, *args).items():
        values = normal(g, *shape, dtype=dtype)
        if len(shape) >= 2 and not name.endswith(("cls_token", "pos_embed")):
            values = values / math.prod(shape[1:]) ** 0.5
        if "norm" in name and name.endswith("weight"):
            values = 1 + 0.5 * values
        state[name] = values
    return state


def classifier_state(
    g: torch.Generator, pixels: int, hidden: int, K: int, norm=False, dtype=torch.float32
):
    """Draw the state of a ``drivers.WatchedClassifier``."""
    state = {
        "body.0.weight": normal(g, hidden, pixels) / pixels**0.5,
        "head.weight": 1.5 * normal(g, K, hidden) / hidden**0.5,
    }
    if norm:
        state |= {
            "body.2.weight": 1 + 0.3 * normal(g, hidden),
            "body.2.bias": 0.3 * normal(g, hidden),
            "body.2.running_mean": 0.3 * normal(g, hidden),
            "body.2.running_var": 0.5 + torch.rand(hidden, generator=g),
        }
    state = {name: value.to(dtype) for name, value in state.items()}
    if norm:
        state["body.2.num_batches_tracked"] = torch.tensor(7)
    return state


def predicted(state: dict, images: torch.Tensor) -> torch.Tensor:
    """Give the classes (B,) that the classifier of ``classifier_state`` predicts in eval mode."""
    hidden = images.flatten(1) @ state["body.0.weight"].T
    if "body.2.weight" in state:
        scale = (state["body.2.running_var"] + 1e-5).rsqrt() * state["body.2.weight"]
        hidden = (0.5 * hidden - state["body.2.running_mean"]) * scale + state["body.2.bias"]
    return (hidden @ state["head.weight"].T).argmax(dim=-1)


def draw_batches(g: torch.Generator, state: dict, sizes, shape, scales=(2.0,)):
    """Draw batches: the first all right, the last all wrong, so that weighted means differ."""
    K, dtype = len(state["head.weight"]), state["head.weight"].dtype
    batches = []
    for i, size in enumerate(sizes):
        images = scales[i % len(scales)] * normal(g, size, *shape, dtype=dtype)
        best = predicted(state, images)
        shift = torch.randint(1, K, (size,), generator=g)
        if i == 0:
            shift = torch.zeros_like(shift)
        elif i < len(sizes) - 1:
            shift = shift * torch.randint(0, 2, (size,), generator=g)
        batches.append((images, (best + shift) % K))
    return batches


def mode_cases(case: Callable, many: Any, few: Any) -> list:
    """Make the cases of an exercise that measures a model and leaves its modes and gradients alone.

    ``case(words, size, fact, part, **extra)`` makes one; ``many`` and ``few`` are sizes.
    """
    train, modes = "a model in train mode", ("modes", "modes restored")
    gradients, part_awake = (
        ("gradients", "no gradients"),
        "a model in eval mode with a part in train mode",
    )
    return [
        case(train, many, "eval", "eval mode", training=True),
        case(part_awake, few, "eval", "eval mode", other_mode=("body.1",)),
        case(train, few, *modes, training=True),
        case("a model in eval mode", few, *modes),
        case(
            f"{train} with a part in eval mode", few, *modes, training=True, other_mode=("body.2",)
        ),
        case(part_awake, few, *modes, other_mode=("body", "body.1", "head")),
        case("gradients", few, *gradients, frozen=("body.0.weight",)),
        case("gradients that were switched off before", few, *gradients, enabled=False),
    ]


def partners(g: torch.Generator, B: int) -> torch.Tensor:
    """Draw a partner for each of B items: no item's own, and if B > 2 no two are each other's."""
    order = torch.randperm(B, generator=g)
    permutation = torch.empty(B, dtype=torch.int64)
    permutation[order] = order.roll(-1)  # one ring through all of them
    return permutation


def labelled_pairs(g, B: int, C: int, H: int, W: int, K: int, dtype=torch.float32) -> dict:
    """Draw images, labels and partners to mix.

    The last class never occurs, and partners have other labels if they can.
    """
    permutation = partners(g, B)
    labels, at = torch.empty(B, dtype=torch.int64), 0
    start = int(torch.randint(K - 1, (), generator=g))
    for step in range(B):  # along the ring
        labels[at] = (start + step) % (K - 1)
        at = int(permutation[at])
    if dtype == torch.uint8:
        # black and white: partners share pixels
        images = torch.randint(0, 2, (B, C, H, W), generator=g, dtype=torch.uint8)
    else:
        images = normal(g, B, C, H, W, dtype=dtype)
    return {"images": images, "labels": labels, "num_classes": K, "permutation": permutation}
