"""Make the grade of one exercise from what the runs of a student's notebooks found.

Role: ``grade_answer``. A wrong answer gets its points, and a right one that could not be run here
is open, with the cell and its error: never a zero that nobody can explain.
"""

import time

from vitedu import exercises
from vitedu.checks.explaining.report import Report
from vitedu.checks.writing.checker import MOST_POLISH
from vitedu.grading.grades import PASSED, REASONS, Answer, ExerciseGrade, Flag
from vitedu.grading.judge import DRAWS, Verdict, conclude, copy_report
from vitedu.grading.running import Found, Outcome, StudentRuns

MAX_KEPT = 6000  # the most characters of code that a grade keeps
SYNTAX = ("SyntaxError", "IndentationError", "TabError")


def grade_answer(
    answer: Answer,
    seed: int,
    box: StudentRuns,
    *,
    runs: int = DRAWS,
    polish: float = MOST_POLISH,
    passed: frozenset[str] = frozenset(),
) -> ExerciseGrade:
    """Grade one answer. The first one of a student has the notebooks run.

    Args:
        answer: what a person reads of it.
        seed: of the secret inputs; the same seed repeats them.
        box: the runs of the student's notebooks.
        runs: draws of each answer; all must agree.
        polish: the share of the points that polish has at most; ``Checker.most_polish``.
        passed: not used here; what passed is known to the runs.

    Raises:
        ValueError: ``runs`` is below 1.
    """
    if runs < 1:
        raise ValueError(f"runs must be at least 1 (got {runs}).")
    exercise, start = exercises.find(answer.exercise), time.perf_counter()
    all_found, outcomes = box.find(seed, polish, runs)
    found = all_found.get(answer.exercise)
    verdict = _judge_found(found) if found else _explain(answer.exercise, outcomes)
    if verdict.reason == "no_cell" and any(exercise.id in s.blank for s in box.extraction.scripts):
        verdict = Verdict(Report(exercise.id).set_not_attempted())
    flags = [*answer.flags, *_find_flags(answer.exercise, verdict, found, box)]
    grade = ExerciseGrade(
        answer.exercise,
        verdict.state,
        float(exercise.points),
        verdict.points,
        reason=verdict.reason,
        detail=verdict.detail,
        flags=flags,
        runs=len(found.results) if found else 0,
        headline=REASONS.get(verdict.reason, ""),
        seconds=round(time.perf_counter() - start, 3),
    )
    if verdict.report is not None:
        copy_report(grade, verdict.report)
    if grade.state != PASSED and grade.attempted:
        grade.code = answer.source[:MAX_KEPT]
        grade.place = f"{answer.notebook}, cell {answer.cell}" if answer.cell else answer.notebook
    return grade


def _judge_found(found: Found) -> Verdict:
    """Return the verdict on an answer; it is open if it failed and misses something."""
    verdict = conclude(found.results)
    if verdict.reason or verdict.state == PASSED or verdict.is_stub or not found.lost:
        return verdict
    number, name, error = found.lost[0]
    words = f"it needs {name}; cell {number} ended here in {error}"
    if number < 0:
        words = f"it needs {name}, which is made of the course's data; they are not here"
    return Verdict(reason="import", detail=words)


def _find_flags(
    exercise: str, verdict: Verdict, found: Found | None, box: StudentRuns
) -> list[Flag]:
    flags = []
    if verdict.reason == "unstable":
        flags.append(Flag("unstable", f"Draws disagreed: {verdict.detail}."))
    if found and any(each.is_undecided for each in found.results):
        words = "What it does on another device could not be seen: it ended in an error there."
        flags.append(Flag("undecided", words))
    for script in box.extraction.scripts if verdict.state != PASSED else ():
        if number := script.passes.get(exercise):
            words = f"cell {number} of {script.name} shows that it passed there"
            flags.append(Flag("stored_verdict", words))
            break
    return flags


def _explain(exercise: str, outcomes: list) -> Verdict:
    """Say why no run came to an answer, from the cell that would have bound it."""
    for script, outcome in outcomes:
        for place in reversed(script.defines.get(exercise, ())):
            if verdict := _explain_cell(exercise, script.cells[place].number, outcome):
                return verdict
        if -1 in outcome.troubles:
            return Verdict(None, *outcome.troubles[-1])
        if exercise in outcome.hidden:
            report = Report(exercise)
            report.status, report.headline = "failed", "a reference of the course is no answer"
            return Verdict(report)
        if exercise in outcome.absent:
            words = "it is made of the course's data, which are not here"
            return Verdict(reason="import", detail=words)
    return Verdict(reason="no_cell", detail=f"no cell that ran here binds {exercise}")


def _explain_cell(exercise: str, number: int, outcome: Outcome) -> Verdict | None:
    if number in outcome.troubles:
        reason, detail = outcome.troubles[number]
        return Verdict(reason=reason, detail=f"cell {number}: {detail}")
    errors = [error for error in outcome.errors if error[0] == number]
    errors.sort(key=lambda error: exercise in error[3] or error[1] in SYNTAX)
    if not errors:
        return None
    missing = [error for error in errors if error[1] in ("ImportError", "ModuleNotFoundError")]
    _, kind, text, _ = missing[0] if missing and errors[-1][1] == "NameError" else errors[-1]
    reasons = dict.fromkeys(SYNTAX, "syntax") | {"TimeUp": "timeout", "MemoryError": "memory"}
    return Verdict(reason=reasons.get(kind, "import"), detail=f"cell {number}: {kind}: {text}")
