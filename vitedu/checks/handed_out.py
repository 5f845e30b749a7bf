"""The reference in the place of an answer that did not pass, and how it is known again.

Role: a check cell ends with ``patchify = report.implementation``, so that later cells run. When that cell runs a second
time, the name holds the reference, and judging it would tell the student nothing about his own answer.
``hand_out`` remembers what was given, ``was_handed_out`` knows it again: the same object, a copy of it, a subclass that
overrides nothing, or a wrapper around it.
"""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vitedu.files import data_folder

MOST = 20  # so many objects inside of each other are looked at

# (the store of a student's results, exercise) -> what was handed out
_given: dict[tuple[Path, str], Any] = {}


class _Marked:
    """What a value that was handed out is an instance of, beside its own type."""


@functools.cache
def _marked_type(kind: Any) -> type:
    return type(kind.__name__, (kind, _Marked), {})


def hand_out(exercise: str, reference: Any) -> Any:
    """Give the reference of an exercise to a student and remember it.

    Returns:
        The reference itself; of a number, a word or a pair an equal one that can be told from a student's own.
    """
    kind: Any = type(reference)
    if kind in (int, float, str, tuple):
        reference = _marked_type(kind)(reference)
    _given[data_folder(), exercise] = reference
    return reference


def was_handed_out(exercise: str, answer: Any) -> bool:
    """Tell whether an answer is what ``hand_out`` gave for this exercise, or is made of it alone."""
    given = _given.get((data_folder(), exercise))
    if given is None:
        return False
    if isinstance(given, _Marked):
        return isinstance(answer, _Marked)
    code = _code(given)
    return any(
        one is given or type(one) is given or (code is not None and _code(one) is code)
        for one in _inside(answer)
    )


def _code(answer: Any) -> Any:
    """Give the code that a function, or the forward pass of a class, runs."""
    function = getattr(answer, "forward", None) if isinstance(answer, type) else answer
    return getattr(function, "__code__", None)


def _inside(answer: Any) -> Iterator[Any]:
    """List an answer and what it wraps: decorators with and without ``functools.wraps``, partial calls."""
    waiting: list[Any] = [answer]
    seen: list[Any] = []
    while waiting and len(seen) < MOST:
        one = waiting.pop()
        if any(one is other for other in seen):
            continue
        seen.append(one)
        yield one
        for name in ("__wrapped__", "func", "__func__"):
            waiting += [vars(one)[name]] if name in getattr(one, "__dict__", {}) else []
        if isinstance(one, functools.partial):
            waiting.append(one.func)
        for cell in getattr(one, "__closure__", None) or ():
            try:
                waiting.append(cell.cell_contents)
            except ValueError:  # the name is not bound yet
                continue
