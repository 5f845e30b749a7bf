"""What an author writes about an exercise, and where it is found.

Role: ``Checker`` holds everything about one exercise beside its reference: cases, mistakes with their words, right
answers, explained survivors, what is forbidden. It stands in ``vitedu/checks/<chapter>/<exercise>.py`` as ``CHECKER``;
``find_checker`` finds it by the exercise's id. Those of values stand together in the chapter's ``values.py``.
"""

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch

from vitedu import exercises
from vitedu.checks.families import general_mistakes
from vitedu.checks.inputs import Deal
from vitedu.checks.mistakes import Mistake, with_mistakes
from vitedu.checks.probing import Case, called_again

Survivors = Mapping[
    str, tuple[str, ...]
]  # a reason -> lines as ``vitedu bank --mutate`` prints them


@dataclass(frozen=True)
class Checker:
    """What decides one exercise whose answer is code."""

    exercise: str
    reference: Any = None  # default: the name of the exercise in the module of its notebook
    # fresh inputs and sizes from a seeded generator
    cases: Callable[[torch.Generator], list[Case]] = lambda g: []
    bank: tuple[Mistake, ...] = ()
    forbidden: frozenset[str] = frozenset()  # names of torch functions and kernels that may not run
    forbidden_words: str = ""  # how a report speaks of them; default: their names
    proves: dict[str, str] = field(default_factory=dict)  # part -> what its passing shows
    # part -> share of the points; default 1, "values" 3
    weights: dict[str, int] = field(default_factory=dict)
    # part -> (cases, got) -> (expected, got) or None
    judges: dict[str, Callable] = field(default_factory=dict)
    # part -> (why, try), read where it fails first and no known mistake is recognised
    advice: dict[str, tuple[str, str]] = field(default_factory=dict)
    # (case, observation, ids of mistakes) -> drawing.Drawing or None
    picture: Callable | None = None
    # False: what is kept of a call is no output, so no relation to the right one is looked for
    is_related: bool = True

    # --- proof: what must pass -------------------------------------------------------------------
    right: tuple[Any, ...] = ()  # right answers beside the reference
    equivalent: Survivors = field(default_factory=dict)  # no input that is allowed tells them apart
    left_open: Survivors = field(default_factory=dict)  # differ where exercises.md asks for nothing
    # conditions on the arguments under which a shortcut might be taken; the cases show a wrong one
    special: tuple[str, ...] = ()
    given: tuple[str, ...] = ()  # methods that the notebook gives: they are never changed

    # --- grading ---------------------------------------------------------------------------------
    hides: frozenset[str] = frozenset()  # earlier references that would answer it by themselves
    flags: frozenset[str] = frozenset()  # names that a person should look at in an answer

    def __post_init__(self):
        if self.reference is None:
            module = importlib.import_module(exercises.find(self.exercise).module)
            object.__setattr__(self, "reference", getattr(module, self.exercise))

    def draw(self, seed: int) -> list[Case]:
        """Make the cases of one check."""
        cases, names = list(self.cases(Deal(seed))), set()
        cases += called_again(cases)
        for i in range(len(cases)):  # observations are kept by name
            while cases[i].name in names:
                cases[i] = replace(cases[i], name=f"{cases[i].name}, again")
            names.add(cases[i].name)
        return cases

    def mistakes(self) -> list[Mistake]:
        """Give the bank: the exercise's own mistakes and those that every such exercise can show."""
        return list(self._mistakes)

    @cached_property
    def _mistakes(self) -> tuple[Mistake, ...]:
        own = {mistake.id for mistake in self.bank}
        general = general_mistakes(self.reference, self.draw(0))
        return (*self.bank, *(m for m in general if m.id not in own))

    def make(self, ids: frozenset[str], dress: int = 0) -> Any | None:
        """Give the reference with the named mistakes of the bank made, or None where they do not go together.

        ``dress`` chooses among the texts of a mistake that is made alone.
        """
        chosen = [mistake for mistake in self.bank if mistake.id in ids]
        if len(ids) == 1 and chosen and chosen[0].build:
            return chosen[0].build()
        if any(mistake.build for mistake in chosen):
            return None
        return with_mistakes(self.exercise, [(m.edits, *m.also)[dress] for m in chosen])


def file_of(exercise: exercises.Exercise) -> str:
    """Give the stem of the file that holds an exercise's checker.

    Example:
        >>> file_of(exercises.find("MultiHeadAttention")), file_of(exercises.find("tokens_at_224"))
        ('multi_head_attention', 'values')
    """
    if exercise.kind == "value":
        return "values"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", exercise.id).lower()


def find_checker(exercise_id: str):
    """Load the checker of an exercise: a ``Checker`` or ``vitedu.checks.values.ValueChecker``."""
    exercise = exercises.find(exercise_id)
    module = importlib.import_module(f"vitedu.checks.{exercise.chapter}.{file_of(exercise)}")
    return module.CHECKERS[exercise_id] if exercise.kind == "value" else module.CHECKER
