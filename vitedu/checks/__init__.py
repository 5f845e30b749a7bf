"""The checkers: they decide whether an answer is right, in the notebook and in the grader.

Each word below has one meaning in the whole package:

* An **exercise** is one thing that a student writes. The course's solution is the **reference**.
  The student's is the **answer**.
* A **case** (``probing.Case``) is one call to make: the arguments, and how they are passed.
* A **part** is a group of cases under one name, such as "values" or "other sizes". The cases of
  "values" also decide the parts "returns" and "gradients".
* A **driver** (``probing``, ``drivers``) is a way to exercise an answer: call a function, build a
  layer and call it, train for an epoch.
* A **recipe** (``probing.Recipe``, ``arguments``) is an argument that is not plain data, such as a
  model. It is built anew for every call.
* A **probe** runs a case on an answer. It writes down what happened as an **observation**
  (``probing.Observation``): arrays, and **facts** in words. A probe knows no reference and decides
  nothing.
* A **judge** (``judging``) compares two observations of the same case, the answer's and the
  reference's. It works in **stages** (``judging.Stage``): type, shape, values, gradients and so on.
  The first difference is a **problem**.
* A **finding** (``reporting.Finding``) is the verdict on one part, with its points. A **report** is
  what the student reads.
* A **mistake** (``mistakes.Mistake``) is a typical error, written as edits of the reference and as
  words. The **bank** of an exercise lists its mistakes. It is a TOML file beside the checker, which
  ``mistake_files`` reads. A **family** is the words of a mistake that several exercises share.
  ``families`` makes the mistakes that every exercise of a kind can show.
* A **diagnosis** (``diagnosing``) says which mistake an answer makes. It is given only if that
  mistake reproduces what went wrong. If no mistake does, ``relations`` looks for a simple relation
  to the right result, such as a factor.
* A **checker** (``checker.Checker``) holds all of this for one exercise, in
  ``<chapter>/<exercise>.py`` and ``<exercise>.toml``. Whoever writes one begins with ``kit``.
  ``inspection`` says what is wrong with these files.

That the checkers decide rightly is shown by ``tests/proof``: right answers, and mutants, which are
references with one small change.

A check runs ``api.check``, then ``engine.gather`` (probe every case), then ``engine.conclude``
(judge, diagnose, report).
"""
