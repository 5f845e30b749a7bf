"""Figures of notebook 03: the block, and where the parameters are.

Role: tensors and numbers in, a Figure out. Not here: any measurement; the notebook measures and
hands the numbers over.
"""

from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch

from vitedu.plots import ink
from vitedu.plots.parts import draw_box, write
from vitedu.plots.style import figure, panel, styled

PART_COLOURS = {  # one colour for one part, in every figure of the chapter
    "patch embedding": ink.SKY,
    "class token, positions": ink.PINK,
    "attention": ink.ORANGE,
    "T x T products": ink.RED,
    "MLP": ink.BLUE,
    "norms": ink.GREY,
    "head": ink.GREEN,
}


@styled
def draw_block() -> Figure:
    """Draw a pre-norm and a post-norm block as a main road with two side roads each.

    On the main road stand two additions, and in the post-norm block two normalisations too.
    """
    fig, axes = figure(2, 1, size=(8.0, 3.0))
    above, below = axes[:, 0]
    _draw_road(above, norm_first=True)
    _draw_road(below, norm_first=False)
    above.set_title("pre-norm (ViT): norms on the side roads, the main road is free", loc="left")
    below.set_title("post-norm (2017): norms across the main road", loc="left")
    return fig


def _draw_road(ax, *, norm_first: bool) -> None:
    """Draw one block: main road at y = 0, side roads at y = 1."""

    def box(x, y, name, colour):
        look = {"edgecolor": colour, "linewidth": 2, "fontsize": 9, "family": "monospace"}
        draw_box(ax, x, y, (1.5, 0.52), name, corners="pad=0.06", **look)

    ax.plot([0, 13], [0, 0], color=ink.BLACK, linewidth=5, solid_capstyle="butt", zorder=1)
    ax.text(-0.1, 0, "x\n(B, T, D)", ha="right", va="center", fontsize=9)
    ax.text(13.2, 0, "(B, T, D)", ha="left", va="center", fontsize=9)
    roads = (0.7, "norm1", "attn", ink.ORANGE), (7.0, "norm2", "mlp", ink.BLUE)
    for start, norm, layer, colour in roads:
        plus = start + (5.2 if norm_first else 3.4)
        ax.plot([start, start, plus, plus], [0, 1, 1, 0.28], color=colour, linewidth=2, zorder=1)
        ends = (plus, 0.6), (plus, 0.2)
        ax.add_patch(FancyArrowPatch(*ends, arrowstyle="-|>", mutation_scale=14, color=colour))
        if norm_first:
            box(start + 0.28 * (plus - start), 1, norm, ink.GREY)
            box(start + 0.72 * (plus - start), 1, layer, colour)
        else:
            box(start + 0.5 * (plus - start), 1, layer, colour)
            box(plus + 1.4, 0, norm, ink.GREY)
        ax.add_patch(Circle((plus, 0), 0.24, facecolor="white", edgecolor=ink.BLACK, zorder=3))
        write(ax, plus, 0, "+", fontsize=12, zorder=4)
    ax.set(xlim=(-1.6, 14.8), ylim=(-0.45, 1.45), aspect="equal")
    ax.axis("off")


@styled
def show_parameter_map(parts: Mapping[str, Mapping[str, int]], *, title: str = "") -> Figure:
    """Draw a model as a map whose areas are its parameter counts.

    Args:
        parts: column -> {part: count}, in reading order. A column is as wide as its sum, a part as
            high as its share. Colours follow ``PART_COLOURS`` by the last word of
            ``"qkv: attention"``-like names.
        title: above the map.
    """
    fig, ax = panel(9.0, 3.4)
    total, left = sum(sum(column.values()) for column in parts.values()), 0.0
    for name, column in parts.items():
        width, bottom = sum(column.values()) / total, 1.0
        for label, count in column.items():
            text, _, part = label.rpartition(": ")
            height = count / sum(column.values())
            bottom -= height
            words = text if width > 0.04 and height > 0.08 else ""
            _draw_part(ax, part, left, bottom, width, height, words)
        write(ax, left + width / 2, -0.07, name if width > 0.03 else "", fontsize=8)
        left += width
    _name_parts(fig, ax)
    ax.set(xlim=(0, 1), ylim=(-0.12, 1), title=title)
    ax.axis("off")
    return fig


def _draw_part(ax, part: str, x: float, y: float, width: float, height: float, words: str) -> None:
    """Draw a rectangle from a corner on in the colour of a part, with words in it."""
    colour = PART_COLOURS[part]
    label = "" if part in ax.get_legend_handles_labels()[1] else part
    look = {"color": colour, "edgecolor": "white", "linewidth": 0.6, "label": label}
    ax.bar(x, height, width, y, align="edge", **look)
    if words:
        letters = "white" if colour in (ink.BLUE, ink.GREY, ink.GREEN) else ink.BLACK
        write(ax, x + width / 2, y + height / 2, words, color=letters, fontsize=8)


def _name_parts(fig: Figure, ax) -> None:
    """Draw the legend of the parts that were drawn, in the order of ``PART_COLOURS``."""
    handles, names = ax.get_legend_handles_labels()
    parts = sorted(names, key=list(PART_COLOURS).index)
    bars = [handles[names.index(part)] for part in parts]
    fig.legend(bars, parts, loc="outside lower center", ncols=len(parts), fontsize=8)


def parameter_columns(model) -> dict[str, dict[str, int]]:
    """Count a ``VisionTransformer``'s parameters by column and part, for ``show_parameter_map``."""

    def size(module) -> int:
        return sum(p.numel() for p in module.parameters())

    tokens = model.pos_embed.numel() + model.cls_token.numel()
    patches = {"conv: patch embedding": size(model.patch_embed)}
    columns = {"patches": {**patches, "positions: class token, positions": tokens}}
    for i, block in enumerate(model.blocks):
        columns[f"block {i}"] = {
            "norm1: norms": size(block.norm1),
            "qkv: attention": size(block.attn.qkv),
            "proj: attention": size(block.attn.proj),
            "norm2: norms": size(block.norm2),
            "fc1: MLP": size(block.mlp.fc1),
            "fc2: MLP": size(block.mlp.fc2),
        }
    columns["head"] = {"norm: norms": size(model.norm), "head: head": size(model.head)}
    return columns


@styled
def show_shares(rows: Mapping[str, Mapping[str, float]], *, xlabel: str) -> Figure:
    """Draw one bar a row, cut into the shares of its parts.

    Args:
        rows: label -> {part: amount}, parts named as in ``PART_COLOURS``. Shares of 4 % and more
            are written into the bar.
        xlabel: what the shares are of.
    """
    fig, ax = panel(8.0, 0.9 + 0.42 * len(rows))
    for row, amounts in enumerate(rows.values()):
        left = 0.0
        for part, amount in amounts.items():
            share = 100 * amount / sum(amounts.values())
            words = f"{share:.0f}" if share >= 4 else ""
            _draw_part(ax, part, left, row - 0.4, share, 0.8, words)
            left += share
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set(xlabel=xlabel, xlim=(0, 100), ylim=(len(rows) - 0.5, -0.5))
    _name_parts(fig, ax)
    return fig
