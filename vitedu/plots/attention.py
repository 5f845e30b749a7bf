"""Figures of notebook 02: scores, weights, heads, cost.

Role: draw what the notebook measured. Not here: the measuring, and attention itself; every function
takes numbers that are already there.

Every colour scale is fixed or stated at its colour bar: a map scaled to its own extremes shows a
pattern in any noise.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from vitedu.plots import ink
from vitedu.plots.parts import colour_cells, draw_image, name_rows, write, write_cells
from vitedu.plots.style import WIDTH, figure, panel, styled, to_picture

BRIGHT = 3  # times an even share: a patch that gets so much attention has its full colour


@styled
def show_attention_steps(
    scores: torch.Tensor, weights: torch.Tensor, output: torch.Tensor
) -> Figure:
    """Draw scores, weights and output of one small example as heat maps with their numbers.

    Args:
        scores: (Tq, Tk), already scaled.
        weights: (Tq, Tk).
        output: (Tq, dv).
    """
    widths = [scores.shape[1], weights.shape[1], output.shape[1]]
    fig, axes = figure(1, 3, size=(WIDTH, 2.9), width_ratios=widths)
    reach = max(float(output.abs().max()), float(scores.abs().max()), 1.0)
    panels = [
        ("scores  q kᵀ / √d", scores, "key", ink.DIVERGING, -reach, reach),
        ("weights  softmax over keys", weights, "key", ink.SEQUENTIAL, 0.0, 1.0),
        ("output  weights · v", output, "column of v", ink.DIVERGING, -reach, reach),
    ]
    for ax, (title, table, xlabel, cmap, low, high) in zip(axes[0], panels, strict=True):
        values = table.numpy(force=True)
        image = ax.imshow(values, cmap=cmap, vmin=low, vmax=high)
        is_dark = image.to_rgba(values) @ (0.3, 0.6, 0.1, 0) < 0.5
        write_cells(ax, np.char.mod("%.2f", values), is_dark, fontsize=9)
        ax.set(title=title, xlabel=xlabel, ylabel="query")
        ax.set(xticks=range(table.shape[1]), yticks=range(table.shape[0]))
        fig.colorbar(image, ax=ax, orientation="horizontal", shrink=0.9)
    return fig


@styled
def show_head_split(num_tokens: int, embed_dim: int, num_heads: int) -> Figure:
    """Draw which columns each head gets, and what a bare reshape would give it instead.

    Every cell carries the number of its token and is coloured by the head that owns its column.

    Args:
        num_tokens: T, small.
        embed_dim: D, small.
        num_heads: nh, a divisor of D.
    """
    T, D, nh = num_tokens, embed_dim, num_heads
    hd = D // nh
    token = np.repeat(np.arange(T), D).reshape(T, D)
    owner = np.tile(np.repeat(np.arange(nh), hd), T).reshape(T, D)
    fig, axes = figure(1, 3, size=(WIDTH, 3.4))
    both = np.stack((token, owner))  # (2, T, D)
    tables = {  # title -> for each head what its cells say, and who owns them
        f"x: ({T}, {D})": both[None],
        f"split_heads: ({nh}, {T}, {hd})": np.stack(np.split(both, nh, axis=2)),
        f"a bare reshape to ({nh}, {T}, {hd})": both.reshape(2, nh, T, hd).swapaxes(0, 1),
    }
    for ax, (title, heads) in zip(axes[0], tables.items(), strict=True):
        for index, (numbers, owners) in enumerate(heads):
            top = index * (T + 0.7)
            colour_cells(ax, numbers, owners, top, fontsize=9)
            if not title.startswith("x"):
                ax.text(-0.3, top + T / 2, f"head {index}", ha="right", va="center")
        ax.set(title=title, xlim=(-2.5, D), ylim=(nh * (T + 0.7), -0.5), aspect="equal")
        ax.axis("off")
    fig.supxlabel("number: the token a value belongs to; colour: the head that owns its column")
    return fig


@styled
def show_layer() -> Figure:
    """Draw the layer of multi-head attention as boxes, from its input to its output, with
    shapes."""
    stages = (
        ("input x", "(B, T, D)", "white"),
        ("Linear(D, 3D), cut into q, k, v", "3 × (B, T, D)", ink.SKY),
        ("split heads", "3 × (B, nh, T, hd)", ink.LIGHT),
        ("scores: q kᵀ / √hd", "(B, nh, T, T)", ink.LIGHT),
        ("softmax over the keys: weights", "(B, nh, T, T), returned too", ink.LIGHT),
        ("weights · v", "(B, nh, T, hd)", ink.LIGHT),
        ("merge heads", "(B, T, D)", ink.LIGHT),
        ("Linear(D, D): the heads are mixed", "(B, T, D)", ink.SKY),
    )
    fig, ax = panel(WIDTH * 0.75, 4.2)
    for k, (text, shape, colour) in enumerate(stages):
        y = len(stages) - k
        ax.add_patch(Rectangle((0, y - 0.3), 5, 0.6, facecolor=colour, edgecolor=ink.GREY))
        write(ax, 2.5, y, text)
        ax.text(5.3, y, shape, va="center", color="#444444")
        if k:
            ax.annotate("", (2.5, y + 0.3), (2.5, y + 0.7), arrowprops={"arrowstyle": "-|>"})
    ax.text(5.3, 0.35, "blue: has parameters", color="#444444", fontsize=8)
    ax.set(xlim=(-0.1, 8.6), ylim=(0.1, len(stages) + 0.5))
    ax.axis("off")
    return fig


@styled
def show_spotlight(images: Any, looks: Mapping[str, torch.Tensor], *, uniform: float) -> Figure:
    """Draw photographs, and below each the same one in grey under its map, a row a model.

    The colour lies over the photograph, so a dark object is not taken for an unlit one. It is
    clear where nothing is taken, and full from three times an even share upwards, whoever looks.

    Args:
        images: (n, C, H, W), uint8 or floats in [0, 1].
        looks: name of the row -> (n, gh, gw), weights on the patches.
        uniform: the weight that each of the T tokens would get from an even spread, 1/T.
    """
    rows, columns = 1 + len(looks), len(images)
    fig, axes = figure(rows, columns, size=(WIDTH, rows * WIDTH / (columns + 1.2)), ticks=False)
    for ax, image in zip(axes[0], images, strict=True):
        draw_image(ax, image)
    colours = LinearSegmentedColormap.from_list("overlay", [(1, 0.5, 0, 0), (1, 0.5, 0, 0.8)])
    scale = ScalarMappable(Normalize(0, BRIGHT), colours)
    for row, weights in zip(axes[1:], looks.values(), strict=True):
        shares = weights.numpy(force=True) / uniform
        for ax, image, patches in zip(row, map(to_picture, images), shares, strict=True):
            H, W = image.shape[:2]
            ax.imshow(image.reshape(H, W, -1).mean(axis=-1), cmap="gray", vmin=0, vmax=1)
            place = -0.5, W - 0.5, H - 0.5, -0.5
            ax.imshow(patches, cmap=colours, norm=scale.norm, extent=place)
    name_rows(axes, ("photograph", *looks), size=9)
    bar = fig.colorbar(scale, ax=axes.ravel().tolist(), label="weight / uniform", shrink=0.9)
    bar.set_ticks([0, 1, BRIGHT], labels=["0", "1", f"{BRIGHT}+"])
    return fig
