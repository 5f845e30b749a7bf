"""Compare what a student predicted or wrote in one line with what is measured or wanted.

Role: the line that notebooks print. Nothing is judged or stored.
"""

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any


def compare(guess: Any, measured: Any, what: str | Sequence[str] = "", *, form: str = "") -> None:
    """Print a prediction beside the measurement, with the signed error if both are numbers.

    A guess of any type is accepted, so that a wrong one never stops a notebook.

    Args:
        guess: what was predicted; None means no prediction.
        measured: the measurement. A tuple is compared item by item with as many guesses; a list
            counts as one measurement.
        what: what was measured, or a sequence of names, one for each item.
        form: format of the numbers, such as ".1%"; default four digits.

    Example:
        >>> compare(8, 9)
        predicted 8, measured 9, off by -1
        >>> compare((None, 0.5), (0.25, 0.5), ("without", "with"), form=".0%")
        without: measured 25% (no prediction)
        with: predicted 50%, measured 50%, right
    """
    if guess is None and isinstance(measured, tuple):
        guess = [None] * len(measured)
    if _is_sequence(guess) and isinstance(measured, tuple) and len(guess) == len(measured):
        names = what if _is_sequence(what) else [what] * len(guess)
        for part, result, name in zip(guess, measured, names, strict=True):
            compare(part, result, name, form=form)
        return
    guess, measured = _to_number(guess), _to_number(measured)
    name = f"{what}: " if what else ""
    if guess is None:
        print(f"{name}measured {_write(measured, form)} (no prediction)")
        return
    line = f"{name}predicted {_write(guess, form)}, measured {_write(measured, form)}"
    print(line + _verdict(guess, measured, form))


def confirm(yours: Any, wanted: Sequence) -> None:
    """Print whether a tensor or array holds the wanted numbers; the shape is told first.

    Args:
        yours: what a line of the student's gives; None means that it is still to be written.
        wanted: the numbers, as nested lists.

    Example:
        >>> confirm(None, [[0, 1], [2, 3]])
        None so far: write your line, then run the cell again
    """
    import numpy as np

    if yours is None:
        print("None so far: write your line, then run the cell again")
        return
    yours, target = np.asarray(yours), np.asarray(wanted)
    if yours.shape != target.shape:
        print(f"✗ your line gives the shape {yours.shape}; {target.shape} is asked for")
    elif (yours == target).all():
        print(f"✓ shape {target.shape}, every number in its place")
    else:
        print(f"✗ right shape, wrong order: your line gives {yours.tolist()}")


def _verdict(guess: Any, measured: Any, form: str) -> str:
    """Say whether a guess is right, or by how much it is off if both are numbers."""
    if _write(guess, form) == _write(measured, form):
        return ", right"
    if _is_number(guess) and _is_number(measured) and math.isfinite(guess - measured):
        return f", off by {_write(guess - measured, form, sign='+')}"
    return ""


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (tuple, list))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _to_number(value: Any) -> Any:
    """Turn a 0-d tensor or NumPy scalar into a Python number."""
    return value.item() if getattr(value, "shape", None) == () else value


def _write(value: Any, form: str, sign: str = "") -> str:
    if not _is_number(value):
        return str(value)
    if isinstance(value, int) and not form:
        return format(value, f"{sign}d")
    return format(float(value), sign + (form or ".4g"))
