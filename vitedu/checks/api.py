"""What a notebook calls: ``check``, ``challenge``, ``hint``, ``solution``, ``progress``, ``reset``,
``export_model``.

Role: find the checker, run the check, show the report and store the result. Nothing here raises
because of a student's code or a mistyped id.
"""

import contextlib
import os
import reprlib
import time
from collections.abc import Callable
from typing import Any

from vitedu import exercises
from vitedu.checks.engine import judge_answer
from vitedu.checks.explaining.challenges import Challenge, hold_challenge
from vitedu.checks.explaining.report import Report
from vitedu.checks.judging.findings import Finding
from vitedu.checks.reference_registry import is_registered_reference, register_reference
from vitedu.checks.writing.checker import find_checker
from vitedu.course import kept
from vitedu.course import results as store
from vitedu.course.display import PrintedText, print_text, show
from vitedu.course.hints import next_hint
from vitedu.course.references import solution_source, stub_text
from vitedu.exporting.export import export_model, keep  # noqa: F401  (a notebook calls it)
from vitedu.exporting.importing import is_reference


def check(answer: Any, exercise: str | None = None, *, seed: int | None = None) -> Report:
    """Judge an answer, show the report and store the result; ``my_vit.py`` takes what passed.

    Args:
        answer: the function, class or value.
        exercise: its id; default is the answer's ``__name__``. A value must name its exercise.
        seed: of the random inputs; by default a new one every time.

    Returns:
        A ``Report``. ``report.implementation`` is the answer if it passed, the reference otherwise,
        and for a part of the model with which training would take over three times as long.
        If the answer is the reference that an earlier check handed out, the report says so and no
        result is stored.
    """
    start = time.perf_counter()
    try:
        report = judge(answer, exercise, seed=seed)
    except Exception as error:  # a bug in a checker must not stop the notebook
        name = exercise if isinstance(exercise, str) else getattr(answer, "__name__", "?")
        report = _refusal(str(name), answer, _describe_fault(error))
    if not report.is_reference:
        store.record(report.to_dict() | {"seconds": round(time.perf_counter() - start, 3)})
    report.display()
    name = report.exercise
    is_slow = report.passed and keep(answer, name)  # right, but too slow for training
    if is_slow or not report.passed:  # the notebook goes on
        with contextlib.suppress(ValueError, KeyError, ImportError):  # there is no checker
            report.implementation = register_reference(name, find_checker(name).reference)
    return report


def challenge(exercise: Any, test: Any = None) -> Challenge:
    """Try a student's test on the right part and on known broken ones, show and store the result.

    Args:
        exercise: its id, or the function or class.
        test: takes an implementation. It stops the implementation if it raises an error or returns
            ``False``, and lets it pass if it returns ``True`` or nothing.

    Returns:
        A ``Challenge``. ``stopped`` and ``total`` count the broken parts, and ``slipped`` is one
        that the test lets pass. A challenge gives no points.
    """
    name = _exercise_name(exercise)[:60]
    try:
        result = hold_challenge(name, test)
    except Exception as error:
        result = Challenge(name).end("error", _describe_fault(error))
    if result.total:
        store.record_challenge(name, result.stopped, result.total)
    result.display()
    return result


def judge(answer: Any, exercise: str | None = None, *, seed: int | None = None) -> Report:
    """Judge an answer as ``check`` does, but show and store nothing."""
    name = exercise if exercise is not None else getattr(answer, "__name__", None)
    if not isinstance(name, str):
        return _refusal(
            "check", answer, f'a value must name its exercise: check({reprlib.repr(answer)}, "...")'
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
        return _refusal(name, answer, f"seed must be an integer (got {reprlib.repr(seed)})")
    checker = find_checker(name)
    if is_registered_reference(name, answer) or is_reference(answer, name):
        return Report(name, reference=checker.reference, answer=answer).set_reference()
    return judge_answer(checker, answer, int(seed))


def _refusal(name: str, answer: Any, message: str) -> Report:
    report = Report(name, reference=answer, answer=answer)
    report.findings = [Finding("exercise", False, message)]
    return report.end("error", "the exercise is not known", ("note", message))


def _describe_fault(error: Exception) -> str:
    fault = f"{type(error).__name__}: {error}"
    return f"the checker itself failed, which is not your fault ({fault[:200]})"


def _print_about(exercise: Any, write: Callable[[exercises.Exercise], str]) -> PrintedText:
    """Print a text about an exercise, or the nearest names if there is no such exercise."""
    try:
        text = write(exercises.find(_exercise_name(exercise)))
    except ValueError as error:
        text = str(error)
    return print_text(text)


def hint(exercise: Any) -> PrintedText:
    """Show the next of the three hints of an exercise: a nudge, the idea, nearly the code."""
    return _print_about(exercise, next_hint)


def solution(exercise: Any) -> PrintedText:
    """Show the reference of an exercise."""
    return _print_about(exercise, solution_source)


def progress(notebook: str | None = None, *, end: bool = False) -> None:
    """Show every exercise with its state and points, or only those of the named notebook.

    A notebook also shows which parts of the model are the student's. ``end``: this is its last
    cell, so nothing of it is left to read.
    """
    if notebook and end:
        kept.keep(store.ENDS, exercises.notebook_named(notebook), 1)
    show(store.table_text(notebook), store.progress_html(notebook))


def reset(exercise: Any) -> PrintedText:
    """Open an exercise again: no result, no hints taken; its stub is printed, ready to paste."""
    return _print_about(exercise, _reopen)


def _reopen(exercise: exercises.Exercise) -> str:
    store.forget(exercise.id)
    stub = stub_text(exercise, f"# TODO {exercise.number}: {exercise.title}")
    return (
        f"{exercise.number} {exercise.id} is open again: not attempted, no hints taken.\n"
        f"Paste this into its cell in place of your answer, and run the cell:\n\n{stub}"
    )


def _exercise_name(exercise: Any) -> str:
    return exercise if isinstance(exercise, str) else str(getattr(exercise, "__name__", exercise))
