"""Figures of notebook 07: a collapse. Most others are made by ``vitedu.plots.charts``.

Role: draw what the notebook measured. Not here: the measuring.
"""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from vitedu.plots import ink
from vitedu.plots.charts import show_curves
from vitedu.plots.style import styled


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
