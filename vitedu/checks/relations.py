"""Relations: an unknown mistake whose result is the right one but for something simple.

Role: ``described``: a constant factor or offset, axes in another order, backwards, shifted, normalised along another
axis, right for the first item only, the right numbers in another order. A relation is claimed only where it holds on
every case.
"""

import itertools
from collections.abc import Callable

import torch

from vitedu.checks.judging import close, number_text
from vitedu.checks.probing import Case, Observation

Seen = dict[str, Observation]  # name of a case -> what happened

_WORDS = {  # id -> what it is, what to look at
    "constant_output": (
        "the output does not depend on the input",
        "Look at which arguments the result is computed from.",
    ),
    "unchanged_input": ("the input comes back as it went in", "The work is still to be done."),
    "constant_factor": (
        "right up to a constant factor",
        "A factor is missing, or there is one too many.",
    ),
    "constant_offset": (
        "right up to a constant",
        "A constant is missing, or there is one too many.",
    ),
    "permuted_axes": (
        "right, with axes in another order",
        "Look at transpose and permute, and at what each axis means.",
    ),
    "flipped_axis": ("right, but backwards", "Look at where counting starts."),
    "shifted_by_one": ("right, but off by one", "Look at where counting starts."),
    "normalised_along_another_axis": (
        "normalised along another axis",
        "Look at the dim of the sum.",
    ),
    "first_item_only": (
        "right for the first item of the batch only",
        "Look for an index 0 where the whole batch belongs.",
    ),
    "": (
        "the right numbers in another order",
        "Reshape never moves a number past another; permute does.",
    ),
}


def described(
    cases: list[Case], got: Seen, want: Seen, in_any_order: bool
) -> tuple[str, str, str, str] | None:
    """Recognise a simple relation between an answer and the right one.

    Args:
        cases: those that return something.
        got: what the answer did on each.
        want: what the reference did.
        in_any_order: whether the right numbers in another order count as well.

    Returns:
        (id, what it is, the evidence, what to look at), or None. The id is "" for numbers in another order.
    """
    found = relation(cases, got, want)
    if not found and in_any_order:
        found = "", reordered(cases, got, want)
    if not found or not found[1]:
        return None
    id_, evidence = found
    name, look = _WORDS[id_]
    return id_, name, evidence, look


def relation(cases: list[Case], got: Seen, want: Seen) -> tuple[str, str] | None:
    """Recognise an answer that is the right one under a simple relation, on every case.

    Returns:
        (id, evidence), or None. The id is one of ``_RELATIONS``.
    """
    pairs = [
        (case, case.args, got[case.name].arrays[name], wanted)
        for case in cases
        if got[case.name].error is None
        for name, wanted in want[case.name].arrays.items()
        if name in got[case.name].arrays
    ]
    if len(pairs) < len([c for c in cases if not c.raises]):
        return None
    wrong = [pair for pair in pairs if not close(pair[0], pair[2], pair[3])]
    names = {name for case in cases for name in want[case.name].arrays}
    if len(names) > 1:  # several outputs: explain the wrong ones; the others are right
        pairs = wrong
    if not wrong or any(pair[2].numel() == 0 for pair in pairs):
        return None
    if any(
        not torch.isfinite(ours).all() and torch.isfinite(wanted).all()
        for _, _, ours, wanted in wrong
    ):
        return None  # nothing relates NaN to a number
    for id_, test in _RELATIONS.items():
        evidence = test(pairs)
        if evidence:
            return id_, evidence
    return None


def _constant(pairs):
    values = {
        float(ours.flatten()[0])
        for _, _, ours, _ in pairs
        if bool((ours == ours.flatten()[0]).all())
    }
    if len(values) == 1 and all(bool((ours == ours.flatten()[0]).all()) for _, _, ours, _ in pairs):
        if all(ours.numel() > 1 or len(pairs) > 1 for _, _, ours, _ in pairs):
            return f"every value is {number_text(values.pop())}, whatever the input"
    return None


def _unchanged_input(pairs):
    for name in pairs[0][1]:
        if all(
            isinstance(args.get(name), torch.Tensor)
            and args[name].shape == ours.shape
            and torch.equal(args[name].double(), ours.double())
            for _, args, ours, _ in pairs
        ):
            return f"the output is {name}, unchanged"
    return None


def _factor(pairs):
    ratios = []
    for case, _, ours, wanted in pairs:
        if ours.shape != wanted.shape or not wanted.is_floating_point():
            return None
        ours, wanted = ours.double(), wanted.double()
        energy = (wanted * wanted).sum()
        if energy == 0:
            continue
        ratio = float((ours * wanted).sum() / energy)
        if not close(case, ours, wanted * ratio) or abs(ratio) < 1e-6:
            return None
        ratios.append(ratio)
    if ratios and max(ratios) - min(ratios) < 1e-3 * abs(ratios[0]) and abs(ratios[0] - 1) > 1e-3:
        return f"your output equals the expected one times {ratios[0]:.2f}"
    return None


def _offset(pairs):
    if any(ours.shape != wanted.shape for _, _, ours, wanted in pairs):
        return None
    offsets = [
        float((ours.double() - wanted.double()).mean())
        for _, _, ours, wanted in pairs
        if ours.numel() > 1
    ]
    if not offsets or max(offsets) - min(offsets) > 1e-3 * abs(offsets[0]):
        return None
    if all(
        close(case, ours.double(), wanted.double() + offsets[0]) for case, _, ours, wanted in pairs
    ):
        return f"your output equals the expected one plus {offsets[0]:.3g}"
    return None


def _permuted(pairs):
    if any(ours.ndim != wanted.ndim for _, _, ours, wanted in pairs):
        return None
    sizes = {ours.ndim for _, _, ours, _ in pairs if ours.ndim > 1}
    count = min(sizes, default=0)  # only the last axes are common to all
    which = "axes" if len(sizes) == 1 else f"last {count} axes"
    for axes in itertools.permutations(range(count)):
        if list(axes) == sorted(axes):
            continue
        if all(close(case, ours, _reordered_axes(wanted, axes)) for case, _, ours, wanted in pairs):
            return f"your output equals the expected one with its {which} in the order {axes}"
    return None


def _reordered_axes(x: torch.Tensor, axes: tuple[int, ...]) -> torch.Tensor:
    """Permute the last axes of a tensor; one with fewer axes stays as it is."""
    first = x.ndim - len(axes)
    return x.permute(*range(first), *(first + axis for axis in axes)) if first >= 0 else x


def _flipped(pairs):
    if any(ours.shape != wanted.shape for _, _, ours, wanted in pairs):
        return None
    ndim = min(ours.ndim for _, _, ours, _ in pairs)
    for axis in range(-ndim, 0):
        if all(close(case, ours, wanted.flip(axis)) for case, _, ours, wanted in pairs):
            return f"your output equals the expected one read backwards along axis {axis}"
    return None


def _shifted(pairs):
    if any(ours.shape != wanted.shape for _, _, ours, wanted in pairs):
        return None
    ndim = min(ours.ndim for _, _, ours, _ in pairs)
    for axis in range(-ndim, 0):
        long = [pair for pair in pairs if pair[2].shape[axis] > 1]
        if not any(ours.shape[axis] > 2 for _, _, ours, _ in long):
            continue
        for step in (1, -1):
            if all(
                close(case, _inner(ours, axis, step), _inner(wanted, axis, -step))
                for case, _, ours, wanted in long
            ):
                side = "later" if step > 0 else "earlier"
                return f"your values stand one place {side} along axis {axis} than expected"
    return None


def _inner(x: torch.Tensor, axis: int, step: int) -> torch.Tensor:
    """Drop the first (step > 0) or the last entry along an axis."""
    size = x.shape[axis] - 1
    return x.narrow(axis, 1 if step > 0 else 0, size)


def _normalised_elsewhere(pairs):
    found = set()
    for case, _, ours, wanted in pairs:
        if close(case, ours, wanted):
            continue
        mine, right = _unit_sums(ours), _unit_sums(wanted)
        if not mine - right or not right - mine:
            return None
        found.add((max(mine - right), max(right - mine)))
    if not found:
        return None
    mine, right = max(found)
    where = f"along axis {mine}; it should along axis {right}"
    return f"your output sums to 1 {where}" + (
        "" if len(found) == 1 else ", or others, as dim says"
    )


def _unit_sums(x: torch.Tensor) -> set[int]:
    """List the axes along which a tensor sums to 1, counted from the end."""
    ones = torch.ones((), dtype=torch.float64)
    return {
        axis for axis in range(-x.ndim, 0) if torch.allclose(x.double().sum(axis), ones, atol=1e-3)
    }


def _first_only(pairs):
    usable = [
        pair
        for pair in pairs
        if pair[2].ndim > 1 and pair[2].shape == pair[3].shape and pair[2].shape[0] > 1
        if any(
            len(x) == len(pair[2])
            for x in pair[1].values()
            if isinstance(x, torch.Tensor) and x.ndim
        )
    ]
    if usable and all(
        close(case, ours[0], wanted[0]) and not close(case, ours, wanted)
        for case, _, ours, wanted in usable
    ):
        if all(
            close(case, ours, wanted) for case, _, ours, wanted in pairs if ours.shape[:1] == (1,)
        ):
            return "the first item of the batch is right, the others are not"
    return None


_RELATIONS: dict[str, Callable] = {
    "constant_output": _constant,
    "unchanged_input": _unchanged_input,
    "constant_factor": _factor,
    "constant_offset": _offset,
    "permuted_axes": _permuted,
    "flipped_axis": _flipped,
    "shifted_by_one": _shifted,
    "normalised_along_another_axis": _normalised_elsewhere,
    "first_item_only": _first_only,
}


def reordered(cases: list[Case], got: Seen, want: Seen) -> str:
    """Say so if every output holds the right numbers in another order; "" otherwise."""
    first = ""
    for case in cases:
        for name, wanted in want[case.name].arrays.items():
            ours = got[case.name].arrays.get(name)
            if ours is None or ours.numel() != wanted.numel() or wanted.numel() < 4:
                return ""
            left, right = (
                ours.double().flatten().sort().values,
                wanted.double().flatten().sort().values,
            )
            if not close(case, left, right):
                return ""
            if not first and ours.shape == wanted.shape and not close(case, ours, wanted):
                place = [
                    int(i) for i in ((ours.double() - wanted.double()).abs() > 1e-6).nonzero()[0]
                ]
                first = (
                    f"every number is right, but not in its place; the first that is not: {place}"
                )
    return first
