"""Compare what a student predicted or wrote in one line with what is measured or wanted.

Role: the line that notebooks print, and the guess that a later notebook brings back (``again``).
Nothing is judged. ``course.results`` keeps the guesses on the student's computer, and nothing hands
them in.
"""

import math
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Real
from typing import Any, TypeGuard

from vitedu.course import results

# for who guessed nothing in a notebook: what was asked, what many people say, what is measured
OFTEN_MISSED = {
    "01_patches": (
        "A model that knows no positions names 51 % of the photographs. Their 64 patches are "
        "shuffled. How many %, then?",
        "fewer",
        51,
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
        form: format of the numbers, such as ".1%"; default four digits, whole numbers in full.
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
    name, found = f"{what}: " if what else "", _write(measured, form)
    if guess is None:
        print(f"{name}measured {found} (no prediction)")
    elif isinstance(guess, str) and _is_number(measured):
        print(f"{name}{guess!r} is not a number. Write one above, such as 8, and run again.")
    else:
        said, verdict = _write(guess, form), ""
        if said == found:
            verdict = ", right"
        elif _is_number(guess) and _is_number(measured) and math.isfinite(guess - measured):
            verdict = f", off by {_write(guess - measured, form, sign='+')}"
        print(f"{name}predicted {said}, measured {found}{verdict}")
        name = str(what or "the number")
        if notebook and name not in results.load_table("predictions").get(notebook, {}):
            error = _error(guess, measured, form)
            new = {"guess": said, "measured": found, "form": form, "error": error}
            _keep(notebook, name, new)


def _keep(notebook: str, what: str, entry: dict[str, Any]) -> None:
    """Keep a guess, as it was printed; ``VITEDU_KEEP_PREDICTIONS=0`` keeps none."""
    if os.environ.get("VITEDU_KEEP_PREDICTIONS") != "0":
        with results.edit("predictions", notebook) as guesses:
            guesses[what] = entry


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
    # the one that was asked again stays the one; early 0.3.0.dev0 stored no error
    errors = {each: entry.get("error", 0.5) for each, entry in kept.items()}
    what = max(kept, key=lambda each: ("again" in kept[each], errors[each]), default="")
    entry = kept.get(what, {})
    if not kept and name not in OFTEN_MISSED:
        print(f"You predicted nothing in {number}, so there is nothing to bring back.")
    elif not kept:
        question, often, measured = OFTEN_MISSED[name]
        print(f"You predicted nothing in {number}. This is what many people miss:\n{question}")
        if guess is None:
            print("Write your number above, and run again.")
        else:
            compare(guess, measured)
            print(f"(Many people say: {often}.)")
    elif not errors[what]:
        print(f"In {number} each of your {len(kept)} guesses was right: nothing to guess again.")
    elif guess is None and "again" not in entry:
        print(f"In {number} you were furthest off at this: {what}.")
        print(f"You said {entry['guess']}; it was {entry['measured']}. ", end="")
        print("Cover the line, think, and explain it:")
        print("why is it so, and which number do you say now? Write it above, and run again.")
    else:
        if guess is not None:
            entry["again"] = _write(_to_number(guess), entry["form"])
            _keep(name, what, entry)
        print("{}: first {guess}, now {again}, measured {measured}".format(what, **entry))


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
        said = (f"{each.get(key, ''):>12}" for key in ("guess", "again", "measured"))
        print(f"{name:<{width}}{''.join(said)}")


def _error(guess: Any, measured: Any, form: str) -> float:
    """Give how far off a guess is: 0 to 2 of numbers, by the larger one; of words 0 or 0.5."""
    if _write(guess, form).lower() == _write(measured, form).lower():
        return 0.0
    if not (_is_number(guess) and _is_number(measured)):
        return 0.5
    # nan is as far off as can be
    return float(min(2.0, abs(guess - measured) / max(abs(guess), abs(measured))))


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

    yours = yours.tolist() if hasattr(yours, "tolist") else yours  # with a gradient, too
    target = np.asarray(wanted)
    try:
        given = np.asarray(yours)
    except ValueError:
        print(f"✗ your line gives rows of different lengths; {target.shape} is asked for")
        return
    if yours is None:
        print("None so far: write your line, then run the cell again")
    elif given.shape != target.shape:
        print(f"✗ your line gives the shape {given.shape}; {target.shape} is asked for")
    elif (given == target).all():
        print(f"✓ shape {target.shape}, every number in its place")
    else:
        print(f"✗ right shape, wrong order: your line gives {given.tolist()}")


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, Real) and not isinstance(value, bool)


def _to_number(value: Any) -> Any:
    """Turn a 0-d tensor or NumPy scalar into a Python number that a float can hold."""
    value = value.item() if getattr(value, "shape", None) == () else value
    is_huge = isinstance(value, int) and abs(value) > sys.float_info.max
    return value if not is_huge else math.inf if value > 0 else -math.inf


def _write(value: Any, form: str, sign: str = "") -> str:
    if not _is_number(value):
        return str(value)
    if isinstance(value, int) and not form:
        return format(value, f"{sign}d")
    return format(float(value), sign + (form or ".4g"))
