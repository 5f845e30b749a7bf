"""What a notebook imports: ``check``, ``hint``, ``solution``, ``progress``, ``reset``.

Role: find the checker, run the check, show the report and store the result. Nothing here raises
because of a student's code or a mistyped id.
"""

import os
import sys
from typing import Any

from vitedu import exercises
from vitedu.checks.checker import find_checker
from vitedu.checks.engine import judge_answer
from vitedu.checks.reference_registry import is_registered_reference, register_reference
from vitedu.checks.report import Finding, Report
from vitedu.course import results as store
from vitedu.course.references import solution_source

__all__ = ["Report", "check", "has_checker", "hint", "progress", "reset", "solution"]


class PrintedText(str):
    """A text that was already printed, so a notebook must not show it again."""

    def _ipython_display_(self):
        pass


def check(answer: Any, exercise: str | None = None, *, seed: int | None = None) -> Report:
    """Judge an answer, show the report and store the result.

    Args:
        answer: the function, class or value.
        exercise: its id; default is the answer's ``__name__``. A value must name its exercise.
        seed: of the random inputs; by default a new one every time.

    Returns:
        A ``Report``. ``report.implementation`` is the answer if it passed, the reference otherwise.
        If the answer is the reference that an earlier check handed out, the report says so and no
        result is stored.
    """
    try:
        report = judge(answer, exercise, seed=seed)
    except Exception as error:  # a bug in a checker must not stop the notebook
        name = exercise if isinstance(exercise, str) else getattr(answer, "__name__", "?")
        fault = f"{type(error).__name__}: {error}"
        report = _refusal(
            str(name), answer, f"the checker itself failed, which is not your fault ({fault[:200]})"
        )
        if has_checker(str(name)):  # the answer may be wrong, and the notebook goes on
            report.implementation = find_checker(str(name)).reference
    if not report.is_reference:
        store.record(report.to_dict())
    if not report.passed and exercises.BY_ID.get(report.exercise):
        report.implementation = register_reference(report.exercise, report.implementation)
    _show(report)
    return report


def judge(answer: Any, exercise: str | None = None, *, seed: int | None = None) -> Report:
    """Judge an answer as ``check`` does, but show and store nothing."""
    name = exercise if exercise is not None else getattr(answer, "__name__", None)
    if not isinstance(name, str):
        return _refusal(
            "check", answer, f'a value must name its exercise: check({_short_repr(answer)}, "...")'
        )
    if len(name) > 60:
        name = f"{name[:56]} ..."
    if name == "<lambda>":
        return _refusal("check", answer, 'a lambda must name its exercise: check(..., "patchify")')
    try:
        exercises.find(name)
    except ValueError as error:
        return _refusal(name, answer, str(error))
    if seed is None:
        seed = int.from_bytes(os.urandom(3), "big")
    if not isinstance(seed, int):
        return _refusal(name, answer, f"seed must be an integer (got {_short_repr(seed)})")
    checker = find_checker(name)
    if is_registered_reference(name, answer):
        return Report(name, reference=checker.reference, answer=answer).set_reference()
    return judge_answer(checker, answer, int(seed))


def _refusal(name: str, answer: Any, message: str) -> Report:
    report = Report(name, reference=answer, answer=answer)
    return report.set_failed([Finding("exercise", False, message)], [], status="error")


def _short_repr(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:
        text = type(value).__name__
    return text if len(text) < 40 else f"{text[:36]}..."


def _show(report: Report) -> None:
    """Display the report in a notebook; print it elsewhere."""
    if _in_notebook():
        report.display()
    else:
        print(report)


def _in_notebook() -> bool:
    return "IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None


def _print_text(text: str) -> PrintedText:
    print(text)
    return PrintedText(text)


def has_checker(exercise: str) -> bool:
    """Tell whether an exercise has a checker."""
    try:
        find_checker(exercise)
    except (ValueError, KeyError, ImportError):
        return False
    return True


def hint(exercise: Any) -> PrintedText:
    """Show the next of the three hints of an exercise: a nudge, the idea, nearly the code."""
    name = _exercise_name(exercise)
    try:
        entry = exercises.find(name)
    except ValueError as error:
        return _print_text(str(error))
    total = len(entry.hints)
    number = min(store.count_hint(name), total)
    if not total:
        return _print_text(f"{entry.number} {name} has no hints yet")
    more = (
        f'hint("{name}") shows the next'
        if number < total
        else f'that was the last; solution("{name}") shows the reference'
    )
    return _print_text(
        f"{entry.number} {name}, hint {number} of {total}: {entry.hints[number - 1]}\n({more})"
    )


def solution(exercise: Any) -> PrintedText:
    """Show the reference of an exercise."""
    name = _exercise_name(exercise)
    try:
        entry = exercises.find(name)
    except ValueError as error:
        return _print_text(str(error))
    return _print_text(solution_source(entry))


def progress(notebook: str | None = None) -> None:
    """Show every exercise with its state and points, or only those of the named notebook."""
    if _in_notebook():
        from IPython.display import HTML, display

        display(_TextAndHtml(store.table_text(notebook), HTML(store.table_html(notebook)).data))
    else:
        print(store.table_text(notebook))


class _TextAndHtml:
    """A text that a notebook shows as HTML and a terminal as plain text."""

    def __init__(self, text: str, html: str):
        self.text, self.html = text, html

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": self.text, "text/html": self.html}


def reset(exercise: Any) -> PrintedText:
    """Delete what is stored about an exercise: its result and the hints taken."""
    name = _exercise_name(exercise)
    try:
        exercises.find(name)
    except ValueError as error:
        return _print_text(str(error))
    store.forget(name)
    return _print_text(f"{name} is forgotten: not attempted, no hints taken")


def _exercise_name(exercise: Any) -> str:
    return exercise if isinstance(exercise, str) else str(getattr(exercise, "__name__", exercise))
