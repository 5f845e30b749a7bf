"""A training run with buttons: start and stop; its curves, and images as they turn right.

Role: where a kernel answers, ``fit`` runs in a thread of its own and the panel follows it.
Elsewhere the run is over before the panel is shown, as one picture. Not here: the loop (``loop``),
the drawing (``plots.training``).
"""

import asyncio
import html
import threading
import time
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from vitedu.data.photograph import square_photograph
from vitedu.fitting.config import TrainConfig
from vitedu.fitting.evaluating import predict
from vitedu.fitting.history import EpochResult, History
from vitedu.fitting.loop import fit
from vitedu.ground.progressbar import duration
from vitedu.plots.explorer import kernel_answers, show_live
from vitedu.plots.style import DPI, MARGIN, WIDTH, CourseFigure
from vitedu.plots.training import show_moment

SECONDS = 1.0  # between two pictures of a running training
WIDTH_PX = round((WIDTH + 2 * MARGIN) * DPI)  # its pictures' width on the page


@dataclass(frozen=True)
class Moment:
    """Where a training stands."""

    losses: tuple[float, ...]  # of every step so far
    epochs: tuple[EpochResult, ...]  # that are finished
    answers: tuple[str, ...]  # the model's, for the images that the panel shows


class TrainingPanel:
    """Train a model with buttons, and watch it.

    The run is that of ``fit``, to the last bit. While it runs, other cells can run too, but random
    numbers that they draw are not repeatable. A new panel stops the one before it.

    Args:
        model: as in ``fit``; it holds what was learned, during the run and after it.
        data: as in ``fit``, with ``class_names``.
        config: as in ``fit``.
        count: how many images the panel shows, the first ones for validation.
        own: a photograph of the student's own that takes the last place, as ``square_photograph``
            reads it. It has no label, so its name comes with the share that the model gives it.

    Example:
        >>> panel = TrainingPanel(model, data, TrainConfig(epochs=3))  # doctest: +SKIP
        >>> panel  # as the last line of a cell  # doctest: +SKIP
    """

    latest: ClassVar["TrainingPanel | None"] = None

    def __init__(
        self, model: nn.Module, data: Any, config: TrainConfig, *, count: int = 16, own: Any = None
    ):
        images, labels = data.validation.images[:count], data.validation.labels[:count]
        self.images = images
        self.truth: list[str | None] = [data.class_names[k] for k in labels]
        if own is not None:
            square = torch.from_numpy(square_photograph(own, data.image_size))
            self.images = torch.cat([images[: count - 1], square[None]])
            self.truth[count - 1 :] = [None]
        if TrainingPanel.latest is not None:
            TrainingPanel.latest.stop()
        TrainingPanel.latest = self
        self.model, self.data, self.config = model, data, config
        self.steps = config.epochs * -(-len(data.train.labels) // config.batch_size)
        self.state = "ready"  # then "running", at last "stopped", "broken" or "done"
        self.history: History | None = None  # when the run is over
        self.problem = ""  # why it broke, if it did
        self.losses: list[float] = []
        self.epochs: list[EpochResult] = []
        self.moment = self._current_moment()
        self.began = 0.0  # of the run, in seconds of time.monotonic()
        self.last_update = 0.0  # of the last picture, likewise
        self.thread: threading.Thread | None = None
        self.stop_event = threading.Event()
        self.widget: Any = None
        self.show = lambda: None  # called in the training's thread when something has changed
        self.draw = lambda: None  # what ``show`` asks for, in the thread that calls it

    def __repr__(self) -> str:
        return f"TrainingPanel({self.state}: {self.describe(self.moment)})"

    @property
    def outcome(self) -> str:
        """Name the run for a figure or a table: one that was stopped says so."""
        if self.state != "stopped":
            return "your run"
        return f"stopped at {len(self.losses)} of {self.steps} steps"

    # -- what the buttons do ----------------------------------------------------------------------

    def start(self) -> None:
        """Start the run, once."""
        if self.thread is None:
            self.state, self.began = "running", time.monotonic()
            self.thread = threading.Thread(target=self._train, daemon=True)
            self.thread.start()

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
        self.start()
        assert self.thread is not None
        try:
            while self.thread.is_alive():
                self.thread.join(SECONDS)
                self.draw()
        except KeyboardInterrupt:
            self.stop()
            self.thread.join()
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
        self._record_and_show()

    def _after_step(self, loss: float) -> None:
        self.losses.append(loss)
        if time.monotonic() - self.last_update >= SECONDS:
            self._record_and_show()
        if self.stop_event.is_set():
            raise KeyboardInterrupt

    def _record_and_show(self) -> None:
        """Keep where the training stands, and show it."""
        self.moment = self._current_moment()
        self.last_update = time.monotonic()
        self.show()

    def _current_moment(self) -> Moment:
        device = next(self.model.parameters()).device
        shares, classes = predict(self.model, self.images.to(device), self.data).max(dim=-1)
        answers = [self.data.class_names[k] for k in classes]
        if self.truth[-1] is None:
            answers[-1] += f" {shares[-1]:.0%}"
        return Moment(tuple(self.losses), tuple(self.epochs), tuple(answers))

    # -- what is shown ----------------------------------------------------------------------------

    def _count(self, moment: Moment) -> int:
        return sum(a == b for a, b in zip(moment.answers, self.truth, strict=True))

    def describe(self, moment: Moment) -> str:
        """Say in words where a training stands."""
        place = f"tep {len(moment.losses)} of {self.steps}"
        words = [f"Stopped at s{place}" if self.state == "stopped" else f"S{place}"]
        if moment.losses:
            words.append(f"loss {moment.losses[-1]:.2f}")
            left = self.steps - len(moment.losses)
            if left and self.state == "running":
                seconds = (time.monotonic() - self.began) / len(self.losses)
                words.append(f"about {duration(left * seconds)} left")
        words.append(f"{self._count(moment)} of these {sum(map(bool, self.truth))} images right")
        if self.truth[-1] is None:
            words.append(f"yours: {moment.answers[-1]}")
        if moment.epochs:
            last = moment.epochs[-1]
            words.append(
                f"validation accuracy {last.validation_accuracy:.1%} after epoch {last.epoch}"
            )
        return ", ".join(words)

    def figure(self, moment: Moment) -> CourseFigure:
        """Draw where a training stands."""
        validation = [
            (row.epoch * self.steps / self.config.epochs, row.validation_loss)
            for row in moment.epochs
        ]
        what = self.outcome if self.state == "stopped" else ""
        pictures = self.images, self.truth, moment.answers
        return show_moment(moment.losses, validation, self.steps, *pictures, what)

    def _ipython_display_(self) -> None:
        if not kernel_answers():
            self.start()
            assert self.thread is not None
            self.thread.join()
        elif self.widget is None:
            self.widget = self.widget_view()
        show_live(self.still(), self.widget)

    def still(self) -> CourseFigure:
        """Draw where the training stands now, with words."""
        figure = self.figure(self.moment)
        figure.write_below(f"{self.describe(self.moment)}.", "to train with buttons")
        return figure

    def widget_view(self):
        """Give the form for a running kernel: two buttons, a line of words and a picture."""
        import ipywidgets as widgets

        go = widgets.Button(description="start", icon="play")
        stop = widgets.Button(description="stop", icon="stop", disabled=True)
        picture = widgets.Image(
            format="png", layout=widgets.Layout(width=f"{WIDTH_PX}px", max_width="calc(100% - 8px)")
        )
        words = widgets.HTML()
        current = None  # the moment that the picture shows

        def show():
            nonlocal current
            state, moment = self.state, self.moment
            go.disabled, stop.disabled = state != "ready", state != "running"
            lead = "" if state == "stopped" else f"{state.capitalize()}. "
            again = " Run the cell again to start anew." if state in ("stopped", "broken") else ""
            text = html.escape(f"{lead}{self.describe(moment)}. {self.problem}{again}")
            words.value = f'<p role="status" aria-live="polite">{text}</p>'
            if moment is not current:  # a button changes words alone, and so it answers at once
                current, picture.value = moment, self.figure(moment).png()

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
