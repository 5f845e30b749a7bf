"""Figures of notebook 07: a collapse, one shape and three tasks. ``plots.charts`` makes the others.

Role: draw what the notebook measured. Not here: the measuring.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from vitedu.plots import ink
from vitedu.plots.charts import LINES, show_curves
from vitedu.plots.inside import SCALE, relative_to
from vitedu.plots.parts import draw_map, uniform_bar, write
from vitedu.plots.style import WIDTH, CourseFigure, figure, hide_ticks, styled, to_picture

ROWS = (  # of ``show_three_tasks``
    "right: where the\nclass token looks,\nlast block",
    "patches, as the last\nblock reads them:\ntheir three largest\ncomponents",
    "reach of each head\n(patches);\ndotted: uniform",
    "a linear layer\nafter each block\n(% right)",
)


@styled
def show_collapse(
    results: Mapping[str, Sequence[tuple[float, float]]], steps: Sequence[int], most: float
) -> Figure:
    """Draw entropy and spread of a teacher's answers while it learns, one line an arm.

    Args:
        results: arm -> (entropy, spread) at each of the steps, in nats.
        steps: where they were measured.
        most: the entropy of an even answer, log K.
    """
    panels = {
        name: {arm: [pair[k] for pair in pairs] for arm, pairs in results.items()}
        for k, name in enumerate(("entropy", "spread"))
    }
    labels, limits = ("nats", "nats, on a scale of its own"), (-0.03, None)
    fig = show_curves(panels, steps, xlabel="step", ylabel=labels, limits=limits)
    entropy, spread = fig.axes
    entropy.axhline(most, color=ink.GREY, linestyle=":")
    entropy.text(0, most, f"even answer: {most:.2f}", va="bottom", color=ink.GREY)
    entropy.set_ylim(-0.15, 1.15 * most)
    spread.set_ylim(top=max(0.6, spread.get_ylim()[1]))  # noise near 0 shall not look large
    return fig


@styled
def show_three_tasks(
    images: Any,
    looks: Mapping[str, Any],
    colours: Mapping[str, Any],
    reach: Mapping[str, Sequence[Sequence[float]]],
    probes: Mapping[str, Mapping[str, Sequence[float]]],
    far: float,
) -> CourseFigure:
    """Draw what one shape became for several tasks, a column each: looks, colours, reach, probes.

    Args:
        images: (4, 3, H, W), uint8.
        looks: task -> (4, gh, gw), where the class token looks.
        colours: task -> (4, 3, S, S), three components of patch features, in [0, 1].
        reach: task -> in patches, a list of heads for each block.
        probes: task -> token -> accuracy (%) after each block; the last task is the control.
        far: the reach of uniform attention.
    """
    size, ratios = (WIDTH, 6.6), [1.15] + [1.0] * len(looks)
    fig, axes = figure(4, len(ratios), size=size, width_ratios=ratios)
    for ax in (*axes[:2].flat, *axes[2:, 0]):
        hide_ticks(ax)
    axes[0, 0].imshow(_two_by_two(map(to_picture, images)))
    axes[0, 0].set_title("photographs")
    control = list(probes.values())[-1]
    for column, (task, maps) in zip(axes[:, 1:].T, looks.items(), strict=True):
        even = 1 / (1 + len(maps[0].flatten()))  # one token more than patches
        relative = _two_by_two(relative_to(even, each) for each in maps)
        mappable = draw_map(column[0], relative, task, **SCALE)
        column[1].imshow(_two_by_two(map(to_picture, colours[task])))
        blocks = range(1, 1 + len(reach[task]))
        column[2].plot(blocks, reach[task], "o", color=ink.BLUE, markersize=4, alpha=0.7)
        column[2].axhline(far, color=ink.GREY, linestyle=":", label="uniform")
        for known, own in ((control, False), (probes[task], True)):
            for (token, shares), line, colour in zip(known.items(), LINES, ink.CYCLE, strict=False):
                label = token if own else f"{token}, untrained"
                colour = colour if own else ink.GREY
                column[3].plot(blocks, shares, f"o{line}", color=colour, label=label, ms=4)
        column[3].axhline(10, color=ink.GREY, linestyle=":", label="guessing")
        column[2].set(ylim=(0, 5), xticks=blocks)
        column[3].set(ylim=(0, 90), xticks=blocks, xlabel="block")
    axes[0, 0].set_xlabel(ROWS[0], fontsize=8)
    for ax, words in zip(axes[1:, 0], ROWS[1:], strict=True):
        write(ax, 0.5, 0.5, words, fontsize=9)
    fig.legend(*axes[3, 1].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    uniform_bar(fig, mappable, ax=axes[0, 1:].tolist(), shrink=0.8)
    return fig


def _two_by_two(pictures: Iterable[np.ndarray]) -> np.ndarray:
    """Put four pictures of a size together."""
    one, two, three, four = pictures
    return np.vstack([np.hstack([one, two]), np.hstack([three, four])])
