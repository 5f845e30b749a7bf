"""References in the place of a student's part: handed out by a check, or imported from ``my_vit``.

Role: ``hand_out`` and ``is_reference``. A check cell ends with ``gelu = report.implementation``, so
that later cells run. If that cell runs a second time, the name holds the reference, and judging it
would say nothing about the student's answer.
"""

import contextlib
import inspect
import sys
from pathlib import Path
from typing import Any

from vitedu.ground.files import data_folder

# (folder of the student's results, exercise) -> the reference that was handed out
_handed_out: dict[tuple[Path, str], Any] = {}


class _HandedOut:
    """A second base class of values that were handed out, besides their own type."""


def hand_out(exercise: str, reference: Any) -> Any:
    """Note that a student gets a reference in place of an answer, and return it.

    For a number, string or tuple, that is an equal value with a recognisable type.
    """
    kind: Any = type(reference)
    if kind in (int, float, str, tuple):
        reference = type(kind.__name__, (kind, _HandedOut), {})(reference)
    _handed_out[data_folder(), exercise] = reference
    return reference


def is_reference(answer: Any, exercise: str) -> bool:
    """Tell whether an answer is the reference that was handed out, or of the last ``my_vit``.

    A copy of it counts, a subclass that overrides nothing, and one that is decorated.
    """
    module = vars(sys.modules.get("my_vit", sys))
    if exercise in module.get("_references", ()) and module.get(exercise) is answer:
        return True
    reference = _handed_out.get((data_folder(), exercise))
    if isinstance(reference, _HandedOut):
        return isinstance(answer, _HandedOut)
    code = _code(reference)
    return code is not None and _code(answer) is code


def _code(answer: Any) -> Any:
    """Return the code object of a function, or of the ``forward`` of a class, or None.

    All functions under ``torch.no_grad()`` share the code around them, so decorators are removed.
    """
    function = getattr(answer, "forward", None) if isinstance(answer, type) else answer
    with contextlib.suppress(ValueError):  # wrapped in a circle
        function = inspect.unwrap(function)  # type: ignore[arg-type]
    return getattr(function, "__code__", None)
