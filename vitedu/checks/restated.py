"""Restated inputs: unknown mistakes whose result is the right one for slightly other arguments.

Role: ``restated`` runs the reference on changed arguments (one more, doubled, backwards, two of
them exchanged) and compares its results with the answer's on every case. ``relations`` compares an
answer's results with the right ones for the same arguments.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch.nn.functional import normalize

from vitedu.checks.judging import close, same
from vitedu.checks.probing import Case, Recipe, size_of, tells
from vitedu.checks.relations import Seen

MOST = 150  # changes that are tried, because a student waits; a limit of time would not repeat
FIELDS = ("args", "init", "state")  # of a case: what holds arguments

_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "{} + 1": lambda n: n + 1,
    "{} - 1": lambda n: n - 1,
    "2 * {}": lambda n: 2 * n,
    "{} / 2": lambda n: n / 2 if isinstance(n, float) or n % 2 else n // 2,
    "1 - {}": lambda n: 1 - n,
    "{} squared": lambda n: n**2,
    "the square root of {}": lambda n: n**0.5,
    "1 / {}": lambda n: 1 / n,
    "{} 0": lambda n: type(n)(0),
    "{} 1": lambda n: type(n)(1),
}
_TENSORS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "{} + 1": lambda x: x + 1,
    "{} - 1": lambda x: x - 1,
    "-{}": lambda x: -x,
    "2 * {}": lambda x: 2 * x,
    "{} / 2": lambda x: x / 2,
    "1 - {}": lambda x: 1 - x,
    "|{}|": torch.abs,
    "{} squared": torch.square,
    "exp({})": torch.exp,
    "log({})": torch.log,
    "only zeros in {}": torch.zeros_like,
    "only ones in {}": torch.ones_like,
}
# with an axis, the last one first
_ALONG: dict[str, Callable[[torch.Tensor, int], torch.Tensor]] = {
    "{} backwards along axis {}": lambda x, a: x.flip(a),
    "{} rolled by one along axis {}": lambda x, a: x.roll(1, a),
    "{} rolled back by one along axis {}": lambda x, a: x.roll(-1, a),
    "the first place of {} along axis {} everywhere": lambda x, a: x.narrow(a, 0, 1).expand_as(x),
    "{} without its mean along axis {}": lambda x, a: x - x.mean(a, keepdim=True),
    "the mean of {} along axis {} everywhere": lambda x, a: x.mean(a, keepdim=True).expand_as(x),
    "softmax({}) along axis {}": torch.softmax,
    "{} at length 1 along axis {}": lambda x, a: normalize(x, dim=a),
}


def restated(
    reference: Any, cases: list[Case], got: Seen, want: Seen, replays
) -> tuple[str, str, str, str] | None:
    """Find other arguments for which the reference gives the answer's results.

    Args:
        reference: of the exercise.
        cases: the ordinary calls, without accelerator, expected errors or second call.
        got: what the answer did, by name of the case.
        want: what the reference did.
        replays: a ``Replays``; it remembers what the reference does.

    Returns:
        (id, what it is, the evidence, what to look at), or None.
    """
    cases = [case for case in cases if not case.raises]
    wrong = [case for case in cases if not same(case, got[case.name], want[case.name])]
    if any(got[case.name].error or want[case.name].draws for case in cases) or not wrong:
        return None
    numbers = sum(x.numel() for case in wrong for x in got[case.name].arrays.values())
    if numbers < 3 or not all(tells(got[case.name].arrays) for case in wrong):
        return None  # a few numbers, or a share of 0 or 1, come back by chance
    outputs = {
        name
        for case in wrong
        for name, wanted in want[case.name].arrays.items()
        if name not in got[case.name].arrays or not close(case, got[case.name].arrays[name], wanted)
    }
    # most changes fail on the first: a wrong case, and a small one
    order = sorted(cases, key=lambda case: (case not in wrong, size_of(case)))
    for words, change in itertools.islice(_changes(order[0]), MOST):
        if all(
            _fits(reference, case, change(case), words, got, outputs, replays) for case in order
        ):
            return (
                "other_argument",
                f"the right result for another argument: {words}",
                f"on every input your output is the expected one for {words}",
                (
                    "Follow that argument through your code: where is it changed, or taken for "
                    "another?"
                ),
            )
    return None


def _fits(reference, case, changed: Case | None, words: str, got: Seen, outputs, replays) -> bool:
    """Tell whether the reference gives the answer's outputs for a changed case."""
    if changed is None:
        return False
    changed = replace(changed, name=f"{case.name}, {words}", gradients=(), watched=False)
    found, ours = replays.observe(reference, changed).arrays, got[case.name].arrays
    return all(n in found and n in ours and close(case, ours[n], found[n]) for n in outputs)


def _changes(case: Case) -> Iterator[tuple[str, Callable[[Case], Case | None]]]:
    """Yield changes of arguments in words, each as a function from a case to the changed case."""
    given = [(field, name) for field in FIELDS for name in getattr(case, field)]
    for (field, name), (other_field, other) in itertools.combinations(given, 2):
        if field == other_field and _kind(case, field, name) == _kind(case, field, other):
            yield f"{name} and {other} exchanged", _exchange(field, name, other)
    for name in case.keywords:
        yield f"the default {name}", _left_out(name)
    for field, name in given:
        value = getattr(case, field)[name]
        if isinstance(value, Recipe):
            for part, inner in value.plain().items():
                if _is_number(inner):
                    for words, function in _NUMBERS.items():
                        yield words.format(f"{name}.{part}"), _of_part(field, name, part, function)
        elif _is_number(value):
            for words, function in _NUMBERS.items():
                yield words.format(name), _of(field, name, function)
        elif isinstance(value, torch.Tensor):
            for words, function in _TENSORS.items():
                yield words.format(name), _of(field, name, function)
            for axis in range(-1, -1 - value.ndim, -1):
                for words, along in _ALONG.items():
                    yield (
                        words.format(name, axis),
                        _of(field, name, lambda x, f=along, a=axis: f(x, a)),
                    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(case: Case, field: str, name: str) -> Any:
    """Return what two arguments must share to be exchanged."""
    value = getattr(case, field)[name]
    return ("tensor", value.ndim) if isinstance(value, torch.Tensor) else type(value)


def _of(field: str, name: str, function: Callable) -> Callable[[Case], Case | None]:
    """Return the change that applies a function to one argument; a case without it stays."""

    def change(case: Case) -> Case | None:
        held = getattr(case, field)
        if name not in held:
            return case
        try:
            value = function(held[name])
        except Exception:  # no mean of integers, no such axis, a division by zero
            return None
        if isinstance(value, torch.Tensor) and value.dtype != held[name].dtype:
            return None
        return replace(case, **{field: held | {name: value}})

    return change


def _of_part(field: str, name: str, part: str, function: Callable):
    """Return the change that applies a function to one field of a configuration."""

    def inner(recipe: Recipe) -> Recipe:
        fields = recipe.plain()
        return type(recipe)(**fields | {part: function(fields[part])})

    return _of(field, name, inner)


def _exchange(field: str, name: str, other: str) -> Callable[[Case], Case | None]:
    """Return the change that exchanges two arguments."""

    def change(case: Case) -> Case | None:
        held = getattr(case, field)
        if name not in held or other not in held:
            return case
        return replace(case, **{field: held | {name: held[other], other: held[name]}})

    return change


def _left_out(name: str) -> Callable[[Case], Case | None]:
    """Return the change that leaves out an argument that is passed by keyword."""

    def change(case: Case) -> Case | None:
        args = {n: value for n, value in case.args.items() if n != name}
        return replace(case, args=args, keywords=tuple(n for n in case.keywords if n != name))

    return change
