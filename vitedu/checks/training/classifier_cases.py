"""Inputs for exercises that train or measure a small classifier: notebooks 04 and 06."""

from collections.abc import Callable
from typing import Any

import torch

from vitedu.checks.observing.case import Case
from vitedu.checks.training.evaluation_driver import RecordingClassifier
from vitedu.checks.writing.inputs import distinct, normal


def classifier_state(g: torch.Generator, pixels: int, hidden: int, K: int, norm: bool):
    """Draw the state of a ``RecordingClassifier``: with biases, or with a norm in their place."""
    state = {
        "body.0.weight": normal(g, hidden, pixels) / pixels**0.5,
        "head.weight": 1.5 * normal(g, K, hidden) / hidden**0.5,
    }
    if not norm:
        return state | {"body.0.bias": normal(g, hidden), "head.bias": normal(g, K)}
    return state | {
        "body.2.weight": 1 + 0.3 * normal(g, hidden),
        "body.2.bias": 0.3 * normal(g, hidden),
        "body.2.running_mean": 0.3 * normal(g, hidden),
        "body.2.running_var": 0.5 + torch.rand(hidden, generator=g),
        "body.2.num_batches_tracked": torch.tensor(7),
    }


@torch.no_grad()
def predict(state: dict[str, torch.Tensor], images: torch.Tensor) -> torch.Tensor:
    """Give the classes (B,) that a classifier predicts: in eval mode if it has a norm."""
    return RecordingClassifier(state).train("head.bias" in state)(images).argmax(dim=-1)


def draw_sizes(g: torch.Generator) -> tuple[list[int], list[int]]:
    """Draw the sizes of images and of a classifier: (C, H, W), and (K, hidden)."""
    return distinct(g, 3, 1, 4), distinct(g, 2, 3, 5)


def draw_case(
    g: torch.Generator,
    net: tuple[list[int], list[int]],
    driver: str,
    words: str,
    sizes: list[int],
    part: str = "values",
    *options: str,
    norm: bool = False,
    scales: tuple[float, ...] = (2.0,),
    args: dict[str, Any] | None = None,
    **fields: Any,
) -> Case:
    """Draw a classifier of ``draw_sizes`` and batches, whose images are scaled in turn.

    The labels of the first batch are all right, those of the last all wrong, so that weighted means
    differ. ``args`` are the arguments behind model and batches, ``options`` are the driver's.
    """
    (C, H, W), (K, hidden) = net
    state, batches = classifier_state(g, C * H * W, hidden, K, norm), list[tuple]()
    for i, size in enumerate(sizes):
        images = scales[i % len(scales)] * normal(g, size, C, H, W)
        shift = torch.randint(1, K, (size,), generator=g)
        if i == 0 or i < len(sizes) - 1:
            shift *= torch.randint(0, 2, (size,), generator=g) if i else 0
        batches.append((images, (predict(state, images) + shift) % K))
    name = f"{words} (batches of {', '.join(map(str, sizes))})"
    return Case(
        name,
        {"model": None, "batches": batches} | (args or {}),
        part,
        driver=driver,
        state=state,
        options=options,
        outputs=("mean_loss", "accuracy"),
        number=True,
        rtol=1e-4,
        atol=1e-5,
        **fields,
    )


def mode_cases(case: Callable[..., Case], many: Any, few: Any) -> list[Case]:
    """Make the cases of an exercise that measures a model and leaves it as it was.

    ``case(words, size, part, *options, **fields)`` makes one; ``many`` and ``few`` are sizes.
    """
    train, awake = "a model in train mode", "a model in eval mode with a part in train mode"
    left, parts = ("left as it was", "modes", "gradients"), ("modes of the parts", "modes")
    some, asleep = ("body", "body.1", "head"), f"{train} with a part in eval mode"
    return [
        case(train, many, "eval mode", "eval", training=True),
        case(awake, few, "eval mode", "eval", other_mode=("body.1",)),
        case(train, few, *left, training=True),
        case("a model in eval mode, with gradients", few, *left, frozen=("body.0.weight",)),
        case("gradients that were switched off before", few, *left, "gradients off"),
        case(asleep, few, *parts, training=True, other_mode=("body.2",)),
        case(awake, few, *parts, other_mode=some),
        case("a model in eval mode, its graph", few, "no graph", "graph"),
    ]
