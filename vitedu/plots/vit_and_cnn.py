"""Figures of notebook 06: a CNN and a ViT side by side.

Role: arrays in, a matplotlib figure out. Not here: any measuring; a figure draws what it is given.

Legend: H W image, gh gw grid, L layers.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from vitedu.files import write_whole
from vitedu.plots import ink
from vitedu.plots.parts import (
    draw_image,
    draw_lines,
    draw_map,
    frame,
    name_rows,
    write_cells,
)
from vitedu.plots.style import DPI, WIDTH, CourseFigure, figure, panel, styled

# colour, marker, line
NETWORK_LOOKS = {"CNN": (ink.ORANGE, "s", "--"), "ViT": (ink.BLUE, "o", "-")}
Curve = Sequence[Sequence[float]]  # for each x, the values of all seeds


def look_of(name: str, index: int) -> tuple[str, str, str]:
    """Give colour, marker and line style: those of its network, or the next ones."""
    for network, look in NETWORK_LOOKS.items():
        if name.startswith(network):
            return look
    return ink.pick(index), "os^Dv"[index % 5], ("-", "--", "-.", ":")[index % 4]


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
    for (first, *rest), (network, flow) in zip(axes, flows.items(), strict=True):
        draw_image(first, image, "image")
        for ax, (layer, strength), note in zip(rest, flow.items(), notes[network], strict=False):
            draw_map(ax, strength, layer, cmap=ink.SEQUENTIAL, vmin=0, vmax=float(strength.max()))
            ax.set_xlabel(note, fontsize=8)
    name_rows(axes, flows)
    words = "bright: the place reacts strongly; each map has its own scale, from 0 to its largest"
    fig.supxlabel(f"{words} value", fontsize=8, color=ink.GREY)
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
    panels = {
        "the four glyphs": np.block([list(glyphs[:2]), list(glyphs[2:])]),
        "the image, with the cue framed": picture,
        "cells with the cue's glyph": picture,
    }
    fig, axes = figure(1, 3, size=(WIDTH * 1.2, 3.6), width_ratios=[1, 2, 2])
    grid = {"color": ink.BLUE, "linewidth": 1.2}
    looks = {"color": "white", "linewidth": 8}, grid, grid
    for ax, (title, values), look in zip(axes[0], panels.items(), looks, strict=True):
        draw_map(ax, values, title, cmap="gray", vmin=-0.2, vmax=1.2)
        edges = np.arange(0, len(values) + 1, cell) - 0.5
        draw_lines(ax, edges, edges, **look)
    frame(axes[0, 1], -0.5, -0.5, cell, zorder=3)
    for row, column in np.argwhere(np.asarray(answers)):
        frame(axes[0, 2], column * cell - 0.5, row * cell - 0.5, cell, zorder=3)
    return fig


@styled
def show_fields(fields: Mapping[str, np.ndarray], sides: Sequence[int]) -> Figure:
    """Draw effective receptive fields on a logarithmic scale, each with the square that it may not
    leave.

    Args:
        fields: title -> (H, W), at most 1.
        sides: the receptive field of each in pixels; a side as large as the image draws no square.
    """
    look = {"cmap": ink.SEQUENTIAL, "norm": LogNorm(1e-3, 1)}
    fig, axes = figure(1, len(fields), size=(WIDTH * 1.2, 2.6))
    for ax, (title, field), side in zip(axes[0], fields.items(), sides, strict=True):
        H, W = field.shape
        mappable = draw_map(ax, np.clip(field, 1e-9, None), title, **look)
        if side < W:
            frame(ax, (W - 1 - side) / 2, (H - 1 - side) / 2, side, linewidth=1.2)
    fig.colorbar(mappable, ax=axes, shrink=0.7, extend="min", label="gradient, largest = 1")
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
    fig, ax = panel(WIDTH * 0.9, 3.6)
    scale = 100 if percent else 1
    for i, (name, points) in enumerate(curves.items()):
        colour, marker, line = look_of(name, i)
        means = [scale * np.mean(values) for values in points]
        look = {"color": colour, "marker": marker, "label": name}
        if "training" in name:
            ax.plot(x, means, linestyle=":", fillstyle="none", **look)
        else:
            ax.plot(x, means, linestyle=line, **look)
        for place, values in zip(x, points, strict=True):
            dots = [place] * len(values), [scale * value for value in values]
            ax.plot(*dots, ".", color=colour, alpha=0.4)
        if marks and name in marks:
            ax.axvline(marks[name], color=colour, linewidth=0.8, linestyle=line)
    if baseline:
        ax.axhline(scale * baseline[0], color=ink.GREY, linewidth=0.8, label=baseline[1])
    if logx:
        ax.set_xscale("log")
    ax.xaxis.set(major_locator=FixedLocator(list(x)), minor_locator=NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.grid(axis="y", linewidth=0.4, color=ink.LIGHT)
    fig.legend(loc="outside right upper")
    return fig


@styled
def show_disturbed(results: Mapping[str, Mapping[str, Sequence[float]]], guessing: float) -> Figure:
    """Draw the accuracy of networks under disturbances, one line of dots each.

    Args:
        results: network -> disturbance -> accuracies of all seeds.
        guessing: the accuracy of guessing.
    """
    names = list(next(iter(results.values())))
    fig, ax = panel(WIDTH, 0.34 * len(names) + 1.1)
    for i, (network, by_name) in enumerate(results.items()):
        colour, marker, _ = look_of(network, i)
        for row, name in enumerate(names):
            y = row + 0.16 * (2 * i - 1)
            values = [100 * value for value in by_name[name]]
            ax.plot([min(values), max(values)], [y, y], color=colour, linewidth=1)
            ax.plot(np.mean(values), y, marker, color=colour, label=network if row == 0 else None)
    ax.axvline(100 * guessing, color=ink.GREY, linewidth=0.8)
    place = 100 * guessing, len(names) - 0.4
    look = {"color": ink.GREY, "fontsize": 8}
    ax.annotate("guessing", place, xytext=(3, 0), textcoords="offset points", **look)
    ax.set(yticks=range(len(names)), yticklabels=names, xlim=(0, 100))
    ax.set_xlabel("test accuracy (%)" + ", mean and range over seeds" * (len(values) > 1))
    ax.invert_yaxis()
    ax.grid(axis="x", linewidth=0.4, color=ink.LIGHT)
    fig.legend(loc="outside right upper")
    return fig


@styled
def show_likeness(
    tables: Mapping[str, np.ndarray], of_cnn: Sequence[str], of_vit: Sequence[str]
) -> Figure:
    """Draw tables of linear CKA between the layers of a CNN and of a ViT, on one scale from 0 to 1.

    Args:
        tables: title -> (layers of the ViT, layers of the CNN), values in [0, 1].
        of_cnn: names of the layers across.
        of_vit: names of the layers down.
    """
    fig, axes = figure(1, len(tables), size=(WIDTH * 1.2, 3.8))
    for ax, (title, table) in zip(axes[0], tables.items(), strict=True):
        mappable = ax.imshow(table, cmap=ink.SEQUENTIAL, vmin=0, vmax=1)
        write_cells(ax, np.char.mod("%.1f", table), np.asarray(table) <= 0.6, fontsize=8)
        ax.set(title=title, xlabel="CNN: after block", ylabel="ViT: after block")
        ax.set_xticks(range(len(of_cnn)), of_cnn)
        ax.set_yticks(range(len(of_vit)), of_vit)
        ax.spines[:].set_visible(False)
    fig.colorbar(mappable, ax=axes, shrink=0.7, label="linear CKA")
    return fig


@styled
def show_card(
    rows: Mapping[str, Mapping[str, float]],
    words: Sequence[str],
    path: str | Path,
) -> CourseFigure:
    """Draw a card: a measurement a line, with a mark at the larger number, and words below.

    Args:
        rows: what was measured -> network -> value; at most 1: a share, else a whole number.
        words: lines below the table.
        path: of the PNG file to write, too.
    """
    networks = list(next(iter(rows.values())))
    height = len(rows) + len(words) + 2
    fig, ax = panel(WIDTH, 0.3 * height)
    ax.set(xlim=(0, 10), ylim=(height, 0))
    ax.axis("off")
    places = {network: 6.8 + 2.2 * i for i, network in enumerate(networks)}
    for network, x in places.items():
        ax.text(x, 0.5, network, ha="right", va="center", weight="bold")
    for number, (what, values) in enumerate(rows.items(), start=1):
        ax.axhline(number, color=ink.LIGHT, linewidth=0.8)
        ax.text(0, number + 0.5, f"{number}  {what}", va="center")
        for network, value in values.items():
            is_ahead = value == max(values.values()) > min(values.values())
            shown = f"{value:.1%}" if value <= 1 else f"{value:,.0f}"
            look = {"weight": "bold", "color": ink.GOOD} if is_ahead else {}
            mark = " ◀" if is_ahead else ""
            ax.text(places[network], number + 0.5, shown, ha="right", va="center", **look)
            ax.text(places[network], number + 0.5, mark, va="center", fontsize=8, **look)
    ax.axhline(len(rows) + 1, color=ink.GREY, linewidth=0.8)
    for line, text in enumerate(words, start=len(rows) + 1):
        ax.text(0, line + 0.6, text, va="center")
    write_whole(Path(path), fig.png(2 * DPI))
    return fig
