"""Figures of notebook 06: a CNN and a ViT side by side.

Role: arrays in, a matplotlib figure out. Not here: any measuring; a figure draws what it is given.

Legend: H W image, gh gw grid, L layers.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from vitedu.plots.style import (
    BLUE,
    CYCLE,
    GREY,
    LIGHT,
    ORANGE,
    SEQUENTIAL,
    WIDTH,
    figure,
    hide_ticks,
    styled,
    to_picture,
)

OF_NETWORK = {"CNN": (ORANGE, "s", "--"), "ViT": (BLUE, "o", "-")}  # colour, marker, line
Curve = Sequence[Sequence[float]]  # for each x, the values of all seeds


def look_of(name: str, index: int) -> tuple[str, str, str]:
    """Give colour, marker and line style: those of its network, or the next ones."""
    for network, look in OF_NETWORK.items():
        if name.startswith(network):
            return look
    return CYCLE[index % len(CYCLE)], "os^Dv"[index % 5], ("-", "--", "-.", ":")[index % 4]


@styled
def show_flow(
    image, flows: Mapping[str, Mapping[str, np.ndarray]], notes: Mapping[str, Sequence[str]]
) -> Figure:
    """Draw how an image changes on its way through several networks.

    Args:
        image: (C, H, W), uint8 or floats in [0, 1].
        flows: network -> name of a layer -> (gh, gw), how strongly each place reacts. All have as
        many layers.
        notes: network -> the shape behind each layer, in words.
    """
    columns = 1 + max(len(flow) for flow in flows.values())
    fig, axes = figure(len(flows), columns, size=(WIDTH * 1.2, 2.2 * len(flows)))
    for row, (network, flow) in zip(axes, flows.items(), strict=True):
        row[0].imshow(to_picture(image))
        row[0].set_title("image")
        row[0].set_ylabel(network)
        for ax, (layer, strength), note in zip(row[1:], flow.items(), notes[network], strict=False):
            ax.imshow(strength, cmap=SEQUENTIAL, vmin=0, vmax=float(strength.max()))
            ax.set_title(layer)
            ax.set_xlabel(note, fontsize=8)
        for ax in row:
            hide_ticks(ax)
    fig.supxlabel(
        "bright: the place reacts strongly; each map has its own scale, from 0 to its largest "
        "value",
        fontsize=8,
        color=GREY,
    )
    return fig


@styled
def show_cue_task(image, answers, glyphs) -> Figure:
    """Draw the glyphs of the cue-matching task, an image, and which of its cells hold the cue's
    glyph.

    Args:
        image: (1, H, W), about 0 to 1 and some noise.
        answers: (gh, gw), true where a cell holds the glyph of the top left cell.
        glyphs: (4, P, P), without noise; P is the side of a cell in pixels.
    """
    glyphs, picture = np.asarray(glyphs), np.asarray(image)[0]
    cell = glyphs.shape[-1]
    shown = {
        "the four glyphs": np.block([list(glyphs[:2]), list(glyphs[2:])]),
        "the image, with the cue framed": picture,
        "cells with the cue's glyph": picture,
    }
    fig, axes = figure(1, 3, size=(WIDTH * 1.2, 3.6), width_ratios=[1, 2, 2])
    for ax, (title, values) in zip(axes[0], shown.items(), strict=True):
        ax.imshow(values, cmap="gray", vmin=-0.2, vmax=1.2)
        ax.set_title(title)
        hide_ticks(ax)
        gap = (
            {"color": "white", "linewidth": 8}
            if values is not picture
            else {"color": BLUE, "linewidth": 1.2}
        )
        for line in range(0, len(values) + 1, cell):
            ax.axhline(line - 0.5, **gap)
            ax.axvline(line - 0.5, **gap)
    frames = [(axes[0, 1], 0, 0)]
    frames += [(axes[0, 2], row, column) for row, column in np.argwhere(np.asarray(answers))]
    for ax, row, column in frames:
        corner = column * cell - 0.5, row * cell - 0.5
        frame = Rectangle(corner, cell, cell, fill=False, color=ORANGE, linewidth=2.5, zorder=3)
        ax.add_patch(frame)
    return fig


@styled
def show_by_cell(accuracies: Mapping[str, np.ndarray]) -> Figure:
    """Draw how often networks compare each cell rightly with the cue in the top left corner.

    Args:
        accuracies: title -> (gh, gw), balanced accuracy; the cue's own may be NaN.
    """
    fig, axes = figure(1, len(accuracies), size=(WIDTH * 1.2, 3.0))
    for ax, (title, values) in zip(axes[0], accuracies.items(), strict=True):
        shown = ax.imshow(100 * np.asarray(values), cmap=SEQUENTIAL, vmin=50, vmax=100)
        frame = Rectangle((-0.5, -0.5), 1, 1, fill=False, color=ORANGE, linewidth=2.5, zorder=3)
        ax.add_patch(frame)
        ax.text(0, 0, "cue", ha="center", va="center", fontsize=8)
        ax.set_title(title)
        hide_ticks(ax)
    bar = fig.colorbar(shown, ax=axes, shrink=0.8)
    bar.set_label("balanced accuracy (%), guessing: 50")
    return fig


@styled
def show_fields(fields: Mapping[str, np.ndarray], sides: Sequence[int]) -> Figure:
    """Draw effective receptive fields on a logarithmic scale, each with the square that it may not
    leave.

    Args:
        fields: title -> (H, W), at most 1.
        sides: the receptive field of each in pixels; a side as large as the image draws no square.
    """
    fig, axes = figure(1, len(fields), size=(WIDTH * 1.2, 2.6))
    for ax, (title, field), side in zip(axes[0], fields.items(), sides, strict=True):
        H, W = field.shape
        shown = ax.imshow(np.clip(field, 1e-9, None), cmap=SEQUENTIAL, norm=LogNorm(1e-3, 1))
        if side < W:
            corner = (W - 1 - side) / 2, (H - 1 - side) / 2
            ax.add_patch(Rectangle(corner, side, side, fill=False, color=ORANGE, linewidth=1.2))
        ax.set_title(title)
        hide_ticks(ax)
    bar = fig.colorbar(shown, ax=axes, shrink=0.7, extend="min")
    bar.set_label("gradient, largest = 1")
    return fig


@styled
def show_curves(
    curves: Mapping[str, Curve],
    x: Sequence[float],
    *,
    xlabel: str,
    ylabel: str,
    baseline: tuple[float, str] | None = None,
    logx: bool = False,
    marks: Mapping[str, float] | None = None,
    percent: bool = True,
) -> Figure:
    """Draw means over seeds as lines and all seeds as dots.

    Args:
        curves: name -> for each x the values of all seeds. "CNN" or "ViT" in front sets the look.
        x: the places.
        xlabel: what x is, with its unit.
        ylabel: what the values are, with their unit.
        baseline: a value and what it is, such as that of guessing.
        logx: whether x has a logarithmic scale.
        marks: name of a curve -> an x to mark in its colour.
        percent: whether values are shares, shown in percent.
    """
    fig, axes = figure(size=(WIDTH * 0.9, 3.6))
    ax, scale = axes[0, 0], 100 if percent else 1
    for i, (name, points) in enumerate(curves.items()):
        colour, marker, line = look_of(name, i)
        is_training = "training" in name
        means = [scale * np.mean(values) for values in points]
        ax.plot(
            x,
            means,
            linestyle=":" if is_training else line,
            marker=marker,
            color=colour,
            fillstyle="none" if is_training else "full",
            label=name,
        )
        for place, values in zip(x, points, strict=True):
            ax.plot(
                [place] * len(values), [scale * v for v in values], ".", color=colour, alpha=0.4
            )
        if marks and name in marks:
            ax.axvline(marks[name], color=colour, linewidth=0.8, linestyle=line)
    if baseline:
        ax.axhline(scale * baseline[0], color=GREY, linewidth=0.8, label=baseline[1])
    if logx:
        ax.set_xscale("log")
    ax.xaxis.set(major_locator=FixedLocator(list(x)), minor_locator=NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.grid(axis="y", linewidth=0.4, color=LIGHT)
    fig.legend(loc="outside right upper")
    return fig


@styled
def show_disturbed(found: Mapping[str, Mapping[str, Sequence[float]]], guessing: float) -> Figure:
    """Draw the accuracy of networks under disturbances, one line of dots each.

    Args:
        found: network -> disturbance -> accuracies of all seeds.
        guessing: the accuracy of guessing.
    """
    names = list(next(iter(found.values())))
    fig, axes = figure(size=(WIDTH, 0.34 * len(names) + 1.1))
    ax = axes[0, 0]
    for i, (network, by_name) in enumerate(found.items()):
        colour, marker, _ = look_of(network, i)
        for row, name in enumerate(names):
            y = row + 0.16 * (2 * i - 1)
            values = [100 * value for value in by_name[name]]
            ax.plot([min(values), max(values)], [y, y], color=colour, linewidth=1)
            ax.plot(np.mean(values), y, marker, color=colour, label=network if row == 0 else None)
    ax.axvline(100 * guessing, color=GREY, linewidth=0.8)
    ax.annotate(
        "guessing",
        (100 * guessing, len(names) - 0.4),
        xytext=(3, 0),
        textcoords="offset points",
        color=GREY,
        fontsize=8,
    )
    ax.set(
        yticks=range(len(names)),
        yticklabels=names,
        xlim=(0, 100),
        xlabel="test accuracy (%), mean and range over seeds",
    )
    ax.invert_yaxis()
    ax.grid(axis="x", linewidth=0.4, color=LIGHT)
    fig.legend(loc="outside right upper")
    return fig


@styled
def show_likeness(tables: Mapping[str, np.ndarray], names: Sequence[str]) -> Figure:
    """Draw tables of linear CKA between all layers, on one scale from 0 to 1.

    Args:
        tables: title -> (L, L), values in [0, 1].
        names: of the layers, in order.
    """
    fig, axes = figure(1, len(tables), size=(WIDTH * 1.2, 4.2))
    for ax, (title, table) in zip(axes[0], tables.items(), strict=True):
        shown = ax.imshow(table, cmap=SEQUENTIAL, vmin=0, vmax=1)
        for (row, column), value in np.ndenumerate(np.asarray(table)):
            colour = "black" if value > 0.6 else "white"
            ax.text(column, row, f"{value:.1f}", ha="center", va="center", color=colour, fontsize=7)
        ax.set(title=title, xticks=range(len(names)), yticks=range(len(names)))
        ax.set_xticklabels(names, rotation=60, ha="right")
        ax.set_yticklabels(names)
        ax.spines[:].set_visible(False)
    bar = fig.colorbar(shown, ax=axes, shrink=0.7)
    bar.set_label("linear CKA")
    return fig
