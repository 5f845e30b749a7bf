"""What is left to chance in random results, and how little.

Role: the reader of ``repeated_draws``, and what readers say of draws: whether they are drawn for
every item, each as often as it should be, and apart from each other.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F

from vitedu.checks.judging.compare import reader
from vitedu.checks.observing.case import Case
from vitedu.checks.observing.observation import Observation

CHANCE = 1e-12  # the probability with which one statistical test may fail a right answer


def chi_square_tail(statistic: float, freedom: int) -> float:
    """Return an upper bound for the probability of a chi-square this large (Chernoff)."""
    ratio = statistic / freedom
    return 1.0 if ratio <= 1 else math.exp(freedom / 2 * (1 - ratio + math.log(ratio)))


def go_together(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Tell whether two rows of whole numbers depend on each other (chi-square)."""
    one, other = (F.one_hot(x.unique(return_inverse=True)[1]).double() for x in (one, other))
    table = one.T @ other  # how often each pair of values occurs
    freedom = (len(table) - 1) * (len(table.T) - 1)
    expected = table.sum(1, keepdim=True) * table.sum(0) / table.sum()
    statistic = float(((table - expected) ** 2 / expected).sum())
    return freedom > 0 and chi_square_tail(statistic, freedom) < CHANCE


def are_shared(draws: torch.Tensor) -> bool:
    """Tell whether items share draws (calls, items) with their neighbours or half a batch away."""
    half = draws.shape[1] // 2
    pairs = (draws[:, : 2 * half : 2], draws[:, 1::2]), (draws[:, :half], draws[:, -half:])
    return any(go_together(one[:, :half].flatten(), other.flatten()) for one, other in pairs)


def describe_variety(calls: Sequence[torch.Tensor], name: str) -> str:
    """Say so if draws are not made anew for every item, or "".

    ``calls`` are whole numbers, those of each batch. The last batches have one size.
    """
    values = torch.cat([*calls]).unique()
    if len(values) == 1:
        return f"the {name} is always {int(values)}"
    if all(len(call.unique()) == 1 for call in calls):
        return f"one {name} for a whole batch"
    first, last = (
        torch.stack([call for call in calls if len(call) == len(calls[at])]) for at in (0, -1)
    )
    ordered = last.sort(dim=1).values
    if (last == last[0]).all():
        return f"the same {name}s in every batch"
    if (ordered == ordered[0]).all():
        return f"the same {name}s in every batch, in another order"
    return f"items share their {name} with others" if are_shared(first) else ""


def is_uneven(values: torch.Tensor, chances: Sequence[float]) -> bool:
    """Tell whether whole numbers are met more or less often than their chances (chi-square)."""
    expected = len(values) * torch.tensor(chances, dtype=torch.float64)
    counts = values.bincount(minlength=len(chances))
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return chi_square_tail(statistic, len(chances) - 1) < CHANCE


@reader("repeated_draws", facts=("every call moves the generator on",))
def read_repeated_draws(case: Case, seen: Observation) -> None:
    """Write down whether the generator alone decides the output."""
    first, again, other, third = map(seen.draws.get, ("first", "again", "other", "third"))
    if first is None or again is None or other is None or third is None:
        return
    if first.shape != again.shape:
        return
    same = torch.equal(first, again)
    fact = "the same state of generator gives the same output"
    seen.facts[fact] = "the same" if same else "another output"
    differs = any(x.shape != first.shape or not torch.equal(x, first) for x in (other, third))
    fact = "another state of generator gives another output"
    seen.facts[fact] = "another" if differs else "the same output"
