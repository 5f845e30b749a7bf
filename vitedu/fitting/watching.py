"""Sixteen images to watch while a loop of one's own learns.

Role: batches in, the same batches out, and meanwhile a picture below the running cell. Not here: a
run with buttons (``panel``), the drawing (``plots.training``).
"""

import math
import time
from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.fitting.evaluating import predict
from vitedu.fitting.history import broken_loss
from vitedu.ground.progressbar import notebook_display

SECONDS = 3.0  # between two pictures
COUNT = 16  # of the images, the first ones for validation


class Watch:
    """Hand batches to a loop, and draw its losses and what its model says of some images.

    The losses are those of the logits that the loop itself computes, so nothing is computed twice.

    Args:
        model: maps images to logits.
        data: has ``validation`` and ``class_names``.
        steps: of the whole run.

    Example:
        >>> watch = Watch(model, data, steps=704)  # doctest: +SKIP
        >>> train_one_epoch(model, watch(batches), optimizer, scheduler)  # doctest: +SKIP
    """

    def __init__(self, model: nn.Module, data: Any, steps: int):
        self.model, self.data, self.steps = model, data, steps
        self.images = data.validation.images[:COUNT]
        self.truth = [data.class_names[k] for k in data.validation.labels[:COUNT]]
        self.losses: list[float] = []
        self.display = notebook_display()

    def __call__(self, batches: Iterable) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield batches as they are.

        Raises:
            RuntimeError: the loss stopped being a number.
        """
        logits: list[torch.Tensor] = []
        hook = self.model.register_forward_hook(lambda *call: logits.append(call[-1].detach()))
        drawn = time.monotonic()
        try:
            for images, labels in batches:
                yield images, labels
                if logits:
                    self.losses.append(F.cross_entropy(logits[-1].float(), labels).item())
                    logits.clear()
                    if not math.isfinite(self.losses[-1]):
                        where = f"step {len(self.losses)} of {self.steps}"
                        raise RuntimeError(broken_loss(where, ["a third of the learning rate"]))
                if time.monotonic() - drawn > SECONDS:
                    self.draw()
                    drawn = time.monotonic()
        except GeneratorExit:  # nobody asks for the next batch: the loop was interrupted
            self.draw(f"stopped at {len(self.losses)} of {self.steps} steps")
            raise
        finally:
            hook.remove()
        self.draw()

    def draw(self, what: str = "") -> None:
        """Draw the present state below a notebook's cell, under a title."""
        if self.display is None:
            return
        from vitedu.plots.training import show_moment  # matplotlib: only where it is shown

        answers = predict(self.model, self.images, self.data).argmax(dim=-1).tolist()
        names = [self.data.class_names[k] for k in answers]
        figure = show_moment(self.losses, [], self.steps, self.images, self.truth, names, what)
        self.display(*figure.outputs(dots=1))
