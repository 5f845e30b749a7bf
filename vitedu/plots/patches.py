"""Figures of notebook 01: the whole model in one picture, patches, their order, position codes.

Images are (C, H, W), uint8 or floats in [0, 1]. Every function returns a Figure.
"""

import numpy as np
import torch

from vitedu.plots import ink
from vitedu.plots.parts import (
    colour_cells,
    draw_box,
    draw_image,
    draw_lines,
    draw_map,
    frame,
    name_rows,
    write,
)
from vitedu.plots.style import WIDTH, CourseFigure, figure, panel, styled, to_picture


def cut(image: torch.Tensor, patch_size: int) -> torch.Tensor:
    """Cut one image (C, H, W) into tiles (gh, gw, C, P, P)."""
    C, H, W = image.shape
    P = patch_size
    return image.reshape(C, H // P, P, W // P, P).permute(1, 3, 0, 2, 4)


def paste(tiles: torch.Tensor) -> torch.Tensor:
    """Lay tiles (gh, gw, C, P, P) out as one image (C, H, W)."""
    gh, gw, C, P, _ = tiles.shape
    return tiles.permute(2, 0, 3, 1, 4).reshape(C, gh * P, gw * P)


def draw_grid(ax, image, patch_size: int, title: str, *, numbers: bool = False) -> None:
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
        image: (3, H, W), with at most 16 patches of this size.
        patch_size: P, in pixels.
        class_name: what the image shows, written at the end of the pipeline.
    """
    tiles = cut(torch.as_tensor(image), patch_size).flatten(0, 1)  # (N, C, P, P)
    N = len(tiles)
    fig, ax = panel(WIDTH, 5.4)
    left, step = 3.6, 12.4 / N  # patches and tokens share these columns; 0 is the class token
    centres = [left + step * (k + 1) for k in range(N)]
    side = 0.8 * step

    def box(x, y, width, height, text, colour):
        corners = "pad=0.02,rounding_size=0.15"
        look = {"facecolor": colour, "edgecolor": ink.GREY, "fontsize": 10}
        draw_box(ax, x, y + height / 2, (width, height), text, corners=corners, **look)

    def arrow(x, y, x_end, y_end, colour=ink.GREY):
        look = {"arrowstyle": "-|>", "color": colour, "lw": 1}
        ax.annotate("", (x_end, y_end), (x, y), arrowprops=look)

    def picture(image, x, y, side):
        edges = x - side / 2, x + side / 2, y - side / 2, y + side / 2
        ax.imshow(to_picture(image), extent=edges, cmap="gray", vmin=0, vmax=1)

    def note(y, text):
        ax.text(17.1, y, text, va="center", fontsize=8.5, color="#444444")

    # pixels
    picture(image, 1.5, 1.5, 2.8)
    for line in np.linspace(0.1, 2.9, image.shape[-1] // patch_size + 1):
        ax.plot([line, line], [0.1, 2.9], color="white", linewidth=0.7)
        ax.plot([0.1, 2.9], [line, line], color="white", linewidth=0.7)
    arrow(3.0, 1.5, 3.8, 1.5)
    for tile, x in zip(tiles, centres, strict=True):
        picture(tile, x, 1.5, side)
        arrow(x, 1.5 + side / 2 + 0.1, x, 3.0)
    note(1.5, "cut: notebook 01")
    # projection
    middle = (centres[0] + centres[-1]) / 2
    box(middle, 3.0, step * N, 0.9, "one linear layer, the same for every patch", ink.LIGHT)
    note(3.45, "project: 01")
    # tokens
    for k, x in enumerate([left, *centres]):
        if k:
            arrow(x, 3.95, x, 4.95)
        box(x, 5.0, side, 1.1, "", ink.ORANGE if k == 0 else ink.SKY)
        write(ax, x, 5.8, str(k), fontsize=7.5, weight="bold")
        write(ax, x, 5.32, "+pos", fontsize=5.5)
        arrow(x, 6.2, x, 7.1)
    ax.text(left - 0.7, 5.55, "class token", ha="right", va="center", fontsize=9)
    note(5.55, "class token,\npositions: 01")
    # encoder: three blocks, the first in front
    words = "encoder blocks: attention mixes the tokens, an MLP works on each"
    for shift, text in ((0.28, ""), (0.14, ""), (0, words)):
        box((left + centres[-1]) / 2 + shift, 7.2 + shift, step * (N + 1), 1.6, text, "#F4F4F4")
    note(8.1, "attention: 02\nblock, depth: 03")
    # head
    arrow(left, 9.2, left, 10.0, ink.BLACK)
    box(left, 10.1, 2.4, 0.9, "linear head", ink.LIGHT)
    note(10.55, "head: 03")
    arrow(left, 11.1, left, 11.9, ink.BLACK)
    write(ax, left, 12.4, f'"{class_name}"', fontsize=12, weight="bold")
    words = "a score for every class; training makes the right one high"
    ax.text(left + 1.9, 12.4, words, va="center", fontsize=9)
    note(12.4, "training: 04")
    ax.set(xlim=(0, 20.4), ylim=(0, 13.5), aspect="equal")
    ax.axis("off")
    return fig


@styled
def show_two_sequences(sentence: str, image: torch.Tensor, patch_size: int) -> CourseFigure:
    """Show a sentence as a row of words above an image as a row of patches, both numbered.

    Args:
        sentence: words with spaces between them.
        image: (C, H, W), with as many patches as one row can show (16 or fewer).
        patch_size: P, in pixels.
    """
    words = sentence.split()
    tiles = cut(torch.as_tensor(image), patch_size).flatten(0, 1)  # (N, C, P, P)
    count = max(len(words), len(tiles))
    fig, axes = figure(2, count, size=(WIDTH, 1.8), ticks=False)
    for k, (ax, word) in enumerate(zip(axes[0], words, strict=False)):
        write(ax, 0.5, 0.5, word, fontsize=8)
        ax.set_title(str(k), fontsize=8)
    for k, (ax, tile) in enumerate(zip(axes[1], tiles, strict=False)):
        draw_image(ax, tile, str(k), size=8)
    name_rows(axes, ("words", "patches"), size=9)
    return fig


@styled
def show_patches(image: torch.Tensor, patch_size: int) -> CourseFigure:
    """Show an image beside the same image cut into patches, numbered in reading order."""
    C, H, W = image.shape
    P = patch_size
    N = (H // P) * (W // P)
    title = f"{N} patches of {C} x {P} x {P} = {C * P * P} values"
    fig, before, after = _two_images(image, f"one image: {C} x {H} x {W} values")
    draw_grid(after, image, P, title, numbers=N <= 64)
    return fig


def _two_images(image, title: str):
    """Open a figure with an image, its pixels counted, and an empty panel beside it."""
    fig, axes = figure(1, 2, size=(WIDTH * 0.85, 3.5))
    before, after = axes[0]
    before.imshow(to_picture(image), cmap="gray", vmin=0, vmax=1)
    before.set(title=title, xlabel="column (px)", ylabel="row (px)")
    return fig, before, after


@styled
def show_tiny_cut() -> CourseFigure:
    """Show how a 4 x 4 image of the numbers 0 to 15 becomes four rows of four numbers, for P =
    2."""
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
def show_strip(patches: torch.Tensor, patch_size: int) -> CourseFigure:
    """Show the first patches of one sequence as small pictures, numbered from 0.

    At most sixteen, in lines of eight.

    Args:
        patches: (N, C*P*P), values as in an image: uint8 or floats in [0, 1].
        patch_size: P, in pixels.
    """
    tiles = patches[:16].unflatten(1, (-1, patch_size, patch_size))  # (C*P*P,) -> (C, P, P)
    rows = -(-len(tiles) // 8)
    fig, axes = figure(rows, 8, size=(WIDTH, 1.15 * rows), ticks=False)
    for k, (ax, tile) in enumerate(zip(axes.flat, tiles, strict=False)):
        draw_image(ax, tile, str(k), size=9)
    return fig


@styled
def show_wrong_orders(image: torch.Tensor, patch_size: int) -> CourseFigure:
    """Show what four wrong orders do to an image when it is put together in the right one.

    Each wrong cut has the right shape and holds every value once. The image must be square.
    """
    image = torch.as_tensor(image)
    C, H, W = image.shape
    P = patch_size
    gh, gw = H // P, W // P
    tiles = cut(image, P)  # (gh, gw, C, P, P)
    wrong = {
        "A": image.reshape(gh, gw, C, P, P),
        "B": tiles.transpose(0, 1),
        "C": tiles.transpose(3, 4),
        "D": tiles.permute(0, 1, 3, 4, 2).reshape(gh, gw, C, P, P),
    }
    fig, axes = figure(1, 5, size=(WIDTH, 1.95))
    pictures = {"the image": image} | {name: paste(order) for name, order in wrong.items()}
    for ax, (name, picture) in zip(axes[0], pictures.items(), strict=True):
        draw_image(ax, picture, name)
    return fig


@styled
def show_images(images, titles) -> CourseFigure:
    """Show a row of images (C, H, W), each under its title."""
    count = len(images)
    fig, axes = figure(1, count, size=(WIDTH, min(3.2, WIDTH / count + 0.3)))
    for ax, image, title in zip(axes[0], images, titles, strict=True):
        draw_image(ax, image, title)
    return fig


@styled
def show_resized(image: torch.Tensor, image_size: int = 224, patch_size: int = 16) -> CourseFigure:
    """Show a small image, and the same image enlarged (bilinear) with its patch grid."""
    C, H, W = image.shape
    small = torch.as_tensor(to_picture(image)).float().reshape(H, W, -1).permute(2, 0, 1)
    size = (image_size, image_size)
    large = torch.nn.functional.interpolate(small[None], size=size, mode="bilinear")[0]
    fig, before, after = _two_images(image, f"original: {H} x {W} px")
    N = (image_size // patch_size) ** 2
    title = f"enlarged: {image_size} x {image_size} px, {N} patches"
    draw_grid(after, large, patch_size, title)
    return fig


@styled
def show_filters_as_rows(weight, by_conv, by_matrix, row: int = 0) -> CourseFigure:
    """Show some filters of a patch convolution, the same as rows of a matrix, and both outputs.

    Args:
        weight: (D, C, P, P), of the convolution.
        by_conv: tokens of some images by the convolution, any shape.
        by_matrix: the same by the matrix.
        row: the filter that is framed in both pictures.
    """
    D, C, P, _ = weight.shape
    some = weight[:36]
    matrix, high = some.flatten(1).numpy(force=True), some.abs().max().item()
    fig, axes = figure(1, 3, size=(WIDTH, 3.2), width_ratios=(1.1, 1, 1))
    filters, rows, both = axes[0]
    side, step = int(np.ceil(len(some) ** 0.5)), P + 1
    wall = np.ones((side * step, side * step, C))
    for k, each in enumerate(some.numpy(force=True)):
        y, x = step * (k // side), step * (k % side)
        wall[y : y + P, x : x + P] = each.transpose(1, 2, 0) / (2 * np.abs(each).max()) + 0.5
    draw_map(filters, wall.squeeze(), f"{len(some)} of {D} filters, {C} x {P} x {P}")
    y, x = step * (row // side), step * (row % side)
    frame(filters, x - 1, y - 1, step, linewidth=2)
    rows.imshow(matrix, cmap=ink.DIVERGING, vmin=-high, vmax=high, aspect="auto")
    frame(rows, -0.5, row - 0.5, C * P * P, 1, linewidth=2)
    rows.set(title=f"as rows of {C * P * P}", xlabel="value in the patch", ylabel="filter")
    x, y = (np.ravel(tokens.numpy(force=True))[::53] for tokens in (by_conv, by_matrix))
    both.plot(x, y, ".", color=ink.BLUE, markersize=3)
    both.set(title="the tokens", xlabel="by the convolution", ylabel="by the matrix")
    both.set_aspect("equal", adjustable="datalim")
    return fig


@styled
def show_costs(patch_sizes, tokens, projections, pairs) -> CourseFigure:
    """Show tokens and multiply-accumulates against the patch size, both axes logarithmic.

    Args:
        patch_sizes: the sizes, in pixels.
        tokens: T for each size.
        projections: MACs that grow with T (linear layers), for each size.
        pairs: MACs that grow with T squared (the two products inside attention), for each size.
    """
    fig, axes = figure(1, 2, size=(WIDTH, 3.2))
    left, right = axes[0]
    left.plot(patch_sizes, tokens, "o-")
    left.set(title="length of the sequence", ylabel="tokens")
    left.set_ylim(0.6 * min(tokens), 2 * max(tokens))  # room for the numbers
    for P, T in zip(patch_sizes, tokens, strict=True):
        left.annotate(str(T), (P, T), (4, 5), textcoords="offset points")
    total = np.add(projections, pairs)
    right.plot(patch_sizes, total, "D-", color=ink.BLACK, label="all")
    right.plot(patch_sizes, projections, "s--", color=ink.BLUE, label="linear layers: grow as T")
    right.plot(patch_sizes, pairs, "o:", color=ink.RED, label="pairs of tokens: grow as T²")
    right.set(title="cost of one image", ylabel="multiply-accumulates")
    right.legend()
    for ax in (left, right):
        ax.set(xscale="log", yscale="log", xlabel="patch size (px)")
        ax.set_xticks(patch_sizes, [str(P) for P in patch_sizes])
        ax.minorticks_off()
    return fig


@styled
def show_codes(codes: torch.Tensor) -> CourseFigure:
    """Show position codes as a heat map, and some of their columns as waves.

    Args:
        codes: (num_positions, D), values in [-1, 1].
    """
    fig, axes = figure(1, 2, size=(WIDTH, 3.4))
    left, right = axes[0]
    mappable = left.imshow(codes.numpy(), cmap=ink.DIVERGING, vmin=-1, vmax=1, aspect="auto")
    left.set(title="every position is a row", xlabel="column of the code", ylabel="position")
    fig.colorbar(mappable, ax=left, label="value")
    for k, (column, line) in enumerate(zip((0, 8, 16, 24), ("-", "--", "-.", ":"), strict=True)):
        right.plot(codes[:, column].numpy(), line, color=ink.pick(k), label=f"column {column}")
    right.set(title="every column is a wave", xlabel="position", ylabel="value", ylim=(-1.1, 1.1))
    right.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
    return fig


@styled
def show_similarity(tables: dict[str, torch.Tensor], grid_size: tuple[int, int]) -> CourseFigure:
    """Show how alike the codes of a grid's cells are: a line of pictures for each table of codes.

    First the matrix of all cosines, then for cells 0, 4, 28 and 63 a map of the grid. The scale is
    the same everywhere: -1 to 1.

    Args:
        tables: codes (gh*gw, D) under their name.
        grid_size: (gh, gw).
    """
    gh, gw = grid_size
    look = {"cmap": ink.DIVERGING, "vmin": -1, "vmax": 1, "size": 9}
    fig, axes = figure(len(tables), 5, size=(WIDTH, 1.95 * len(tables)))
    for line, codes in zip(axes, tables.values(), strict=True):
        unit = torch.nn.functional.normalize(codes.float(), dim=1)
        cosine = (unit @ unit.T).numpy()
        mappable = draw_map(line[0], cosine, f"all {gh * gw} x {gh * gw} pairs", **look)
        for ax, k in zip(line[1:], (0, 4, 28, 63), strict=True):
            row, column = divmod(k, gw)
            draw_map(ax, cosine[k].reshape(gh, gw), f"with {k} = ({row}, {column})", **look)
            ax.plot(column, row, "o", markerfacecolor="none", markeredgecolor="black", markersize=7)
    name_rows(axes, tables)
    fig.colorbar(mappable, ax=axes.ravel().tolist(), label="cosine", shrink=0.8)
    return fig


@styled
def show_spectrum(column: torch.Tensor, frequency: float) -> CourseFigure:
    """Show a column of codes and its Fourier spectrum, with the frequency the formula promises.

    Args:
        column: (num_positions,).
        frequency: cycles per position, from the formula.
    """
    n = len(column)
    power = torch.fft.rfft(column.double()).abs() / n * 2
    fig, axes = figure(1, 2, size=(WIDTH, 2.6))
    axes[0, 0].plot(column[:128].numpy())
    axes[0, 0].set(title="one column of the code", xlabel="position", ylabel="value")
    axes[0, 1].plot(torch.fft.rfftfreq(n).numpy(), power.numpy(), color=ink.BLUE, label="measured")
    axes[0, 1].axvline(frequency, color=ink.ORANGE, linestyle="--", label="from the formula")
    axes[0, 1].set(title="its spectrum", xlabel="cycles per position", ylabel="amplitude")
    axes[0, 1].legend()
    return fig
