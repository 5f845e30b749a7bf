"""Figures of notebook 05: maps relative to uniform, and one photograph as every layer sees it.

Role: draw what the notebook measured. Not here: the measuring (``vitedu.inside``); confusions
(``vitedu.plots.training``); maps that follow a click (``vitedu.plots.widgets``).

A map of attention is drawn relative to uniform, on one logarithmic scale from a tenth to ten times:
an even map looks even, whoever made it.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from vitedu.ground.files import write_whole
from vitedu.plots import ink
from vitedu.plots.charts import show_images
from vitedu.plots.parts import draw_image, draw_map, name_rows, uniform_bar
from vitedu.plots.style import DPI, WIDTH, CourseFigure, figure, styled

LOWEST, HIGHEST = 0.1, 10.0  # of a map, relative to uniform
SCALE: dict[str, Any] = {"norm": "log", "vmin": LOWEST, "vmax": HIGHEST, "cmap": ink.SEQUENTIAL}


def relative_to(uniform: float, values: Any) -> np.ndarray:
    """Divide a map by what an even spread gives; nothing is so small that it has no logarithm."""
    return np.maximum(np.asarray(values, dtype=float) / uniform, 1e-9)


@styled
def show_relative(
    rows: Mapping[str, Iterable[Any]],
    *,
    uniform: float,
    label: str = "weight / uniform",
    **options: Any,
) -> CourseFigure:
    """Draw rows of images and of maps relative to uniform, all maps on one logarithmic scale.

    Args:
        rows: name -> images (C, H, W) and maps (rows, columns).
        uniform: the weight that each token would get from an even spread, 1/T.
        label: of the colour bar.
        **options: of ``show_images``.
    """
    table = {
        name: [each if np.ndim(each) == 3 else relative_to(uniform, each) for each in row]
        for name, row in rows.items()
    }
    fig = show_images(table, label=label, **SCALE, **options)
    fig.axes[-1].set_yticks([LOWEST, 1, HIGHEST], ["≤ 0.1", "1", "≥ 10"])
    return fig


@styled
def show_pointing(images: Any, masks: Any, maps: Mapping[str, np.ndarray]) -> CourseFigure:
    """Draw what several maps point at: the hottest patch is marked, the object is outlined.

    Args:
        images: (n, C, H, W), uint8 or floats in [0, 1].
        masks: (n, H, W), boolean.
        maps: name -> (n, gh, gw), not negative; each is drawn relative to its own mean.
    """
    H, W = np.shape(images)[-2:]
    even = {name: [each / each.mean() for each in values] for name, values in maps.items()}
    extent, label = (-0.5, W - 0.5, H - 0.5, -0.5), "value / mean of its map"
    fig = show_relative({"image": images, **even}, uniform=1, label=label, extent=extent)
    below = fig.axes[len(images) : -1]  # the axes of all maps
    for number, (ax, each) in enumerate(zip(below, sum(even.values(), []), strict=True)):
        mask = np.asarray(masks[number % len(images)], dtype=float)
        ax.contour(mask, levels=[0.5], colors="white", linewidths=1)
        gh, gw = each.shape
        i, j = divmod(int(each.argmax()), gw)
        place = (j + 0.5) * W / gw - 0.5, (i + 0.5) * H / gh - 0.5
        ax.plot(*place, "x", color=ink.ORANGE, markersize=7, markeredgewidth=2)
    return fig


@styled
def show_every_layer(
    photograph: Any,
    pixels: Any,
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
        maps: two names -> (L, gh, gw), each drawn relative to ``uniform``.
        at_patches: (L, gh, gw), probability of the final answer where the head reads each patch.
        beliefs: (L, K), probabilities where the head reads the class token.
        falls: (gh, gw), of the probability of the final answer.
        class_names: K names.
        uniform: the weight of an even spread.
        path: of the PNG file to write, too.
    """
    beliefs, shares = np.asarray(beliefs, dtype=float), 100 * np.asarray(at_patches, dtype=float)
    L, answer = len(beliefs), class_names[beliefs[-1].argmax()]
    size = WIDTH, 0.5 + 4 * WIDTH / (L + 1.6)
    fig, axes = figure(4, L + 1, size=size, ticks=False, height_ratios=(1, 1, 1, 0.8))
    fig.suptitle(f"One photograph, seen by every layer: {answer} {beliefs[-1].max():.0%}")
    draw_image(axes[0, 0], photograph, "the photograph", size=8)
    draw_image(axes[1, 0], pixels, "what the model gets", size=8)
    limit = 100 * max(float(np.abs(falls).max()), 0.01)
    look = {"cmap": ink.DIVERGING, "vmin": -limit, "vmax": limit, "size": 8}
    fallen = draw_map(axes[2, 0], 100 * np.asarray(falls), f"{answer} without a patch", **look)
    place = axes[3, 0].inset_axes((0.05, 0.85, 0.9, 0.1))
    fig.colorbar(fallen, cax=place, orientation="horizontal").ax.tick_params(labelsize=7)
    place.set_xlabel("falls by (points);\nblue: it rises", fontsize=8)
    for layer, column in enumerate(axes[:, 1:].T):
        for ax, values in zip(column, maps.values(), strict=False):
            relative = draw_map(ax, relative_to(uniform, values[layer]), **SCALE)
        column[0].set_title(f"block {layer}", fontsize=9)
        read = draw_map(column[2], shares[layer], cmap="Blues", vmin=0, vmax=100)
        for place, k in enumerate(beliefs[layer].argsort()[::-1][:3]):
            share = beliefs[layer, k]
            colour = ink.BLUE if class_names[k] == answer else ink.SKY
            column[3].barh(place, 100 * share, color=colour, height=0.5)
            column[3].text(0, place - 0.32, f"{class_names[k]} {share:.0%}", fontsize=7)
        column[3].set(xlim=(0, 100), ylim=(2.4, -0.75))
    names = (*maps, f"{answer}, read\nat each patch", "answer of the\nclass token")
    name_rows(axes[:, 1:], names, size=8)
    uniform_bar(fig, relative, ax=axes[:2, -1].tolist(), shrink=0.8)
    fig.colorbar(read, ax=[axes[2, -1]], label=f"{answer} (%)", shrink=0.8)
    write_whole(Path(path), fig.png(2 * DPI))
    return fig
