"""What a notebook calls: ``check``, ``challenge``, ``hint``, ``solution``, ``progress``, ``reset``,
``export_model``.

Role: find the checker, run the check, show the report and store the result. Nothing here raises
because of a student's code or a mistyped id, but ``export_model``, which says what does not fit.
"""

import contextlib
import os
import reprlib
import time
from typing import Any

from vitedu import exercises
from vitedu.checks.engine import judge_answer
from vitedu.checks.explaining.challenges import Challenge, hold_challenge
from vitedu.checks.explaining.report import Report
from vitedu.checks.judging.findings import Finding
from vitedu.checks.writing.checker import find_checker
from vitedu.course import results as store
from vitedu.course.calls import exercise_name, hint, progress, reset, solution  # noqa: F401
from vitedu.exporting.export import export_model, keep  # noqa: F401  (a notebook calls it)
from vitedu.exporting.handed_out import hand_out, is_reference


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
            report.implementation = hand_out(name, find_checker(name).reference)
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
    name = exercise_name(exercise)[:60]
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
        message = f"seed must be an integer (got {reprlib.repr(seed)})"
        return _refusal(name, answer, message, "the seed is not a number")
    checker = find_checker(name)
    if is_reference(answer, name):
        return Report(name, reference=checker.reference, answer=answer).set_reference()
    return judge_answer(checker, answer, int(seed))


def _refusal(
    name: str, answer: Any, message: str, headline: str = "the exercise is not known"
) -> Report:
    report = Report(name, reference=answer, answer=answer)
    report.findings = [Finding("exercise", False, message)]
    return report.end("error", headline, ("note", message))


def _describe_fault(error: Exception) -> str:
    fault = f"{type(error).__name__}: {error}"
    return f"the checker itself failed, which is not your fault ({fault[:200]})"
