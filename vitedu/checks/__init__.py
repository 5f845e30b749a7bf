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

``kit`` explains the words that an author needs: checker, case, part, recipe, mistake. Each of those
below has one meaning in the whole package, too:

* An **exercise** is one thing that a student writes. The course's solution is the **reference**.
  The student's is the **answer**.
* A **driver** (``drivers``) is a way to exercise an answer: call a function, build a layer and call
  it, train for an epoch.
* An **observation** (``observation.Observation``) is what an answer did on a case: arrays, and
  **facts** in words. Whoever observes knows no reference and decides nothing.
* The judge compares two observations of the same case, the answer's and the reference's, in
  **stages** (``judge.Stage``): type, shape, values, gradients and so on. The first difference is a
  **problem**.
* A **finding** is the verdict on one part, with its points. A **report** is what the student reads.
* The **bank** of an exercise lists its mistakes. A **family** is the words of one that several
  exercises share; ``checker.GENERAL`` names those that every one can show.
* A **diagnosis** (``diagnose``) says which mistake an answer makes. It is given only if that
  mistake reproduces what went wrong. For errors that everybody meets, ``common_errors`` explains
  what no diagnosis does, in the words of ``errors.toml``.
* A **challenge** (``challenges``) turns a check round: the student writes the test, and the
  reference and the mistakes are what it judges.

That the checkers decide rightly is shown by ``tests/proof``: right answers, and mutants, which are
references with one small change.
"""
