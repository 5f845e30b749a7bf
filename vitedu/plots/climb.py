"""The figure of what each part of a trainer adds (notebook 04).

Role: measured accuracies in, a matplotlib figure out. Not here: the runs
(``vitedu.bench.experiments.climb``).
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from vitedu.plots.parts import draw_horizons
from vitedu.plots.style import BLACK, BLUE, ORANGE, WIDTH, panel, styled


@styled
def show_climb(
    steps: Mapping[str, Sequence[float]],
    yours: Mapping[str, float],
    horizons: Mapping[str, float],
) -> Figure:
    """Draw accuracies in [0, 1]: a bar to the mean of each step, its gain, a dot a seed.

    Args:
        steps: what each adds to the one above it -> its seeds; those without any are left out.
        yours: name of a run of the student's own -> its accuracy.
        horizons: accuracies to compare with, drawn as vertical lines.
    """
    rows = [(name, seeds, BLUE) for name, seeds in steps.items() if len(seeds)]
    rows += [(name, [accuracy], ORANGE) for name, accuracy in yours.items()]
    fig, ax = panel(WIDTH, 1.5 + 0.34 * len(rows))
    before, box = None, {"facecolor": "white", "edgecolor": "none", "pad": 1}
    for y, (_, seeds, colour) in enumerate(rows):
        mean = 100 * np.mean(seeds)
        ax.barh(y, mean, color=colour, height=0.62)
        if len(seeds) > 1:
            ax.plot(100 * np.array(seeds), [y] * len(seeds), "o", color=BLACK, markersize=3.5)
        words = f"{mean:.1f}"
        if colour == BLUE:
            words += "" if before is None else f"   ({mean - before:+.1f})"
            before = mean
        ax.text(max(100 * np.max(seeds), mean) + 1, y, words, va="center", fontsize=9, bbox=box)
    draw_horizons(ax, horizons)
    ax.set_yticks(range(len(rows)), [name for name, *_ in rows])
    ax.set(xlim=(0, 100), ylim=(len(rows) - 0.4, -0.6))
    ax.set_xlabel("validation accuracy (%), grey lines: test; in brackets the gain; a dot a seed")
    return fig
