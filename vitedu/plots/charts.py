"""The three figures of which most others are made: bars, curves, rows of images.

Role: they bring axes, colours, marks, seeds, the level to compare with and the legend, so that no
figure forgets them. A figure that needs more draws it into ``figure.axes``. Not here: what one
chapter draws (its own module), how a figure is opened (``vitedu.plots.style``).

A measurement is a number, or the numbers of all seeds: their mean is drawn, and a dot for each.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import FixedLocator, NullLocator

from vitedu.plots import ink
from vitedu.plots.parts import draw_horizons, draw_image, draw_map, name_rows, verdict
from vitedu.plots.style import WIDTH, CourseFigure, figure, panel, styled

MARKS = "os^DvPX*"  # with colour and line, so that no curve needs its colour
LINES = ("-", "--", ":", "-.")
NETWORKS = {"CNN": (ink.ORANGE, "s", "--"), "ViT": (ink.BLUE, "o", "-")}  # alike in every figure

Measured = float | Sequence[float]
Level = tuple[str, float]


def look_of(name: str, number: int) -> tuple[str, str, str]:
    """Give colour, mark and line of a name: of its network, grey if untrained, or the next ones.

    What was measured of a network in training is dotted.
    """
    for network, (colour, mark, line) in NETWORKS.items():
        if name.startswith(network):
            return colour, mark, ":" if "training" in name else line
    colour = ink.GREY if "untrained" in name else ink.pick(number)
    return colour, MARKS[number % len(MARKS)], LINES[number % len(LINES)]


def seeds_of(name: str, measured: Measured, scale: float = 1) -> np.ndarray:
    """Give a measurement as an array of its seeds, one for a number; none is a ValueError."""
    seeds = scale * np.atleast_1d(np.asarray(measured, dtype=float))
    if not seeds.size:
        remedy = "give a number, or one for each seed, or leave it out"
        raise ValueError(f"{name!r} has no seed (got 0 numbers); {remedy}.")
    return seeds


@styled
def show_bars(
    rows: Mapping[str, Measured | Mapping[str, Measured]],
    label: str,
    *,
    level: Level | None = None,
    horizons: Mapping[str, float] | None = None,
    percent: bool = True,
    dots: bool = False,
    form: str = "{:.1f}",
    limits: tuple[float, float] | None = None,
    yours: Collection[str] = (),
) -> CourseFigure:
    """Draw measurements as bars, a row for each name and a bar for each series.

    Args:
        rows: name -> a measurement, or series -> measurement; a series may lack in a row.
        label: what was measured, with its unit.
        level: a level to compare with, its name first, such as guessing.
        horizons: accuracies of others, in [0, 1], each named above its line; with ``percent``.
        percent: whether measurements, in [0, 1], are shown in %.
        dots: marks joined by a line in place of bars: for what does not begin at zero.
        form: of the number at the end of a bar; "" for none.
        limits: of the axis; by default from 0 to the largest, or 0 to 100 with ``percent``.
        yours: rows of the student's own, told apart by bold names and a colour.
    """
    scale, size = 100 if percent else 1, 0.8
    table = {n: v if isinstance(v, Mapping) else {"": v} for n, v in rows.items()}
    series = list(dict.fromkeys(name for row in table.values() for name in row))
    bars = max(len(series), 1)
    thick = size / bars
    high = max(0.22 * (1 if dots else bars), 0.15 * max(n.count("\n") + 1 for n in table or [""]))
    fig, ax = panel(WIDTH, 1.2 + (0.14 + high) * len(table))
    most = 0.0
    for y, (row_name, row) in enumerate(table.items()):
        means = {
            name: seeds_of(name or row_name, value, scale).mean() for name, value in row.items()
        }
        if dots and len(means) > 1:
            ax.plot(list(means.values()), [y] * len(means), color=ink.LIGHT, linewidth=4, zorder=0)
        for name, mean in means.items():
            number = series.index(name)
            colour, mark, _ = look_of(name, number)
            colour = ink.ORANGE if row_name in yours else colour
            place = y if dots else y + (number + 0.5) * thick - size / 2
            seeds = seeds_of(name, row[name], scale)
            most = max(most, seeds.max())
            if dots:
                ax.plot(mean, place, mark, color=colour, markersize=7)
            else:
                look = {"color": colour, "edgecolor": ink.BLACK, "linewidth": 0.4}
                ax.barh(place, mean, 0.9 * thick, **look)
            if len(seeds) > 1:
                look = {"color": colour if dots else ink.BLACK, "alpha": 0.4, "markersize": 3.5}
                ax.plot(seeds, [place] * len(seeds), mark if dots else "o", **look)
            if form and not dots:
                paper = {"facecolor": "white", "linewidth": 0, "pad": 0.5}
                look = {"textcoords": "offset points", "va": "center", "size": 8, "bbox": paper}
                ax.annotate(form.format(mean), (seeds.max(), place), (4, 0), **look)
    for number, name in enumerate(series if series != [""] else []):
        colour, mark, _ = look_of(name, number)
        ax.plot([], [], mark if dots else "s", color=colour, label=name)
    if level:
        words = f"{level[0]}: {level[1]:.0%}" if percent else f"{level[0]}: {level[1]:.3g}"
        ax.axvline(scale * level[1], color=ink.BLACK, linestyle="--", linewidth=1, label=words)
    draw_horizons(ax, horizons or {})
    ax.set(xlabel=label, ylim=(len(table) - 0.4, -0.6))
    ax.set_xlim(limits or (0, 100 if percent else 1.12 * most))
    ax.set_yticks(range(len(table)), list(table))
    for words in ax.get_yticklabels():
        words.set_fontweight("bold" if words.get_text() in yours else "normal")
    draw_legend(fig, least=1)
    return fig


@styled
def show_curves(
    curves: Mapping[str, Any],
    x: Sequence[float] | None = None,
    *,
    xlabel: str,
    ylabel: str | Sequence[str],
    level: Level | None = None,
    percent: bool = False,
    log: str = "",
    limits: tuple[float | None, float | None] = (0, None),
    marks: Mapping[str, float] | None = None,
    height: float = 3.2,
) -> CourseFigure:
    """Draw measurements along an axis, a curve for each name, in one panel or several.

    Args:
        curves: name -> a measurement for each place, or place -> measurement; or, for several
            panels side by side, the panel's title -> such a mapping. A curve that ends early has
            fewer; nan is left out.
        x: the places; by default 0, 1, 2 ...; those are the axis's numbers where they are at
            most ten.
        xlabel: what runs along the axis, with its unit.
        ylabel: what was measured, with its unit; or one for each panel.
        level: a level to compare with, its name first.
        percent: whether measurements, in [0, 1], are shown in %.
        log: the logarithmic axes: "x", "y" or "xy".
        limits: of the vertical axis; a logarithmic one has its own.
        marks: name -> a place, drawn as a vertical line.
        height: of the figure in inches.
    """
    is_one = not all(map(_is_panel, curves.values()))
    panels: dict[str, Mapping[str, Any]] = {"": curves} if is_one else dict(curves)
    scale, labels = (100 if percent else 1), [ylabel] if isinstance(ylabel, str) else list(ylabel)
    fig, axes = figure(1, len(panels), size=(WIDTH, height))
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    at = [line for lines in panels.values() for line in lines.values() if isinstance(line, Mapping)]
    x = sorted({place for line in at for place in line}) if at else x
    for number, (ax, (title, lines)) in enumerate(zip(axes.flat, panels.items(), strict=True)):
        for name, points in lines.items():
            colour, mark, line = look_of(name, names.index(name))
            if isinstance(points, Mapping):
                points = [points.get(place, np.nan) for place in x or ()]
            seeds = [seeds_of(name, point, scale) for point in points]
            places = list(range(len(seeds)) if x is None else x)[: len(seeds)]
            there = [k for k, each in enumerate(seeds) if not np.isnan(each).all()]
            places, seeds = [places[k] for k in there], [seeds[k] for k in there]
            look = {"color": colour, "marker": mark if len(seeds) <= 40 else "", "markersize": 5}
            ax.plot(places, [each.mean() for each in seeds], line, label=name, **look)
            for place, each in zip(places, seeds, strict=True):
                if len(each) > 1:
                    ax.plot([place] * len(each), each, ".", color=colour, alpha=0.6, markersize=7)
        if level:
            words = f"{level[0]}: {level[1]:.0%}" if percent else f"{level[0]}: {level[1]:.3g}"
            ax.axhline(scale * level[1], color=ink.GREY, linestyle=":", label=words)
        for word, place in (marks or {}).items():
            ax.axvline(place, color=ink.GREY, linestyle=":")
            ax.text(place, 0.02, f" {word}", transform=ax.get_xaxis_transform(), fontsize=8)
        ax.set(title=title, xlabel=xlabel, ylabel=labels[number] if number < len(labels) else "")
        ax.set(xscale="log" if "x" in log else "linear", yscale="log" if "y" in log else "linear")
        if "y" not in log:
            ax.set_ylim(*limits)
        if x is not None and len(x) <= 10:
            ax.xaxis.set(major_locator=FixedLocator(list(x)), minor_locator=NullLocator())
            ax.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        elif "x" not in log and (x is None or all(float(place).is_integer() for place in x)):
            ax.locator_params(axis="x", integer=True)
    draw_legend(fig, least=2)
    return fig


@styled
def show_images(
    rows: Mapping[str, Iterable[Any]],
    *,
    titles: Sequence[str] = (),
    words: Mapping[str, Sequence[str]] | None = None,
    right: Mapping[str, Sequence[bool]] | None = None,
    label: str = "",
    scale: tuple[float, float] | None = None,
    side: float = 1.9,
    across: int = 0,
    **look: Any,
) -> CourseFigure:
    """Draw rows of images and of maps, each row with its name.

    Args:
        rows: name -> images (C, H, W) or maps (rows, columns); a row may be shorter than others.
        titles: what stands above the columns.
        words: name of a row -> what stands below each of its pictures.
        right: name of a row -> whether each is right, said by a sign and a frame.
        label: what the maps show, beside their colour bar; "" draws no bar.
        scale: the least and the largest value of all maps; by default those that occur.
        side: of a picture in inches, at most: few shall not fill the page.
        across: pictures in a line, where a longer row goes on in the next; by default all.
        **look: of the maps, such as ``cmap`` (by default ``ink.SEQUENTIAL``).
    """
    if across:
        rows, words, right = (_wrap(each, across) for each in (rows, words or {}, right or {}))
    table = {name: [_as_array(each) for each in row] for name, row in rows.items()}
    columns = max(map(len, table.values()))
    maps = [each for row in table.values() for each in row if each.ndim == 2]
    if maps and "norm" not in look:
        low, high = scale or (min(np.nanmin(m) for m in maps), max(np.nanmax(m) for m in maps))
        look = {"vmin": low, "vmax": high, **look}
    look = {"cmap": ink.SEQUENTIAL, **look}
    below = [list(row) for row in (words or {}).values()] + [[""]] * bool(right)
    lines = sum(1 + max(word.count("\n") for word in row) for row in below)
    above = 1 + max((title.count("\n") for title in titles), default=-1)
    room = 0.8 if label else 0  # for the colour bar
    side = min((WIDTH - room) / columns, side)
    size = max(side * columns + room, 3), side * len(table) + 0.18 * (lines + above)
    fig, axes = figure(len(table), columns, size=size, ticks=False)
    mappable = None
    for row_axes, (name, row) in zip(axes, table.items(), strict=True):
        for ax, each in zip(row_axes, row, strict=False):
            if each.ndim == 2:
                mappable = draw_map(ax, each, **look)
            else:
                draw_image(ax, each)
        for ax, word in zip(row_axes, (words or {}).get(name, ()), strict=False):
            ax.set_xlabel(word, fontsize=8)
        for ax, is_right in zip(row_axes, (right or {}).get(name, ()), strict=False):
            sign, colour = verdict(is_right)
            ax.spines[:].set(visible=True, color=colour, linewidth=2.5)
            ax.set_xlabel(f"{sign} {ax.get_xlabel()}".strip(), color=colour, fontsize=8)
    for ax, title in zip(axes[0], titles, strict=False):
        ax.set_title(title, fontsize=9)
    name_rows(axes, map(str.strip, table), size=9)
    if label and mappable is not None:
        fig.colorbar(mappable, ax=axes.ravel().tolist(), label=label, shrink=0.8)
    return fig


def draw_legend(fig: CourseFigure, least: int) -> None:
    """Name what all panels show, each once, in a line or in three columns, if it is enough."""
    handles: dict[str, Any] = {}
    for ax in fig.axes:
        handles |= dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    is_short = sum(len(name) + 6 for name in handles) < 90
    if len(handles) >= least:
        columns = len(handles) if is_short else 3
        fig.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns)


def _is_panel(lines: Any) -> bool:
    """Say whether these are curves by name, and not the measurements of one curve."""
    return isinstance(lines, Mapping) and all(isinstance(name, str) for name in lines)


def _as_array(picture: Any) -> np.ndarray:
    return picture.numpy(force=True) if hasattr(picture, "numpy") else np.asarray(picture)


def _wrap(rows: Mapping[str, Iterable[Any]], across: int) -> dict[str, list[Any]]:
    """Cut long rows into lines; the names of further lines end in spaces, which nobody sees."""
    lines = {name: list(row) for name, row in rows.items()}
    return {
        name + " " * number: row[start : start + across]
        for name, row in lines.items()
        for number, start in enumerate(range(0, len(row), across))
    }
