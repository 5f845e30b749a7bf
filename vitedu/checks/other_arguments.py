"""Other arguments: unknown mistakes whose result is the right one for another argument.

Role: ``for_other_argument`` runs the reference with two arguments exchanged, with a default in
place of what was given, or with another number, and compares its results with the answer's.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from vitedu.checks.case import Case, Recipe, size_of
from vitedu.checks.compare import close, same
from vitedu.checks.mistake_files import relation_words
from vitedu.checks.observation import Observations, tells

MOST = 150  # changes that are tried, because a student waits
FIELDS = ("args", "init", "state")  # of a case: what holds arguments
# of a number, or of every number in a tensor
_CHANGES: dict[str, Callable[[Any], Any]] = {
    "{} + 1": lambda n: n + 1,
    "{} - 1": lambda n: n - 1,
    "-{}": lambda n: -n,
    "2 * {}": lambda n: 2 * n,
    "1 - {}": lambda n: 1 - n,
    "the square root of {}": lambda n: n**0.5,
    "1 / {}": lambda n: 1 / n,
    "{} 0": lambda n: 0 * n,
    "{} 1": lambda n: 0 * n + 1,
}


def for_other_argument(
    reference: Any, cases: list[Case], got: Observations, want: Observations, replays
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
            name, look = relation_words("other_argument")
            evidence = f"on every input your output is the expected one for {words}"
            return "other_argument", name.format(words), evidence, look
    return None


def _fits(reference, case, changed: Case | None, words: str, got, outputs, replays) -> bool:
    """Tell whether the reference gives the answer's wrong outputs for a changed case."""
    if changed is None:
        return False
    changed = replace(changed, name=f"{case.name}, {words}", gradients=(), watched=False)
    found, ours = replays.observe(reference, changed).arrays, got[case.name].arrays
    return all(n in found and n in ours and close(case, ours[n], found[n]) for n in outputs)


def _changes(case: Case) -> Iterator[tuple[str, Callable[[Case], Case | None]]]:
    """Yield changes of arguments in words, each as a function from a case to the changed case."""
    for field in FIELDS:
        held = getattr(case, field)
        for one, other in itertools.combinations(held, 2):
            if _kind(held[one]) == _kind(held[other]):
                yield f"{one} and {other} exchanged", _exchange(field, one, other)
    for name in case.keywords:
        yield f"the default {name}", _left_out(name)
    for field in FIELDS:
        for name, value in getattr(case, field).items():
            parts = value.plain() if isinstance(value, Recipe) else {"": value}
            for part, number in parts.items():
                is_tensor = isinstance(number, torch.Tensor) and not part
                if is_tensor or isinstance(number, int | float) and not isinstance(number, bool):
                    where = f"{name}.{part}" if part else name
                    for words, function in _CHANGES.items():
                        yield words.format(where), _changed(field, name, part, function)


def _kind(value: Any) -> Any:
    """Return what two arguments must share to be exchanged."""
    return ("tensor", value.ndim) if isinstance(value, torch.Tensor) else type(value)


def _changed(field: str, name: str, part: str, function: Callable):
    """Return the change of one argument, or of one field of a recipe."""

    def change(case: Case) -> Case | None:
        held = getattr(case, field)
        if name not in held:
            return case
        try:
            if not part:
                value = function(held[name])
            else:
                fields = held[name].plain()
                value = type(held[name])(**fields | {part: function(fields[part])})
        except Exception:  # a division by zero
            return None
        if isinstance(value, torch.Tensor) and value.dtype != held[name].dtype:
            return None
        return replace(case, **{field: held | {name: value}})

    return change


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
