"""What an author writes about an exercise, and how it is found.

Role: ``Checker`` holds everything about one exercise except its reference: cases, mistakes with
their words, right answers, explained survivors, forbidden functions.
``vitedu/checks/<chapter>/<exercise>.py`` defines it, and ``find_checker`` finds it by the exercise's
id. In that file ``cases`` makes the cases, ``MISTAKES`` is the bank, and every other function or
class without a leading underscore is a right answer; ``CHECKER`` holds the rest. The value
exercises of a chapter share one file, ``values.py``.
"""

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from types import FunctionType, ModuleType
from typing import Any

import torch

from vitedu import exercises
from vitedu.checks.families import general_mistakes
from vitedu.checks.inputs import Deal
from vitedu.checks.mistakes import Mistake, with_mistakes
from vitedu.checks.probing import Case, called_again, hands_double

# a reason -> the surviving mutants that it explains: whole changes, as ``vitedu bank --mutate``
# prints them, or a piece of text that all of them contain and no rejected mutant does
Survivors = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Checker:
    """Everything that decides one exercise whose answer is code."""

    exercise: str
    reference: Any = None  # default: the object named like the exercise in its chapter's module
    # makes fresh inputs and sizes from a seeded generator
    cases: Callable[[torch.Generator], list[Case]] = lambda g: []
    bank: tuple[Mistake, ...] = ()
    forbidden: frozenset[str] = frozenset()  # torch functions and kernels that may not run
    forbidden_words: str = ""  # how a report names them; default: their names
    proves: dict[str, str] = field(default_factory=dict)  # part -> what passing it shows
    # part -> its share of the points; default 3 for "values", 1 for any other
    weights: dict[str, int] = field(default_factory=dict)
    # part -> extra judge: (cases, got) -> (expected, got) or None
    judges: dict[str, Callable] = field(default_factory=dict)
    # part -> (why, try): shown if this part fails first and no mistake is recognised
    advice: dict[str, tuple[str, str]] = field(default_factory=dict)
    # (case, observation, ids of mistakes) -> drawing.Drawing or None
    picture: Callable | None = None
    # False if the observations hold no outputs, so that ``relations`` would make no sense
    is_related: bool = True

    # --- proof ------------------------------------------------------------------------------------
    right: tuple[Any, ...] = ()  # right answers besides the reference; they must pass
    # survivors that no allowed input can tell from the reference
    equivalent: Survivors = field(default_factory=dict)
    # survivors that differ only where exercises.md leaves the behaviour open
    left_open: Survivors = field(default_factory=dict)
    # conditions on the arguments, with "; " between: a mutant that is wrong only under one must fail
    special: str = ""
    given: tuple[str, ...] = ()  # methods that the notebook provides; they are never mutated

    # --- grading ---------------------------------------------------------------------------------
    hides: frozenset[str] = frozenset()  # earlier references that alone would solve this exercise
    flags: frozenset[str] = frozenset()  # names in an answer that a person should look at

    def __post_init__(self):
        if self.reference is None:
            module = importlib.import_module(exercises.find(self.exercise).module)
            object.__setattr__(self, "reference", getattr(module, self.exercise))

    def draw(self, seed: int) -> list[Case]:
        """Make the cases of one check, and give each a name of its own."""
        cases, names = list(self.cases(Deal(seed))), set()
        cases += called_again(cases)
        if not self.forbidden:  # then nobody asks which operations ran, but for rounded float64
            cases = [replace(case, watched=hands_double(case)) for case in cases]
        for i in range(len(cases)):  # observations are stored by the name of their case
            while cases[i].name in names:
                cases[i] = replace(cases[i], name=f"{cases[i].name}, again")
            names.add(cases[i].name)
        return cases

    def mistakes(self) -> list[Mistake]:
        """Return the bank: the exercise's own mistakes, and general ones that its cases can show."""
        return list(self._mistakes)

    @cached_property
    def _mistakes(self) -> tuple[Mistake, ...]:
        own = {mistake.id for mistake in self.bank}
        general = general_mistakes(self.reference, self.draw(0))
        return (*self.bank, *(m for m in general if m.id not in own))

    def make(self, ids: frozenset[str], dress: int = 0) -> Any | None:
        """Return the reference with the named mistakes made, or None if they cannot be combined.

        Args:
            ids: which mistakes.
            dress: which version of the mistake: 0 for ``edits``, n for entry n - 1 of ``also``.
        """
        chosen = [mistake.dresses()[dress] for mistake in self.bank if mistake.id in ids]
        if len(ids) == 1 and chosen and chosen[0].build:
            return chosen[0].build()
        return self.combined(chosen)

    def combined(self, mistakes: Iterable[Mistake]) -> Any | None:
        """Return the reference with the edits of these mistakes, or None if they cannot be combined."""
        if any(mistake.build for mistake in mistakes):
            return None
        return with_mistakes(self.exercise, [mistake.edits for mistake in mistakes])


@cache
def find_checker(exercise_id: str):
    """Load the checker of an exercise: a ``Checker`` or a ``vitedu.checks.values.ValueChecker``.

    Raises:
        ValueError: the exercise is unknown.
        ImportError: it has no checker file.
    """
    exercise = exercises.find(exercise_id)
    module = importlib.import_module(f"vitedu.checks.{exercise.chapter}.{exercise.checker}")
    return module.CHECKERS[exercise_id] if exercise.kind == "value" else _whole(module)


def _whole(module: ModuleType) -> Checker:
    """Complete a file's ``CHECKER`` with its ``cases``, its ``MISTAKES`` and its right answers."""
    public = {
        name: thing
        for name, thing in vars(module).items()
        if isinstance(thing, FunctionType | type)
        and thing.__module__ == module.__name__
        and not name.startswith("_")
    }
    cases = public.pop("cases", module.CHECKER.cases)
    bank, right = module.MISTAKES, tuple(public.values())
    return replace(module.CHECKER, cases=cases, bank=bank, right=right)
