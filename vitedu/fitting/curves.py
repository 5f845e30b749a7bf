"""The curves of a training run, from a ``History``; ``plots.training`` draws them."""

from vitedu.data.horizons import horizons
from vitedu.fitting.history import History


def draw_curves(history: History, num_classes: int | None = None, data: str = ""):
    """Return the figure of loss and accuracy by epoch; K classes and ``data`` give its levels."""
    from vitedu.plots.training import show_curves  # matplotlib: only where a figure is wanted

    chance = 1 / num_classes if num_classes else None
    return show_curves(history.column, chance=chance, horizons=horizons(data))
