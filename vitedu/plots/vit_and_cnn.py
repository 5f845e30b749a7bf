"""The card of notebook 06: what was measured of a CNN and a ViT, and a choice.

Role: numbers in, a matplotlib figure out. Not here: any measuring; a figure draws what it is given.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from vitedu.ground.files import write_whole
from vitedu.plots import ink
from vitedu.plots.style import DPI, WIDTH, CourseFigure, panel, styled


@styled
def show_card(
    rows: Mapping[str, Mapping[str, float]],
    words: Sequence[str],
    path: str | Path,
) -> CourseFigure:
    """Draw a card: a measurement a line, with a mark at the larger number, and words below.

    Args:
        rows: what was measured -> network -> value; at most 1: a share, else a whole number.
        words: lines below the table.
        path: of the PNG file to write, too.
    """
    height = len(rows) + len(words) + 2
    fig, ax = panel(WIDTH, 0.3 * height)
    ax.set(xlim=(0, 10), ylim=(height, 0))
    ax.axis("off")
    for line, (what, values) in enumerate(rows.items(), start=1):
        ax.axhline(line, color=ink.LIGHT, linewidth=0.8)
        ax.text(0, line + 0.5, f"{line}  {what}", va="center")
        for x, (network, value) in zip((6.8, 9), values.items(), strict=True):
            if line == 1:
                ax.text(x, 0.5, network, ha="right", va="center", weight="bold")
            is_ahead = value == max(values.values()) > min(values.values())
            look = {"weight": "bold", "color": ink.GOOD} if is_ahead else {}
            shown = f"{value:.1%}" if value <= 1 else f"{value:,.0f}"
            ax.text(x, line + 0.5, shown, ha="right", va="center", **look)
            if is_ahead:
                ax.text(x, line + 0.5, " ◀", va="center", fontsize=8, **look)
    ax.axhline(len(rows) + 1, color=ink.GREY, linewidth=0.8)
    for line, text in enumerate(words, start=len(rows) + 1):
        ax.text(0, line + 0.6, text, va="center")
    write_whole(Path(path), fig.png(2 * DPI))
    return fig
