"""The postcard: one picture of a trained model, to show to others."""

import keyword
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib import colormaps
from matplotlib.font_manager import findfont
from matplotlib.ft2font import FT2Font
from matplotlib.patches import FancyBboxPatch, Rectangle
from torch import nn

from vitedu.course.parsing import without_docstrings
from vitedu.data.photograph import square_photograph
from vitedu.ground.files import write_whole
from vitedu.inside import class_attention
from vitedu.plots import ink
from vitedu.plots.parts import write
from vitedu.plots.style import DPI, WIDTH, CourseFigure, panel, styled
from vitedu.vit import capture

LARGE = 384  # pixels: a side of the photograph as people see it
# inches: a square, the space before the next one, and the part of the card above the code
SIDE, SPACE, TOP = 1.9, 0.36, 2.75
# of code at most, and inches: one line and one letter of 8.4 points
LINES, COLUMNS, LINE, LETTER = 16, 106, 0.15, 0.0702
FONT = "DejaVu Sans Mono"  # comes with matplotlib
NIGHT, DAY = "#16202C", "#E8EEF4"  # behind the code, and its letters
WORDS = re.compile(
    r"(?P<comment>#.*)|(?P<text>\"[^\"]*\"|'[^']*')|(?P<number>\b\d[\d.e]*\b)"
    rf"|(?P<keyword>\b(?:{'|'.join(keyword.kwlist)})\b)|(?P<call>\w+(?=\())"
    r"|(?P<other>\w+|[^\w\s\"'#]+|\S)"
)
COLOURS = {"comment": "#93A1AF", "text": "#3CC29A", "number": "#CC79A7"}
COLOURS |= {"keyword": "#E69F00", "call": "#56B4E9", "other": DAY}


@styled
def postcard(
    model: nn.Module,
    image: Any,
    data: Any,
    *,
    code: str,
    path: str | Path | None = None,
) -> CourseFigure:
    """Draw a photograph, its patches, where a model looks, the names that it gives, and code.

    It looks with its last layer of attention: the mean over the heads of the class token's weights,
    or without a class token of all patches'. The map's colours reach from 0 to its largest weight.

    Args:
        model: a ``VisionTransformer``; it is not changed.
        image: a photograph, as ``square_photograph`` reads it.
        data: what the model learned from, for ``class_names``, ``image_size``, ``mean``, ``std``.
        code: what its author wrote, shown without docstrings; only the first lines are shown.
        path: of a PNG file to write, too.

    Raises:
        ValueError: no photograph, a model without attention, or of another number of classes.
        OSError: the file cannot be written.
    """
    pixels = torch.from_numpy(square_photograph(image, data.image_size))  # (3, S, S)
    device = next(model.parameters()).device
    tensors = capture(model, data.normalize(pixels[None]).to(device))
    layers = [value.cpu() for name, value in tensors.items() if name.endswith("attn.weights")]
    if not layers:
        raise ValueError(f"a postcard shows attention, and {type(model).__name__} has none.")
    logits, K = tensors["logits"][0], len(data.class_names)
    if len(logits) != K:
        raise ValueError(
            f"the model gives {len(logits)} numbers an image, the data has {K} classes."
        )
    config: Any = model.config
    weights, who = layers[-1], "class token looks"  # (1, nh, T, T)
    if config.num_prefix_tokens == 0:
        weights, who = weights.mean(dim=2, keepdim=True), "patches look"
    attention = class_attention(weights, config.grid_size)[0].mean(dim=0).numpy()
    values, classes = logits.softmax(dim=-1).topk(min(3, K))
    shares = [(data.class_names[k], p) for k, p in zip(classes, values.tolist(), strict=True)]
    count = sum(parameter.numel() for parameter in model.parameters())
    title = f"A Vision Transformer: {len(layers)} blocks, {count:,} parameters"

    lines = _first_lines(code)
    below = LINE * len(lines) + 0.32
    fig, ax = panel(WIDTH, TOP + below)
    fig.set_layout_engine("none")
    ax.set_position((0, 0, 1, 1))
    ax.axis("off")
    photo = square_photograph(image, LARGE).transpose(1, 2, 0)
    _draw_pictures(ax, below + 0.3, photo, pixels.permute(1, 2, 0).numpy(), attention)
    ax.text(0, below + SIDE + 0.56, title, fontsize=11, va="center", weight="bold")
    words = ("the image", f"{attention.size} patches", f"where the {who}")
    for k, name in enumerate(words):
        write(ax, (SIDE + SPACE) * k + SIDE / 2, below + 0.16, name, fontsize=8, color=ink.GREY)
        x = (SIDE + SPACE) * (k + 1)
        write(ax, x - SPACE / 2, below + 0.3 + SIDE / 2, "→", fontsize=13, color=ink.GREY)
    for k, (name, share) in enumerate(shares):
        y, width = below + 1.44 - 0.5 * k, WIDTH - x - 0.4
        size, weight = (9, "normal") if k else (15, "bold")
        ax.text(x, y + 0.16, name, fontsize=min(size, 120 / len(name)), weight=weight)
        ax.add_patch(Rectangle((x, y), width, 0.07, color=ink.LIGHT, linewidth=0))
        ax.add_patch(Rectangle((x, y), share * width, 0.07, color=ink.BLUE, linewidth=0))
        ax.text(WIDTH, y + 0.03, f"{share:.0%}", fontsize=9, va="center", ha="right")
    paper = FancyBboxPatch((0.06, 0.06), WIDTH - 0.12, below - 0.12, boxstyle="round,pad=0.05")
    ax.add_patch(paper).set(facecolor=NIGHT, linewidth=0)
    for k, line in enumerate(lines):
        height = (below - 0.16 - LINE * (k + 0.5)) / (TOP + below)
        for found in WORDS.finditer(line):
            look: Any = {"color": COLOURS[str(found.lastgroup)], "fontsize": 8.4, "family": FONT}
            place = (0.2 + LETTER * found.start()) / WIDTH, height
            fig.text(*place, found[0], va="center", parse_math=False, **look)
    ax.set(xlim=(0, WIDTH), ylim=(0, TOP + below))  # in inches
    if path is not None:
        write_whole(Path(path), fig.png(2 * DPI))
    return fig


def _first_lines(code: str) -> list[str]:
    """Give the lines of code that fit, in letters that the font has."""
    known = FT2Font(findfont(FONT)).get_charmap()
    lines = without_docstrings(code).expandtabs(4).splitlines()
    lines = [line for line in lines if line.strip()]
    if len(lines) > LINES:
        lines = [*lines[: LINES - 1], "…"]
    lines = ["".join(x if ord(x) in known else "□" for x in line) for line in lines]
    return [line if len(line) <= COLUMNS else f"{line[: COLUMNS - 1]}…" for line in lines]


def _draw_pictures(ax, y: float, photo, pixels, attention) -> None:
    """Draw a photograph, the patches of its pixels (S, S, 3), and the map over it in grey."""

    def picture(image, x, y, side):
        look = {"cmap": "gray", "vmin": 0, "vmax": 255, "interpolation": "bicubic"}
        ax.imshow(image, extent=(x, x + side, y, y + side), **look)

    rows, columns = attention.shape
    P, step, gap = len(pixels) // rows, (SIDE + 0.04) / rows, 0.04
    picture(photo, 0, y, SIDE)
    for row, column in np.ndindex(rows, columns):
        tile = pixels[P * row :, P * column :][:P, :P]
        x, top = SIDE + SPACE + step * column, y + SIDE + gap - step * (row + 1)
        picture(tile, x, top, step - gap)
    picture(photo.mean(axis=-1), 2 * (SIDE + SPACE), y, SIDE)
    heat = colormaps[ink.SEQUENTIAL](attention / attention.max(), alpha=0.6)
    picture(heat, 2 * (SIDE + SPACE), y, SIDE)
