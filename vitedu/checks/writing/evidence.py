"""What an answer's own weights and shapes say, in words: ``evidence`` of mistakes in TOML."""

import torch

from vitedu.checks.observing.case import Case
from vitedu.checks.observing.observation import Observation


def sums_of(weights: torch.Tensor, dim: int) -> str:
    """Say what weights sum to along an axis: "0.61 to 1.48" or "all 1.000"."""
    sums = weights.double().sum(dim)
    low, high = float(sums.min()), float(sums.max())
    return f"all {low:.3f}" if high - low < 1e-3 else f"{low:.2f} to {high:.2f}"


def row_sums(case: Case, seen: Observation) -> str:
    """Say what the answer's weights sum to along rows and columns."""
    weights = seen.arrays.get("weights")
    if weights is None or weights.ndim < 2 or not weights.isfinite().all():
        return ""
    return f"row sums {sums_of(weights, -1)}; column sums {sums_of(weights, -2)}"


def shapes(case: Case, seen: Observation) -> str:
    """Say which shapes came back."""
    return ", ".join(f"{name} {tuple(value.shape)}" for name, value in seen.arrays.items())


def own_results(case: Case, seen: Observation) -> str:
    """Give the mean loss and the accuracy of the answer."""
    values = [seen.arrays.get(name) for name in case.outputs]
    if any(value is None for value in values):
        return "other results"
    return "mean loss {:.4g}, accuracy {:.4g}".format(*(float(x) for x in values if x is not None))


def graph_of(case: Case, seen: Observation) -> str:
    """Say what a mean loss with a graph looks like."""
    return "a mean loss with requires_grad=True"


def own_loss(case: Case, seen: Observation) -> str:
    """Give the loss of the answer."""
    value = seen.arrays.get("output")
    return f"{float(value):.4g}" if value is not None and value.numel() == 1 else "another loss"
