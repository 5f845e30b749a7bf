"""Figures of notebook 07: the gap, mixed images, reconstructions, a collapse.

Role: draw what the notebook measured. Not here: the measuring; every function takes what is there.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from vitedu.plots import ink
from vitedu.plots.parts import draw_image, name_rows
from vitedu.plots.style import WIDTH, figure, panel, styled


@styled
def show_gap(accuracies: Mapping[str, Mapping[str, Sequence[float]]], guessing: float) -> Figure:
    """Draw training and test accuracy of every arm, joined by a line: the gap.

    Args:
        accuracies: arm -> {"train": accuracies of all seeds, "test": the same}, in [0, 1].
        guessing: the accuracy of guessing.
    """
    fig, ax = panel(WIDTH, 0.32 * len(accuracies) + 1.2)
    looks = ("train", "o", ink.BLUE, "training images"), ("test", "s", ink.ORANGE, "test images")
    for row, both in enumerate(accuracies.values()):
        percent = {split: [100 * value for value in both[split]] for split in ("test", "train")}
        ends = [np.mean(values) for values in percent.values()]
        ax.plot(ends, [row, row], color=ink.LIGHT, linewidth=4, zorder=0)
        for split, mark, colour, words in looks:
            values, label = percent[split], words if row == 0 else None
            ax.plot(values, [row] * len(values), mark, color=colour, alpha=0.35, markersize=4)
            ax.plot(np.mean(values), row, mark, color=colour, label=label, markersize=7)
    ax.axvline(100 * guessing, color=ink.GREY, linestyle=":", label="guessing")
    ax.set(yticks=range(len(accuracies)), yticklabels=list(accuracies), xlim=(0, 103))
    ax.set_xlabel("accuracy (%); small marks: single seeds, large ones: their mean")
    ax.invert_yaxis()
    fig.legend(loc="outside upper center", ncols=3)
    return fig


@styled
def show_rows(
    rows: Mapping[str, Sequence], words: Mapping[str, Sequence[str]] | None = None
) -> Figure:
    """Draw rows of pictures, each row with its name.

    Args:
        rows: name -> pictures (C, H, W), as many in each row.
        words: name -> what stands below each picture of that row.
    """
    words = words or {}
    columns = max(len(pictures) for pictures in rows.values())
    side = min(WIDTH / columns, 1.8)  # inches; few pictures shall not fill the page
    lines = sum(1 + max(word.count("\n") for word in below) for below in words.values())
    size = (max(side * columns, 2), 0.95 * side * len(rows) + 0.17 * lines)
    fig, axes = figure(len(rows), columns, size=size, ticks=False)
    for line, (name, pictures) in zip(axes, rows.items(), strict=True):
        for ax, picture in zip(line, pictures, strict=False):
            draw_image(ax, picture)
        for ax, word in zip(line, words.get(name, ()), strict=False):
            ax.set_xlabel(word)
    name_rows(axes, rows, size=8)
    return fig


@styled
def show_collapse(
    results: Mapping[str, Sequence[tuple[float, float]]], steps: Sequence[int], most: float
) -> Figure:
    """Draw entropy and spread of a teacher's answers while it learns, one line an arm.

    Args:
        results: arm -> (entropy, spread) at each of the steps, in nats.
        steps: where they were measured.
        most: the entropy of an even answer, log K.
    """
    fig, axes = figure(1, 2, size=(WIDTH, 3.1))
    for k, (ax, name) in enumerate(zip(axes[0], ("entropy", "spread"), strict=True)):
        for i, (arm, values) in enumerate(results.items()):
            style = {"color": ink.pick(i), "marker": "osD^"[i % 4], "markersize": 4}
            ax.plot(steps, [value[k] for value in values], label=arm, **style)
        ax.axhline(0, color=ink.GREY, linewidth=0.6)
        ax.set(xlabel="step", title=name)
        ax.locator_params(axis="x", integer=True)
    largest = max(spread for values in results.values() for _, spread in values)
    axes[0, 0].axhline(most, color=ink.GREY, linestyle=":", label=f"even answer: {most:.2f}")
    axes[0, 0].set(ylabel="nats", ylim=(-0.1, 1.1 * most))
    axes[0, 1].set_ylim(-0.02, max(0.6, 1.1 * largest))  # a scale of its own
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return fig
