"""The figure of what made the difference (notebook 04).

Role: measured rows in, a matplotlib figure out. Not here: the runs
(``vitedu.bench.experiments.ablations``).
"""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from vitedu.plots.style import BAD, BLACK, BLUE, GOOD, GREY, WIDTH, figure, styled


@styled
def show_ablations(lines: Sequence[Mapping]) -> Figure:
    """Draw the accuracy of every change, the way to the best first, then what was tried from there.

    A dot is a mean over seeds, the line through it reaches from the least to the best of them.

    Args:
        lines: as ``vitedu.bench.experiments.ablations.summary`` gives them for one number of
            epochs and one data set: ``change``, ``after``, ``accuracy``, ``low``, ``high``,
            ``gain`` and ``seeds``.

    Raises:
        ValueError: no line, or lines of several numbers of epochs or several data sets.
    """
    epochs, sets = ({line[key] for line in lines} for key in ("epochs", "data"))
    if len(epochs) != 1 or len(sets) != 1:
        raise ValueError(
            f"show_ablations compares runs of one length on one data set (got {len(lines)} lines "
            f"of epochs {sorted(epochs)} on {', '.join(sorted(sets))}); choose the lines of one."
        )
    fig, axes = figure(size=(WIDTH, 0.9 + 0.34 * len(lines)))
    ax = axes[0, 0]
    starts = [line["after"] for line in lines]
    for y, line in enumerate(lines):
        gain, on_the_way = line["gain"], line["change"] in starts
        points = None if gain is None else round(100 * gain, 1)
        colour = BLUE if points is None else GOOD if points > 0 else BAD if points < 0 else GREY
        ax.plot([line["low"], line["high"]], [y, y], color=GREY, linewidth=1.5)
        ax.plot(line["accuracy"], y, "o" if on_the_way else "D", color=colour, markersize=6)
        words = f"{points:+.1f}".replace("-", "−") if points else "±0"
        words = f"{line['accuracy']:.1%}" if points is None else words
        ax.annotate(
            words, (line["high"], y), xytext=(9, 0), textcoords="offset points", va="center"
        )
    names = [
        line["change"]
        if line["change"] in starts or line["gain"] is None
        else f"tried: {line['change']}"
        for line in lines
    ]
    ax.set_yticks(range(len(lines)), names)
    for label, line in zip(ax.get_yticklabels(), lines, strict=True):
        label.set_color(BLACK if line["change"] in starts else GREY)
    ax.invert_yaxis()
    low, high = min(line["low"] for line in lines), max(line["high"] for line in lines)
    margin = max(0.005, 0.08 * (high - low))
    ax.set_xlim(low - margin, high + 2 * margin)  # room for the last number
    ax.xaxis.set_major_formatter(lambda value, _: f"{100 * value:g}")
    ax.grid(axis="x", linewidth=0.4)
    seeds = sorted({line["seeds"] for line in lines})
    runs = "one seed each" if seeds == [1] else f"{' or '.join(map(str, seeds))} seeds each"
    ax.set_xlabel(
        f"validation accuracy (%) after {epochs.pop()} epochs, {runs}\n"
        "the number: its gain over the row it starts from, points"
    )
    return fig
