"""Trainings to watch: a run with buttons, a loop of one's own; images as they turn right.

Role: ``TrainingPanel``: where a kernel answers, ``fit`` runs in a thread of its own and the panel
follows it; elsewhere the run is over before the panel is shown, as one picture. ``Watch``: batches
in, the same batches out, and meanwhile a picture below the running cell. Not here: the loop
(``loop``), the drawing (``plots.training``).
"""

import asyncio
import html
import math
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import nn

from vitedu.data.photograph import square_photograph
from vitedu.fitting.config import TrainConfig
from vitedu.fitting.evaluating import predict
from vitedu.fitting.history import EpochResult, History, broken_loss
from vitedu.fitting.loop import fit
from vitedu.ground.progressbar import duration, notebook_display
from vitedu.plots.explorer import kernel_answers, show_live
from vitedu.plots.style import DPI, MARGIN, WIDTH, CourseFigure
from vitedu.plots.training import show_moment

SECONDS = 1.0  # between two pictures of a panel
WATCH_SECONDS = 3.0  # between two of a loop, which draws them itself
WIDTH_PX = round((WIDTH + 2 * MARGIN) * DPI)  # a panel's pictures' width on the page


class Watched:
    """A model that learns: its losses so far, and what it calls some images.

    Args:
        model: maps images to logits.
        data: has ``validation``, ``class_names``, ``mean`` and ``std``.
        steps: of the whole run.
        count: how many images are shown, the first ones for validation.
        own: a photograph of the student's own that takes the last place, as ``square_photograph``
            reads it. It has no label, so its name comes with the share that the model gives it.
    """

    def __init__(self, model: nn.Module, data: Any, steps: int, count: int = 16, own: Any = None):
        images, labels = data.validation.images[:count], data.validation.labels[:count]
        self.truth: list[str | None] = [data.class_names[k] for k in labels]
        if own is not None:
            square = torch.from_numpy(square_photograph(own, data.image_size))
            images = torch.cat([images[: count - 1], square[None]])
            self.truth[count - 1 :] = [None]
        self.model, self.data, self.steps, self.images = model, data, steps, images
        self.losses: list[float] = []  # of every step so far
        self.answers = self.name_images()  # the model's, when they were asked for last

    def name_images(self) -> list[str]:
        """Give what the model calls the images now."""
        shares, classes = predict(self.model, self.images, self.data).max(dim=-1)
        answers = [self.data.class_names[k] for k in classes]
        if self.truth[-1] is None:
            answers[-1] += f" {shares[-1]:.0%}"
        return answers

    def draw_moment(self, validation: list[tuple[float, float]], what: str) -> CourseFigure:
        """Draw where the training stands, with losses of validation and a title."""
        pictures = self.images, self.truth, self.answers
        return show_moment(self.losses[:], validation, self.steps, *pictures, what)


class Watch(Watched):
    """Hand batches to a loop, and draw its losses and what its model says of some images.

    The losses are those of the logits that the loop itself computes, so nothing is computed twice.

    Example:
        >>> watch = Watch(model, data, steps=704)  # doctest: +SKIP
        >>> train_one_epoch(model, watch(batches), optimizer, scheduler)  # doctest: +SKIP
    """

    def __call__(self, batches: Iterable) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield batches as they are.

        Raises:
            RuntimeError: the loss stopped being a number.
        """
        logits: list[torch.Tensor] = []
        hook = self.model.register_forward_hook(lambda *call: logits.append(call[-1].detach()))
        drawn, display = time.monotonic(), notebook_display()

        def draw(what: str = "") -> None:
            if display is not None:
                self.answers = self.name_images()
                display(*self.draw_moment([], what).outputs(dots=1))

        try:
            for images, labels in batches:
                yield images, labels
                if logits:
                    self.losses.append(F.cross_entropy(logits[-1].float(), labels).item())
                    logits.clear()
                    if not math.isfinite(self.losses[-1]):
                        where = f"step {len(self.losses)} of {self.steps}"
                        raise RuntimeError(broken_loss(where, ["a third of the learning rate"]))
                if time.monotonic() - drawn > WATCH_SECONDS:
                    draw()
                    drawn = time.monotonic()
            draw()
        except GeneratorExit:  # nobody asks for the next batch: the loop was interrupted
            draw(f"stopped at {len(self.losses)} of {self.steps} steps")
            raise
        finally:
            hook.remove()


class TrainingPanel(Watched):
    """Train a model with buttons, and watch it.

    The run is that of ``fit``, to the last bit. While it runs, other cells can run too, but random
    numbers that they draw are not repeatable. A new panel stops the one before it.

    Args:
        model: as in ``fit``; it holds what was learned, during the run and after it.
        data: as in ``fit``, with ``class_names``.
        config: as in ``fit``.
        count, own: as in ``Watched``.

    Example:
        >>> panel = TrainingPanel(model, data, TrainConfig(epochs=3))  # doctest: +SKIP
        >>> panel  # as the last line of a cell  # doctest: +SKIP
    """

    latest: ClassVar["TrainingPanel | None"] = None

    def __init__(
        self, model: nn.Module, data: Any, config: TrainConfig, *, count: int = 16, own: Any = None
    ):
        steps = config.epochs * -(-len(data.train.labels) // config.batch_size)
        super().__init__(model, data, steps, count, own)
        if TrainingPanel.latest is not None:
            TrainingPanel.latest.stop()
        TrainingPanel.latest = self
        self.config = config
        self.state = "ready"  # then "running", at last "stopped", "broken" or "done"
        self.history: History | None = None  # when the run is over
        self.problem = ""  # why it broke, if it did
        self.epochs: list[EpochResult] = []  # that are finished
        self.began = self.asked = 0.0  # the run, and the model: in seconds of time.monotonic()
        self.thread: threading.Thread | None = None
        self.stop_event = threading.Event()
        self.widget: Any = None
        self.show = lambda: None  # called in the training's thread when something has changed
        self.draw = lambda: None  # what ``show`` asks for, in the thread that calls it

    def __repr__(self) -> str:
        return f"TrainingPanel({self.state}: {self.describe()})"

    @property
    def outcome(self) -> str:
        """Name the run for a figure or a table: one that was stopped says so."""
        if self.state != "stopped":
            return "your run"
        return f"stopped at {len(self.losses)} of {self.steps} steps"

    # -- what the buttons do ----------------------------------------------------------------------

    def start(self) -> threading.Thread:
        """Start the run, once; give its thread."""
        if self.thread is None:
            self.state, self.began = "running", time.monotonic()
            self.thread = threading.Thread(target=self._train, daemon=True)
            self.thread.start()
        return self.thread

    def stop(self) -> None:
        """End the run after the step that is being made; what was learned stays."""
        self.stop_event.set()

    def wait(self) -> History | None:
        """Start the run if nobody has, follow it to its end, and give its history.

        The pictures are drawn here meanwhile, for this call keeps the kernel's own thread busy. An
        interrupt of the kernel stops the run and keeps what was learned.

        Raises:
            RuntimeError: the training broke; the message says why.
        """
        thread = self.start()
        try:
            while thread.is_alive():
                thread.join(SECONDS)
                self.draw()
        except KeyboardInterrupt:
            self.stop()
            thread.join()
        self.draw()
        if self.problem:
            raise RuntimeError(f"the training broke. {self.problem}")
        return self.history

    def _train(self) -> None:
        try:
            self.history = fit(
                self.model,
                self.data,
                self.config,
                show_progress=False,
                on_epoch=lambda history: self.epochs.append(history.rows[-1]),
                on_step=self._after_step,
            )
            self.state = "stopped" if self.history.interrupted else "done"
        except Exception as error:  # a thread has nobody else to tell
            self.state, self.problem = "broken", f"{type(error).__name__}: {error}"
        self._ask_and_show()

    def _after_step(self, loss: float) -> None:
        self.losses.append(loss)
        if time.monotonic() - self.asked >= SECONDS:
            self._ask_and_show()
        if self.stop_event.is_set():
            raise KeyboardInterrupt

    def _ask_and_show(self) -> None:
        self.answers, self.asked = self.name_images(), time.monotonic()
        self.show()

    # -- what is shown ----------------------------------------------------------------------------

    def count_right(self) -> int:
        """Count the images that the model names right."""
        return sum(a == b for a, b in zip(self.answers, self.truth, strict=True))

    def describe(self) -> str:
        """Say in words where the training stands."""
        done = len(self.losses)
        place = f"tep {done} of {self.steps}"
        words = [f"Stopped at s{place}" if self.state == "stopped" else f"S{place}"]
        if done:
            words.append(f"loss {self.losses[-1]:.2f}")
            if done < self.steps and self.state == "running":
                seconds = (time.monotonic() - self.began) / done
                words.append(f"about {duration((self.steps - done) * seconds)} left")
        words.append(f"{self.count_right()} of these {sum(map(bool, self.truth))} images right")
        if self.truth[-1] is None:
            words.append(f"yours: {self.answers[-1]}")
        if self.epochs:
            accuracy, epoch = self.epochs[-1].validation_accuracy, self.epochs[-1].epoch
            words.append(f"validation accuracy {accuracy:.1%} after epoch {epoch}")
        return ", ".join(words)

    def figure(self) -> CourseFigure:
        """Draw where the training stands."""
        steps = self.steps / self.config.epochs
        validation = [(row.epoch * steps, row.validation_loss) for row in self.epochs]
        return self.draw_moment(validation, self.outcome if self.state == "stopped" else "")

    def _ipython_display_(self) -> None:
        if not kernel_answers():
            self.start().join()
        elif self.widget is None:
            self.widget = self.widget_view()
        show_live(self.still(), self.widget)

    def still(self) -> CourseFigure:
        """Draw where the training stands now, with words."""
        figure = self.figure()
        figure.write_below(f"{self.describe()}.", "to train with buttons")
        return figure

    def widget_view(self):
        """Give the form for a running kernel: two buttons, a line of words and a picture."""
        import ipywidgets as widgets

        go = widgets.Button(description="start", icon="play")
        stop = widgets.Button(description="stop", icon="stop", disabled=True)
        picture = widgets.Image(
            format="png", layout=widgets.Layout(width=f"{WIDTH_PX}px", max_width="calc(100% - 8px)")
        )
        words, shown = widgets.HTML(), None  # the answers in the picture

        def show():
            nonlocal shown
            go.disabled, stop.disabled = self.state != "ready", self.state != "running"
            lead = "" if self.state == "stopped" else f"{self.state.capitalize()}. "
            is_over = self.state in ("stopped", "broken")
            again = " Run the cell again to start anew." if is_over else ""
            text = html.escape(f"{lead}{self.describe()}. {self.problem}{again}")
            words.value = f'<p role="status" aria-live="polite">{text}</p>'
            if self.answers is not shown:  # a button changes words alone, and so it answers at once
                shown, picture.value = self.answers, self.figure().png()

        def click(act):
            act()
            show()

        go.on_click(lambda _: click(self.start))
        stop.on_click(lambda _: click(self.stop))
        show()
        self.draw = show
        try:  # pictures are drawn where the other figures are drawn, in the kernel's own thread
            call = asyncio.get_running_loop().call_soon_threadsafe
        except RuntimeError:
            self.show = show
        else:
            self.show = lambda: call(show)
        whole = widgets.VBox([widgets.HBox([go, stop]), words, picture])
        whole.add_class("vitedu-explorer")  # its picture gets words
        return whole
