"""Inputs for exercises that train or measure a small classifier: notebooks 04 and 06."""

from collections.abc import Callable
from typing import Any

import torch

from vitedu.checks.writing.inputs import normal


def classifier_state(
    g: torch.Generator, pixels: int, hidden: int, K: int, norm=False, dtype=torch.float32
):
    """Draw the state of a ``RecordingClassifier``."""
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


def predict(state: dict, images: torch.Tensor) -> torch.Tensor:
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
        best = predict(state, images)
        shift = torch.randint(1, K, (size,), generator=g)
        if i == 0:
            shift = torch.zeros_like(shift)
        elif i < len(sizes) - 1:
            shift = shift * torch.randint(0, 2, (size,), generator=g)
        batches.append((images, (best + shift) % K))
    return batches


def mode_cases(case: Callable, many: Any, few: Any) -> list:
    """Make the cases of an exercise that measures a model and leaves it as it was.

    ``case(words, size, aspects, part, **extra)`` makes one; ``many`` and ``few`` are sizes.
    """
    train, awake = "a model in train mode", "a model in eval mode with a part in train mode"
    left, parts = (("modes", "gradients"), "left as it was"), (("modes",), "modes of the parts")
    some, asleep = ("body", "body.1", "head"), f"{train} with a part in eval mode"
    return [
        case(train, many, ("eval",), "eval mode", training=True),
        case(awake, few, ("eval",), "eval mode", other_mode=("body.1",)),
        case(train, few, *left, training=True),
        case("a model in eval mode, with gradients", few, *left, frozen=("body.0.weight",)),
        case("gradients that were switched off before", few, *left, enabled=False),
        case(asleep, few, *parts, training=True, other_mode=("body.2",)),
        case(awake, few, *parts, other_mode=some),
        case("a model in eval mode, its graph", few, ("graph",), "no graph"),
    ]
