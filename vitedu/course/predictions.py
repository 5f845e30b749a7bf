"""Compare what a student predicted or wrote in one line with what is measured or wanted.

Role: the line that notebooks print, and the guess that a later notebook brings back (``again``).
Nothing is judged. ``course.results`` keeps the guesses on the student's computer, and nothing hands
them in.
"""

import math
import os
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Real
from typing import Any, TypeGuard

from vitedu.course import results

# for who guessed nothing in a notebook: what was asked, what many people say, what is measured
OFTEN_MISSED = {
    "01_patches": (
        "A model that knows no positions names 52 % of the photographs. Their 64 patches are "
        "shuffled. How many %, then?",
        "fewer",
        52,
    ),
    "02_attention": ("By which number does attention with d = 64 divide the scores?", "64", 8),
    "03_encoder": ("What is the loss of a new model of ten classes, before any step?", "1", 2.303),
}


def predictions_in(notebook: str) -> Callable[..., None]:
    """Give ``compare`` for a notebook's cells: the first guess at each thing is kept."""
    return partial(compare, notebook=results.notebook_named(notebook))


def compare(
    guess: Any,
    measured: Any,
    what: str | Sequence[str] = "",
    *,
    form: str = "",
    notebook: str = "",
) -> None:
    """Print a prediction beside the measurement, with the signed error if both are numbers.

    A guess of any type is accepted, so that a wrong one never stops a notebook; words
    where a number is asked for are asked again, and the measurement is not given away.

    Args:
        guess: what was predicted; None means no prediction.
        measured: the measurement. A tuple is compared item by item with as many guesses; a list
            counts as one measurement.
        what: what was measured, or a sequence of names, one for each item.
        form: format of the numbers, such as ".1%"; default four digits.
        notebook: where it was predicted, for ``again``; by default nothing is kept.

    Example:
        >>> compare(8, 9)
        predicted 8, measured 9, off by -1
        >>> compare((None, 0.5), (0.25, 0.5), ("without", "with"), form=".0%")
        without: measured 25% (no prediction)
        with: predicted 50%, measured 50%, right
    """
    if guess is None and isinstance(measured, tuple):
        guess = [None] * len(measured)
    are_many = isinstance(guess, (tuple, list)) and isinstance(measured, tuple)
    if are_many and len(guess) == len(measured):
        names = [what] * len(guess) if isinstance(what, str) else what
        for part, result, name in zip(guess, measured, names, strict=True):
            compare(part, result, name, form=form, notebook=notebook)
        return
    guess, measured = _to_number(guess), _to_number(measured)
    name = f"{what}: " if what else ""
    if guess is None:
        print(f"{name}measured {_write(measured, form)} (no prediction)")
        return
    if isinstance(guess, str) and _is_number(measured):
        print(f"{name}{guess!r} is not a number. Write one above, such as 8, and run again.")
        return
    line = f"{name}predicted {_write(guess, form)}, measured {_write(measured, form)}"
    print(line + _verdict(guess, measured, form))
    if notebook:
        name = str(what or "the number")
        before = results.load_table("predictions").get(notebook, {}).get(name, {})
        new = {"measured": _plain(measured), "form": form}
        if "guess" not in before or _is_number(measured) > _is_number(before["guess"]):
            new["guess"] = _plain(guess)
        _keep(notebook, name, new)


def _keep(notebook: str, what: str, new: dict) -> None:
    """Add to what is kept of a guess; ``VITEDU_KEEP_PREDICTIONS=0`` keeps nothing."""
    if os.environ.get("VITEDU_KEEP_PREDICTIONS") != "0":
        with results.edit("predictions", notebook) as guesses:
            guesses.setdefault(what, {}).update(new)


def again(notebook: str = "", guess: Any = None) -> None:
    """Bring back the prediction of a notebook that was furthest off, and take a second guess.

    Args:
        notebook: where it was predicted, such as "01_patches"; by default all are shown, the first
            guess, the second and the measurement side by side.
        guess: the second guess; None asks for it.

    Raises:
        ValueError: the notebook is unknown.
    """
    if not notebook:
        _show_all()
        return
    name = results.notebook_named(notebook)
    number, kept = name[:2], results.load_table("predictions").get(name, {})
    if not kept:
        _ask_often_missed(number, OFTEN_MISSED.get(name), guess)
        return
    # the one that was asked again stays the one
    what = max(kept, key=lambda each: ("again" in kept[each], _error(kept[each], "guess")))
    entry = kept[what]
    if not _error(entry, "guess"):
        print(f"In {number} each of your {len(kept)} guesses was right: nothing to guess again.")
    elif guess is None and "again" not in entry:
        said = f"You said {_said(entry, 'guess')}; it was {_said(entry, 'measured')}."
        print(f"In {number} you were furthest off at this: {what}.")
        print(f"{said} Cover the line, think, and explain it:")
        print("why is it so, and which number do you say now? Write it above, and run again.")
    else:
        if guess is not None:
            entry["again"] = _plain(_to_number(guess))
            _keep(name, what, {"again": entry["again"]})
        print(f"{what}: first {_said(entry, 'guess')}, now {_said(entry, 'again')}, ", end="")
        print(f"measured {_said(entry, 'measured')}")


def _ask_often_missed(number: str, missed: tuple[str, str, float] | None, guess: Any) -> None:
    if missed is None:
        print(f"You predicted nothing in {number}, so there is nothing to bring back.")
        return
    question, often, measured = missed
    if guess is None:
        print(f"You predicted nothing in {number}. This is what many people miss:\n{question}")
        print("Write your number above, and run again.")
    else:
        print(question)
        compare(guess, measured)
        print(f"(Many people say: {often}.)")


def _show_all() -> None:
    """Print every guess that is kept as a table."""
    kept = sorted(results.load_table("predictions").items())
    rows = [(f"{name[:2]}  {what}", each) for name, all in kept for what, each in all.items()]
    if not rows:
        print("No prediction is kept on this computer, so there is nothing to show.")
        return
    width = max(len(name) for name, _ in rows)
    print(f"{'':<{width}}{'first':>12}{'again':>12}{'measured':>12}")
    for name, each in rows:
        said = (f"{_said(each, key):>12}" for key in ("guess", "again", "measured"))
        print(f"{name:<{width}}{''.join(said)}")


def _said(entry: dict, key: str) -> str:
    return _write(entry[key], entry.get("form", "")) if key in entry else ""


def _error(entry: dict, key: str) -> float:
    """Give how far off a guess is: 0 to 2 of numbers, by the larger one; of words 0 or 0.5."""
    guess, measured = entry.get(key), entry.get("measured")
    if not (_is_number(guess) and _is_number(measured)):
        return 0.5 * (str(guess).lower() != str(measured).lower())
    if _write(guess, entry["form"]) == _write(measured, entry["form"]):
        return 0.0
    return min(2.0, abs(guess - measured) / max(abs(guess), abs(measured)))


def _plain(value: Any) -> Any:
    """Give what JSON can hold: a finite number as it is, all else as text."""
    if _is_number(value) and math.isfinite(value):
        return value if isinstance(value, int) else float(value)
    return str(value)


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


def _is_number(value: Any) -> TypeGuard[float]:
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
