"""Figures of notebook 04: what training does, and what came out of it.

Role: arrays in, or a run's file, a matplotlib figure out. Not here: any measuring.

Legend: n images or runs, K classes, N patches, gh gw patch grid.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from vitedu.plots import charts, ink
from vitedu.plots.parts import draw_horizons, draw_image, frame, verdict, write, write_cells
from vitedu.plots.style import WIDTH, CourseFigure, figure, panel, styled, to_picture

WINDOW = 10  # steps of a running mean


@styled
def show_by_rate(
    runs: Mapping[str, Mapping[float, Sequence[float]]],
    ylabel: str,
    *,
    line: tuple[str, float] | None = None,
    xlabel: str = "learning rate",
    limits: tuple[float | None, float | None] = (0, None),
) -> Figure:
    """Draw an outcome against the learning rate: a dot a seed, a line through their means.

    Args:
        runs: name of the arm -> {learning rate: the outcome of each seed}.
        ylabel: what was measured, with its unit.
        line: a level to compare with, its name first.
        xlabel: what else runs along the axis, on a scale of equal factors.
        limits: of the vertical axis.
    """
    rates = sorted({rate for outcomes in runs.values() for rate in outcomes})
    curves = {name: [run.get(rate, np.nan) for rate in rates] for name, run in runs.items()}
    xlabel += " (a dot a seed, the line joins means)"
    words: Any = {"xlabel": xlabel, "ylabel": ylabel, "level": line}
    return charts.show_curves(curves, rates, log="x", limits=limits, **words)


@styled
def show_views(original, views, titles: Sequence[str] | None = None) -> Figure:
    """Draw an image and the views that augmentation made of it.

    Args:
        original: (C, H, W), uint8 or floats in [0, 1].
        views: (n, C, H, W), of the same kind.
        titles: n words below the views; by default they are counted.
    """
    words = ["the image", *(titles or [f"view {i + 1}" for i in range(len(views))])]
    across = len(words) // 2 + 1
    return charts.show_images({"": [original, *views]}, words={"": words}, across=across)


@styled
def show_curves(
    column: Callable[[str], Sequence[float]],
    *,
    chance: float | None = None,
    horizons: Mapping[str, float] | None = None,
) -> Figure:
    """Draw loss and accuracy by epoch; epochs count from 1.

    Args:
        column: gives the values of all epochs by their name, such as ``"train_loss"``, as
            ``History.column`` does.
        chance: the accuracy of guessing, drawn as a grey line.
        horizons: accuracies to compare with, such as those of ``vitedu.data.horizons``.
    """
    return _draw_epochs(column, chance, horizons)


def _draw_epochs(column, chance, horizons, more: Mapping[str, str] | None = None) -> CourseFigure:
    """Draw losses and accuracies by epoch, the best one, horizons, and ``more``: title -> name."""
    panels: dict[str, Mapping[str, Any]] = {
        title: {"training": column(f"train_{what}"), "validation": column(f"validation_{what}")}
        for title, what in (("loss", "loss"), ("accuracy", "accuracy"))
    }
    panels["accuracy"] = {k: np.multiply(v, 100) for k, v in panels["accuracy"].items()}
    panels |= {title: {"training": column(name)} for title, name in (more or {}).items()}
    epochs = range(1, len(panels["loss"]["training"]) + 1)
    ylabel = "loss (nats)", "accuracy (%)"
    look: Any = {"xlabel": "epoch", "ylabel": ylabel, "columns": 2, "height": 2.8}
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
def show_run(
    metrics: Path,
    *,
    test_accuracy: float,
    chance: float,
    horizons: Mapping[str, float] | None = None,
) -> Figure:
    """Draw one training run from its file: losses, accuracies, learning rate, and what it cost.

    Args:
        metrics: ``metrics.jsonl``, a line an epoch, as ``vitedu train`` writes it.
        test_accuracy: of the weights after the last epoch, in [0, 1].
        chance: the accuracy of guessing.
        horizons: as in ``show_curves``.
    """
    rows = [json.loads(line) for line in Path(metrics).read_text(encoding="utf-8").splitlines()]
    more = {"mean learning rate": "lr", "training images a second": "images_per_second"}
    fig = _draw_epochs(lambda name: [row[name] for row in rows], chance, horizons, more)
    ax = fig.axes[1]
    ax.plot(len(rows), 100 * test_accuracy, "D", color=ink.RED, clip_on=False)
    ax.set_title(f"{ax.get_title()}\n◆ test, last epoch: {test_accuracy:.1%}")
    return fig


@styled
def show_moment(
    losses: Sequence[float],
    validation: Sequence[tuple[float, float]],
    steps: int,
    images,
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
    _draw_wall(wall, images, truth, answers)
    return fig


@styled
def show_named(own, words: Sequence[str], images, truth, answers) -> CourseFigure:
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
    _draw_wall(wall, images, truth, answers)
    return fig


def _draw_wall(ax, images, truth: Sequence[str | None], answers: Sequence[str]) -> None:
    """Draw images in rows and columns, each with what a model calls it; see ``show_moment``."""
    columns = int(np.ceil(len(images) ** 0.5))
    width, height = 1.16, 1.42  # one cell: an image, and room for two lines of words
    for k, (image, label, answer) in enumerate(zip(images, truth, answers, strict=True)):
        x, y = width * (k % columns), height * (k // columns)
        sign, colour = verdict(label == answer) if label else ("", ink.BLUE)
        edges = x, x + 1, y + 1, y  # left, right, bottom, top
        # photographs of 32 pixels are easier to know without their corners
        look = {"cmap": "gray", "vmin": 0, "vmax": 1, "interpolation": "bicubic"}
        ax.imshow(to_picture(image), extent=edges, **look)
        frame(ax, x, y, 1, edgecolor=colour, linewidth=2.5, linestyle="-" if label else "--")
        write(ax, x + 0.5, y + 1.12, f"{sign} {answer}".strip(), fontsize=8.5)
        more = "yours" if label is None else "" if label == answer else f"is {label}"
        write(ax, x + 0.5, y + 1.27, more, fontsize=7.5, color=colour)
    rows = -(-len(images) // columns)
    ax.set(xlim=(-0.1, columns * width), ylim=(rows * height, -0.1), aspect="equal")
    ax.axis("off")


@styled
def show_horizons(accuracies: Mapping[str, float], horizons: Mapping[str, float]) -> Figure:
    """Draw accuracies among those that they can be compared with, as bars, the lowest on top.

    Args:
        accuracies: name -> in [0, 1], such as the run that just ended, and what was guessed.
        horizons: the same for what others reach.
    """
    both = sorted({**horizons, **accuracies}.items(), key=lambda pair: pair[1])
    return charts.show_bars(dict(both), "accuracy (%)", yours=accuracies)


@styled
def show_position_similarity(similarity: Mapping[str, np.ndarray], cells: Sequence[int]) -> Figure:
    """Draw how alike the position of one cell is to that of every other, one row a model.

    A cell's similarity with itself is 1 by definition and would swallow the colour scale: it is
    left blank and marked. All maps share one scale, symmetric about 0, to the largest cosine of two
    different cells.

    Args:
        similarity: name of the model -> (N, gh, gw), cosines.
        cells: the patches to show, counted row by row.
    """
    maps = np.array([np.asarray(cosines)[list(cells)] for cosines in similarity.values()], float)
    places = [divmod(cell, maps.shape[-1]) for cell in cells]
    for number, place in enumerate(places):
        maps[:, number, *place] = np.nan
    limit = np.nanmax(np.abs(maps))
    fig = charts.show_images(
        dict(zip(similarity, maps, strict=True)),
        titles=[f"patch {n}\nrow {y}, column {x}" for n, (y, x) in zip(cells, places, strict=True)],
        label="cosine",
        scale=(-limit, limit),
        cmap=ink.DIVERGING,
    )
    for ax, (y, x) in zip(fig.axes, places * len(maps), strict=False):
        ax.plot(x, y, "x", color=ink.BLACK)
        ax.set_facecolor(ink.LIGHT)
    return fig


@styled
def show_confusion(counts, class_names: Sequence[str]) -> Figure:
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


@styled
def show_climb(
    steps: Mapping[str, Sequence[float]],
    yours: Mapping[str, float],
    horizons: Mapping[str, float],
) -> Figure:
    """Draw accuracies in [0, 1]: a bar to the mean of each step, its gain, a dot a seed.

    Args:
        steps: what each adds to the one above it -> its seeds; those without any are left out.
        yours: name of a run of the student's own -> its accuracy.
        horizons: accuracies to compare with, drawn as vertical lines.
    """
    rows, before = {}, None
    for name, seeds in steps.items():
        if len(seeds):
            mean = 100 * np.mean(seeds)
            rows[name if before is None else f"{name}   ({mean - before:+.1f})"] = seeds
            before = mean
    label = "validation accuracy (%), grey lines: test; in brackets the gain; a dot a seed"
    return charts.show_bars({**rows, **yours}, label, horizons=horizons, yours=yours)
