"""The curves of a training run, drawn while it runs and when it is over.

Role: from a ``History`` to a figure, and to a figure below the running cell that is replaced after
each epoch. Not here: how it is drawn (``plots.training``).
"""

from vitedu.data.horizons import horizons
from vitedu.fitting.history import History
from vitedu.progressbar import notebook_display


def draw_curves(history: History, num_classes: int | None = None, data: str = ""):
    """Return the figure of loss and accuracy by epoch; K classes and ``data`` give its levels."""
    from vitedu.plots.training import show_curves  # matplotlib: only where a figure is wanted

    chance = 1 / num_classes if num_classes else None
    return show_curves(history.column, chance=chance, horizons=horizons(data))


class LiveCurves:
    """Show the curves below the running cell; call it with the history after each epoch.

    Outside a notebook it does nothing.

    Example:
        >>> LiveCurves().display is None
        True
    """

    def __init__(self, num_classes: int | None = None, data: str = ""):
        self.num_classes, self.data = num_classes, data
        self.display = notebook_display()

    def __call__(self, history: History) -> None:
        """Replace the figure by one with the epochs so far."""
        if self.display is not None:
            figure = draw_curves(history, self.num_classes, self.data)
            self.display(*figure.outputs(dots=1))  # soon replaced
