"""What proves the checker of one exercise: right answers, and mutants that are right.

Role: reads ``proof/<chapter>/<exercise>.py``. There every function or class without a leading
underscore is a right answer; ``EQUIVALENT``, ``LEFT_OPEN`` and ``SPECIAL`` may speak of mutants.
The known mistakes are not here: they stand beside the checker.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import FunctionType
from typing import Any

from vitedu import exercises

# a reason -> the surviving mutants that it explains: whole changes, as ``make proof`` prints them,
# or a piece of text that all of them contain and no rejected mutant does
Survivors = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Entry:
    """The proof of one checker."""

    right: tuple[Any, ...]  # right answers besides the reference; they must pass
    equivalent: Survivors  # survivors that no allowed input can tell from the reference
    left_open: Survivors  # survivors that differ only where exercises.md leaves the behaviour open
    special: tuple[str, ...]  # a mutant that is wrong only under one of these conditions must fail


@cache
def entry_of(exercise_id: str) -> Entry:
    """Return the proof of an exercise whose answer is code.

    Raises:
        ValueError: the exercise is unknown.
        ImportError: it has no proof file.
    """
    exercise = exercises.find(exercise_id)
    module = importlib.import_module(f"proof.{exercise.chapter}.{exercise.file_stem}")
    right = [
        thing
        for name, thing in vars(module).items()
        if isinstance(thing, FunctionType | type)
        and thing.__module__ == module.__name__
        and not name.startswith("_")
    ]
    names = {"EQUIVALENT": {}, "LEFT_OPEN": {}, "SPECIAL": ()}
    return Entry(tuple(right), *(getattr(module, name, empty) for name, empty in names.items()))
