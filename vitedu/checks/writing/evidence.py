"""What an answer's own weights say, in words: ``evidence`` of mistakes in TOML."""

import torch

from vitedu.checks.observing.case import Case
from vitedu.checks.observing.observation import Observation


def _sums_of(weights: torch.Tensor, dim: int) -> str:
    """Say what weights sum to along an axis: "0.61 to 1.48" or "all 1.000"."""
    sums = weights.double().sum(dim)
    low, high = float(sums.min()), float(sums.max())
    return f"all {low:.3f}" if high - low < 1e-3 else f"{low:.2f} to {high:.2f}"


def row_sums(case: Case, seen: Observation) -> str:
    """Say what the answer's weights sum to along rows and columns."""
    weights = seen.arrays.get("weights")
    if weights is None or weights.ndim < 2 or not weights.isfinite().all():
        return ""
    return f"row sums {_sums_of(weights, -1)}; column sums {_sums_of(weights, -2)}"
