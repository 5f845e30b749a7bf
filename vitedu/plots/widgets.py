"""The explorers of the notebooks: what each draws, and what it says of the place that is clicked.

Role: arrays in, an ``Explorer`` out; a figure that moves, and a sentence for each of its places.
Not here: clicking, sliders and pages (``vitedu.plots.explorer``), and any measuring.

Legend: an image is (C, H, H), uint8 or floats in [0, 1]; a grid of patches has grid_size (gh, gw),
N = gh*gw of them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.ticker import MaxNLocator

from vitedu.plots import ink
from vitedu.plots.explorer import PICTURE, Explorer
from vitedu.plots.inside import SCALE, relative_to
from vitedu.plots.parts import check_square, draw_image, draw_map, uniform_bar
from vitedu.plots.patches import cut, draw_grid
from vitedu.plots.style import to_picture

COSINES: dict[str, Any] = {"cmap": ink.DIVERGING, "vmin": -1, "vmax": 1}


def position(k: int, columns: int) -> str:
    """Say where cell k of a grid lies."""
    return f"row {k // columns}, column {k % columns}"


def explore_patches(image: Any, patch_sizes: Sequence[int] = (56, 32, 16)) -> Explorer:
    """Show an image, its patches, and the row of the sequence that the clicked patch becomes.

    Args:
        image: (C, H, H); H divisible by every size.
        patch_sizes: the sizes to choose from, in pixels.
    """
    check_square(image)
    image = torch.as_tensor(image)
    C, H, W = image.shape

    def draw(fig, P):
        tiles = cut(image, P).flatten(0, 1)  # (N, C, P, P)
        sequence, N = tiles.flatten(1).numpy(), len(tiles)  # (N, C*P*P)
        draw_grid(fig.picture, image, P, f"{N} patches of {P} px")
        places = (0.42, 0.5, 0.16, 0.3556), (0.66, 0.5, 0.32, 0.3556), (0.475, 0.16, 0.505, 0.2)
        close, matrix, values = map(fig.add_axes, places)
        matrix.imshow(sequence, cmap="gray", aspect="auto", interpolation="antialiased")
        matrix.set(title=f"the sequence: {N} rows", ylabel="row", xticks=[])
        values.set(xlim=(0, C * P * P), ylim=(sequence.min(), sequence.max()), ylabel="value")
        values.set_title(f"its row: {C * P * P} numbers")
        values.set_xlabel("place in the row: red, green, blue" if C == 3 else "place in the row")
        fig.follow(draw_image(close, tiles[0], "one patch"), data=list(map(to_picture, tiles)))
        heights = [[k, k] for k in range(N)]
        fig.follow(matrix.axhline(0, color=ink.ORANGE, linewidth=2), ydata=heights)
        (line,) = values.plot(sequence[0], color=ink.BLUE, linewidth=0.8)
        fig.follow(line, ydata=sequence)

    def describe(P, k):
        row = f"row {k} of the sequence: {C * P * P} numbers"
        return f"Patch {k} of {(H // P) * (W // P)} ({position(k, W // P)}) is {row}."

    grid = lambda P: (H // P, W // P)  # noqa: E731
    return Explorer(draw, describe, patch_sizes, "patch size (px)", grid, patch_sizes[-1])


def explore_maps(
    pictures: Any,
    maps: Mapping[Any, Any],
    grid_size: tuple[int, int],
    setting_name: str,
    *,
    uniform: float | None = None,
    cell_name: str = "patch",
    label: str = "",
    says: Callable[[Any, int], str] | None = None,
    start: Any = None,
    **look: Any,
) -> Explorer:
    """Show for the clicked cell of a picture one map or several, for the chosen setting.

    Args:
        pictures: an image for all settings, or setting -> image.
        maps: setting -> (N, N), how each cell is tied to every other one; or a map of any shape for
            each cell, (N, rows, columns); or title -> such a table, for several maps.
        grid_size: (gh, gw), of the cells.
        setting_name: what is chosen, such as "temperature".
        uniform: what uniform attention gives to each; maps are then relative to it, on a log
            scale. Without it they are cosines, from -1 to 1.
        cell_name: what a cell of the picture is called.
        label: of the colour bar.
        says: a sentence of a setting and a cell; by default, where each map is largest.
        start: the setting that is shown first.
        **look: of the maps, in place of the two scales.
    """
    gh, gw = grid_size
    look = look or (COSINES if uniform is None else SCALE)
    tables: dict[Any, dict[str, np.ndarray]] = {}  # (N, rows, columns) each
    for setting, table in maps.items():
        named = table if isinstance(table, Mapping) else {"": table}
        arrays = {title: np.asarray(table) for title, table in named.items()}
        tables[setting] = {
            title: (each if uniform is None else relative_to(uniform, each)).reshape(
                gh * gw, *(grid_size if each.ndim == 2 else each.shape[1:])
            )
            for title, each in arrays.items()
        }
    images = pictures if isinstance(pictures, Mapping) else dict.fromkeys(tables, pictures)
    for image in images.values():
        check_square(image)

    def draw(fig, setting):
        draw_image(fig.picture, images[setting], f"click a {cell_name}")
        left, gap, (_, bottom, _, height) = 0.415, 0.02, PICTURE
        width = (0.5 - gap * (len(tables[setting]) - 1)) / len(tables[setting])
        for number, (title, table) in enumerate(tables[setting].items()):
            ax = fig.add_axes((left + number * (width + gap), bottom, width, height))
            shown = draw_map(ax, table[0], title, **look)
            fig.follow(shown, data=table)
            if table.shape[1:] == grid_size:
                fig.frame_in(ax, grid_size)
        place = fig.add_axes((0.935, bottom, 0.012, height))
        if uniform is None:
            fig.colorbar(shown, cax=place, ticks=MaxNLocator(integer=True))
        else:
            uniform_bar(fig, shown, "", cax=place)
        place.tick_params(labelsize=7, pad=1)
        place.set_title(label or ("cosine" if uniform is None else "× even"), fontsize=7)

    def describe(setting, k):
        found = []
        for title, table in tables[setting].items():
            values = table[k].flatten()
            values[k] = np.nan  # with itself
            most = int(np.nanargmax(values))
            where = f"{cell_name} {most} ({position(most, gw)})"
            found.append(f"{title} most at {where}, {values[most]:.2f}".strip())
        place = f"{cell_name.capitalize()} {k} ({position(k, gw)})"
        return f"{place}, {setting_name} {setting}: {'; '.join(found)}."

    says = says or describe
    options = setting_name, lambda _: grid_size, start, cell_name
    return Explorer(draw, says, list(tables), *options)
