"""Wrong answers made from references: a mistake is an edit of the reference's own text.

Role: ``Mistake`` is what an author writes, as TOML (``mistake_files``). ``apply_mistakes`` returns
the reference with one or several of them made. Edits are applied to the reference without
docstrings and comments. Several mistakes can be combined if they change different places. The
result runs with the names of the chapter's module.
"""

import importlib
import io
import itertools
import math
import re
import tokenize
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from vitedu import exercises
from vitedu.course.parsing import without_docstrings
from vitedu.course.references import reference_source

Edits = Mapping[str, str]
COMMON_NAMES = {"torch": torch, "nn": nn, "F": F, "math": math}  # names that every edit may use


@dataclass(frozen=True)
class Mistake:
    """A typical mistake, as edits of the reference or as a wrong value, and as words.

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
    # other versions of the same mistake, such as another constant or random values
    also: tuple[Edits, ...] = ()
    value: Any = None  # of an exercise whose answer is a value: the wrong one
    recognises: Callable[[Any], bool] | None = None  # also other values that show the mistake
    # default: the checker's tolerance; set it if two mistakes have close values
    rtol: float | None = None

    def variants(self) -> list["Mistake"]:
        """List the versions of the mistake, each with the same id and words."""
        return [replace(self, edits=edits, also=()) for edits in (self.edits, *self.also)]


@cache
def bare_source(exercise_id: str) -> str:
    """Return the text that edits apply to: the reference without docstrings and comments."""
    source = reference_source(exercises.find(exercise_id))
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    lines = without_docstrings("\n".join(lines)).splitlines()
    return "\n".join(line.rstrip() for line in lines if line.strip())


def find_changes(text: str, edits: Edits) -> list[tuple[int, int, str]]:
    """Find where edits apply: start, end and the new text of each.

    The later lines of an edit are written without the indentation of the line in which it begins.

    Raises:
        ValueError: the text does not contain a piece exactly once.

    Example:
        >>> find_changes("y = x.sum(dim=0)", {"dim=0": "dim=1"})
        [(10, 15, 'dim=1')]
    """
    changes: list[tuple[int, int, str]] = []
    for old, new in edits.items():
        places = []
        for match in re.finditer(re.escape(old.split("\n")[0]), text):
            line = text[text.rfind("\n", 0, match.start()) + 1 :]
            indented = "\n" + line[: len(line) - len(line.lstrip())]
            piece = old.replace("\n", indented)
            if text.startswith(piece, match.start()):
                end = match.start() + len(piece)
                places.append((match.start(), end, new.replace("\n", indented)))
        if len(places) != 1:
            raise ValueError(
                f"the edit of {old!r} must meet exactly one place of the reference (it meets "
                f"{len(places)}); copy a piece of its text, without comments, that stands there "
                "once."
            )
        changes += places
    return changes


def apply_edits(text: str, several: list[Edits]) -> str | None:
    """Apply the edits of several mistakes at once; None if two of them change the same place.

    Example:
        >>> apply_edits("y = x.sum(dim=0)", [{"dim=0": "dim=1"}, {"sum": "mean"}])
        'y = x.mean(dim=1)'
    """
    changes = sorted({change for edits in several for change in find_changes(text, edits)})
    if any(after[0] < before[1] for before, after in itertools.pairwise(changes)):
        return None
    for start, end, new in reversed(changes):
        text = text[:start] + new + text[end:]
    return text


def run_source(source: str, name: str, module: str, **more: Any) -> Any:
    """Execute a definition with the names of a module, and more, and return what it defines."""
    namespace = COMMON_NAMES | vars(importlib.import_module(module)) | more
    exec(compile(source, "<mistake>", "exec"), namespace)
    return namespace[name]


def apply_mistakes(exercise_id: str, several: list[Edits]) -> Any | None:
    """Make the reference of an exercise with the edits of several mistakes; once for each text.

    Returns:
        The function or class, or None if the edits cannot be combined.
    """
    source = apply_edits(bare_source(exercise_id), several)
    try:
        return None if source is None else _run_once(exercise_id, source)
    except SyntaxError:
        if len(several) > 1:
            return None
        raise


@cache
def _run_once(exercise_id: str, source: str) -> Any:
    exercise = exercises.find(exercise_id)
    return run_source(source, exercise.id, exercise.module)
