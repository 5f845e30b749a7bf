"""Relations: unknown mistakes whose result is related to the right one in a simple way.

Role: ``described`` looks for a factor or offset, axes in another order, a flipped or shifted axis,
another normalised axis, an output that is right for the first item only, and so on. A relation must
hold on every case. ``contrast`` says in which settings an answer is right and in which it is wrong.

Most functions take ``pairs``: tuples (case, arguments, the answer's array, the reference's array).
They return the evidence in words, or None if the relation does not hold for all pairs.
"""

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import torch

from vitedu.checks.judging import close, number_text, same, short, tolerance
from vitedu.checks.probing import Case, Observation, Recipe, in_train_mode

Seen = dict[str, Observation]  # by name of the case

# id of a relation -> (what it is, what to look at)
_WORDS = {
    "constant_output": (
        "the output does not depend on the input",
        "Look at which arguments the result is computed from.",
    ),
    "unchanged_input": ("the input comes back as it went in", "The work is still to be done."),
    "constant_factor": (
        "right up to a constant factor",
        "A factor is missing, or there is one too many.",
    ),
    "factor_by_input": (
        "right up to a factor that is another one for each input",
        "The factor follows from the sizes: look at what is divided or multiplied by.",
    ),
    "other_temperature": (
        "the weights of scores that are scaled in another way",
        "Look at what the scores are divided by before the exponential.",
    ),
    "off_by_a_term": (
        "the count is off by one term",
        "Look for a part of that size: it is left out, or counted too often.",
    ),
    "one_place_only": (
        "right but for one place",
        "Look at what is done with that place alone.",
    ),
    "one_step_more": (
        "right, with one step too many at the end",
        "Look at the last line: what does it do that the definition does not?",
    ),
    "one_step_less": (
        "right, but the last step is missing",
        "Look at the definition again: what comes last?",
    ),
    "axis_taken": (
        "an axis is longer or shorter than it should be",
        "Look for a sum, a mean, an index or a slice along that axis.",
    ),
    "axis_of_one": (
        "an axis of size 1 is missing, or there is one too many",
        "Look for squeeze, keepdim, an index, or a way of its own for one item.",
    ),
    "one_range_only": (
        "right for some values of the input, wrong for the others",
        "Look for a condition or a limit on the values.",
    ),
    "not_exact": (
        "close to the right values, but not equal",
        "Look for a rounded constant or an approximation.",
    ),
    "constant_offset": (
        "right up to a constant",
        "A constant is missing, or there is one too many.",
    ),
    "stretched": (
        "right up to a factor and a constant",
        "Look for a change of scale, such as one to 0 .. 1.",
    ),
    "clamped": ("right, but cut off at a limit", "Look for clamp, relu, max or min."),
    "repeated": (
        "the same values along a whole axis",
        "Look for a mean, an index or an expand on that axis.",
    ),
    "permuted_axes": (
        "right, with axes in another order",
        "Write down what each axis means after every step.",
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
        "Follow one number from the input to its place in the output.",
    ),
}


def described(
    cases: list[Case], got: Seen, want: Seen, in_any_order: bool
) -> tuple[str, str, str, str] | None:
    """Recognise a simple relation between an answer's results and the right ones.

    Args:
        cases: the ordinary calls, without accelerator, expected errors or second call.
        got: what the answer did, by name of the case.
        want: what the reference did.
        in_any_order: also recognise the right numbers in another order.

    Returns:
        (id, what it is, the evidence, what to look at), or None. The id is "" for another order.
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
    """Find a relation that holds on every case.

    If there are several outputs, one relation for all wrong ones is tried first, then each output.

    Returns:
        (id, evidence), or None. The id is one of ``_RELATIONS``.
    """
    names = list(dict.fromkeys(name for case in cases for name in want[case.name].arrays))
    calls = [case for case in cases if not case.raises]
    by_name = {
        name: [
            (case, case.args, got[case.name].arrays[name], want[case.name].arrays[name])
            for case in calls
            if got[case.name].error is None
            and name in want[case.name].arrays
            and name in got[case.name].arrays
        ]
        for name in names
    }
    if any(len(by_name[n]) < len([c for c in calls if n in want[c.name].arrays]) for n in names):
        return None
    wrong = {n: [pair for pair in by_name[n] if not close(pair[0], *pair[2:])] for n in names}
    wrong = {name: pairs for name, pairs in wrong.items() if pairs}
    if not wrong:
        return None
    if len(names) == 1:
        return _first_relation(by_name[names[0]])
    joined = [pair for pairs in wrong.values() for pair in pairs]
    # in a single case much is related by chance
    if len({pair[0].name for pair in joined}) > 1 and (found := _first_relation(joined)):
        return found
    for name in wrong:
        if by_name[name][0][2].numel() > 1 and (found := _first_relation(by_name[name])):
            return found[0], f"{name}: {found[1]}"
    return None


def _first_relation(pairs) -> tuple[str, str] | None:
    """Find the first relation of ``_RELATIONS`` that holds for all pairs."""
    if any(pair[2].numel() == 0 or pair[2].is_complex() for pair in pairs):
        return None  # the relations compare sizes and signs, which complex numbers do not have
    if any(
        not torch.isfinite(ours).all() and torch.isfinite(wanted).all()
        for _, _, ours, wanted in pairs
    ):
        return None  # NaN is related to no number
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
        if len({case.name for case, *_ in pairs}) > 1:
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


def _ratios(pairs) -> list[float] | None:
    """List the factor between the two arrays of each pair; None if any pair has no factor."""
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
    return ratios


def _factor(pairs):
    if sum(ours.numel() for _, _, ours, _ in pairs) < 3:
        return None  # one number is a multiple of any other
    ratios = _ratios(pairs)
    if ratios and max(ratios) - min(ratios) < 1e-3 * abs(ratios[0]) and abs(ratios[0] - 1) > 1e-3:
        return f"your output equals the expected one times {ratios[0]:.2f}"
    return None


def _factor_by_input(pairs):
    if any(pair[2].numel() < 4 for pair in pairs):
        return None  # few numbers are a multiple of the right ones by chance
    ratios = _ratios(pairs)
    return _listed("your output equals the expected one times {}", ratios)


def _temperature(pairs):
    """Look for softmax weights whose scores, the logarithms of the weights, differ by a factor."""
    factors = []
    for case, _, ours, wanted in pairs:
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
        if not close(case, ours, (factor * right).softmax(axis).to(ours.dtype)):
            return None
        factors.append(factor)
    return _listed("your weights are those of the expected scores times {}", factors)


def _listed(words: str, factors: list[float] | None) -> str | None:
    """Write the factors that are not 1 into ``words``; None if all are 1."""
    wrong = [factor for factor in factors or [] if abs(factor - 1) > 1e-3]
    if not wrong or not factors:
        return None
    told = list(dict.fromkeys(f"{factor:.3g}" for factor in wrong))
    more = " and others" if len(told) > 3 else ""
    rest = "; right on the other inputs" if len(wrong) < len(factors) else ""
    return words.format(", ".join(told[:3])) + more + rest


def _term(pairs):
    """Look for a product of sizes, times a small number, by which every count is off."""
    is_number = all(case.number and ours.numel() == 1 for case, _, ours, _ in pairs)
    if not is_number or len(pairs) < 3:
        return None
    off = [float(ours) - float(wanted) for _, _, ours, wanted in pairs]
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
                much = " * ".join(
                    [f"{abs(times):g}"] * (abs(times) != 1 or not names) + list(names)
                )
                return (
                    f"your count is {'larger' if times > 0 else 'smaller'} by {much} on every input"
                )
    return None


def _sizes(case: Case) -> dict[str, float]:
    """List the sizes of a case, and those that follow from them (num_patches, hidden)."""
    sizes = {
        n: v for n, v in _settings(case).items() if isinstance(v, int | float) and v is not True
    }
    if {"image_size", "patch_size"} <= set(sizes):
        sizes["num_patches"] = (sizes.pop("image_size") // sizes["patch_size"]) ** 2
    if {"embed_dim", "mlp_ratio"} <= set(sizes):
        sizes["hidden"] = int(sizes["embed_dim"] * sizes.pop("mlp_ratio"))
    return sizes


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


def _stretched(pairs):
    """Look for one factor and one offset together, such as (x + 1) / 2."""
    if any(x.shape != y.shape or not y.is_floating_point() for _, _, x, y in pairs):
        return None
    ours, wanted = (torch.cat([pair[i].double().flatten() for pair in pairs]) for i in (2, 3))
    spread = wanted - wanted.mean()
    if len(ours) < 8 or not (energy := float((spread * spread).sum())):
        return None
    slope = float((spread * ours).sum()) / energy
    offset = float(ours.mean() - slope * wanted.mean())
    if abs(slope) < 1e-3 or not all(
        close(case, x.double(), slope * y.double() + offset) for case, _, x, y in pairs
    ):
        return None
    return f"your output equals the expected one times {slope:.3g} plus {offset:.3g}"


def _clamped(pairs):
    """Look for values that stop at a limit, below or above."""
    for words, end in (("below", torch.min), ("above", torch.max)):
        limits = [float(end(x)) for _, _, x, y in pairs if x.shape == y.shape and x.numel()]
        if len(limits) < len(pairs) or not pairs[0][3].is_floating_point():
            return None
        limit = min(limits) if words == "below" else max(limits)
        bounds = {"min": limit} if words == "below" else {"max": limit}
        # a few numbers are at their limit by chance
        cut = sum(int((y.clamp(**bounds) != y).sum()) for *_, y in pairs if y.numel() > 4)
        if cut > 4 and all(close(case, x, y.clamp(**bounds)) for case, _, x, y in pairs):
            return f"no value is {words} {number_text(limit)}"
    return None


def _repeated(pairs):
    """Look for an axis along which the answer has the same values everywhere, and should not."""
    telling = [pair for pair in pairs if not close(pair[0], pair[2], pair[3])]
    if len(telling) < 2 or any(x.shape != y.shape for _, _, x, y in telling):
        return None
    for axis in range(-min(x.ndim for _, _, x, _ in telling), 0):
        long = [pair for pair in telling if pair[2].shape[axis] > 1]
        if len(long) == len(telling) and all(
            close(case, x, x.narrow(axis, 0, 1).expand_as(x))
            and not close(case, y, y.narrow(axis, 0, 1).expand_as(y))
            for case, _, x, y in long
        ):
            return f"along axis {axis} your output repeats the same values"
    return None


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


def _step(pairs, is_missing: bool = False):
    """Look for one step too many at the end, or for one that is missing."""
    if any(x.shape != y.shape for _, _, x, y in pairs) or sum(y.numel() for *_, y in pairs) < 3:
        return None
    told = [y[_wrong(case, x, y)] for case, _, x, y in pairs]
    if len(torch.cat(told).unique()) < 5:
        return None  # a few numbers, such as zeros and ones, lead to each other in many ways
    ndim = min(y.ndim for *_, y in pairs)
    steps = _STEPS | {
        f"{words} along axis {axis}": functools.partial(_along, step, axis)
        for axis in range(-1, -1 - ndim, -1)
        for words, step in _STEPS_ALONG.items()
    }
    for words, step in steps.items():
        if all(
            _close_to(case, y.dtype, step(x.double()), y)
            if is_missing
            else _close_to(case, y.dtype, x, step(y.double()))
            for case, _, x, y in pairs
        ):
            if is_missing:
                return f"your output after {words} equals the expected one"
            return f"your output equals the expected one after {words}"
    return None


def _close_to(case: Case, dtype: torch.dtype, some: torch.Tensor, others: torch.Tensor) -> bool:
    """Compare two arrays with the tolerance of ``dtype``, in which they were computed."""
    return close(case, some.to(dtype), others.to(dtype))


def _along(step: Callable, axis: int, x: torch.Tensor) -> torch.Tensor:
    return step(x, axis)


def _missing_step(pairs):
    return _step(pairs, is_missing=True)


# what takes an axis away, in words -> what it does
_TAKEN: dict[str, Callable[[torch.Tensor, int], torch.Tensor]] = {
    "the mean": lambda x, a: x.mean(a, keepdim=True),
    "the sum": lambda x, a: x.sum(a, keepdim=True),
    "the largest": lambda x, a: x.amax(a, keepdim=True),
    "the first place": lambda x, a: x.narrow(a, 0, 1),
    "the last place": lambda x, a: x.narrow(a, x.shape[a] - 1, 1),
    "all but the first place": lambda x, a: x.narrow(a, 1, x.shape[a] - 1),
    "all but the last place": lambda x, a: x.narrow(a, 0, x.shape[a] - 1),
}


def _taken(pairs, of_one: bool = False):
    """Look for an axis that is reduced, too short or too long; ``of_one``: whose size is 1."""
    telling = [pair for pair in pairs if not close(pair[0], *pair[2:])]
    if not telling or any(
        x.shape == y.shape or 0 in (*x.shape, *y.shape) for _, _, x, y in telling
    ):
        return None
    ndim = min(max(x.ndim, y.ndim) for _, _, x, y in telling)
    arrays = ("your output", 2), ("the expected one", 3)
    for axis, (words, take) in itertools.product(range(-ndim, 0), _TAKEN.items()):
        for (less, i), (more, j) in itertools.permutations(arrays):
            if all(
                pair[j].ndim >= -axis and _is_taken(pair[0], pair[i], pair[j], take, axis)
                for pair in telling
            ):
                if of_one != all(pair[j].shape[axis] == 1 for pair in telling):
                    continue
                if of_one:
                    return f"{less} is {more} without axis {axis}, whose size is 1"
                return f"{less} is {words} of {more} along axis {axis}"
    return None


def _is_taken(case: Case, less: torch.Tensor, more: torch.Tensor, take, axis: int) -> bool:
    """Tell whether ``take`` along an axis leads from one array to the other."""
    found = take(more.double(), axis)
    is_kept = less.ndim == found.ndim
    return _close_to(case, less.dtype, less, found if is_kept else found.squeeze(axis))


def _permuted(pairs):
    if any(ours.ndim != wanted.ndim for _, _, ours, wanted in pairs):
        return None
    sizes = {ours.ndim for _, _, ours, _ in pairs if ours.ndim > 1}
    count = min(sizes, default=0)  # the last ``count`` axes exist in all pairs
    which = "axes" if len(sizes) == 1 else f"last {count} axes"
    for axes in itertools.permutations(range(count)):
        if list(axes) == sorted(axes):
            continue
        if all(close(case, ours, _reordered_axes(wanted, axes)) for case, _, ours, wanted in pairs):
            return f"your output equals the expected one with its {which} in the order {axes}"
    return None


def _reordered_axes(x: torch.Tensor, axes: tuple[int, ...]) -> torch.Tensor:
    """Permute the last axes of a tensor; a tensor with fewer axes comes back unchanged."""
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
    """List the axes along which a tensor sums to 1, as negative numbers."""
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
        close(case, ours[0], wanted[0])
        and not any(close(case, *pair) for pair in zip(ours[1:], wanted[1:], strict=True))
        for case, _, ours, wanted in usable
    ):
        if all(
            close(case, ours, wanted) for case, _, ours, wanted in pairs if ours.shape[:1] == (1,)
        ):
            return "the first item of the batch is right, the others are not"
    return None


# parts of an axis of n places, in words -> the indices
_PARTS: dict[str, Callable[[int], list[int]]] = {
    "the first place": lambda n: [0],
    "the last place": lambda n: [n - 1],
    "every second place": lambda n: list(range(1, n, 2)),
    "every second place, from the first on,": lambda n: list(range(0, n, 2)),
    "the first half": lambda n: list(range(n // 2)),
    "the second half": lambda n: list(range((n + 1) // 2, n)),
    "all but the first place": lambda n: list(range(1, n)),
    "all but the last place": lambda n: list(range(n - 1)),
}


_ENDS = ("the first place", "the last place")


def _one_place(pairs):
    """Look for a part of the result, such as the first place along an axis, that alone is wrong."""
    telling = [pair for pair in pairs if not close(pair[0], pair[2], pair[3])]
    if not telling or any(ours.shape != wanted.shape for _, _, ours, wanted in telling):
        return None
    marks = [_wrong(case, ours, wanted) for case, _, ours, wanted in telling]
    ndim = min(wrong.ndim for wrong in marks)
    for axis, (words, part) in itertools.product(range(-ndim, 0), _PARTS.items()):
        if words.startswith("all but") and len(telling) < len(pairs):
            continue  # which inputs are right says more
        long = [wrong for wrong in marks if wrong.shape[axis] > 1]
        sizes = {wrong.shape[axis] for wrong in long}
        # a pattern shows in several sizes only
        is_seen = max(sizes, default=0) > 2 and (words in _ENDS or len(sizes - {2, 3}) > 1)
        if is_seen and all(_wrong_places(wrong, axis) == part(wrong.shape[axis]) for wrong in long):
            return f"only {words} along axis {axis} is wrong"
    if any(wrong.ndim < 2 or wrong.shape[-1] != wrong.shape[-2] for wrong in marks):
        return None
    diagonals = [torch.eye(wrong.shape[-1], dtype=torch.bool) for wrong in marks]
    if max(map(len, diagonals)) > 2 and not any(
        (wrong & ~diagonal).any() for wrong, diagonal in zip(marks, diagonals, strict=True)
    ):
        return "only the diagonal is wrong"
    return None


def _wrong_places(wrong: torch.Tensor, axis: int) -> list[int]:
    """List the places along an axis where any value is wrong."""
    by_place = wrong.movedim(axis, 0).reshape(wrong.shape[axis], -1)
    return by_place.any(1).nonzero().flatten().tolist()


def _one_range(pairs):
    """Look for a limit on the input's values that separates right results from wrong ones.

    Applies to functions of one tensor whose result has the same shape.
    """
    above, below = [], []
    for case, args, ours, wanted in pairs:
        if close(case, ours, wanted) or not wanted.ndim:
            continue  # one number by itself has no limit
        inputs = [x for x in args.values() if isinstance(x, torch.Tensor) and x.ndim]
        if len(inputs) != 1 or not inputs[0].shape == ours.shape == wanted.shape:
            return None
        x, wrong = inputs[0].double(), _wrong(case, ours, wanted)
        above.append((x[~wrong], x[wrong]))
        below.append((-x[~wrong], -x[wrong]))
    if not above:
        return None
    sides = {"above": above, "below": below, "beyond": [(r.abs(), w.abs()) for r, w in above]}
    for side, parts in sides.items():
        right, wrong = (torch.cat([part[i].flatten() for part in parts]) for i in (0, 1))
        if len(right) < 10 or len(wrong) < 5 or float(wrong.min()) < float(right.quantile(0.25)):
            continue
        limit = float(wrong.min())
        if len(right) < 0.1 * len(wrong) or limit < 0.01 * float(wrong.max()):
            continue  # the few right ones may be right by chance
        # Some results beyond the limit count as right, because they are within the tolerance.
        if int((right >= limit).sum()) < 0.5 * len(wrong):
            number = -limit if side == "below" else limit
            return f"wrong {side} {'+-' if side == 'beyond' else ''}{number:.2g} only"
    return None


def _nearly(pairs):
    """Look for values that are all close to the right ones but mostly outside the tolerance."""
    telling = [pair for pair in pairs if not close(pair[0], *pair[2:])]
    for case, _, ours, wanted in telling:
        kinds = [(x.shape, x.dtype) for x in (ours, wanted)]
        if kinds[0] != kinds[1] or case.number or not wanted.is_floating_point():
            return None
        off = (ours.double() - wanted.double()).abs().max() / wanted.double().abs().max()
        if off > 0.01:
            return None
    shares = [_wrong(case, ours, wanted)[wanted != 0].double() for case, _, ours, wanted in telling]
    if not shares or not float(torch.cat(shares).mean()) >= 0.25:
        return None  # a zero comes out exact whatever it is multiplied by
    return "every value is within 1 % of the largest, and many are not exact"


def _wrong(case: Case, ours: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Mark the values that are outside the tolerance, as booleans."""
    rtol, atol = tolerance(case, wanted.dtype)
    return (ours.double() - wanted.double()).abs() > atol + rtol * wanted.double().abs()


_RELATIONS: dict[str, Callable] = {
    "constant_output": _constant,
    "unchanged_input": _unchanged_input,
    "constant_factor": _factor,
    "constant_offset": _offset,
    "stretched": _stretched,
    "one_step_more": _step,
    "one_step_less": _missing_step,
    "axis_taken": _taken,
    "axis_of_one": functools.partial(_taken, of_one=True),
    "clamped": _clamped,
    "off_by_a_term": _term,
    "factor_by_input": _factor_by_input,
    "permuted_axes": _permuted,
    "flipped_axis": _flipped,
    "shifted_by_one": _shifted,
    "normalised_along_another_axis": _normalised_elsewhere,
    "other_temperature": _temperature,
    "first_item_only": _first_only,
    "repeated": _repeated,
    "one_place_only": _one_place,
    "not_exact": _nearly,  # far out the tolerance hides it, which looks like a limit
    "one_range_only": _one_range,
}


def reordered(cases: list[Case], got: Seen, want: Seen) -> str:
    """Return evidence if every output has the right numbers in another order; "" otherwise."""
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


# --- what separates right from wrong --------------------------------------------------------------


def contrast(cases: list[Case], got: Seen, want: Seen) -> str:
    """Say on which cases an answer is right: "right for depth 1, wrong for depth 3"."""
    cases = [case for case in cases if not case.raises]
    right = [case for case in cases if same(case, got[case.name], want[case.name])]
    wrong = [case for case in cases if case not in right]
    if not right or not wrong:
        return "the values are wrong on every input"
    told = []
    rows = {case.name: _settings(case) for case in cases}
    for name in dict.fromkeys(name for row in rows.values() for name in row):
        good, bad = ([rows[case.name].get(name) for case in some] for some in (right, wrong))
        if words := _parted(name, good, bad):
            told.append(words)
    if 0 < len(told) < 3:  # where everything separates them, it is one case that differs in all
        return " and ".join(f"right {words}" for words in told)
    notes = list(dict.fromkeys(case.part for case in wrong))
    if "values" not in notes:
        return f"the common case is right, {' and '.join(notes)} not"
    held = [part for part in dict.fromkeys(case.part for case in right) if part not in notes]
    which = right[0].name if len(right) == 1 else " and ".join(held)
    return f"right on {len(right)} of {len(cases)} inputs" + (f": {which}" if which else "")


def _settings(case: Case) -> dict[str, Any]:
    """List the settings of a case: plain arguments, fields of a configuration, dtype and mode."""
    settings: dict[str, Any] = {}
    for name, value in (case.init | case.args).items():
        plain = value.plain() if isinstance(value, Recipe) else {name: value}
        settings |= {n: v for n, v in plain.items() if isinstance(v, bool | int | float)}
        is_data = isinstance(value, torch.Tensor) and value.dtype != torch.int64
        if is_data and value.dtype != torch.bool:
            settings.setdefault("dtype", short(value.dtype))
    if case.driver == "module":
        settings["mode"] = "train" if in_train_mode(case) else "eval"
    return settings


def _parted(name: str, good: list, bad: list) -> str:
    """Say how a setting separates the right cases from the wrong ones, or "".

    Sizes that every case draws anew are left out, because they always differ.
    """
    if any(value in good for value in bad):
        return ""
    if name in ("mode", "dtype"):
        words = "in {} mode" if name == "mode" else "in {}"
        return f"{words.format(good[0])}, wrong {words.format(bad[0])}"
    if None in (*good, *bad):
        if set(good) == {None}:
            return f"without {name}, wrong with it"
        return f"with {name}, wrong without it" if set(bad) == {None} else ""
    whole = [float(value).is_integer() for value in (*good, *bad)]
    if all(whole[: len(good)]) and not any(whole[len(good) :]):
        return f"where {name} is a whole number, wrong elsewhere"
    for some, words in (
        (good, "for {}, wrong for others"),
        (bad, "except for {}, and wrong there"),
    ):
        told = sorted(set(some))
        if len(told) < 3 and (len(set(good + bad)) < 4 or set(told) <= {0, 1}):
            return words.format(f"{name} {' and '.join(map(str, told))}")
    return ""
