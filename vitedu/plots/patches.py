"""Figures of notebook 01: the whole model in one picture, patches, their order, position codes.

Images are (C, H, W), uint8 or floats in [0, 1]. Every function returns a Figure.
"""

from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes

from vitedu.plots import ink
from vitedu.plots.charts import show_images
from vitedu.plots.parts import (
    check_square,
    colour_cells,
    draw_box,
    draw_image,
    draw_lines,
    write,
)
from vitedu.plots.style import WIDTH, CourseFigure, figure, panel, styled, to_picture


def cut(image: torch.Tensor, patch_size: int) -> torch.Tensor:
    """Cut one image (C, H, W) into tiles (gh, gw, C, P, P)."""
    C, H, W = image.shape
    P = patch_size
    if H % P or W % P:
        raise ValueError(f"patch_size must divide H and W (got patch_size={P}, H={H}, W={W})")
    return image.reshape(C, H // P, P, W // P, P).permute(1, 3, 0, 2, 4)


def paste(tiles: torch.Tensor) -> torch.Tensor:
    """Lay tiles (gh, gw, C, P, P) out as one image (C, H, W)."""
    gh, gw, C, P, _ = tiles.shape
    return tiles.permute(2, 0, 3, 1, 4).reshape(C, gh * P, gw * P)


def draw_grid(ax: Axes, image: Any, patch_size: int, title: str, *, numbers: bool = False) -> None:
    """Draw an image with its patch borders, numbered in reading order if asked."""
    C, H, W = image.shape
    P = patch_size
    draw_image(ax, image, title)
    rows, columns = (np.arange(0, side + 1, P) - 0.5 for side in (H, W))
    draw_lines(ax, rows, columns, color="white", linewidth=0.8)
    if numbers:
        box = {"boxstyle": "round,pad=0.15", "facecolor": "black", "alpha": 0.55, "lw": 0}
        look = {"color": "white", "fontsize": min(11, 0.42 * 72 * 3 * P / H), "bbox": box}
        for k in range((H // P) * (W // P)):
            row, column = divmod(k, W // P)
            write(ax, column * P + P / 2 - 0.5, row * P + P / 2 - 0.5, str(k), **look)


@styled
def show_pipeline(image: torch.Tensor, patch_size: int, class_name: str) -> CourseFigure:
    """Draw the Vision Transformer in one picture, from pixels at the bottom to a class at the top.

    Args:
        image: (3, H, H), with at most 16 patches of this size.
        patch_size: P, in pixels.
        class_name: what the image shows, written at the end of the pipeline.
    """
    check_square(image)
    tiles = cut(torch.as_tensor(image), patch_size).flatten(0, 1)  # (N, C, P, P)
    fig, ax = panel(WIDTH, 5.4)
    # tokens and patches share these columns, apart from the class token's at the left
    step = 12.4 / len(tiles)
    columns = 3.6 + step * np.arange(1 + len(tiles))
    left, side = columns[0], 0.8 * step

    def box(x, y, width, height, text, colour):
        look = {"facecolor": colour, "edgecolor": ink.GREY}
        size, corners = (width, height), "pad=0,rounding_size=0.15"
        draw_box(ax, x, y + height / 2, size, text, corners, **look)

    def arrow(x, y, x_end, y_end, colour=ink.GREY):
        ax.annotate("", (x_end, y_end), (x, y), arrowprops={"arrowstyle": "-|>", "color": colour})

    def picture(image, x, side):
        edges = x - side / 2, x + side / 2, 1.5 - side / 2, 1.5 + side / 2
        ax.imshow(to_picture(image), extent=edges, cmap="gray", vmin=0, vmax=1)

    # pixels
    picture(image, 1.5, 2.8)
    lines = np.linspace(0.1, 2.9, image.shape[-1] // patch_size + 1)
    ax.plot([lines, lines], [0.1, 2.9], color="white", linewidth=0.7)
    ax.plot([0.1, 2.9], [lines, lines], color="white", linewidth=0.7)
    arrow(3.0, 1.5, 3.8, 1.5)
    for tile, x in zip(tiles, columns[1:], strict=True):
        picture(tile, x, side)
        arrow(x, 1.6 + side / 2, x, 3.0)
        arrow(x, 3.95, x, 4.95)
    # projection
    words = "one linear layer, the same for every patch"
    box(columns[1:].mean(), 3.0, step * len(tiles), 0.9, words, ink.LIGHT)
    # tokens
    for k, x in enumerate(columns):
        box(x, 5.0, side, 1.1, "", ink.SKY if k else ink.ORANGE)
        write(ax, x, 5.8, str(k), fontsize=7.5, weight="bold")
        write(ax, x, 5.32, "+pos", fontsize=5.5)
        arrow(x, 6.2, x, 7.1)
    ax.text(left - 0.7, 5.55, "class token", ha="right", va="center", fontsize=9)
    # encoder: three blocks, the first in front
    words = "encoder blocks: attention mixes the tokens, an MLP works on each"
    for shift, text in ((0.28, ""), (0.14, ""), (0, words)):
        box(columns.mean() + shift, 7.2 + shift, step * len(columns), 1.6, text, "#F4F4F4")
    # head
    arrow(left, 9.2, left, 10.0, ink.BLACK)
    box(left, 10.1, 2.4, 0.9, "linear head", ink.LIGHT)
    arrow(left, 11.1, left, 11.9, ink.BLACK)
    write(ax, left, 12.4, f'"{class_name}"', fontsize=12, weight="bold")
    words = "a score for every class; training makes the right one high"
    ax.text(left + 1.9, 12.4, words, va="center", fontsize=9)
    for y, notebook in (
        (1.5, "cut: notebook 01"),
        (3.45, "project: 01"),
        (5.55, "class token,\npositions: 01"),
        (8.1, "attention: 02\nblock, depth: 03"),
        (10.55, "head: 03"),
        (12.4, "training: 04"),
    ):
        ax.text(17.1, y, notebook, va="center", fontsize=8.5, color="#444444")
    ax.set(xlim=(0, 20.4), ylim=(0, 13.5), aspect="equal")
    ax.axis("off")
    return fig


@styled
def show_patches(image: torch.Tensor, patch_size: int) -> CourseFigure:
    """Show an image beside the same image cut into patches, numbered in reading order."""
    C, H, W = image.shape
    P = patch_size
    N = len(cut(image, P).flatten(0, 1))
    title = f"{N} patches of {C} x {P} x {P} = {C * P * P} values"
    fig, axes = figure(1, 2, size=(WIDTH * 0.85, 3.5))
    before, after = axes[0]
    before.imshow(to_picture(image), cmap="gray", vmin=0, vmax=1)
    before.set(title=f"one image: {C} x {H} x {W} values", xlabel="column (px)", ylabel="row (px)")
    draw_grid(after, image, P, title, numbers=N <= 64)
    return fig


@styled
def show_tiny_cut() -> CourseFigure:
    """Show how a 4 x 4 image of the numbers 0 to 15 becomes four rows of four, for P = 2."""
    image = torch.arange(16).reshape(4, 4)
    patch = (image // 8) * 2 + (image % 4) // 2  # the patch of each pixel
    rows = cut(image[None], 2).reshape(4, 4)
    fig, axes = figure(1, 2, size=(WIDTH * 0.75, 2.4), ticks=False)
    panels = (
        (image, patch, "the image: 1 x 4 x 4"),
        (rows, torch.arange(4)[:, None].expand(4, 4), "its patches: 4 x 4"),
    )
    for ax, (numbers, owners, title) in zip(axes[0], panels, strict=True):
        colour_cells(ax, numbers.numpy(), owners.numpy())
        ax.set(title=title, xlim=(0, 4), ylim=(4, 0), aspect="equal")
    for k in range(4):
        axes[0, 1].text(-0.15, k + 0.5, f"patch {k}", ha="right", va="center", fontsize=9)
    return fig


@styled
def show_wrong_orders(image: torch.Tensor, patch_size: int) -> CourseFigure:
    """Show what four wrong orders do to an image when it is put together in the right one.

    Each wrong cut has the right shape and holds every value once. The image must be square.
    """
    check_square(image)
    tiles = cut(image, patch_size)  # (gh, gw, C, P, P)
    orders = {
        "the image": tiles,
        "A": image.reshape(tiles.shape),
        "B": tiles.transpose(0, 1),
        "C": tiles.transpose(3, 4),
        "D": tiles.permute(0, 1, 3, 4, 2).reshape(tiles.shape),
    }
    return show_images({"": map(paste, orders.values())}, titles=list(orders))
