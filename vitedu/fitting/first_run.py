"""The first run of notebook 01: a small ViT learns three kinds of photographs while one looks.

Role: ``FirstRun``, a panel that shows names and a count, and no loss. Not here: the run of all ten
kinds (``recipes.thread_recipe``), what is drawn (``plots.training``).
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import torch

from vitedu.data.cifar10 import CLASS_NAMES
from vitedu.data.loading import Data, Split, load_cifar10
from vitedu.data.photograph import square_photograph
from vitedu.fitting.history import History
from vitedu.fitting.loop import Run
from vitedu.fitting.naming import LARGE
from vitedu.fitting.panel import TrainingPanel
from vitedu.fitting.recipes import thread_recipe
from vitedu.ground.stopwatch import seconds_in_turn
from vitedu.plots.explorer import show_live
from vitedu.plots.style import CourseFigure
from vitedu.plots.training import show_named
from vitedu.vit import VisionTransformer, ViTConfig

LEAST = 250 / 20  # steps for each second that is asked for: fewer teach too little
IMAGES = 13_500 / 20  # training images for each second: all of three kinds in twenty
TIMED = 20  # steps of a copy, by which the run is sized
PATIENCE = 60  # seconds; a run that would take longer is shown as it was recorded elsewhere
USUAL = ("airplane", "automobile", "cat"), "chelsea"
RECORDED = (  # one run of these, 423 steps: step, the kinds named by number, and the student's
    (0, "1" * 16, "automobile 44%"),
    (40, "2200212212202021", "cat 72%"),
    (423, "1100120211202010", "cat 94%"),
)


class FirstRun(TrainingPanel):
    """Train the textbook's model of 0.17 M parameters on a few kinds, and show what it names.

    422 steps, three seeds: 79.7 to 80.5 % of new airplanes, automobiles and cats are named right,
    and 56.2 to 56.8 % of cats, dogs and deer. They took about 20 s of one busy core.

    Args:
        kinds: two to ten of the ten kinds of photographs.
        own: a photograph of the student's own, as ``square_photograph`` reads it.
        seconds: about how long the run shall take. The whole schedule fits into them, unless the
            computer is so slow that too few steps would.

    Raises:
        ValueError: no such kind or photograph, or fewer than two kinds.
    """

    def __init__(self, kinds: Sequence[str], own: Any, *, seconds: float = 20.0):
        kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
        unknown = [kind for kind in kinds if kind not in CLASS_NAMES]
        if unknown or len(set(kinds)) < max(2, len(kinds)):
            found = f"no photographs of {unknown[0]!r}" if unknown else f"got {kinds}"
            raise ValueError(f"name different kinds, two at least, of {CLASS_NAMES}; {found}.")
        self.is_usual = (kinds, own) == USUAL
        self.large = square_photograph(own, LARGE)
        data = load_cifar10(0, (round(IMAGES * seconds), 1_500, 1), kinds)
        sizes: dict[str, Any] = {"patch_size": 8, "embed_dim": 80, "depth": 2, "num_heads": 4}
        model = VisionTransformer(ViTConfig(num_classes=len(kinds), **sizes))
        self.expected = seconds_a_step(model, data)
        steps = max(seconds / self.expected, LEAST * seconds)
        self.expected *= steps
        batch = thread_recipe().batch_size
        epochs = math.ceil(steps / (len(data.train) // batch))
        used = batch * math.ceil(steps / epochs)  # no step of an epoch is short
        data = replace(data, train=Split(data.train.images[:used], data.train.labels[:used]))
        super().__init__(model, data, thread_recipe(epochs=epochs), count=17, own=own)
        self.first_answers = self.answers

    def wait(self, *, live: bool = False) -> History | None:
        """Follow the run as ``TrainingPanel.wait`` does, where it takes a minute at most.

        Elsewhere three pictures of a recorded run are shown, unless the student has started this
        one, has chosen other kinds or another photograph, or asks for it with ``live``.
        """
        if live or self.thread or not self.is_usual or self.expected <= PATIENCE:
            if self.thread is None:
                self.first_answers = self.answers = self.name_images()
            return super().wait()
        print(f"Here this run would take about {self.expected:.0f} seconds. These pictures were")
        print("recorded on another computer. To train on this one: first.wait(live=True)")
        for step, names, own in RECORDED:
            self.answers = [*(self.data.class_names[int(number)] for number in names), own]
            if not step:
                self.first_answers = self.answers
            right = self.count_right()
            print(f"recorded, step {step} of {RECORDED[-1][0]}: {right} of 16 right, yours: {own}")
            show_live(self.figure(), None)
        return None

    def counts(self) -> tuple[int, int]:
        """Count the names that are right: before the run, and now."""
        before = sum(a == b for a, b in zip(self.first_answers, self.truth, strict=True))
        return before, self.count_right()

    def describe(self) -> str:
        """Say in words where the training stands, without its loss."""
        step, count = len(self.losses), len(self.truth) - 1
        words = [f"Step {step} of {self.steps}" + f" ({self.expected:.0f} seconds)" * (not step)]
        words += [f"{self.count_right()} of {count} right", f"yours: {self.answers[-1]}"]
        if step == self.steps and self.epochs:
            share, others = self.epochs[-1].validation_accuracy, len(self.data.validation)
            words.append(f"and {share:.0%} of {others:,} others right")
        return ", ".join(words)

    def figure(self) -> CourseFigure:
        """Draw the student's photograph and the others, each with its name of now."""
        *names, own = self.answers
        words = ["the model says:", own]
        return show_named(self.large, words, self.images[:-1], self.truth[:-1], names)


def seconds_a_step(model: torch.nn.Module, data: Data) -> float:
    """Time some steps of a copy of a model, and give the median."""
    run = Run(copy.deepcopy(model), data, thread_recipe())
    batch = torch.arange(run.config.batch_size, device=run.device)
    work = {"step": lambda: run.step(batch, run.config.lr, 0)}
    return median(seconds_in_turn(work, TIMED, run.device)["step"])
