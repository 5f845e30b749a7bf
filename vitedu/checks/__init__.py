"""What decides exercises, in the notebook and in the grader.

The words, each with one meaning:

* An **exercise** is one thing that a student writes. Its **reference** is ours; a student's is an **answer**.
* A **case** (``probing.Case``) is one thing to do with an answer: arguments, and how they are given.
* A **part** is a group of cases under one name, such as "values" or "other sizes".
* A **driver** is a way to exercise an answer: call a function, build a layer, train for an epoch (``drivers``).
* To **probe** an answer is to run a case on it. What happened is an **observation**: arrays and plain facts
  (``probing.Observation``). A probe judges nothing and knows no reference, so it can run where nothing may be given away.
* A **judge** compares two observations of a case, the answer's and the reference's, **stage** after stage
  (``judging.Stage``): type, shape, values, gradients and so on. The first difference is a **problem**.
* A **finding** is the verdict on one part, with its points. A **report** is what a student reads.
* A **mistake** (``mistakes.Mistake``) is something that people get wrong, as edits of the reference and as words. A
  **bank** is the mistakes of one exercise. ``families`` holds those that come back.
* A **diagnosis** claims that an answer makes a certain mistake. It is made only if the mistake reproduces what was
  seen. Where no mistake does, ``relations`` looks for a simple relation to the right answer.
* A **checker** (``checker.Checker``) is all of this for one exercise. It stands in ``<chapter>/<exercise>.py``.
  ``proof`` holds the checkers against their banks, against right answers, and against mutants of the references.

The way of data: ``api.check`` -> ``engine.gather`` (probe every case) -> ``engine.conclude`` (judge, diagnose, report).
"""
