"""Other arguments: unknown mistakes whose result is the right one for another argument.

Role: ``find_other_argument`` runs the reference with two arguments exchanged, with a default in
place of what was given, or with another number, and compares its results with the answer's.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from vitedu.checks.case import Case, Recipe, size_of
from vitedu.checks.compare import is_close, is_same
from vitedu.checks.mistake_files import relation_words
from vitedu.checks.observation import Observations, is_informative

MAX_CHANGES = 150  # changes that are tried, because a student waits
Change = Callable[[dict], dict | None]  # of arguments; None if it cannot be made
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


def find_other_argument(
    reference: Any, cases: list[Case], got: Observations, want: Observations, cache
) -> tuple[str, str, str, str] | None:
    """Find other arguments for which the reference gives the answer's results.

    Args:
        reference: of the exercise.
        cases: the ordinary calls, without accelerator, expected errors or second call.
        got: what the answer did, by name of the case.
        want: what the reference did.
        cache: of what the reference does.

    Returns:
        (id, what it is, the evidence, what to look at), or None.
    """
    wrong = [case for case in cases if not is_same(case, got[case.name], want[case.name])]
    if any(got[case.name].error or want[case.name].draws for case in cases) or not wrong:
        return None
    numbers = sum(x.numel() for case in wrong for x in got[case.name].arrays.values())
    if numbers < 3 or not all(is_informative(got[case.name].arrays) for case in wrong):
        return None  # a few numbers, or a share of 0 or 1, come back by chance
    outputs = {
        name
        for case in wrong
        for name, x in want[case.name].arrays.items()
        if name not in got[case.name].arrays or not is_close(case, got[case.name].arrays[name], x)
    }
    # most changes fail on the first: a wrong case, and a small one
    order = sorted(cases, key=lambda case: (case not in wrong, size_of(case)))
    for words, field, change in itertools.islice(_list_changes(order[0]), MAX_CHANGES):
        known = words, field, change, got, outputs, cache
        if all(_reproduces(reference, case, *known) for case in order):
            name, look = relation_words("other_argument")
            evidence = f"on every input your output is the expected one for {words}"
            return "other_argument", name.format(words), evidence, look
    return None


def _reproduces(reference, case: Case, words, field, change: Change, got, outputs, cache) -> bool:
    """Tell whether the reference gives the answer's wrong outputs for changed arguments."""
    args = change(getattr(case, field))
    if args is None:
        return False
    keywords = tuple(n for n in case.keywords if n in args or field != "args")
    changes: dict[str, Any] = {field: args, "keywords": keywords, "gradients": ()}
    other = replace(case, name=f"{case.name}, {words}", record_operations=False, **changes)
    results, ours = cache.observe(reference, other).arrays, got[case.name].arrays
    return all(n in results and n in ours and is_close(case, ours[n], results[n]) for n in outputs)


def _list_changes(case: Case) -> Iterator[tuple[str, str, Change]]:
    """Yield changes of arguments: in words, the field of the case, and what makes the new ones."""
    for field in FIELDS:
        args = getattr(case, field)
        for one, other in itertools.combinations(args, 2):
            if _kind(args[one]) == _kind(args[other]):
                yield f"{one} and {other} exchanged", field, partial(_exchange, one, other)
    for name in case.keywords:
        yield f"the default {name}", "args", partial(_omit, name)
    for field in FIELDS:
        for name, value in getattr(case, field).items():
            parts = value.plain() if isinstance(value, Recipe) else {"": value}
            for part, number in parts.items():
                is_tensor = isinstance(number, torch.Tensor) and not part
                if is_tensor or isinstance(number, int | float) and not isinstance(number, bool):
                    where = f"{name}.{part}" if part else name
                    for words, function in _CHANGES.items():
                        yield words.format(where), field, partial(_recount, name, part, function)


def _kind(value: Any) -> Any:
    """Return what two arguments must share to be exchanged."""
    return ("tensor", value.ndim) if isinstance(value, torch.Tensor) else type(value)


def _exchange(name: str, other: str, args: dict) -> dict:
    """Exchange two arguments, if both are there."""
    is_there = name in args and other in args
    return args | {name: args[other], other: args[name]} if is_there else args


def _omit(name: str, args: dict) -> dict:
    """Leave out an argument that is passed by keyword."""
    return {n: value for n, value in args.items() if n != name}


def _recount(name: str, part: str, function: Callable, args: dict) -> dict | None:
    """Change the numbers of an argument, or of one field of a recipe; None if that is no value."""
    if name not in args:
        return args
    value = args[name]
    try:
        if part:
            fields = value.plain()
            new = type(value)(**fields | {part: function(fields[part])})
        else:
            new = function(value)
    except Exception:  # a division by zero
        return None
    is_other_kind = isinstance(new, torch.Tensor) and new.dtype != value.dtype
    return None if is_other_kind else args | {name: new}
