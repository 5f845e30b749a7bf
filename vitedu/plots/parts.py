"""What figures have in common: maps, images, frames, boxes, tables of words, a colour bar.

Role: each function draws one thing into axes that are there. Not here: colours, sizes and how a
figure is opened (``vitedu.plots.style``), the left side of explorers (``vitedu.plots.explorer``).
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Patch, Rectangle

from vitedu.plots import ink
from vitedu.plots.style import hide_ticks, to_picture


def draw_map(ax: Axes, values: Any, title: str = "", *, size: Any = 10, **options: Any):
    """Draw values (rows, columns) without ticks under a title, of letters of a size in points."""
    hide_ticks(ax)
    ax.set_title(title, fontsize=size)
    return ax.imshow(values, **options)


def draw_image(ax: Axes, image: Any, title: str = "", **options: Any):
    """Draw an image (C, H, W) as ``draw_map`` draws values."""
    return draw_map(ax, to_picture(image), title, cmap="gray", vmin=0, vmax=1, **options)


def check_square(image: Any) -> None:
    """Refuse an image (C, H, W) that is not square, and say what makes it so."""
    _, H, W = image.shape
    if H != W:
        remedy = "vitedu.data.photograph.square_photograph(image, 224) cuts a square out of it"
        raise ValueError(f"the image must be square (got H={H}, W={W}); {remedy}.")


def name_rows(axes: np.ndarray, names: Iterable[str], size: float = 10) -> None:
    """Write the name of each row of axes to its left, in letters of a size in points."""
    for ax, name in zip(axes[:, 0], names, strict=True):
        ax.set_ylabel(name, fontsize=size)


def write(ax: Axes, x: float, y: float, words: str, **look: Any):
    """Write words, their middle at a place."""
    return ax.text(x, y, words, ha="center", va="center", **look)


def write_cells(ax: Axes, words: np.ndarray, white: np.ndarray, **look: Any) -> None:
    """Write words (rows, columns) into the cells of a map, in white where ``white`` says so."""
    for (row, column), word in np.ndenumerate(words):
        colour = "white" if white[row, column] else ink.BLACK
        write(ax, column, row, word, color=colour, **look)


def colour_cells(
    ax: Axes, numbers: np.ndarray, owners: np.ndarray, top: float = 0, **look: Any
) -> None:
    """Draw a table of numbers from ``top`` downwards, each cell in the colour of its owner."""
    for (row, column), number in np.ndenumerate(numbers):
        colour = ink.pick(int(owners[row, column]))
        cell = Rectangle((column, top + row), 1, 1, facecolor=colour, alpha=0.35, edgecolor="white")
        ax.add_patch(cell)
        write(ax, column + 0.5, top + row + 0.5, str(number), **look)


def verdict(is_right: bool) -> tuple[str, str]:
    """Give the sign and the colour of what is right or wrong."""
    return ("✓", ink.GOOD) if is_right else ("✗", ink.BAD)


def draw_lines(ax: Axes, rows: Iterable[float], columns: Iterable[float], **look: Any) -> None:
    """Draw lines across a picture at the places of some rows and columns."""
    for x in columns:
        ax.axvline(x, **look)
    for y in rows:
        ax.axhline(y, **look)


def frame(ax: Axes, x: float, y: float, width: float, height: float = 0, **look: Any) -> Patch:
    """Frame a rectangle whose first corner is (x, y); without a height it is a square."""
    look = {"edgecolor": ink.ORANGE, "linewidth": 2.5, **look}
    return ax.add_patch(Rectangle((x, y), width, height or width, fill=False, **look))


def draw_box(
    ax: Axes, x: float, y: float, size: tuple[float, float], words: str, corners: str, **look: Any
) -> None:
    """Draw a round box with words, its middle at (x, y).

    ``corners`` says their ``pad`` and ``rounding_size``, as matplotlib writes them. ``facecolor``,
    ``edgecolor`` and ``linewidth`` are those of the box, the rest of ``look`` is for the letters.
    """
    names = ("facecolor", "edgecolor", "linewidth")
    of_box: dict[str, Any] = {"facecolor": "white"} | {
        name: look.pop(name) for name in names if name in look
    }
    corner = x - size[0] / 2, y - size[1] / 2
    ax.add_patch(FancyBboxPatch(corner, *size, boxstyle=f"round,{corners}", zorder=2, **of_box))
    write(ax, x, y, words, **look)


def uniform_bar(fig: Figure, mappable: Any, label: str = "weight / uniform", **options: Any):
    """Draw the colour bar of values relative to uniform, whose scale is logarithmic."""
    bar = fig.colorbar(mappable, label=label, extend="both", **options)
    bar.set_ticks([0.1, 1, 10], labels=["0.1", "1", "10"])
    return bar


def draw_horizons(ax: Axes, horizons: Mapping[str, float], *, across: bool = False) -> None:
    """Draw accuracies to compare with as dotted lines, and name each outside the axes.

    Args:
        ax: accuracy in %, 0 to 100, runs along x; along y if ``across``.
        horizons: name -> accuracy in [0, 1].
        across: draw lines from left to right, their names right of them.
    """
    look: dict[str, Any] = {"fontsize": 8, "color": "#444444", "annotation_clip": False}
    line: dict[str, Any] = {"color": ink.GREY, "linewidth": 0.8, "linestyle": ":", "zorder": 0}
    place, room = -3.5, 7  # points of accuracy: of the words of a line across, and that they take
    for k, (name, accuracy) in enumerate(sorted(horizons.items(), key=lambda level: level[1])):
        words, level = f"{name} {accuracy:.0%}", 100 * accuracy
        if across:
            highest = 100 - room * (len(horizons) - k - 0.5)  # leaves room for those above
            place = max(place + room, min(level, highest))
            ax.axhline(level, **line)
            transform = ax.get_yaxis_transform()
            ax.annotate(words, (1.02, place), xycoords=transform, va="center", **look)
        else:
            ax.axvline(level, **line)
            transform, above = ax.get_xaxis_transform(), (0, 4 + 13 * (k % 2))
            ax.annotate(words, (level, 1), above, transform, "offset points", ha="center", **look)
