"""Recognise a reference that was handed out in place of an answer that did not pass.

Role: a check cell ends with ``patchify = report.implementation``, so that later cells run. If that
cell runs a second time, the name holds the reference, and judging it would say nothing about the
student's answer. ``register_reference`` records what a check returns. ``is_registered_reference``
recognises it: the same object, a copy, a subclass that overrides nothing, or one decorated with
``functools.wraps``.
"""

import contextlib
import inspect
from pathlib import Path
from typing import Any

from vitedu.ground.files import data_folder

# (folder of the student's results, exercise) -> the registered reference
_references: dict[tuple[Path, str], Any] = {}


class _ReferenceValue:
    """A second base class of registered values, besides their own type."""


def register_reference(exercise: str, reference: Any) -> Any:
    """Register the reference of an exercise, which a student gets in place of his answer.

    Returns:
        The reference itself. For a number, string or tuple, an equal value with a recognisable
        type.
    """
    kind: Any = type(reference)
    if kind in (int, float, str, tuple):
        reference = type(kind.__name__, (kind, _ReferenceValue), {})(reference)
    _references[data_folder(), exercise] = reference
    return reference


def is_registered_reference(exercise: str, answer: Any) -> bool:
    """Tell whether an answer is the reference registered for this exercise, perhaps decorated."""
    reference = _references.get((data_folder(), exercise))
    if isinstance(reference, _ReferenceValue):
        return isinstance(answer, _ReferenceValue)
    code = _code(reference)
    return code is not None and _code(answer) is code


def _code(answer: Any) -> Any:
    """Return the code object of a function, or of the ``forward`` of a class, or None.

    A decorator is looked through: all functions under ``torch.no_grad()`` share the code around
    them.
    """
    function = getattr(answer, "forward", None) if isinstance(answer, type) else answer
    with contextlib.suppress(ValueError):  # wrapped in a circle
        function = inspect.unwrap(function)  # type: ignore[arg-type]
    return getattr(function, "__code__", None)
