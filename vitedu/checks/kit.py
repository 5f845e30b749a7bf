"""What an author needs to write an exercise's checker. Read this page first.

Role: one door to the vocabulary of a checker file. Every word is explained where it is defined; this
page says how they fit together. ``vitedu/checks/<chapter>/<exercise>.py`` holds an exercise's cases,
its known mistakes with their words, and right answers written otherwise. It looks like this::

    from vitedu.checks.kit import USUAL, Checker, Mistake, also, shaped

    # typical errors, as edits of the reference's text, with the words that a student reads
    MISTAKES = (
        Mistake("rows_added", "the rows are added, not the columns", "a sum along the last axis",
                "Each row belongs to one image.", "Look at dim.", {"dim=-1": "dim=0"}),
    )


    # every public function or class of the file is a right answer
    def by_matrix_product(x):
        return x @ x.new_ones(x.shape[-1])


    CHECKER = Checker(
        "row_sums",
        # inputs: one case as the shapes say, then one for each variation
        cases=shaped("x: B D", *USUAL, also("other sizes", "square", D="B")),
        # part -> what a student has shown who passes it
        proves={"values": "every row is added up"},
        # mutants of the reference that are right, by the reason why
        equivalent={"a sum of whole numbers is exact": ("x.double()",)},
    )

* **Cases.** ``shaped``, with ``also``, ``refused`` and the variations in capitals, says most of them. For
  other inputs write a function ``cases(g)`` that returns a list of ``Case``. It draws sizes with
  ``distinct`` and ``draw``, values with ``normal`` and the parameters of a layer with ``random_state``.
  A model, or whatever is not plain data, is given as a recipe (``Config``, ``Layer``, ``Network`` ...).
* **Mistakes.** An edit replaces a piece of text that stands in the reference exactly once. Look into
  ``families`` first: it has mistakes that several exercises share (``FAMILY.by({...})`` adds the edits),
  whole banks, and reasons why a mutant is right. ``part`` is the part that the mistake fails.
  ``evidence`` describes the answer where its numbers say more than "37/480 values differ".
* **Right answers.** Three to six, as unlike each other as the exercise allows.
* **Mutants.** ``vitedu bank <id> --mutate`` prints the mutants that pass. Each shows that a case is
  missing, or gets its reason under ``equivalent`` or ``left_open``. Those that only count an axis from
  the other end are recognised without being listed.

A file that takes much from one module imports it: ``from vitedu.checks import evidence, families``.
"""

from vitedu.checks import families
from vitedu.checks.arguments import (
    Config,
    Conv,
    CpuGenerator,
    FeatureMap,
    Layer,
    Network,
    StateDict,
)
from vitedu.checks.cases import (
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
from vitedu.checks.checker import Checker
from vitedu.checks.evidence import shapes
from vitedu.checks.families import (
    DEFAULT,
    FIRST_OF_BATCH,
    FUSED_NAMES,
    NEGATIVE_DIVISOR,
    NEW_AXIS,
    UNUSED_SIZES,
)
from vitedu.checks.inputs import (
    classifier_state,
    distinct,
    draw,
    draw_batches,
    normal,
    plural,
    random_state,
)
from vitedu.checks.mistakes import Edits, Mistake
from vitedu.checks.probing import Case, Observation

__all__ = [
    "BATCH_OF_ONE",
    "DEFAULT",
    "EXACT",
    "FIRST_OF_BATCH",
    "FLOAT64",
    "FUSED_NAMES",
    "NEGATIVE_DIVISOR",
    "NEW_AXIS",
    "ON_ACCELERATOR",
    "UNUSED_SIZES",
    "USUAL",
    "Case",
    "Checker",
    "Config",
    "Conv",
    "CpuGenerator",
    "Edits",
    "FeatureMap",
    "Layer",
    "Mistake",
    "Network",
    "Observation",
    "Options",
    "StateDict",
    "also",
    "classifier_state",
    "distinct",
    "draw",
    "draw_batches",
    "families",
    "normal",
    "plural",
    "random_state",
    "rearrange",
    "refused",
    "shaped",
    "shapes",
    "usual",
]


def rearrange(x, pattern, **sizes):
    """Call einops, as an answer may; it is loaded here alone, because the package does without it."""
    from einops import rearrange

    return rearrange(x, pattern, **sizes)
