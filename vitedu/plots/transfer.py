"""Figures of notebook 09: adapted models, patches as colours, captions, four heads, relatives.

Role: functions that return a matplotlib Figure. Not here: any measurement.

Legend: n images, C H W image, N patches, gh gw patch grid.
"""

import textwrap
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from vitedu.plots import ink
from vitedu.plots.parts import draw_box, draw_image, frame, name_rows, verdict, write_cells
from vitedu.plots.style import WIDTH, CourseFigure, figure, hide_ticks, panel, styled, to_picture

MARKS = "os^DvPX"


@styled
def show_adapted(results: Mapping[str, tuple[int, Sequence[float]]], *, chance: float) -> Figure:
    """Draw accuracy against the number of trained parameters, a mark for every seed.

    Args:
        results: way of training -> (trained parameters, accuracies of the seeds).
        chance: what guessing reaches. Ways with equally many parameters stand side by side.
    """
    fig, ax = panel(WIDTH, 3.6)
    sizes = [trained for trained, _ in results.values()]
    for number, (name, (trained, accuracies)) in enumerate(results.items()):
        x = trained * 1.25 ** sizes[:number].count(trained)  # equal numbers stand side by side
        style = {"color": ink.CYCLE[number], "marker": MARKS[number % len(MARKS)]}
        values = [100 * accuracy for accuracy in accuracies]
        label = f"{name}: {trained:,}"
        ax.plot(x, np.mean(values), linestyle="", markersize=9, label=label, **style)
        ax.plot([x] * len(values), values, "_", color=ink.BLACK, markersize=7, markeredgewidth=0.8)
    ax.axhline(100 * chance, color=ink.BLACK, linestyle="--", label=f"by chance: {chance:.0%}")
    ax.set(xscale="log", xlabel="trained parameters (equal numbers stand side by side)")
    ax.set(ylabel="test accuracy (%)", ylim=(0, 103))
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    ax.set_title("marks: mean over the seeds; short lines: one seed each", fontsize=9)
    return fig


@styled
def show_pairs(
    cosines: np.ndarray, images: Sequence[torch.Tensor], captions: Sequence[str]
) -> Figure:
    """Draw the table of cosines of some images with some captions; the pairs stand on the diagonal.

    Args:
        cosines: (n, n), a row for each image.
        images: n pictures (C, H, W).
        captions: n texts.
    """
    n = len(captions)
    fig, axes = figure(1, 2, size=(WIDTH, 0.55 * n + 1.6), width_ratios=(0.09, 1))
    axes[0, 0].imshow(np.concatenate([to_picture(image) for image in images]), aspect="auto")
    hide_ticks(axes[0, 0])
    ax = axes[0, 1]
    mappable = ax.imshow(cosines, cmap=ink.DIVERGING, vmin=-1, vmax=1, aspect="auto")
    write_cells(ax, np.char.mod("%.2f", cosines), np.abs(cosines) > 0.6, fontsize=8)
    for text in ax.texts[:: n + 1]:
        text.set_fontweight("bold")
    ax.set_xticks(range(n), [textwrap.fill(caption, 15) for caption in captions], fontsize=8)
    ax.set_yticks([])
    fig.colorbar(mappable, ax=ax, label="cosine")
    return fig


@styled
def show_patch_colours(images, colours: Mapping[str, torch.Tensor]) -> Figure:
    """Draw photographs, and below them the colours of their patches, a row for each features.

    Args:
        images: (n, C, H, W), uint8 or floats in [0, 1].
        colours: kind of features -> (n, 3, gh, gw) in [0, 1].
    """
    rows, n = {"photograph": images, **colours}, len(images)
    fig, axes = figure(len(rows), n, size=(WIDTH, len(rows) * WIDTH / (n + 0.2)), ticks=False)
    for line, pictures in zip(axes, rows.values(), strict=True):
        for ax, picture in zip(line, pictures, strict=True):
            draw_image(ax, picture)
    name_rows(axes, rows)
    return fig


@styled
def show_retrieved(rows: Mapping[str, tuple[Sequence[torch.Tensor], Sequence[bool]]]) -> Figure:
    """Draw for each caption the pictures whose features are nearest, the nearest first.

    Args:
        rows: caption -> (pictures, whether the caption describes each of them).
    """
    count = max(len(pictures) for pictures, _ in rows.values())
    fig, axes = figure(len(rows), count, size=(WIDTH, 1.35 * len(rows)))
    for line, (caption, (pictures, fits)) in zip(axes, rows.items(), strict=True):
        for ax, picture, is_right in zip(line, pictures, fits, strict=False):
            sign, colour = verdict(is_right)
            draw_image(ax, picture)
            ax.spines[:].set(visible=True, color=colour, linewidth=2.5)
            ax.set_xlabel(sign, color=colour)
        line[0].set_title(caption, loc="left", fontsize=9)
    return fig


@styled
def show_four_heads(
    images,
    names: Sequence[str],
    boxes: Mapping[str, np.ndarray],
    covers: Mapping[str, np.ndarray],
    heights: Mapping[str, np.ndarray],
) -> Figure:
    """Draw what four heads read out of the same features, with the truth beside it.

    Args:
        images: (n, C, H, W).
        names: n classes, as the first head answers.
        boxes: "truth" and "found" -> (n, 4): left, top, right, bottom as shares of the side.
        covers: "truth" and "found" -> (n, H, W), share of the object in each pixel.
        heights: "truth" and "found" -> (n, H, W), pixels.
    """
    n, S = len(images), images.shape[-1]
    fig, axes = figure(5, n, size=(WIDTH, 1.12 * 5 * WIDTH / (n + 1)), ticks=False)
    top = max(float(np.max(values)) for values in heights.values())
    mask, depth = {"cmap": "gray", "vmax": 1.0}, {"cmap": ink.SEQUENTIAL, "vmax": top}
    for i, column in enumerate(axes.T):
        draw_image(column[0], images[i], names[i], size=9)
        for who, colour, line in (("truth", "white", "--"), ("found", ink.ORANGE, "-")):
            x0, y0, x1, y1 = boxes[who][i] * S - 0.5
            look = {"edgecolor": colour, "linestyle": line, "linewidth": 1.8}
            frame(column[0], x0, y0, x1 - x0, y1 - y0, **look)
        for row, who in enumerate(("found", "truth")):
            column[1 + row].imshow(covers[who][i], vmin=0, **mask)
            column[3 + row].imshow(heights[who][i], vmin=0, **depth)
    span = f"\n(0 to {top:.2g} px)"
    masks, depths = ("mask, found", "mask, truth"), (f"depth, found{span}", f"depth, truth{span}")
    name_rows(axes, ("class and box\n(white: truth)", *masks, *depths), size=8)
    return fig


# name -> boxes: key -> (x, y, text, colour), x and y counted from box to box; rows of arrows
FAMILIES: dict[str, tuple[dict[str, tuple[float, float, str, str]], str]] = {
    "DETR": (
        {
            "image": (0, 1, "image", ink.GREY),
            "cnn": (1, 1, "CNN or ViT", ink.BLUE),
            "encoder": (2, 1, "encoder:\nplaces", ink.BLUE),
            "queries": (2, 0, "100 learned\nobject queries", ink.ORANGE),
            "decoder": (3, 0.5, "decoder: queries\nattend to places", ink.GREEN),
            "heads": (4, 0.5, "class and box\nof each query", ink.PINK),
            "match": (5, 0.5, "matched\none to one\nwith the truth", ink.GREY),
        },
        "image > cnn > encoder > decoder > heads > match, queries > decoder",
    ),
    "SegFormer": (
        {
            "image": (0, 0.5, "image", ink.GREY),
            "one": (1, 0.5, "blocks\n1/4 of the side", ink.BLUE),
            "two": (2, 0.5, "blocks\n1/8", ink.BLUE),
            "three": (3, 0.5, "blocks\n1/16", ink.BLUE),
            "four": (4, 0.5, "blocks\n1/32", ink.BLUE),
            "mix": (2.5, 1.5, "all four enlarged,\njoined by an MLP", ink.GREEN),
            "out": (4, 1.5, "a class for\neach pixel", ink.PINK),
        },
        "image > one > two > three > four, one > mix, two > mix, three > mix, four > mix > out",
    ),
    "TimeSformer": (
        {
            "video": (0, 0.5, "frames of\na video", ink.GREY),
            "patches": (1, 0.5, "patches: F × N\ntokens", ink.BLUE),
            "time": (2, 0.5, "attention\nover time:\nsame place", ink.ORANGE),
            "space": (3, 0.5, "attention\nover space:\nsame frame", ink.GREEN),
            "mlp": (4, 0.5, "MLP", ink.BLUE),
            "head": (5, 0.5, "class of\nthe video", ink.PINK),
        },
        "video > patches > time > space > mlp > head",
    ),
    "SAM": (
        {
            "image": (0, 1, "image", ink.GREY),
            "vit": (1, 1, "ViT encoder,\nonce an image", ink.BLUE),
            "prompt": (0, 0, "a click, a box", ink.GREY),
            "code": (1, 0, "prompt encoder:\nplace → token", ink.ORANGE),
            "decoder": (2.3, 0.5, "small decoder:\nprompt ↔ image\nattention", ink.GREEN),
            "masks": (3.4, 0.5, "three masks,\neach with a score", ink.PINK),
        },
        "image > vit > decoder > masks, prompt > code > decoder",
    ),
    "vision-language model": (
        {
            "image": (0, 1, "image", ink.GREY),
            "vit": (1, 1, "ViT: one token\na patch", ink.BLUE),
            "project": (2, 1, "MLP to the\nwidth of words", ink.ORANGE),
            "text": (0, 0, "question", ink.GREY),
            "words": (2, 0, "one token\na word piece", ink.BLUE),
            "model": (3.3, 0.5, "language model:\nimage tokens,\nthen words", ink.GREEN),
            "answer": (4.4, 0.5, "answer, word\nby word", ink.PINK),
        },
        "image > vit > project > model > answer, text > words > model",
    ),
}


@styled
def draw_family(name: str) -> Figure:
    """Draw how a relative of the ViT is built, as boxes from left to right.

    Args:
        name: a key of ``FAMILIES``.

    Raises:
        ValueError: no such diagram; the message lists the choices.
    """
    if name not in FAMILIES:
        raise ValueError(f"no diagram named {name!r}. Choices: {', '.join(FAMILIES)}.")
    boxes, rows = FAMILIES[name]
    arrows = [ends for row in rows.split(", ") for ends in pairwise(row.split(" > "))]
    # inches, so that boxes and letters are as large in every diagram
    wide, high, half, tall, edge, head = 1.35, 0.85, 0.58, 0.29, 0.05, 0.3
    xs, ys = [x for x, *_ in boxes.values()], [y for _, y, *_ in boxes.values()]
    width = wide * (max(xs) - min(xs)) + 2 * (half + edge)
    height = high * (max(ys) - min(ys)) + 2 * (tall + edge)
    fig = CourseFigure(figsize=(width, height + head))
    ax = fig.add_axes((0, 0, 1, height / (height + head)))
    for x, y, text, colour in boxes.values():
        look = {"edgecolor": colour, "linewidth": 2, "fontsize": 8.5}
        corners, size = "pad=0.0,rounding_size=0.08", (2 * half, 2 * tall)
        draw_box(ax, wide * x, high * y, size, text, corners=corners, **look)
    for source, target in arrows:
        (x0, y0), (x1, y1) = ((wide * boxes[k][0], high * boxes[k][1]) for k in (source, target))
        flat = abs(y0 - y1) < 0.9 * high
        aside, up = (half, 0) if flat else (0, tall if y1 > y0 else -tall)
        ends = (x0 + aside, y0 + up), (x1 - aside, y1 - up)
        arrow = FancyArrowPatch(*ends, arrowstyle="-|>", mutation_scale=11, shrinkA=0, shrinkB=0)
        ax.add_patch(arrow).set(color=ink.BLACK, linewidth=1.1, zorder=1)
    left, low = wide * min(xs) - half - edge, high * min(ys) - tall - edge
    ax.set(xlim=(left, left + width), ylim=(low, low + height))
    ax.set_title(name, loc="left", fontweight="bold")
    ax.axis("off")
    return fig
