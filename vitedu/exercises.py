"""The syllabus: every exercise with its notebook, points, minutes and hints.

Role: reads ``exercises.toml``, and answers questions about it. Exercises stand in the order of
reading, the core of a notebook first, and their numbers follow it; the id is the key of everything
that is stored. Loads without torch, so that listing and progress are instant. Not here: references
(in the module of the notebook), checkers (``vitedu.checks``), stubs (in the notebooks).
"""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from vitedu.ground.words import WordsError, check_table, place, read

# the word that names notebook, module, checks and tests -> what an ordinary student needs for the
# core, in minutes: of 01 to 04 by readers with a clock; of others by the rule of tests/test_core.py
CHAPTERS = {
    "patches": 110,
    "attention": 110,
    "encoder": 110,
    "training": 110,
    "inside": 105,
    "vit_and_cnn": 100,
    "less_data": 105,
    "efficient": 90,
    "transfer": 105,
}
MINUTES = {f"0{n}_{name}": CHAPTERS[name] for n, name in enumerate(CHAPTERS, start=1)}
QUICK = 0.72  # of these minutes: the share that quick readers needed
REQUIRED = {"id": str, "number": str, "title": str, "points": int, "minutes": int, "hints": list}
OPTIONAL = {"kind": str, "measured": str, "core": bool, "part": str, "whole": bool}
MORE = "more"  # the second shelf: its folder, and the last word of its files
FILE = Path(__file__).with_name("course") / "exercises.toml"


@dataclass(frozen=True)
class Exercise:
    """One thing a student writes or answers."""

    id: str  # the name of the function, class or value
    number: str  # its place in the order of reading: "1.1"; the first piece is the notebook's
    title: str  # what it is, in a few words
    points: int
    minutes: int  # what a student may expect to need
    hints: tuple[str, ...]  # three, in the order in which they are given: nudge, idea, nearly code
    kind: str = "function"  # or "class" or "value"
    measured: str = ""  # of a value: the expression that measures it, in names of its notebook
    core: bool = False  # whether it belongs to the core of its notebook
    part: str = ""  # "model" or "training": of which half of the student's own model it is a part
    whole: bool = False  # of a class: whether ``__init__`` is the student's too

    @property
    def chapter(self) -> str:
        """The word that names notebook, module, checks and tests: "patches"."""
        return list(CHAPTERS)[int(self.number.split(".")[0]) - 1]

    @property
    def notebook(self) -> str:
        """The stem of its notebook, such as "01_patches"."""
        return f"0{self.number.split('.')[0]}_{self.chapter}"

    @property
    def stem(self) -> str:
        """The stem of its file: that of the notebook, or "01_patches_more" of the second shelf."""
        return self.notebook if self.core else f"{self.notebook}_{MORE}"

    @property
    def module(self) -> str:
        """The module that holds the reference."""
        return "vitedu.vit" if self.id == "VisionTransformer" else f"vitedu.{self.chapter}"

    @property
    def file_stem(self) -> str:
        """The stem of the files named after it: "lora_linear"; values of a chapter share theirs.

        Example:
            >>> find("LoRALinear").file_stem, find("tokens_at_224").file_stem
            ('lora_linear', 'values')
        """
        if self.kind == "value":
            return "values"
        # a word begins with a capital that a small letter follows
        return re.sub(r"(?<=.)(?=[A-Z][a-z])", "_", self.id).lower()


def load(path: Path = FILE) -> tuple[Exercise, ...]:
    """Read a syllabus.

    Raises:
        WordsError: the file is missing or wrong.
    """
    where = place(path)
    entries = check_table(where, read(path), {"exercise": list}, {})["exercise"]
    return tuple(_exercise(where, number, entry) for number, entry in enumerate(entries, start=1))


def _exercise(where: str, number: int, entry: dict) -> Exercise:
    where = f"{where}, exercise {entry.get('id', number) if isinstance(entry, dict) else number}"
    fields = check_table(where, entry, REQUIRED, OPTIONAL)
    hints = fields["hints"]
    if len(hints) != 3 or not all(isinstance(hint, str) and hint.strip() for hint in hints):
        raise WordsError(f"{where}: an exercise has three hints (got {len(hints)}); write three.")
    return Exercise(**fields | {"hints": tuple(hints)})


EXERCISES: tuple[Exercise, ...] = load()
BY_ID: dict[str, Exercise] = {exercise.id: exercise for exercise in EXERCISES}
STEMS = tuple(dict.fromkeys(exercise.stem for exercise in EXERCISES))  # in the order of reading


def describe_minutes(notebook: str) -> str:
    """Say how long the core of a notebook takes, from quick readers to ordinary ones.

    Example:
        >>> describe_minutes("01_patches")
        '80 to 110 minutes'
    """
    return f"{5 * round(QUICK * MINUTES[notebook] / 5)} to {MINUTES[notebook]} minutes"


def find(exercise_id: str) -> Exercise:
    """Look an exercise up by its id.

    Raises:
        ValueError: no such exercise; the message names the nearest ones.

    Example:
        >>> find("patchify").number
        '1.1'
    """
    if exercise_id in BY_ID:
        return BY_ID[exercise_id]
    folded = {exercise.casefold(): exercise for exercise in BY_ID}
    near = difflib.get_close_matches(str(exercise_id).casefold(), folded, n=3, cutoff=0.5)
    names = ", ".join(folded[name] for name in near)
    advice = f"did you mean {names}?" if near else "`vitedu list` shows them all."
    raise ValueError(f"there is no exercise {exercise_id!r}; {advice}")


def select(words: Iterable[str]) -> list[Exercise]:
    """Look up exercises by id, number or range of numbers, in the order of the syllabus.

    Raises:
        ValueError: nothing has such a name.

    Example:
        >>> [exercise.number for exercise in select(["1.1-1.3", "softmax"])]
        ['1.1', '1.2', '1.3', '2.1']
    """
    numbers = [exercise.number for exercise in EXERCISES]
    chosen = set()
    for word in map(str, words):
        first, dash, last = word.partition("-")
        ends = [numbers.index(n) for n in (first, last if dash else first) if n in numbers]
        found = {e.id for e in EXERCISES[ends[0] : ends[1] + 1]} if len(ends) == 2 else set()
        chosen |= found or {find(word).id}
    return [exercise for exercise in EXERCISES if exercise.id in chosen]


def in_notebook(notebook: str) -> list[Exercise]:
    """Give the exercises of one notebook, in its order."""
    return [exercise for exercise in EXERCISES if exercise.notebook == notebook]


def in_file(stem: str) -> list[Exercise]:
    """Give the exercises of one file, core or more, in its order."""
    return [exercise for exercise in EXERCISES if exercise.stem == stem]


def notebook_named(name: str) -> str:
    """Find a notebook by its stem, number, file name, path or chapter.

    Raises:
        ValueError: no such notebook; the message lists the choices.

    Example:
        >>> notebook_named("notebooks/01_patches.ipynb"), notebook_named("attention")
        ('01_patches', '02_attention')
        >>> notebook_named("3"), notebook_named("03")
        ('03_encoder', '03_encoder')
    """
    file = str(name).replace("\\", "/").rsplit("/", 1)[-1]
    stem = file.removesuffix(".ipynb").removesuffix(f"_{MORE}")
    notebooks = list(dict.fromkeys(exercise.notebook for exercise in EXERCISES))
    for notebook in notebooks:
        if stem in (notebook, *notebook.split("_", 1)) or f"0{stem}" == notebook[:2]:
            return notebook
    raise ValueError(f"there is not a notebook {str(name)!r}; there are {', '.join(notebooks)}.")
