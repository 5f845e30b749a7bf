"""What an author needs to write an exercise's checker. Read this page first.

Role: one door to the vocabulary of a checker file. This page explains each of its words once, and
what they take stands where they are defined. ``vitedu/checks/<chapter>/<exercise>.py`` holds what
only Python can say::

    from vitedu.checks.writing.kit import USUAL, also, shaped

    # inputs: one case as the shapes say, then one for each variation
    cases = shaped("x: B D", *USUAL, also("other sizes", "square", D="B"))

``<exercise>.toml`` beside it says what a part shows that passes, ``[polish]`` for what is a remark
only, and holds the known mistakes, as edits of the reference's text and as the words that a student
reads (``mistake_files`` explains it)::

    [idea]
    values = "every row is averaged"

    [[mistake]]
    id = "columns_added"
    name = "the columns are averaged, not the rows"
    expected = "one mean for each image"
    why = "Each row belongs to one image."
    try = "Look at dim."
    edits = [["dim=-1", "dim=0"]]

Fifteen words are enough for most exercises.

* **What decides.** In Python, ``cases`` is all that most files define. Some have ``weights`` of
  parts, ``forbidden`` functions, a ``picture`` of the counterexample (``checker.Checker`` lists
  all). In TOML, ``idea`` has the parts whose failing fails the answer, ``polish`` the remarks.
* **Cases by shapes.** ``shaped`` reads the arguments ("x: B D; n = B"), draws a size for each
  letter and makes the first case. ``also`` is one more, with other sizes or options. ``refused``
  must end in a ValueError. ``FLOAT64`` is the same in float64, ``ON_ACCELERATOR`` the same on
  another device, ``TURNED`` the same with its axes turned round in memory, ``USUAL`` all three and
  a batch of one. ``EXACT`` is the tolerance where values are only moved.
* **Cases by hand.** The function ``cases(g)`` returns a list of ``Case``: a name in words, the
  arguments, the part. ``usual`` adds ``USUAL`` to them. ``draw`` draws one number, ``distinct``
  several different ones, ``normal`` a tensor, and ``plural`` writes a count with its noun.
* **Arguments that are no data** are recipes, built anew for every call: ``Layer`` makes a linear
  layer, a norm or a convolution. The others stand in ``vitedu.checks.observing.arguments``. An
  exercise with draws of its own has a driver and a reader, as ``less_data/drop_path.py`` has.

* **Mistakes.** An edit replaces a piece of text that stands in the reference exactly once. Look
  into ``families.toml`` first: it has the words of mistakes that several exercises share, and whole
  banks. ``part`` is the part that the mistake fails. Mistakes of gradients are named by the
  families ``detached``, which every exercise has, and ``not_detached``; by no others.
* **Right answers**, and the mutants of the reference that are right, stand in
  ``tests/proof/<chapter>/<exercise>.py``. ``make proof EXERCISE=row_means`` judges them all.

Whatever else a file needs it takes from its module: ``from vitedu.checks.writing import inputs``.
"""

from vitedu.checks.observing.arguments import Layer
from vitedu.checks.observing.case import Case
from vitedu.checks.writing.cases import (
    EXACT,
    FLOAT64,
    ON_ACCELERATOR,
    TURNED,
    USUAL,
    also,
    refused,
    shaped,
    usual,
)
from vitedu.checks.writing.inputs import distinct, draw, normal, plural
