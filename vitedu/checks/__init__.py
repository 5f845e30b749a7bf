"""The checkers: they decide whether an answer is right, in the notebook and in the grader.

The way of a check (``api.check``, ``engine.judge_answer``) leads through four rooms. Each stands on
those before it, and the chapters stand beside ``explaining``::

    <exercise>.py    cases     what to call, drawn anew from a seed          writing
                       |
    the answer      observe    what it does on each case: arrays, facts      observing
                       |       (in the grader in another process)
    the reference    judge     the first difference of each part, points     judging
                       |
    <exercise>.toml diagnose   the known mistake that does the same, or      explaining
                       |       where right turns into wrong
                     report    words

``observing`` is exactly what the grader's sandbox loads. ``writing`` begins with ``kit``.

Each word below has one meaning in the whole package:

* An **exercise** is one thing that a student writes. The course's solution is the **reference**.
  The student's is the **answer**.
* A **case** (``case.Case``) is one call to make: the arguments, and how they are passed.
* A **part** is a group of cases under one name, such as "values" or "other sizes". The cases of
  "values" also decide the parts "returns" and "gradients". A part is **idea** or **polish**
  (``findings``): only the idea passes or fails an answer; polish is a remark.
* A **driver** (``drivers``) is a way to exercise an answer: call a function, build a layer and call
  it, train for an epoch.
* A **recipe** (``case.Recipe``, ``arguments``) is an argument that is not plain data, such as a
  model. It is built anew for every call.
* An **observation** (``observation.Observation``) is what an answer did on a case: arrays, and
  **facts** in words. Whoever observes knows no reference and decides nothing.
* The judge compares two observations of the same case, the answer's and the reference's, in
  **stages** (``judge.Stage``): type, shape, values, gradients and so on. The first difference is a
  **problem**.
* A **finding** (``report.Finding``) is the verdict on one part, with its points. A **report** is
  what the student reads.
* A **mistake** (``mistakes.Mistake``) is a typical error, written as edits of the reference and as
  words. The **bank** of an exercise lists its mistakes. It is a TOML file beside the checker, which
  ``mistake_files`` reads. A **family** is the words of a mistake that several exercises share.
  ``families`` makes the mistakes that every exercise of a kind can show.
* A **diagnosis** (``diagnose``) says which mistake an answer makes. It is given only if that
  mistake reproduces what went wrong. For errors that everybody meets, ``common_errors`` explains
  what no diagnosis does, in the words of ``errors.toml``.
* A **challenge** (``challenges``) turns a check round: the student writes the test, and the
  reference and the mistakes are what it judges.
* A **checker** (``checker.Checker``) holds all of this for one exercise, in
  ``<chapter>/<exercise>.py`` and ``<exercise>.toml``; a driver or a reader of random results that
  only this exercise needs stands beside it. Whoever writes one begins with ``kit``.
  ``vitedu lint`` says what is wrong with these files (``commands.inspection``).

That the checkers decide rightly is shown by ``tests/proof``: right answers, and mutants, which are
references with one small change.
"""
