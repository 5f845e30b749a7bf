"""A trained model names photographs: one of the reader's own, and test images beside it."""

from typing import Any

import torch
from torch import nn

from vitedu.data.photograph import square_photograph
from vitedu.fitting.evaluating import predict
from vitedu.plots.style import CourseFigure
from vitedu.plots.training import show_named

LARGE = 224  # pixels: a side of the photograph as people see it


def show_names(model: nn.Module, data: Any, own: Any, *, line: str = "") -> CourseFigure:
    """Draw what a model calls a photograph of the reader's own, and the first 16 test images.

    Args:
        model: maps normalised images to logits (N, K).
        data: has ``test`` images, ``class_names``, ``image_size``, ``mean`` and ``std``.
        own: as ``square_photograph`` reads it.
        line: one more line below the photograph, such as an accuracy.

    Raises:
        ValueError: there is no such photograph.
    """
    large, small = (square_photograph(own, size) for size in (LARGE, data.image_size))
    images, labels = data.test.images[:16], data.test.labels[:16]
    *beliefs, of_own = predict(model, torch.cat([images, torch.from_numpy(small)[None]]), data)
    shares, classes = of_own.topk(min(3, len(of_own)))
    words = [f"{data.class_names[k]} {p:.0%}" for p, k in zip(shares, classes, strict=True)]
    words = [f"the model sees {data.image_size} x {data.image_size} pixels:", ", ".join(words)]
    words += [line] * bool(line)
    answers = [data.class_names[belief.argmax()] for belief in beliefs]
    return show_named(large, words, images, [data.class_names[k] for k in labels], answers)
