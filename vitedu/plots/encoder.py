"""Figures of notebook 03: the block, and shares of a model's parts.

Role: tensors and numbers in, a Figure out. Not here: any measurement; the notebook measures and
hands the numbers over.
"""

from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch

from vitedu.plots import ink
from vitedu.plots.charts import draw_legend
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
        draw_box(ax, x, y, (1.5, 0.52), name, "pad=0.06", **look)

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
            share, colour = 100 * amount / sum(amounts.values()), PART_COLOURS[part]
            ax.barh(row, share, 0.8, left, color=colour, edgecolor="white", label=part)
            if share >= 4:
                letters = "white" if colour in (ink.BLUE, ink.GREY, ink.GREEN) else ink.BLACK
                write(ax, left + share / 2, row, f"{share:.0f}", color=letters, fontsize=8)
            left += share
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set(xlabel=xlabel, xlim=(0, 100), ylim=(len(rows) - 0.5, -0.5))
    draw_legend(fig, least=1)
    return fig
