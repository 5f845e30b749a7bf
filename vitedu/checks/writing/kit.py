"""What an author needs to write an exercise's checker. Read this page first.

Role: one door to the vocabulary of a checker file. Every word is explained where it is defined;
this page says how they fit together. ``vitedu/checks/<chapter>/<exercise>.py`` holds what only
Python can say::

    from vitedu.checks.writing.kit import USUAL, Checker, also, shaped

    CHECKER = Checker(
        # inputs: one case as the shapes say, then one for each variation
        cases=shaped("x: B D", *USUAL, also("other sizes", "square", D="B")),
        # part -> what a student has shown who passes it; polish={...} for what is a remark only
        idea={"values": "every row is averaged"},
    )

``<exercise>.toml`` beside it holds the known mistakes, as edits of the reference's text and as the
words that a student reads (``mistake_files`` explains it)::

    [[mistake]]
    id = "columns_added"
    name = "the columns are averaged, not the rows"
    expected = "one mean for each image"
    why = "Each row belongs to one image."
    try = "Look at dim."
    edits = [["dim=-1", "dim=0"]]

* **Cases.** ``shaped``, with ``also``, ``refused`` and the variations in capitals, says most of
  them, for a class as well (``layer=``). For other inputs write a function ``cases(g)`` that
  returns a list of ``Case``. It draws sizes with ``distinct`` and ``draw``, values with ``normal``
  and the parameters of a layer with ``random_state``. A model, or whatever is not plain data, is
  given as a recipe (``Config``, ``Layer``, ``Network`` ...).
* **Mistakes.** An edit replaces a piece of text that stands in the reference exactly once. Look
  into ``families.toml`` first: it has the words of mistakes that several exercises share, and whole
  banks. ``part`` is the part that the mistake fails. ``evidence`` names a function that describes
  the answer where its numbers say more than "37/480 values differ": one of ``evidence.py``, or of
  the checker file.
* **Right answers**, and the mutants of the reference that are right, stand in
  ``tests/proof/<chapter>/<exercise>.py``. ``make proof EXERCISE=row_means`` judges them all.

A file that takes much from one module imports it: ``from vitedu.checks import evidence, families``.
"""

from torch import Generator

from vitedu.checks.observing.arguments import Config, CpuGenerator, Layer
from vitedu.checks.observing.case import Case
from vitedu.checks.observing.observation import Observation
from vitedu.checks.writing.cases import (
    BATCH_OF_ONE,
    EXACT,
    FLOAT64,
    ON_ACCELERATOR,
    USUAL,
    Options,
    also,
    refused,
    shaped,
    usual,
)
from vitedu.checks.writing.checker import Checker
from vitedu.checks.writing.families import FUSED_NAMES
from vitedu.checks.writing.inputs import distinct, draw, normal, plural, random_state
