"""The relations, one by one, in the order in which they are tried.

A relation is a function of ``pairs``: tuples (case, the answer's array, the reference's array). It
returns the evidence in words, or None if it does not hold for all pairs.
"""

import itertools
import math
from collections.abc import Callable

import torch

from vitedu.checks.case import Case, tensors_in
from vitedu.checks.compare import is_close, number_text, tolerance
from vitedu.checks.contrast import case_settings

RELATIONS: dict[str, Callable] = {}  # id -> the function


def relation(function):
    """Register a relation; the name of the function is its id."""
    RELATIONS[function.__name__] = function
    return function


@relation
def constant_output(pairs):
    """Look for one value in every place of every result."""
    values = torch.cat([ours.double().flatten() for _, ours, _ in pairs])
    if len({case.name for case, *_ in pairs}) > 1 and bool((values == values[0]).all()):
        return f"every value is {number_text(float(values[0]))}, whatever the input"
    return None


@relation
def unchanged_input(pairs):
    """Look for an input that comes back as it went in."""
    for name in pairs[0][0].args:
        inputs = [(case.args.get(name), ours) for case, ours, _ in pairs]
        if all(
            isinstance(x, torch.Tensor)
            and x.shape == ours.shape
            and torch.equal(x.double(), ours.double())
            for x, ours in inputs
        ):
            return f"the output is {name}, unchanged"
    return None


@relation
def constant_factor(pairs):
    """Look for one factor, the same on all inputs."""
    if sum(ours.numel() for _, ours, _ in pairs) < 3:
        return None  # one number is a multiple of any other
    ratios = _ratios(pairs)
    if ratios and max(ratios) - min(ratios) < 1e-3 * abs(ratios[0]) and abs(ratios[0] - 1) > 1e-3:
        return f"your output equals the expected one times {ratios[0]:.2f}"
    return None


def _ratios(pairs) -> list[float] | None:
    """List the factor between the two arrays of each pair; None if any pair has no factor."""
    ratios = []
    for case, ours, wanted in pairs:
        if ours.shape != wanted.shape or not wanted.is_floating_point():
            return None
        ours, wanted = ours.double(), wanted.double()
        energy = (wanted * wanted).sum()
        if energy == 0:
            continue
        ratio = float((ours * wanted).sum() / energy)
        if not is_close(case, ours, wanted * ratio) or abs(ratio) < 1e-6:
            return None
        ratios.append(ratio)
    return ratios


@relation
def stretched(pairs):
    """Look for one factor and one offset together, such as (x + 1) / 2."""
    if any(x.shape != y.shape or not y.is_floating_point() for _, x, y in pairs):
        return None
    ours, wanted = (torch.cat([pair[i].double().flatten() for pair in pairs]) for i in (1, 2))
    spread = wanted - wanted.mean()
    if len(ours) < 8 or not (energy := float((spread * spread).sum())):
        return None
    slope = float((spread * ours).sum()) / energy
    offset = float(ours.mean() - slope * wanted.mean())
    if abs(slope) < 1e-3 or not all(
        is_close(case, x.double(), slope * y.double() + offset) for case, x, y in pairs
    ):
        return None
    return f"your output equals the expected one times {slope:.3g} plus {offset:.3g}"


# a step on all values or along an axis, in words -> what it does
_STEPS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "the absolute value": torch.abs,
    "squaring": torch.square,
    "a square root": torch.sqrt,
    "exp": torch.exp,
    "a logarithm": torch.log,
    "1 / x": torch.reciprocal,
    "rounding": torch.round,
    "rounding down": torch.floor,
    "a sigmoid": torch.sigmoid,
}

_STEPS_ALONG: dict[str, Callable[[torch.Tensor, int], torch.Tensor]] = {
    "a softmax": torch.softmax,
    "a log-softmax": torch.log_softmax,
    "dividing by the sum": lambda x, a: x / x.sum(a, keepdim=True),
    "dividing by the length": lambda x, a: x / x.norm(dim=a, keepdim=True),
    "dividing by the largest": lambda x, a: x / x.amax(a, keepdim=True),
    "taking off the mean": lambda x, a: x - x.mean(a, keepdim=True),
    "taking off the largest": lambda x, a: x - x.amax(a, keepdim=True),
    "a running sum": torch.cumsum,
    "a sort": lambda x, a: x.sort(a).values,
}


@relation
def one_step_more(pairs):
    """Look for one step too many at the end."""
    words = _find_step(pairs, lambda step, x, y: (x, step(y)))
    return words and f"your output equals the expected one after {words}"


@relation
def one_step_less(pairs):
    """Look for one step at the end that is missing."""
    words = _find_step(pairs, lambda step, x, y: (step(x), y))
    return words and f"your output after {words} equals the expected one"


def _find_step(pairs, apply: Callable) -> str | None:
    """Name a step with which ``apply(step, ours, wanted)`` gives two equal arrays."""
    if any(x.shape != y.shape for _, x, y in pairs) or sum(y.numel() for *_, y in pairs) < 3:
        return None
    wrong_values = [y[_mark_wrong(case, x, y)] for case, x, y in pairs]
    if len(torch.cat(wrong_values).unique()) < 5:
        return None  # a few numbers, such as zeros and ones, lead to each other in many ways
    steps: dict[str, Callable] = dict(_STEPS)
    for axis in range(-1, -1 - min(y.ndim for *_, y in pairs), -1):
        for words, along in _STEPS_ALONG.items():
            steps[f"{words} along axis {axis}"] = lambda x, along=along, axis=axis: along(x, axis)
    for words, step in steps.items():
        if all(
            _close_to(case, y.dtype, *apply(step, x.double(), y.double())) for case, x, y in pairs
        ):
            return words
    return None


def _mark_wrong(case: Case, ours: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Mark the values that are outside the tolerance, as booleans."""
    rtol, atol = tolerance(case, wanted.dtype)
    return (ours.double() - wanted.double()).abs() > atol + rtol * wanted.double().abs()


def _close_to(case: Case, dtype: torch.dtype, some: torch.Tensor, others: torch.Tensor) -> bool:
    """Compare two arrays with the tolerance of ``dtype``, in which they were computed."""
    return is_close(case, some.to(dtype), others.to(dtype))


# what takes an axis away, in words -> what it does
_REDUCTIONS: dict[str, Callable[[torch.Tensor, int], torch.Tensor]] = {
    "the mean": lambda x, a: x.mean(a, keepdim=True),
    "the sum": lambda x, a: x.sum(a, keepdim=True),
    "the largest": lambda x, a: x.amax(a, keepdim=True),
    "the first place": lambda x, a: x.narrow(a, 0, 1),
    "the last place": lambda x, a: x.narrow(a, x.shape[a] - 1, 1),
    "all but the first place": lambda x, a: x.narrow(a, 1, x.shape[a] - 1),
    "all but the last place": lambda x, a: x.narrow(a, 0, x.shape[a] - 1),
}


@relation
def axis_taken(pairs):
    """Look for an axis that is reduced, too short or too long."""
    wrong = [pair for pair in pairs if not is_close(*pair)]
    if not wrong or any(x.shape == y.shape or 0 in (*x.shape, *y.shape) for _, x, y in wrong):
        return None
    ndim = min(max(x.ndim, y.ndim) for _, x, y in wrong)
    arrays = ("your output", 1), ("the expected one", 2)
    for axis, (words, take) in itertools.product(range(-ndim, 0), _REDUCTIONS.items()):
        for (less, i), (more, j) in itertools.permutations(arrays):
            if all(
                pair[j].ndim >= -axis and _is_reduction(pair[0], pair[i], pair[j], take, axis)
                for pair in wrong
            ):
                if all(pair[j].shape[axis] == 1 for pair in wrong):
                    continue
                return f"{less} is {words} of {more} along axis {axis}"
    return None


def _is_reduction(case: Case, less: torch.Tensor, more: torch.Tensor, take, axis: int) -> bool:
    """Tell whether ``take`` along an axis leads from one array to the other."""
    result = take(more.double(), axis)
    has_axis = less.ndim == result.ndim
    return _close_to(case, less.dtype, less, result if has_axis else result.squeeze(axis))


@relation
def off_by_a_term(pairs):
    """Look for a product of sizes, times a small number, by which every count is off."""
    is_number = all(case.number and ours.numel() == 1 for case, ours, _ in pairs)
    if not is_number or len(pairs) < 3:
        return None
    off = [float(ours) - float(wanted) for _, ours, wanted in pairs]
    slack = [1e-9 * abs(float(wanted)) for *_, wanted in pairs]
    rows = [_sizes(case) for case, *_ in pairs]
    shared = [name for name in rows[0] if all(name in row for row in rows)]
    for count in range(4):
        for names in itertools.combinations_with_replacement(shared, count):
            products = [math.prod(row[name] for name in names) for row in rows]
            times = next((d / p for d, p in zip(off, products, strict=True) if p), 0.0)
            if abs(times) > 12 or not (2 * times).is_integer() or not times:
                continue
            if all(abs(d - times * p) <= e for d, p, e in zip(off, products, slack, strict=True)):
                number = [f"{abs(times):g}"] if abs(times) != 1 or not names else []
                side, much = "larger" if times > 0 else "smaller", " * ".join([*number, *names])
                return f"your count is {side} by {much} on every input"
    return None


def _sizes(case: Case) -> dict[str, float]:
    """List the sizes of a case, and those that follow from them (num_patches, hidden)."""
    sizes = {
        n: v for n, v in case_settings(case).items() if isinstance(v, int | float) and v is not True
    }
    if {"image_size", "patch_size"} <= set(sizes):
        sizes["num_patches"] = (sizes.pop("image_size") // sizes["patch_size"]) ** 2
    if {"embed_dim", "mlp_ratio"} <= set(sizes):
        sizes["hidden"] = int(sizes["embed_dim"] * sizes.pop("mlp_ratio"))
    return sizes


@relation
def factor_by_input(pairs):
    """Look for a factor that is another one for each input."""
    if any(pair[1].numel() < 4 for pair in pairs):
        return None  # few numbers are a multiple of the right ones by chance
    ratios = _ratios(pairs)
    return _list_factors("your output equals the expected one times {}", ratios)


def _list_factors(words: str, factors: list[float] | None) -> str | None:
    """Write the factors that are not 1 into ``words``; None if all are 1."""
    wrong = [factor for factor in factors or [] if abs(factor - 1) > 1e-3]
    if not wrong or not factors:
        return None
    texts = list(dict.fromkeys(f"{factor:.3g}" for factor in wrong))
    more = " and others" if len(texts) > 3 else ""
    rest = "; right on the other inputs" if len(wrong) < len(factors) else ""
    return words.format(", ".join(texts[:3])) + more + rest


@relation
def permuted_axes(pairs):
    """Look for axes in another order."""
    if any(ours.ndim != wanted.ndim for _, ours, wanted in pairs):
        return None
    sizes = {ours.ndim for _, ours, _ in pairs if ours.ndim > 1}
    count = min(sizes, default=0)  # the last ``count`` axes exist in all pairs
    which = "axes" if len(sizes) == 1 else f"last {count} axes"
    for axes in itertools.permutations(range(count)):
        if list(axes) == sorted(axes):
            continue
        if all(is_close(case, x, _permute_axes(y, axes)) for case, x, y in pairs):
            return f"your output equals the expected one with its {which} in the order {axes}"
    return None


def _permute_axes(x: torch.Tensor, axes: tuple[int, ...]) -> torch.Tensor:
    """Permute the last axes of a tensor; a tensor with fewer axes comes back unchanged."""
    first = x.ndim - len(axes)
    return x.permute(*range(first), *(first + axis for axis in axes)) if first >= 0 else x


@relation
def flipped_axis(pairs):
    """Look for an axis that is read backwards."""
    for axis in _common_axes(pairs):
        if all(is_close(case, ours, wanted.flip(axis)) for case, ours, wanted in pairs):
            return f"your output equals the expected one read backwards along axis {axis}"
    return None


@relation
def shifted_by_one(pairs):
    """Look for values that stand one place later or earlier along an axis than they should."""
    for axis, step in itertools.product(_common_axes(pairs), (1, -1)):
        long = [pair for pair in pairs if pair[1].shape[axis] > 1]
        if any(x.shape[axis] > 2 for _, x, _ in long) and all(
            is_close(case, _drop(x, axis, step), _drop(y, axis, -step)) for case, x, y in long
        ):
            side = "later" if step > 0 else "earlier"
            return f"your values stand one place {side} along axis {axis} than expected"
    return None


def _common_axes(pairs) -> range:
    """Return the last axes, which all pairs have; none if shapes differ."""
    if any(ours.shape != wanted.shape for _, ours, wanted in pairs):
        return range(0)
    return range(-min(ours.ndim for _, ours, _ in pairs), 0)


def _drop(x: torch.Tensor, axis: int, step: int) -> torch.Tensor:
    """Drop the first (step > 0) or the last entry along an axis."""
    return x.narrow(axis, int(step > 0), x.shape[axis] - 1)


@relation
def normalised_along_another_axis(pairs):
    """Look for sums of 1 along another axis."""
    axes = set()
    for case, ours, wanted in pairs:
        if is_close(case, ours, wanted):
            continue
        mine, right = _unit_sums(ours), _unit_sums(wanted)
        if not mine - right or not right - mine:
            return None
        axes.add((max(mine - right), max(right - mine)))
    if not axes:
        return None
    mine, right = max(axes)
    where = f"along axis {mine}; it should along axis {right}"
    return f"your output sums to 1 {where}" + ("" if len(axes) == 1 else ", or others, as dim says")


@relation
def other_temperature(pairs):
    """Look for softmax weights whose scores, the logarithms of the weights, differ by a factor."""
    factors = []
    for case, ours, wanted in pairs:
        axes = _unit_sums(ours) & _unit_sums(wanted) if ours.shape == wanted.shape else set()
        if not axes or (ours < 0).any() or (wanted < 0).any():
            return None
        axis = max(axes)
        if min(float(ours.min()), float(wanted.min())) < 1e-20:
            continue  # weights that underflowed have no useful logarithm
        mine, right = (x.double().log() for x in (ours, wanted))
        mine, right = (x - x.mean(axis, keepdim=True) for x in (mine, right))
        energy = (right * right).sum()
        if energy < 1e-9:
            continue
        factor = float((mine * right).sum() / energy)
        if not is_close(case, ours, (factor * right).softmax(axis).to(ours.dtype)):
            return None
        factors.append(factor)
    return _list_factors("your weights are those of the expected scores times {}", factors)


def _unit_sums(x: torch.Tensor) -> set[int]:
    """List the axes along which a tensor sums to 1, as negative numbers."""
    ones = torch.ones((), dtype=torch.float64)
    return {
        axis for axis in range(-x.ndim, 0) if torch.allclose(x.double().sum(axis), ones, atol=1e-3)
    }


@relation
def first_item_only(pairs):
    """Look for results that are right for the first item of the batch alone."""
    usable = [
        (case, ours, wanted)
        for case, ours, wanted in pairs
        if ours.ndim > 1 and ours.shape == wanted.shape and len(ours) > 1
        if any(x.shape[:1] == ours.shape[:1] for _, x in tensors_in("", list(case.args.values())))
    ]
    if usable and all(
        is_close(case, ours[0], wanted[0])
        and not any(is_close(case, *pair) for pair in zip(ours[1:], wanted[1:], strict=True))
        for case, ours, wanted in usable
    ):
        if all(is_close(case, x, y) for case, x, y in pairs if x.shape[:1] == (1,)):
            return "the first item of the batch is right, the others are not"
    return None
