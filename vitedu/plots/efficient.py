"""Figures of notebook 08: which patches share a token, and what accuracy costs (in 09, too).

Role: draw what a notebook measured. Not here: the measuring; bars, curves and rows of images.
"""

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from matplotlib.figure import Figure

from vitedu.plots import ink
from vitedu.plots.charts import Level, seeds_of
from vitedu.plots.parts import draw_image
from vitedu.plots.style import WIDTH, figure, panel, styled

IDEAS = "*os^DvX<P>d1x|_p"  # marks that stay apart when they are hollow


@styled
def show_tokens(photograph: torch.Tensor, panels: Mapping[str, torch.Tensor]) -> Figure:
    """Draw which patches of a photograph still have a token, and which of them share one.

    Args:
        photograph: (3, H, W), uint8; H and W are multiples of gh and gw.
        panels: title -> (gh, gw) whole numbers: equal where patches share a token, -1 where a patch
            has none. Patches that share one have their mean colour; those without are grey.

    Raises:
        ValueError: a photograph that cannot be cut so.
    """
    fig, axes = figure(1, len(panels), size=(WIDTH, WIDTH / len(panels) + 0.4))
    for ax, (title, owners) in zip(axes[0], panels.items(), strict=True):
        picture, (H, W), (gh, gw) = photograph / 255, photograph.shape[1:], owners.shape
        if H % gh or W % gw:
            remedy = f"H must be a multiple of {gh}, W of {gw}"
            raise ValueError(f"{H} x {W} pixels cannot be cut into {gh} x {gw} patches: {remedy}.")
        large = owners.repeat_interleave(H // gh, 0).repeat_interleave(W // gw, 1)  # (H, W)
        for owner, patches in zip(*owners.unique(return_counts=True), strict=True):
            here = large == owner
            if owner < 0:
                picture[:, here] = 0.85
            elif patches > 1:
                picture[:, here] = picture[:, here].mean(dim=1, keepdim=True)
        above, left = F.pad(large[:-1] != large[1:], (0, 0, 1, 0)), large[:, :-1] != large[:, 1:]
        picture[:, above | F.pad(left, (1, 0))] = 1  # white lines part the tokens
        draw_image(ax, picture, title)
    return fig


@styled
def show_trade(
    points: Mapping[str, tuple[float, Sequence[float]]],
    xlabel: str = "computing time in milliseconds (shorter is left)",
    *,
    level: Level | None = None,
    log: bool = False,
) -> Figure:
    """Draw accuracy against what it costs, a mark of its own for each idea, a dash for each seed.

    The mark says which idea it is, and the colour only helps: there are fewer colours than marks.
    Marks are hollow, so that they may overlap.

    Args:
        points: name -> (cost, accuracies of all seeds); the mark is their mean. Equal costs stand
            side by side. Two lines cross at the first one, if there is no level.
        xlabel: what it costs, with its unit.
        level: an accuracy to compare with, its name first; then the axis begins at zero.
        log: whether the cost runs along a logarithmic axis.

    Raises:
        ValueError: more ideas than there are marks.
    """
    if len(points) > len(IDEAS):
        raise ValueError(f"{len(points)} ideas need as many marks, and IDEAS has {len(IDEAS)}.")
    fig, ax = panel(WIDTH, 2.2 + 0.2 * len(points))
    costs = [cost for cost, _ in points.values()]
    for number, (name, (cost, accuracies)) in enumerate(points.items()):
        cost *= 1.25 ** costs[:number].count(cost)
        seeds, colour = seeds_of(name, accuracies, 100), ink.pick(number % 7)  # no yellow on white
        label = f"{name}, {len(seeds)} seeds" if len(seeds) > 1 else name
        look = {"fillstyle": "none", "markersize": 10, "markeredgewidth": 2, "label": label}
        if len(seeds) > 1:
            ax.plot([cost] * len(seeds), seeds, "_-", color=colour, linewidth=1)
        ax.plot(cost, seeds.mean(), IDEAS[number], color=colour, **look)
        if number == 0 and level is None:
            ax.axvline(cost, color=ink.LIGHT, zorder=0)
            ax.axhline(seeds.mean(), color=ink.LIGHT, zorder=0)
    if level is not None:
        words = f"{level[0]}: {level[1]:.0%}"
        ax.axhline(100 * level[1], color=ink.BLACK, linestyle="--", linewidth=1, label=words)
        ax.set_ylim(0, 1.1 * ax.dataLim.y1)
    ax.set(xlabel=xlabel, ylabel="test accuracy (%)", xscale="log" if log else "linear")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9, handlelength=0.8)
    return fig
