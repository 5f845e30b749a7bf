"""Figures of notebook 04: what training does, and what came out of it.

Role: arrays in, or a run's file, a matplotlib figure out. Not here: any measuring.

Legend: n images or runs, K classes, N patches, gh gw patch grid.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from vitedu.plots import ink
from vitedu.plots.parts import (
    draw_horizons,
    draw_image,
    frame,
    name_rows,
    verdict,
    write,
    write_cells,
)
from vitedu.plots.style import DPI, WIDTH, CourseFigure, figure, panel, styled, to_picture

LINES = ("-", "--", ":", "-.")  # told apart without colour
WINDOW = 10  # steps of a running mean


@styled
def show_samples(data) -> Figure:
    """Draw the first images of a split, each under the name of its class.

    Args:
        data: what ``load_data`` returns; its first images show every class before any comes twice.
    """
    images, labels = data.train.images[:20], data.train.labels[:20]
    rows = -(-len(labels) // 10)
    fig, axes = figure(rows, 10, size=(WIDTH, rows * (WIDTH / 10 + 20 / DPI)), ticks=False)
    for ax, image, label in zip(axes.flat, images, labels, strict=False):
        draw_image(ax, image, data.class_names[label], size=8)
    return fig


@styled
def show_price(probabilities: Sequence[float]) -> Figure:
    """Draw the price ``-ln p`` of giving probability p to the truth.

    Args:
        probabilities: probabilities to mark, each above 0 and at most 1.
    """
    fig, ax = panel(WIDTH * 0.65, 2.8)
    p = np.linspace(0.01, 1, 300)
    ax.plot(p, -np.log(p), color=ink.BLUE)
    for mark in probabilities:
        price = -np.log(mark)
        # on the right the curve is low: above it
        above, side = (8, "left") if mark < 0.7 else (16, "right")
        look = {"xytext": (8, above), "textcoords": "offset points", "ha": side}
        ax.plot(mark, price, "o", color=ink.BLACK)
        ax.annotate(f"p = {mark:g}: {price:.3f}", (mark, price), **look)
    ax.set(xlabel="probability p given to the true class", ylabel="price −ln p (nats)")
    ax.set(xlim=(0, 1.02), ylim=(0, None))
    return fig


@styled
def show_learning_rates(schedules: Mapping[str, Sequence[float]]) -> Figure:
    """Draw learning rates step by step, one line a schedule.

    Args:
        schedules: name -> the learning rate used at step 0, 1, 2 ...
    """
    fig, ax = panel(WIDTH, 2.8)
    for i, (name, rates) in enumerate(schedules.items()):
        ax.plot(rates, LINES[i % 4], color=ink.pick(i), label=name)
    ax.set(xlabel="step", ylabel="learning rate used", ylim=(0, None))
    ax.legend()
    return fig


@styled
def show_by_rate(
    runs: Mapping[str, Mapping[float, Sequence[float]]],
    ylabel: str,
    *,
    line: tuple[str, float] | None = None,
    xlabel: str = "learning rate",
) -> Figure:
    """Draw an outcome against the learning rate: a dot a seed, a line through their means.

    Args:
        runs: name of the arm -> {learning rate: the outcome of each seed}.
        ylabel: what was measured, with its unit.
        line: a level to compare with, and its name.
        xlabel: what else runs along the axis, on a scale of equal factors.
    """
    fig, ax = panel(WIDTH * 0.85)
    for i, (name, outcomes) in enumerate(runs.items()):
        rates = sorted(outcomes)
        means = [np.mean(outcomes[rate]) for rate in rates]
        style = {"color": ink.pick(i), "marker": "osD^"[i % 4], "clip_on": False}
        ax.plot(rates, means, linestyle=LINES[i % 4], label=name, **style)
        for rate in rates:
            dots = [rate] * len(outcomes[rate]), outcomes[rate]
            ax.plot(*dots, linestyle="none", alpha=0.5, markersize=5, **style)
    if line is not None:
        ax.axhline(line[1], color=ink.GREY, linewidth=0.8, label=f"{line[0]}: {line[1]:.2f}")
    ax.set(xlabel=f"{xlabel} (a dot a seed, the line joins means)", ylabel=ylabel)
    rates = sorted({rate for outcomes in runs.values() for rate in outcomes})
    ax.set_xscale("log")
    ax.set_xticks(rates, [f"{rate:g}" for rate in rates])
    ax.minorticks_off()
    ax.set_ylim(0, 1.05 * ax.dataLim.y1)  # the largest mark stands whole
    fig.legend(loc="outside lower center", ncols=3)
    return fig


def running_mean(values: Sequence[float]) -> np.ndarray:
    """Average every ``WINDOW`` neighbours; the result is ``WINDOW - 1`` shorter."""
    return np.convolve(values, np.ones(WINDOW) / WINDOW, mode="valid")


@styled
def show_views(original, views, titles: Sequence[str] | None = None) -> Figure:
    """Draw an image and the views that augmentation made of it.

    Args:
        original: (C, H, W), uint8 or floats in [0, 1].
        views: (n, C, H, W), of the same kind.
        titles: n words above the views; by default they are counted.
    """
    columns = (len(views) + 1) // 2
    titles = titles or [f"view {i + 1}" for i in range(len(views))]
    fig, axes = figure(2, columns + 1, size=(WIDTH, 2 * WIDTH / (columns + 1) + 0.3), ticks=False)
    draw_image(axes[0, 0], original, "the image")
    for ax, view, title in zip(axes[:, 1:].flat, views, titles, strict=False):
        draw_image(ax, view, title)
    return fig


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
    fig, axes = figure(1, 2)
    _draw_epochs(axes[0], column, chance, horizons)
    # below, where no curve can run into it
    fig.legend(*axes[0, 1].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return fig


@styled
def show_moment(
    losses: Sequence[float],
    validation: Sequence[tuple[float, float]],
    steps: int,
    images,
    truth: Sequence[str | None],
    answers: Sequence[str],
) -> CourseFigure:
    """Draw where a training stands: its loss, and some images with the answer that each gets now.

    Args:
        losses: of every step so far.
        validation: step and loss of each finished epoch.
        steps: of the whole run.
        images: (n, C, H, W), uint8 or floats in [0, 1].
        truth: the class of each; None for an image of the reader's own, which has no label.
        answers: what the model says.
    """
    fig, axes = figure(1, 2, size=(WIDTH, 5.1), width_ratios=(3, 4))
    ax, wall = axes[0]
    count = np.arange(1, len(losses) + 1)
    ax.plot(count, losses, color=ink.SKY, linewidth=0.6, label="training, each step")
    if len(losses) >= 20:
        smooth = running_mean(losses)
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
    draw_wall(wall, images, truth, answers)
    return fig


def draw_wall(ax, images, truth: Sequence[str | None], answers: Sequence[str]) -> None:
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
        horizons: the same for what others reach, drawn in grey.
    """
    both = sorted([*horizons.items(), *accuracies.items()], key=lambda pair: pair[1])
    fig, ax = panel(WIDTH * 0.85, 0.7 + 0.3 * len(both))
    for place, (name, accuracy) in enumerate(both):
        colour, weight = (ink.BLUE, "bold") if name in accuracies else (ink.LIGHT, "normal")
        ax.barh(place, 100 * accuracy, color=colour, edgecolor=ink.GREY)
        look = {"va": "center", "fontsize": 9, "weight": weight}
        ax.text(100 * accuracy + 1, place, f"{accuracy:.1%}", **look)
    ax.set(xlabel="accuracy (%)", xlim=(0, 100), ylim=(len(both) - 0.4, -0.6))
    ax.set_yticks(range(len(both)), [name for name, _ in both])
    return fig


def _draw_loss(ax, train: Sequence[float], validation: Sequence[float]) -> None:
    """Draw both losses by epoch; epochs count from 1."""
    epochs = np.arange(1, len(train) + 1)
    ax.plot(epochs, train, "o-", color=ink.BLUE, label="training", markersize=4)
    ax.plot(epochs, validation, "s--", color=ink.ORANGE, label="validation", markersize=4)
    top = 1.05 * np.nanmax([train, validation])
    ax.set(xlabel="epoch", ylabel="loss (nats)", ylim=(0, top))
    ax.locator_params(axis="x", integer=True)
    if len(epochs) == 1:
        ax.set_xticks(epochs)


def _draw_epochs(axes, column, chance: float | None, horizons) -> None:
    """Draw losses and accuracies by epoch, the best one on the validation images, and horizons."""
    left, ax = axes
    _draw_loss(left, column("train_loss"), column("validation_loss"))
    train, validation = column("train_accuracy"), column("validation_accuracy")
    _draw_loss(ax, np.multiply(train, 100), np.multiply(validation, 100))
    ax.set(ylabel="accuracy (%)", ylim=(0, 100))
    if np.isfinite(validation).any():
        best = int(np.nanargmax(validation))
        look = {"color": ink.BLACK, "markersize": 9, "linestyle": "none"}
        label = f"best validation: epoch {best + 1}"
        ax.plot(best + 1, 100 * validation[best], "*", label=label, **look)
    guessing = {} if chance is None else {"guessing": chance}
    draw_horizons(ax, {**guessing, **(horizons or {})}, across=True)
    if horizons:
        ax.plot([], [], ":", color=ink.GREY, label="others, on test images")


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
    column = {name: [row[name] for row in rows] for name in rows[0]}
    fig, axes = figure(2, 2, size=(WIDTH, 5.2))
    _draw_epochs(axes[0], column.__getitem__, chance, horizons)
    end = {"color": ink.RED, "marker": "D", "linestyle": "none", "clip_on": False}
    label = f"test, last epoch: {test_accuracy:.1%}"
    axes[0, 1].plot(len(rows), 100 * test_accuracy, label=label, **end)
    lower = ("lr", "mean learning rate"), ("images_per_second", "training images a second")
    for ax, (name, ylabel) in zip(axes[1], lower, strict=True):
        ax.plot(range(1, len(rows) + 1), column[name], "o-", color=ink.GREEN, markersize=4)
        ax.set(xlabel="epoch", ylabel=ylabel, ylim=(0, 1.1 * max(column[name])))
        ax.locator_params(axis="x", integer=True)
    fig.legend(*axes[0, 1].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return fig


@styled
def show_predictions(images, labels, probabilities, class_names: Sequence[str]) -> Figure:
    """Draw images with what a model believed, right and wrong told apart by sign, word and colour.

    Args:
        images: (n, C, H, W), uint8 or floats in [0, 1].
        labels: (n,) true classes.
        probabilities: (n, K), rows summing to 1; the confidence is the largest of a row.
        class_names: K names.
    """
    columns = min(len(labels), 6)
    rows = -(-len(labels) // columns)
    fig, axes = figure(rows, columns, size=(WIDTH, rows * (WIDTH / columns + 0.55)), ticks=False)
    for ax, image, label, belief in zip(axes.flat, images, labels, probabilities, strict=False):
        guess = int(np.argmax(belief))
        sign, colour = verdict(guess == label)
        truth = "" if guess == label else f"is {class_names[label]}"
        title = f"{sign} {class_names[guess]} {100 * belief[guess]:.0f}%\n{truth}"
        draw_image(ax, image, title, size=9)
        ax.title.set_color(colour)
    return fig


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
    gw = maps.shape[-1]
    for column, cell in enumerate(cells):
        maps[:, column, cell // gw, cell % gw] = np.nan
    limit = np.nanmax(np.abs(maps))
    size = (WIDTH, len(maps) * WIDTH / (len(cells) + 1.2) + 0.45)
    fig, axes = figure(len(maps), len(cells), size=size, ticks=False)
    for line, cosines in zip(axes, maps, strict=True):
        for ax, values, cell in zip(line, cosines, cells, strict=True):
            ax.set_facecolor(ink.LIGHT)
            mappable = ax.imshow(values, cmap=ink.DIVERGING, vmin=-limit, vmax=limit)
            ax.plot(cell % gw, cell // gw, "x", color=ink.BLACK)
    for ax, cell in zip(axes[0], cells, strict=True):
        ax.set_title(f"patch {cell}\nrow {cell // gw}, column {cell % gw}", fontsize=8)
    name_rows(axes, similarity)
    fig.colorbar(mappable, ax=axes.ravel().tolist(), shrink=0.9, label="cosine")
    return fig


@styled
def show_class_accuracy(
    accuracy: Sequence[float], counts: Sequence[int], class_names: Sequence[str]
) -> Figure:
    """Draw accuracy by class as bars, the hardest first, and the overall accuracy as a line.

    Args:
        accuracy: (K,) in [0, 1]; nan where a class has no image, which is then said and not drawn.
        counts: (K,) images of each class.
        class_names: K names.
    """
    shares, images = np.asarray(accuracy, dtype=float), np.asarray(counts)
    order = np.argsort(np.where(images > 0, shares, np.inf), kind="stable")
    fig, ax = panel(WIDTH, 0.8 + 0.3 * len(order))
    for place, k in enumerate(order):
        if images[k] == 0:
            ax.text(1, place, "no image of this class", va="center", color=ink.GREY)
            continue
        ax.barh(place, 100 * shares[k], color=ink.SKY)
        ax.text(101, place, f"{shares[k]:.0%} of {images[k]}", va="center", fontsize=9)
    overall = 100 * np.nansum(shares * images) / max(images.sum(), 1)
    ax.axvline(overall, color=ink.BLACK, linewidth=1, linestyle="--", label=f"all: {overall:.1f}%")
    ax.set(xlabel="accuracy (%)", xlim=(0, 118), xticks=range(0, 101, 20))
    ax.set_yticks(range(len(order)), [class_names[k] for k in order])
    ax.set_ylim(len(order) - 0.4, -0.6)
    fig.legend(loc="outside lower right")
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
    rows = [(name, seeds, ink.BLUE) for name, seeds in steps.items() if len(seeds)]
    rows += [(name, [accuracy], ink.ORANGE) for name, accuracy in yours.items()]
    fig, ax = panel(WIDTH, 1.5 + 0.34 * len(rows))
    before, box = None, {"facecolor": "white", "edgecolor": "none", "pad": 1}
    for y, (_, seeds, colour) in enumerate(rows):
        mean = 100 * np.mean(seeds)
        ax.barh(y, mean, color=colour, height=0.62)
        if len(seeds) > 1:
            ax.plot(100 * np.array(seeds), [y] * len(seeds), "o", color=ink.BLACK, markersize=3.5)
        words = f"{mean:.1f}"
        if colour == ink.BLUE:
            words += "" if before is None else f"   ({mean - before:+.1f})"
            before = mean
        ax.text(max(100 * np.max(seeds), mean) + 1, y, words, va="center", fontsize=9, bbox=box)
    draw_horizons(ax, horizons)
    ax.set_yticks(range(len(rows)), [name for name, *_ in rows])
    ax.set(xlim=(0, 100), ylim=(len(rows) - 0.4, -0.6))
    ax.set_xlabel("validation accuracy (%), grey lines: test; in brackets the gain; a dot a seed")
    return fig


@styled
def show_ablations(lines: Sequence[Mapping]) -> Figure:
    """Draw the accuracy of every change, the way to the best first, then what was tried from there.

    A dot is a mean over seeds, the line through it reaches from the least to the best of them.

    Args:
        lines: as ``vitedu.bench.experiments.ablations.summary`` gives them for one number of
            epochs and one data set: ``change``, ``after``, ``accuracy``, ``low``, ``high``,
            ``gain`` and ``seeds``.

    Raises:
        ValueError: no line, or lines of several numbers of epochs or several data sets.
    """
    epochs, sets = ({line[key] for line in lines} for key in ("epochs", "data"))
    if len(epochs) != 1 or len(sets) != 1:
        raise ValueError(
            f"show_ablations compares runs of one length on one data set (got {len(lines)} lines "
            f"of epochs {sorted(epochs)} on {', '.join(sorted(sets))}); choose the lines of one."
        )
    fig, ax = panel(WIDTH, 0.9 + 0.34 * len(lines))
    starts, names = [line["after"] for line in lines], []
    for y, line in enumerate(lines):
        gain, on_the_way = line["gain"], line["change"] in starts
        names.append(f"{'' if on_the_way or gain is None else 'tried: '}{line['change']}")
        colour, words = ink.BLUE, f"{line['accuracy']:.1%}"
        if gain is not None:
            points = round(100 * gain, 1)
            colour = ink.GOOD if points > 0 else ink.BAD if points < 0 else ink.GREY
            words = f"{points:+.1f}".replace("-", "−") if points else "±0"
        ax.plot([line["low"], line["high"]], [y, y], color=ink.GREY, linewidth=1.5)
        ax.plot(line["accuracy"], y, "o" if on_the_way else "D", color=colour, markersize=6)
        ax.annotate(words, (line["high"], y), (9, 0), textcoords="offset points", va="center")
    ax.set_yticks(range(len(lines)), names)
    for label, line in zip(ax.get_yticklabels(), lines, strict=True):
        label.set_color(ink.BLACK if line["change"] in starts else ink.GREY)
    ax.invert_yaxis()
    low, high = min(line["low"] for line in lines), max(line["high"] for line in lines)
    margin = max(0.005, 0.08 * (high - low))
    ax.set_xlim(low - margin, high + 2 * margin)  # room for the last number
    ax.xaxis.set_major_formatter(lambda value, _: f"{100 * value:g}")
    ax.grid(axis="x", linewidth=0.4)
    seeds = sorted({line["seeds"] for line in lines})
    runs = "one seed each" if seeds == [1] else f"{' or '.join(map(str, seeds))} seeds each"
    words = "the number: its gain over the row it starts from, points"
    ax.set_xlabel(f"validation accuracy (%) after {epochs.pop()} epochs, {runs}\n{words}")
    return fig
