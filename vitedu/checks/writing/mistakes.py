"""Wrong answers made from references: a mistake is an edit of the reference's own text.

Role: ``Mistake`` is what an author writes, as TOML (``mistake_files``). ``apply_mistakes`` returns
the reference with one or several of them made. Edits are applied to the reference without
docstrings and comments. Several mistakes can be combined if they change different places. The
result runs with the names of the chapter's module.
"""

import importlib
import io
import math
import tokenize
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from vitedu import exercises
from vitedu.checks.observing.case import Case
from vitedu.checks.observing.observation import Observation
from vitedu.course.parsing import without_docstrings
from vitedu.course.references import reference_source

Edits = Mapping[str, str]
COMMON_NAMES = {"torch": torch, "nn": nn, "F": F, "math": math}  # names that every edit may use


@dataclass(frozen=True)
class Mistake:
    """A typical mistake, as edits of the reference and as words.

    The words say what to look at and never show the right values.
    """

    id: str
    # completes "2.2 scaled_dot_product_attention: ...": "softmax runs over queries, not keys"
    name: str
    expected: str  # the fact that does not hold: "weights.sum(dim=-1) == 1"
    why: str  # one sentence: why it matters
    next_step: str  # one sentence: what to try or to look at
    # a piece of the reference's text -> its replacement
    edits: Edits = field(default_factory=dict)
    part: str = "values"  # the part that it fails: "values", "gradients" or a case's part
    # describes what the answer shows, with numbers from the observation
    evidence: Callable[[Case, Observation], str] | None = None
    build: Callable[[], Any] | None = None  # makes the wrong answer if no edit can
    # other versions of the same mistake, such as another constant or random values
    also: tuple[Edits, ...] = ()

    def variants(self) -> list["Mistake"]:
        """List the versions of the mistake, each with the same id and words."""
        return [replace(self, edits=edits, also=()) for edits in (self.edits, *self.also)]


@dataclass(frozen=True)
class ValueMistake:
    """A typical wrong value, and why it is given."""

    id: str
    value: Any  # the wrong value
    name: str
    why: str
    next_step: str
    recognises: Callable[[Any], bool] | None = None  # also other values that show the mistake
    # default: the checker's tolerance; set it if two mistakes have close values
    rtol: float | None = None

    def matches(self, answer: Any, accepts: Callable[[Any, Any, float | None], bool]) -> bool:
        """Tell whether an answer is this mistake."""
        if self.recognises:
            try:
                return bool(self.recognises(answer))
            except Exception:
                return False
        return accepts(answer, self.value, self.rtol)


class _Change(NamedTuple):
    """One edit, found in a text."""

    start: int
    end: int  # equal to ``start`` if text is only added
    new: str


def bare_source(exercise_id: str) -> str:
    """Return the text that edits apply to: the reference without docstrings and comments."""
    return _strip_comments(reference_source(exercises.find(exercise_id)))


@cache
def _strip_comments(source: str) -> str:
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    lines = without_docstrings("\n".join(lines)).splitlines()
    return "\n".join(line.rstrip() for line in lines if line.strip())


def find_changes(text: str, edits: Edits) -> list[_Change]:
    """Find where edits apply.

    The later lines of an edit are written without the indentation of the line in which it begins.

    Raises:
        ValueError: the text does not contain a piece exactly once.

    Example:
        >>> find_changes("y = x.sum(dim=0)", {"dim=0": "dim=1"})
        [_Change(start=10, end=15, new='dim=1')]
    """
    changes = []
    for old, new in edits.items():
        places = _find_places(text, old)
        if len(places) != 1:
            raise ValueError(
                f"the edit of {old!r} must meet exactly one place of the reference (it meets "
                f"{len(places)}); copy a piece of its text, without comments, that stands there "
                "once."
            )
        start, end, indentation = places[0]
        piece, new = text[start:end], new.replace("\n", "\n" + indentation)
        if new.startswith(piece):  # text is only added, so other edits may change ``piece``
            changes.append(_Change(end, end, new.removeprefix(piece)))
        elif new.endswith(piece):
            changes.append(_Change(start, start, new.removesuffix(piece)))
        else:
            changes.append(_Change(start, end, new))
    return changes


def _find_places(text: str, old: str) -> list[tuple[int, int, str]]:
    """List (start, end, indentation) of every occurrence of a piece of text."""
    places, start = [], text.find(old.split("\n")[0])
    while start >= 0:
        line = text[text.rfind("\n", 0, start) + 1 :]
        indentation = line[: len(line) - len(line.lstrip())]
        wanted = old.replace("\n", "\n" + indentation)
        if text.startswith(wanted, start):
            places.append((start, start + len(wanted), indentation))
        start = text.find(old.split("\n")[0], start + 1)
    return places


def apply_edits(text: str, several: list[Edits]) -> str | None:
    """Apply the edits of several mistakes at once; None if two of them change the same place.

    Raises:
        ValueError: the text does not contain the piece of an edit exactly once.

    Example:
        >>> apply_edits("y = x.sum(dim=0)", [{"dim=0": "dim=1"}, {"sum": "mean"}])
        'y = x.mean(dim=1)'
    """
    changes = list(dict.fromkeys(c for edits in several for c in find_changes(text, edits)))
    changes.sort(key=lambda change: change[:2])
    for before, after in zip(changes, changes[1:], strict=False):
        if after.start < before.end:
            return None
    for change in reversed(changes):
        text = text[: change.start] + change.new + text[change.end :]
    return text


def run_source(source: str, name: str, module: str, **more: Any) -> Any:
    """Execute a definition with the names of a module, and more, and return what it defines.

    Raises:
        Exception: whatever the definition raises, for example in a default or a decorator.
    """
    namespace = COMMON_NAMES | vars(importlib.import_module(module)) | more
    exec(compile(source, "<mistake>", "exec"), namespace)
    return namespace[name]


def apply_mistakes(exercise_id: str, several: list[Edits]) -> Any | None:
    """Make the reference of an exercise with the edits of several mistakes. Results are cached.

    Returns:
        The function or class, or None if the edits cannot be combined.

    Raises:
        ValueError: the reference does not contain the piece of an edit exactly once.
    """
    return _build(exercise_id, tuple(tuple(edits.items()) for edits in several))


@cache
def _build(exercise_id: str, several: tuple[tuple[tuple[str, str], ...], ...]) -> Any | None:
    exercise = exercises.find(exercise_id)
    source = apply_edits(bare_source(exercise_id), [dict(edits) for edits in several])
    if source is None:
        return None
    try:
        return run_source(source, exercise.id, exercise.module)
    except SyntaxError:
        if len(several) > 1:
            return None
        raise
