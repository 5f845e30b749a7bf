"""Figures of notebook 09: adapted models, images with captions, four heads, relatives of the ViT.

Role: functions that return a matplotlib Figure. Not here: any measurement.

Legend: n images, C H W image, N patches, gh gw patch grid.
"""

import textwrap
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from vitedu.plots.style import (
    BLACK,
    BLUE,
    CYCLE,
    DIVERGING,
    GREEN,
    GREY,
    ORANGE,
    PICTURE,
    PINK,
    RED,
    SEQUENTIAL,
    WIDTH,
    CourseFigure,
    figure,
    hide_ticks,
    styled,
    to_picture,
)

MARKS = "os^DvPX"


@styled
def show_adapted(found: Mapping[str, tuple[int, Sequence[float]]], *, chance: float) -> Figure:
    """Draw accuracy against the number of trained parameters, a mark for every seed.

    Args:
        found: way of training -> (trained parameters, accuracies of the seeds).
        chance: what guessing reaches. Ways with equally many parameters stand side by side.
    """
    fig, axes = figure(size=(WIDTH, 3.6))
    ax = axes[0, 0]
    sizes = [trained for trained, _ in found.values()]
    for number, (name, (trained, accuracies)) in enumerate(found.items()):
        x = trained * 1.25 ** sizes[:number].count(trained)  # equal numbers stand side by side
        style = {"color": CYCLE[number], "marker": MARKS[number % len(MARKS)]}
        values = [100 * accuracy for accuracy in accuracies]
        label = f"{name}: {trained:,}"
        ax.plot(x, np.mean(values), linestyle="", markersize=9, label=label, **style)
        ax.plot([x] * len(values), values, "_", color=BLACK, markersize=7, markeredgewidth=0.8)
    ax.axhline(100 * chance, color=BLACK, linestyle="--", label=f"by chance: {chance:.0%}")
    ax.set(
        xscale="log",
        xlabel="trained parameters (equal numbers stand side by side)",
        ylabel="test accuracy (%)",
        ylim=(0, 103),
    )
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    ax.set_title("marks: mean over the seeds; short lines: one seed each", fontsize=9)
    return fig


@styled
def similarity_figure(
    image, tables: Mapping[str, np.ndarray], grid_size: tuple[int, int]
) -> tuple[Figure, Callable]:
    """Draw an image, ready to frame one patch and to show which patches have features like its own.

    Args:
        image: (C, H, W), square.
        tables: name of the model -> (N, N) cosines between the features of all patches.
        grid_size: (gh, gw).

    Returns:
        The figure, and a function that moves it to patch k and gives the artists that changed.
    """
    gh, gw = grid_size
    picture = to_picture(image)
    P = picture.shape[0] / gh
    fig = CourseFigure(figsize=(WIDTH, 3.6))
    left = fig.add_axes(PICTURE)
    left.imshow(picture, cmap="gray", vmin=0, vmax=1)
    left.set_title("click a patch")
    hide_ticks(left)
    frame = Rectangle((0, 0), P, P, fill=False, edgecolor=ORANGE, linewidth=2.5)
    left.add_patch(frame)
    changing: list = [frame]
    side = min(0.5 / len(tables), 0.3)
    start = 0.41 + (0.5 - side * len(tables)) / 2
    maps = []
    for number, (name, table) in enumerate(tables.items()):
        ax = fig.add_axes((start + number * (side + 0.01), 0.2, side, side * WIDTH / 3.6))
        shown = ax.imshow(np.zeros(grid_size), cmap=DIVERGING, vmin=-1, vmax=1)
        ax.set_title(name)
        hide_ticks(ax)
        maps.append((shown, np.asarray(table)))
        changing.append(shown)
    bar = fig.colorbar(shown, cax=fig.add_axes((0.94, 0.2, 0.012, side * WIDTH / 3.6)))
    bar.ax.tick_params(labelsize=7, pad=1)
    bar.ax.set_title("cosine", fontsize=7)

    def move(k: int):
        row, column = divmod(k, gw)
        frame.set_xy((column * P - 0.5, row * P - 0.5))
        for shown, table in maps:
            shown.set_data(table[k].reshape(gh, gw))
        return changing

    return fig, move


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
    shown = ax.imshow(cosines, cmap=DIVERGING, vmin=-1, vmax=1, aspect="auto")
    for i in range(n):
        for j in range(n):
            ink = "white" if abs(cosines[i, j]) > 0.6 else BLACK
            weight = "bold" if i == j else "normal"
            ax.text(
                j,
                i,
                f"{cosines[i, j]:.2f}",
                ha="center",
                va="center",
                color=ink,
                fontsize=8,
                fontweight=weight,
            )
    ax.set_xticks(range(n), [textwrap.fill(caption, 15) for caption in captions], fontsize=8)
    ax.set_yticks([])
    fig.colorbar(shown, ax=ax, label="cosine")
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
            ax.imshow(to_picture(picture))
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set(visible=True, color=GREEN if is_right else RED, linewidth=2.5)
            ax.set_xlabel("✓" if is_right else "✗", color=GREEN if is_right else RED)
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
    fig, axes = figure(5, n, size=(WIDTH, 1.12 * 5 * WIDTH / (n + 1)))
    top = max(float(np.max(values)) for values in heights.values())
    for i in range(n):
        ax = axes[0, i]
        ax.imshow(to_picture(images[i]))
        ax.set_title(names[i], fontsize=9)
        for who, colour, line in (("truth", "white", "--"), ("found", ORANGE, "-")):
            x0, y0, x1, y1 = boxes[who][i] * S - 0.5
            ax.add_patch(
                Rectangle(
                    (x0, y0),
                    x1 - x0,
                    y1 - y0,
                    fill=False,
                    edgecolor=colour,
                    linestyle=line,
                    linewidth=1.8,
                )
            )
        rows = [(covers, "gray", 1.0), (heights, SEQUENTIAL, top)]
        for row, (values, colours, limit) in enumerate(rows):
            for k, who in enumerate(("found", "truth")):
                axes[1 + 2 * row + k, i].imshow(values[who][i], cmap=colours, vmin=0, vmax=limit)
    depth = f"\n(0 to {top:.2g} px)"
    labels = (
        "class and box\n(white: truth)",
        "mask, found",
        "mask, truth",
        f"depth, found{depth}",
        f"depth, truth{depth}",
    )
    for ax, label in zip(axes[:, 0], labels, strict=True):
        ax.set_ylabel(label, fontsize=8)
    for ax in axes.flat:
        hide_ticks(ax)
    return fig


# --- relatives: boxes and arrows ------------------------------------------------------------------

# name -> (boxes: key -> (x, y, text, colour), arrows: (from, to)); x and y count from box to box
FAMILIES: dict[
    str, tuple[dict[str, tuple[float, float, str, str]], tuple[tuple[str, str], ...]]
] = {
    "DETR": (
        {
            "image": (0, 1, "image", GREY),
            "cnn": (1, 1, "CNN or ViT", BLUE),
            "encoder": (2, 1, "encoder:\nplaces", BLUE),
            "queries": (2, 0, "100 learned\nobject queries", ORANGE),
            "decoder": (3, 0.5, "decoder: queries\nattend to places", GREEN),
            "heads": (4, 0.5, "class and box\nof each query", PINK),
            "match": (5, 0.5, "matched\none to one\nwith the truth", GREY),
        },
        (
            ("image", "cnn"),
            ("cnn", "encoder"),
            ("encoder", "decoder"),
            ("queries", "decoder"),
            ("decoder", "heads"),
            ("heads", "match"),
        ),
    ),
    "SegFormer": (
        {
            "image": (0, 0.5, "image", GREY),
            "one": (1, 0.5, "blocks\n1/4 of the side", BLUE),
            "two": (2, 0.5, "blocks\n1/8", BLUE),
            "three": (3, 0.5, "blocks\n1/16", BLUE),
            "four": (4, 0.5, "blocks\n1/32", BLUE),
            "mix": (2.5, 1.5, "all four enlarged,\njoined by an MLP", GREEN),
            "out": (4, 1.5, "a class for\neach pixel", PINK),
        },
        (
            ("image", "one"),
            ("one", "two"),
            ("two", "three"),
            ("three", "four"),
            ("one", "mix"),
            ("two", "mix"),
            ("three", "mix"),
            ("four", "mix"),
            ("mix", "out"),
        ),
    ),
    "TimeSformer": (
        {
            "video": (0, 0.5, "frames of\na video", GREY),
            "patches": (1, 0.5, "patches: F × N\ntokens", BLUE),
            "time": (2, 0.5, "attention\nover time:\nsame place", ORANGE),
            "space": (3, 0.5, "attention\nover space:\nsame frame", GREEN),
            "mlp": (4, 0.5, "MLP", BLUE),
            "head": (5, 0.5, "class of\nthe video", PINK),
        },
        (
            ("video", "patches"),
            ("patches", "time"),
            ("time", "space"),
            ("space", "mlp"),
            ("mlp", "head"),
        ),
    ),
    "SAM": (
        {
            "image": (0, 1, "image", GREY),
            "vit": (1, 1, "ViT encoder,\nonce an image", BLUE),
            "prompt": (0, 0, "a click, a box", GREY),
            "code": (1, 0, "prompt encoder:\nplace → token", ORANGE),
            "decoder": (2.3, 0.5, "small decoder:\nprompt ↔ image\nattention", GREEN),
            "masks": (3.4, 0.5, "three masks,\neach with a score", PINK),
        },
        (
            ("image", "vit"),
            ("prompt", "code"),
            ("vit", "decoder"),
            ("code", "decoder"),
            ("decoder", "masks"),
        ),
    ),
    "vision-language model": (
        {
            "image": (0, 1, "image", GREY),
            "vit": (1, 1, "ViT: one token\na patch", BLUE),
            "project": (2, 1, "MLP to the\nwidth of words", ORANGE),
            "text": (0, 0, "question", GREY),
            "words": (2, 0, "one token\na word piece", BLUE),
            "model": (3.3, 0.5, "language model:\nimage tokens,\nthen words", GREEN),
            "answer": (4.4, 0.5, "answer, word\nby word", PINK),
        },
        (
            ("image", "vit"),
            ("vit", "project"),
            ("text", "words"),
            ("project", "model"),
            ("words", "model"),
            ("model", "answer"),
        ),
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
    boxes, arrows = FAMILIES[name]
    # inches, so that boxes and letters are as large in every diagram
    wide, high, half, tall, edge, head = 1.35, 0.85, 0.58, 0.29, 0.05, 0.3
    xs, ys = [x for x, *_ in boxes.values()], [y for _, y, *_ in boxes.values()]
    width = wide * (max(xs) - min(xs)) + 2 * (half + edge)
    height = high * (max(ys) - min(ys)) + 2 * (tall + edge)
    fig = CourseFigure(figsize=(width, height + head))
    ax = fig.add_axes((0, 0, 1, height / (height + head)))
    for x, y, text, colour in boxes.values():
        ax.add_patch(
            FancyBboxPatch(
                (wide * x - half, high * y - tall),
                2 * half,
                2 * tall,
                facecolor="white",
                boxstyle="round,pad=0.0,rounding_size=0.08",
                edgecolor=colour,
                linewidth=2,
                zorder=2,
            )
        )
        ax.text(wide * x, high * y, text, ha="center", va="center", fontsize=8.5, zorder=3)
    for source, target in arrows:
        (x0, y0), (x1, y1) = (
            (wide * x, high * y) for x, y in (boxes[source][:2], boxes[target][:2])
        )
        flat = abs(y0 - y1) < 0.9 * high
        start = (x0 + half, y0) if flat else (x0, y0 + (tall if y1 > y0 else -tall))
        end = (x1 - half, y1) if flat else (x1, y1 - (tall if y1 > y0 else -tall))
        ax.add_patch(
            FancyArrowPatch(
                start,
                end,
                arrowstyle="-|>",
                mutation_scale=11,
                color=BLACK,
                linewidth=1.1,
                zorder=1,
                shrinkA=0,
                shrinkB=0,
            )
        )
    left, low = wide * min(xs) - half - edge, high * min(ys) - tall - edge
    ax.set(xlim=(left, left + width), ylim=(low, low + height))
    ax.set_title(name, loc="left", fontweight="bold")
    ax.axis("off")
    return fig
