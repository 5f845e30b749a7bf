"""The figure of ``vitedu bench cost``: what a size costs, measured and counted.

Role: numbers in, a figure out. Not here: any measurement.
"""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from vitedu.plots.style import BLUE, GREY, LIGHT, ORANGE, figure, styled

Point = tuple[float, float, float]  # size, measured cost, counted cost


@styled
def show_cost(
    panels: Mapping[str, Sequence[Point]], *, base: Mapping[str, float], of: str
) -> Figure:
    """Draw cost against size, one panel a size, on logarithmic axes.

    Args:
        panels: what is varied -> points (size, measured, counted), by rising size. Both costs are
            relative to the model in which all panels meet. At most four.
        base: what is varied -> its value in that model.
        of: names that model.

    Returns:
        Two rows of two axes with one scale of cost. A straight line that climbs one step up for one
        step sideways is a cost in proportion to the size.

    Raises:
        ValueError: more than four panels.
    """
    if len(panels) > 4:
        raise ValueError(f"the figure has four places (got {len(panels)} panels).")
    fig, axes = figure(2, 2, size=(8.0, 6.0), sharey=True)
    for ax, (name, points) in zip(axes.flat, panels.items(), strict=False):
        sizes, measured, counted = zip(*points, strict=True)
        ax.axhline(1, color=LIGHT, zorder=0)
        ax.axvline(base[name], color=LIGHT, zorder=0)
        ax.plot(sizes, measured, "o-", color=BLUE, label="measured time")
        ax.plot(sizes, counted, "s--", color=ORANGE, markersize=4, label="counted FLOP")
        ax.set(xscale="log", yscale="log", xlabel=name)
        ax.xaxis.set(major_locator=FixedLocator(sizes), minor_locator=NullLocator())
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    for ax in axes.flat[len(panels) :]:
        ax.axis("off")
    for ax in axes[:, 0]:
        ax.set_ylabel(f"cost, {of} = 1")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside upper center", ncols=2)
    fig.supxlabel(f"grey lines: {of}", fontsize=8, color=GREY)
    return fig
