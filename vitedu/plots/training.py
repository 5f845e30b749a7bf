"""Figures of notebook 04: what training does, and what came out of it.

Role: arrays in, a matplotlib figure out. Not here: any measuring.

Legend: n images or runs, K classes, N patches, gh gw patch grid.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitedu.plots import charts, ink
from vitedu.plots.parts import draw_horizons, draw_image, frame, verdict, write, write_cells
from vitedu.plots.style import WIDTH, CourseFigure, figure, panel, styled, to_picture

WINDOW = 10  # steps of a running mean


@styled
def show_curves(
    column: Callable[[str], Sequence[float]],
    *,
    chance: float | None = None,
    horizons: Mapping[str, float] | None = None,
) -> CourseFigure:
    """Draw loss and accuracy by epoch; epochs count from 1, and the best one is marked.

    Args:
        column: gives the values of all epochs by their name, such as ``"train_loss"``, as
            ``History.column`` does.
        chance: the accuracy of guessing, drawn as a grey line.
        horizons: accuracies to compare with, such as those of ``vitedu.data.horizons``.
    """
    panels: dict[str, Mapping[str, Any]] = {
        title: {"training": column(f"train_{what}"), "validation": column(f"validation_{what}")}
        for title, what in (("loss", "loss"), ("accuracy", "accuracy"))
    }
    panels["accuracy"] = {k: np.multiply(v, 100) for k, v in panels["accuracy"].items()}
    epochs = range(1, len(panels["loss"]["training"]) + 1)
    ylabel = "loss (nats)", "accuracy (%)"
    look: Any = {"xlabel": "epoch", "ylabel": ylabel, "height": 2.8}
    fig = charts.show_curves(panels, epochs, **look)
    ax, validation = fig.axes[1], panels["accuracy"]["validation"]
    for each in fig.axes:
        each.set_ylim(0, 1.05 * each.dataLim.y1)  # the highest mark stands whole
    words = []
    if np.isfinite(validation).any():
        best = int(np.nanargmax(validation))
        ax.plot(epochs[best], validation[best], "*", color=ink.BLACK, markersize=9)
        words.append(f"★ best validation: epoch {best + 1}")
    guessing = {} if chance is None else {"guessing": chance}
    draw_horizons(ax, {**guessing, **(horizons or {})}, across=True)
    if horizons:
        words.append("dotted: others, on test images")
    ax.set(ylim=(0, 100), title="\n".join(words))
    return fig


@styled
def show_moment(
    losses: Sequence[float],
    validation: Sequence[tuple[float, float]],
    steps: int,
    images: Any,
    truth: Sequence[str | None],
    answers: Sequence[str],
    what: str = "",
) -> CourseFigure:
    """Draw where a training stands: its loss, and some images with the answer that each gets now.

    Args:
        losses: of every step so far.
        validation: step and loss of each finished epoch.
        steps: of the whole run.
        images: (n, C, H, W), uint8 or floats in [0, 1].
        truth: the class of each; None for an image of the reader's own, which has no label.
        answers: what the model says.
        what: a title, such as that the run was stopped.
    """
    fig, axes = figure(1, 2, size=(WIDTH, 5.1), width_ratios=(3, 4))
    ax, wall = axes[0]
    ax.set_title(what)
    count = np.arange(1, len(losses) + 1)
    ax.plot(count, losses, color=ink.SKY, linewidth=0.6, label="training, each step")
    if len(losses) >= 20:
        smooth = np.convolve(losses, np.ones(WINDOW) / WINDOW, mode="valid")
        ax.plot(count[WINDOW - 1 :], smooth, color=ink.BLUE, label="mean of ten steps")
    if validation:
        ax.plot(*zip(*validation, strict=True), "s", color=ink.ORANGE, label="validation")
    top = 1.05 * max([1.0, *losses, *(loss for _, loss in validation)])
    ax.set(xlim=(0, steps), ylim=(0, top), xlabel="step", ylabel="loss (nats)")
    ax.locator_params(axis="x", nbins=5)  # numbers of five digits do not meet
    if losses:
        ax.legend(loc="lower left", fontsize=8)
    draw_wall(wall, images, truth, answers)
    return fig


@styled
def show_named(
    own: Any, words: Sequence[str], images: Any, truth: Sequence[Any], answers: Sequence[str]
) -> CourseFigure:
    """Draw a photograph of the reader's own with what a model calls it, and named images beside it.

    Args:
        own: (C, S, S), of any size.
        words: lines below it.
        images: (n, C, H, W).
        truth: the class of each.
        answers: what the model says.
    """
    fig, axes = figure(1, 2, size=(WIDTH, 4.6), width_ratios=(3, 4), ticks=False)
    left, wall = axes[0]
    draw_image(left, own, "yours")
    left.set_xlabel("\n".join(words))
    draw_wall(wall, images, truth, answers)
    return fig


def draw_wall(ax: Axes, images: Any, truth: Sequence[str | None], answers: Sequence[str]) -> None:
    """Draw images in rows and columns, each with what a model calls it; see ``show_moment``."""
    columns = int(np.ceil(len(images) ** 0.5))
    width, height = 1.16, 1.42  # one cell: an image, and room for two lines of words
    for k, (image, label, answer) in enumerate(zip(images, truth, answers, strict=True)):
        x, y = width * (k % columns), height * (k // columns)
        sign, colour = verdict(label == answer) if label else ("", ink.BLUE)
        edges = x, x + 1, y + 1, y  # left, right, bottom, top
        # photographs of 32 pixels are easier to know without their corners
        look: dict[str, Any] = {"cmap": "gray", "vmin": 0, "vmax": 1, "interpolation": "bicubic"}
        ax.imshow(to_picture(image), extent=edges, **look)
        frame(ax, x, y, 1, edgecolor=colour, linewidth=2.5, linestyle="-" if label else "--")
        write(ax, x + 0.5, y + 1.12, f"{sign} {answer}".strip(), fontsize=8.5)
        more = "yours" if label is None else "" if label == answer else f"is {label}"
        write(ax, x + 0.5, y + 1.27, more, fontsize=7.5, color=colour)
    rows = -(-len(images) // columns)
    ax.set(xlim=(-0.1, columns * width), ylim=(rows * height, -0.1), aspect="equal")
    ax.axis("off")


@styled
def show_confusion(counts: Any, class_names: Sequence[str]) -> Figure:
    """Draw which class is taken for which: rows the truth, columns the answer, shares of a row.

    Args:
        counts: (K, K) images of true class i that were called j.
        class_names: K names.
    """
    counts = np.asarray(counts, dtype=float)
    share = 100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    K = len(share)
    fig, ax = panel(WIDTH * 0.75, WIDTH * 0.65)
    mappable = ax.imshow(share, cmap="Blues", vmin=0, vmax=100)
    if K <= 12:
        words = np.where(share > 0.5, np.char.mod("%.0f", share), "")  # less would read as 0
        write_cells(ax, words, share > 55, fontsize=8)
    ax.set(xlabel="answer", ylabel="truth")
    ax.set_xticks(range(K), class_names, rotation=45, ha="right")
    ax.set_yticks(range(K), class_names)
    fig.colorbar(mappable, ax=ax, label="share of the true class (%)")
    return fig
