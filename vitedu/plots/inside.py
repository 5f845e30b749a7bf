"""Figures of notebook 05: maps of all layers and heads, what is read from each block.

Role: draw what the notebook measured. Not here: the measuring (``vitedu.inside``); maps of one
layer, positions and confusions (``vitedu.plots.training``).

A map of attention is drawn relative to uniform, on one logarithmic scale from a tenth to ten times:
an even map looks even, whoever made it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from vitedu.files import write_whole
from vitedu.plots import ink
from vitedu.plots.parts import draw_image, draw_lines, draw_map, name_rows, uniform_bar
from vitedu.plots.style import DPI, WIDTH, figure, panel, styled

LINES = ("o-", "s--", "^:", "D-.", "v-", "P--")
LOWEST, HIGHEST = 0.1, 10.0  # of a map, relative to uniform


def colour_of(name: str, number: int) -> str:
    """Give the colour of a model or a curve: grey if untrained, else the next of the course's."""
    return ink.GREY if "untrained" in name else ink.pick(number)


def _draw_map(ax, values, uniform: float, title: str = "", **options):
    """Draw one map relative to uniform."""
    relative = np.maximum(np.asarray(values) / uniform, 1e-9)
    look = {"cmap": ink.SEQUENTIAL, "norm": LogNorm(LOWEST, HIGHEST), "size": 8}
    return draw_map(ax, relative, title, **look, **options)


@styled
def show_on_own_scales(image, maps: Mapping[str, np.ndarray]) -> Figure:
    """Draw one image and maps whose colours reach from each map's own least to its largest value.

    Args:
        image: (C, H, W), uint8 or floats in [0, 1].
        maps: title -> (gh, gw).
    """
    fig, axes = figure(1, 1 + len(maps), size=(WIDTH * 0.8, 0.3 + WIDTH * 0.8 / (1 + len(maps))))
    draw_image(axes[0, 0], image, "the image")
    for ax, (title, values) in zip(axes[0, 1:], maps.items(), strict=True):
        draw_map(ax, values, title, cmap=ink.SEQUENTIAL)
    return fig


@styled
def show_layers_and_heads(image, maps: Mapping[str, np.ndarray], *, uniform: float) -> Figure:
    """Draw one image and, for each model, a map for every layer and head.

    Args:
        image: (C, H, W), uint8 or floats in [0, 1].
        maps: name of the model -> (L, nh, gh, gw), weights of one query.
        uniform: the weight that each token would get from an even spread, 1/T.
    """
    L, nh = next(iter(maps.values())).shape[:2]
    columns = 1 + len(maps) * (nh + 1)
    widths = [nh * 0.9] + ([0.25] + [1] * nh) * len(maps)
    fig, axes = figure(L, columns, size=(WIDTH, 0.45 + 0.72 * L), width_ratios=widths)
    for ax in axes.flat:
        ax.axis("off")
    picture = fig.add_subplot(axes[0, 0].get_gridspec()[:, 0])
    draw_image(picture, image, "image")
    for number, (name, values) in enumerate(maps.items()):
        first = 2 + number * (nh + 1)
        own = axes[:, first : first + nh]
        for (layer, head), ax in np.ndenumerate(own):
            ax.axis("on")
            mappable = _draw_map(ax, values[layer, head], uniform)
        for head, ax in enumerate(own[0]):
            ax.set_title(f"head {head}", fontsize=7)
        name_rows(own, [f"block {layer}" for layer in range(L)], size=7)
        own[-1, nh // 2].set_xlabel(name, loc="center")
    uniform_bar(fig, mappable, ax=axes[:, 2:].ravel().tolist(), shrink=0.9)
    return fig


@styled
def show_full_maps(maps: Mapping[str, np.ndarray], grid_size: tuple[int, int]) -> Figure:
    """Draw whole tables of weights: a row for each query, a column for each key.

    Args:
        maps: title -> (T, T) weights of one head; token 0 is the class token.
        grid_size: (gh, gw); lines mark where a row of patches begins.
    """
    gh, gw = grid_size
    fig, axes = figure(1, len(maps), size=(WIDTH, 0.9 + WIDTH / (len(maps) + 0.6)))
    starts = gw * np.arange(gh) + 0.5
    ticks = [0, *(starts + gw / 2)]
    names = ["class", *(f"row {row}" for row in range(gh))]
    for ax, (title, weights) in zip(axes[0], maps.items(), strict=True):
        mappable = _draw_map(ax, weights, 1 / len(weights))
        ax.set_xticks(ticks, names, fontsize=7, rotation=90)
        ax.set_yticks(ticks, names, fontsize=7)
        draw_lines(ax, starts, starts, color="white", linewidth=0.4)
        ax.set_title(title)
        ax.set_xlabel("key: class token, then rows of patches")
    axes[0, 0].set_ylabel("query: who looks")
    uniform_bar(fig, mappable, ax=axes.ravel().tolist(), shrink=0.9)
    return fig


@styled
def show_distances(spans: Mapping[str, np.ndarray], *, uniform: float) -> Figure:
    """Draw how far each head looks: a dot a head, layer by layer.

    Args:
        spans: name of the model -> (L, nh), mean distances in patches.
        uniform: the distance of an even look.
    """
    fig, ax = panel(WIDTH * 0.8)
    ax.axhline(uniform, color=ink.GREY, linestyle=":", label=f"an even look: {uniform:.2f}")
    for number, (name, values) in enumerate(spans.items()):
        L, nh = values.shape
        x = np.repeat(np.arange(L), nh) + 0.16 * number - 0.08
        style = {"color": colour_of(name, number), "label": name, "alpha": 0.8}
        ax.plot(x, values.ravel(), "osD"[number], **style)
    ax.set(xlabel="block", ylabel="mean distance (patches)", xticks=range(L))
    ax.set_ylim(0, 1.15 * max(uniform, *(values.max() for values in spans.values())))
    fig.legend(loc="outside lower center", ncols=3)
    return fig


@styled
def show_pointing(images, masks, maps: Mapping[str, np.ndarray]) -> Figure:
    """Draw what several maps point at: the hottest patch is marked, the object is outlined.

    Args:
        images: (n, C, H, W), uint8 or floats in [0, 1].
        masks: (n, H, W), boolean.
        maps: name -> (n, gh, gw), not negative; each is drawn relative to its own mean.
    """
    n, rows = len(images), 1 + len(maps)
    fig, axes = figure(rows, n, size=(WIDTH, rows * WIDTH / (n + 1.8)), ticks=False)
    H, W = np.shape(images)[-2:]
    extent = (-0.5, W - 0.5, H - 0.5, -0.5)
    for column in range(n):
        draw_image(axes[0, column], images[column])
        mask = np.asarray(masks[column], dtype=float)
        for ax, values in zip(axes[1:, column], maps.values(), strict=True):
            each = np.asarray(values[column], dtype=float)
            mappable = _draw_map(ax, each, each.mean(), extent=extent)
            ax.contour(mask, levels=[0.5], colors="white", linewidths=1)
            i, j = divmod(int(each.argmax()), each.shape[1])
            y, x = (i + 0.5) * H / each.shape[0] - 0.5, (j + 0.5) * W / each.shape[1] - 0.5
            ax.plot(x, y, "x", color=ink.ORANGE, markersize=7, markeredgewidth=2)
    name_rows(axes, ("image", *maps), size=8)
    uniform_bar(fig, mappable, "value / mean of its map", ax=axes.ravel().tolist(), shrink=0.9)
    return fig


@styled
def show_scores(
    scores: Mapping[str, Mapping[str, float]], *, chance: float | Mapping[str, float], ylabel: str
) -> Figure:
    """Draw scores as bars, a group for each method and a bar for each model.

    Args:
        scores: method -> {name of the model: score in [0, 1]}.
        chance: what guessing reaches, or method -> what it reaches there.
        ylabel: what was measured.
    """
    fig, ax = panel(WIDTH * 0.85)
    names = list(next(iter(scores.values())))
    width = 0.8 / len(names)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
    for number, name in enumerate(names):
        x = np.arange(len(scores)) + (number - (len(names) - 1) / 2) * width
        heights = [100 * values[name] for values in scores.values()]
        style = {"color": colour_of(name, number), "edgecolor": ink.BLACK, "linewidth": 0.6}
        bars = ax.bar(x, heights, width, hatch=("", "//", "..")[number], label=name, **style)
        ax.bar_label(bars, fmt="%.0f", fontsize=8, padding=1, bbox=box)
    look = {"color": ink.BLACK, "linestyle": "--"}
    if isinstance(chance, Mapping):
        levels = " or ".join(f"{level:.0%}" for level in sorted(set(chance.values())))
        for place, method in enumerate(scores):
            label = f"by chance: {levels}" if place == 0 else None
            ax.plot([place - 0.5, place + 0.5], [100 * chance[method]] * 2, label=label, **look)
    else:
        ax.axhline(100 * chance, label=f"by chance: {chance:.0%}", **look)
    ax.set_xticks(range(len(scores)), list(scores))
    ax.set(ylabel=ylabel, ylim=(0, 108))
    fig.legend(loc="outside lower center", ncols=3)
    return fig


@styled
def show_lines(
    lines: Mapping[str, Sequence[float]],
    *,
    xlabel: str,
    ylabel: str,
    x: Sequence[float] | None = None,
    level: tuple[str, float] | None = None,
    top: float | None = None,
) -> Figure:
    """Draw several quantities against one axis.

    Args:
        lines: name -> values.
        xlabel: what runs along the axis.
        ylabel: what was measured, with its unit.
        x: places of the values; by default 0, 1, 2 ...
        level: a level to compare with, and its name first.
        top: the end of the vertical axis.
    """
    fig, ax = panel(WIDTH * 0.85, 3.1)
    for number, (name, values) in enumerate(lines.items()):
        places = range(len(values)) if x is None else x
        style = {"color": colour_of(name, number), "markersize": 5}
        ax.plot(places, values, LINES[number % len(LINES)], label=name, **style)
    if level is not None:
        ax.axhline(level[1], color=ink.GREY, linestyle=":", label=f"{level[0]}: {level[1]:.3g}")
    ax.set(xlabel=xlabel, ylabel=ylabel, ylim=(0, top))
    ax.locator_params(axis="x", integer=True)
    fig.legend(loc="outside lower center", ncols=3)
    return fig


@styled
def show_calibration(readings: Mapping[str, tuple]) -> Figure:
    """Draw accuracy against confidence, and under it how many images stand behind each point.

    Args:
        readings: name -> (confidence, accuracy, counts, gap) as ``vitedu.inside.calibration``.
    """
    size = (WIDTH, 4.4)
    fig, axes = figure(2, len(readings), size=size, sharex=True, sharey="row", height_ratios=(3, 1))
    for column, (name, (sure, right, counts, gap)) in enumerate(readings.items()):
        above, below = axes[:, column]
        above.plot([0, 100], [0, 100], color=ink.GREY, linestyle=":", label="calibrated")
        sure, right, counts = map(np.asarray, (sure, right, counts))
        points = 100 * sure[counts > 0], 100 * right[counts > 0]
        # not clipped: whole marks at 0
        above.plot(*points, "o-", color=ink.BLUE, label="measured", clip_on=False)
        above.set(title=f"{name}: mean gap {100 * gap:.1f} points", ylim=(0, 103), xlim=(0, 102))
        bins = len(counts)
        below.bar((np.arange(bins) + 0.5) * 100 / bins, counts, 90 / bins, color=ink.SKY)
        below.set(xlabel="confidence (%)", yscale="log", ylim=(0.7, None))
    axes[0, 0].set_ylabel("accuracy (%)")
    axes[1, 0].set_ylabel("images")
    axes[0, 0].legend(loc="upper left")
    return fig


@styled
def show_wrong_maps(panels: Mapping[str, np.ndarray], *, uniform: float) -> Figure:
    """Draw maps that went wrong, each with its fault as a title, beside one that is right.

    Args:
        panels: title -> (gh, gw).
        uniform: the weight of an even spread.
    """
    fig, axes = figure(1, len(panels), size=(WIDTH, 0.8 + WIDTH / (len(panels) + 0.7)))
    for ax, (title, values) in zip(axes[0], panels.items(), strict=True):
        mappable = _draw_map(ax, values, uniform, title)
    uniform_bar(fig, mappable, ax=axes.ravel().tolist(), shrink=0.9)
    return fig


@styled
def show_every_layer(
    photograph,
    pixels,
    maps: Mapping[str, np.ndarray],
    at_patches: np.ndarray,
    beliefs: np.ndarray,
    falls: np.ndarray,
    class_names: Sequence[str],
    *,
    uniform: float,
    path: str | Path,
) -> Figure:
    """Draw one photograph as every layer of a model sees it, and what the model answers there.

    Left: the photograph, the pixels that the model gets, and by how much its answer falls without
    each patch. Then a column for each block.

    Args:
        photograph: (C, S, S), uint8 or floats in [0, 1], as people see it.
        pixels: (C, H, W), the same for the model.
        maps: name -> (L, gh, gw), each drawn relative to ``uniform``.
        at_patches: (L, gh, gw), probability of the final answer where the head reads each patch.
        beliefs: (L, K), probabilities where the head reads the class token.
        falls: (gh, gw), of the probability of the final answer.
        class_names: K names.
        uniform: the weight of an even spread.
        path: of the PNG file to write, too.
    """
    L, rows = len(beliefs), 2 + len(maps)
    beliefs = np.asarray(beliefs, dtype=float)
    answer = class_names[beliefs[-1].argmax()]
    size = (WIDTH, 0.5 + rows * WIDTH / (L + 1.6))
    heights = [1.0] * (rows - 1) + [0.8]
    fig, axes = figure(rows, L + 1, size=size, height_ratios=heights)
    fig.suptitle(f"One photograph, seen by every layer: {answer} {beliefs[-1].max():.0%}")
    draw_image(axes[0, 0], photograph, "the photograph", size=8)
    draw_image(axes[1, 0], pixels, "what the model gets", size=8)
    limit = max(float(np.abs(falls).max()), 0.01)
    look = {"cmap": ink.DIVERGING, "vmin": -100 * limit, "vmax": 100 * limit, "size": 8}
    title = f"{answer} without a patch"
    fallen = draw_map(axes[2, 0], 100 * np.asarray(falls), title, **look)
    for ax in axes[3:, 0]:
        ax.axis("off")
    place = axes[-1, 0].inset_axes((0.05, 0.85, 0.9, 0.1))
    bar = fig.colorbar(fallen, cax=place, orientation="horizontal")
    bar.set_label("falls by (points);\nblue: it rises", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    for (name, values), line in zip(maps.items(), axes[:, 1:], strict=False):
        for ax, each in zip(line, values, strict=True):
            relative = _draw_map(ax, each, uniform)
        line[0].set_ylabel(name, fontsize=8)
    patches, last = axes[len(maps), 1:], axes[-1, 1:]
    for ax, values in zip(patches, np.asarray(at_patches, dtype=float), strict=True):
        shares = draw_map(ax, 100 * values, cmap="Blues", vmin=0, vmax=100)
    patches[0].set_ylabel(f"{answer}, read\nat each patch", fontsize=8)
    for ax, belief in zip(last, beliefs, strict=True):
        best = belief.argsort()[::-1][:3]
        colours = [ink.BLUE if class_names[k] == answer else ink.SKY for k in best]
        ax.barh(range(len(best)), 100 * belief[best], color=colours, height=0.5)
        for place, k in enumerate(best):
            ax.text(0, place - 0.32, f"{class_names[k]} {belief[k]:.0%}", fontsize=7)
        ax.set(xlim=(0, 100), ylim=(len(best) - 0.6, -0.75), xticks=[], yticks=[])
    last[0].set_ylabel("answer of the\nclass token", fontsize=8)
    for layer, ax in enumerate(axes[0, 1:]):
        ax.set_title(f"block {layer}", fontsize=9)
    uniform_bar(fig, relative, ax=axes[: len(maps), -1].tolist(), shrink=0.8)
    fig.colorbar(shares, ax=[axes[len(maps), -1]], label=f"{answer} (%)", shrink=0.8)
    write_whole(Path(path), fig.png(2 * DPI))
    return fig
