"""What an author writes about an exercise, and how it is found.

Role: ``Checker`` holds everything about one exercise except its reference: cases, mistakes with
their words, forbidden functions. ``find_checker`` finds it by the exercise's id:
``vitedu/checks/<chapter>/<exercise>.py`` defines those of its fields that only Python can say, by
their names, and ``<exercise>.toml`` beside it has the words. The value exercises of a chapter share
one file, ``values.toml``.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from types import ModuleType
from typing import Any

import torch

from vitedu import exercises
from vitedu.checks.observing.case import Case, is_float
from vitedu.checks.observing.drivers import second_call_case
from vitedu.checks.observing.observation import Observation
from vitedu.checks.writing.inputs import CheckGenerator
from vitedu.checks.writing.mistake_files import family, read_values, read_words
from vitedu.checks.writing.mistakes import Mistake, apply_mistakes

MOST_POLISH = 0.25
USUAL_POLISH = ("errors", "dtype", "layout", "any device")  # polish unless a checker calls it idea
# families that every exercise can show; ``diagnose`` recognises them from facts
GENERAL = """
    no_error wrong_error error_without_numbers modifies_input detached own_device cached_by_shape
    buffer_overwritten gradients_left_off dtype_left seeded squeezed single_precision
""".split()


@dataclass(frozen=True)
class Drawing:
    """A picture of a counterexample, and the same in words for readers who cannot see it."""

    svg: str
    label: str  # the label of its line in the report, such as "order"
    text: str


@dataclass(frozen=True)
class Checker:
    """Everything that decides one exercise whose answer is code."""

    exercise: str = ""  # ``find_checker`` writes its id, reference, cases and words
    reference: Any = None  # the object named like the exercise in its chapter's module
    # makes fresh inputs and sizes from a seeded generator
    cases: Callable[[torch.Generator], list[Case]] = lambda g: []
    bank: tuple[Mistake, ...] = ()
    forbidden: frozenset[str] = frozenset()  # torch functions and kernels that may not run
    forbidden_words: str = ""  # how a report names them; default: their names
    # part -> what passing it shows, from its TOML; only the idea decides, polish is a remark
    idea: dict[str, str] = field(default_factory=dict)
    polish: dict[str, str] = field(default_factory=dict)
    most_polish: float = MOST_POLISH  # the largest share of the points that polish may have
    # part -> its share of the points; default 3 for "values", 1 for any other
    weights: dict[str, int] = field(default_factory=dict)
    # of a counterexample whose shapes are right and whose values are not
    picture: Callable[[Case, Observation], Drawing | None] | None = None
    given: tuple[str, ...] = ()  # methods that the notebook provides

    def draw(self, seed: int) -> list[Case]:
        """Make the cases of one check, and give each a name of its own."""
        cases, names = list(self.cases(CheckGenerator(seed))), set()
        cases = [*self._compare_gradients(cases), second_call_case(cases)]
        if not self.forbidden:  # then nobody asks which operations ran
            cases = [replace(case, record_operations=False) for case in cases]
        for i in range(len(cases)):  # observations are stored by the name of their case
            while cases[i].name in names:
                cases[i] = replace(cases[i], name=f"{cases[i].name}, again")
            names.add(cases[i].name)
        return cases

    def _compare_gradients(self, cases: list[Case]) -> list[Case]:
        """Let every case of the idea compare gradients, as the first does.

        Each leaves out another argument, because data need no gradient while what learns does. A
        layer gets gradients of its parameters alone.
        """
        first, result = cases[0], cases[:1]
        for number, case in enumerate(cases[1:]):
            is_idea = case.is_usual and case.part not in (*USUAL_POLISH, *self.polish)
            is_new = first.gradients and not case.gradients and case.driver == first.driver
            if is_idea and is_new and case.learns is not False:
                names = [n for n in first.gradients if is_float(case.args.get(n))]
                if case.driver == "module":
                    case = replace(case, training=bool(case.training), learns=True)
                elif case.driver == "call":
                    left_out = names[number % len(names)] if len(names) > 1 else ""
                    names = [name for name in names if name != left_out]
                    case = replace(case, gradients=tuple(names))
            result.append(case)
        return result

    @cached_property
    def mistakes(self) -> tuple[Mistake, ...]:
        """The exercise's own mistakes, and the general ones."""
        own = {mistake.id for mistake in self.bank}
        return (*self.bank, *(family(name) for name in GENERAL if name not in own))

    def combine(self, mistakes: list[Mistake]) -> Any | None:
        """Return the reference with these mistakes made, or None if they cannot be combined."""
        return apply_mistakes(self.exercise, [mistake.edits for mistake in mistakes])


@dataclass(frozen=True)
class ValueChecker:
    """Everything that decides one exercise whose answer is a value: all of it is TOML."""

    exercise: str
    reference: Any
    bank: tuple[Mistake, ...]
    proves: str  # what the right value shows
    rtol: float = 1e-6
    atol: float = 1e-9


@cache
def find_checker(exercise_id: str):
    """Load the checker of an exercise: a ``Checker`` or a ``ValueChecker``.

    Raises:
        ValueError: the exercise is unknown, the file of its words is missing or wrong, or the file
            of its cases gives a value a name that no checker knows.
        ImportError: it has no checker file.
    """
    exercise = exercises.find(exercise_id)
    module = importlib.import_module(f"vitedu.checks.{exercise.chapter}.{exercise.file_stem}")
    chapter = importlib.import_module(exercise.module)
    known = {"exercise": exercise_id, "reference": getattr(chapter, exercise_id)}
    if exercise.kind == "value":
        return ValueChecker(**known, **read_values(module, chapter)[exercise_id])
    names = {field.name for field in fields(Checker)}
    for name, thing in vars(module).items():  # a function or a module may have any name
        if name.islower() and name.isidentifier() and name[0] != "_" and name not in names:
            if not callable(thing) and not isinstance(thing, ModuleType):
                raise ValueError(f"{module.__file__}: {name!r} is not one of {sorted(names)}.")
    own = {name: vars(module)[name] for name in names & vars(module).keys()}
    return Checker(**known, **own, **read_words(module))


@cache
def find_lenient_checker(exercise_id: str, polish: float):
    """Load the checker of an exercise with another share of the points for polish, 0 to 0.25."""
    checker = find_checker(exercise_id)
    return replace(checker, most_polish=polish) if isinstance(checker, Checker) else checker
