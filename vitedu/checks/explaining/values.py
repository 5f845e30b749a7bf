"""Check answers that are a value: a number, a word, a pair of measurements.

Role: ``judge_value``. Python numbers, NumPy scalars and 0-d tensors are treated alike, and so are
lists and tuples. Letter case and spaces around a word do not matter. Messages do not show the right
value.
"""

import math
from typing import Any

from vitedu.checks.explaining.diagnose import Diagnosis
from vitedu.checks.explaining.report import Report
from vitedu.checks.judging.findings import Finding
from vitedu.checks.judging.judge import Problem, Stage
from vitedu.checks.observing.answers import PlainValue
from vitedu.checks.observing.case import Case
from vitedu.checks.writing.checker import ValueChecker
from vitedu.checks.writing.mistakes import Mistake

CLOTHES = 0.1  # the share of the points that the right value in another type costs


def judge_value(checker: ValueChecker, given: PlainValue, answer: Any = None) -> Report:
    """Judge a value, of this process or another: ``answer`` is the object, if it is in this one."""
    report = Report(checker.exercise, reference=checker.reference, answer=answer)
    if given.is_empty:
        return report.set_not_attempted()
    points, plain, kind = report.max_points, given.value, _kind(checker.reference)
    if given.is_known and _accepts(checker, plain, checker.reference):
        return report.set_passed([Finding("value", True, checker.proves, points)])
    cast = _cast(plain, checker.reference) if given.is_known else plain
    if cast is not plain and _accepts(checker, cast, checker.reference):
        words = f"{kind} is asked for, and this is {_kind(plain)}"
        form = Finding("form", False, words, CLOTHES * points, is_polish=True)
        whole = Finding("value", True, checker.proves, points - form.max_points)
        return report.set_passed([whole, form])
    expected, got = kind, _kind(plain) if given.is_known else given.kind
    known, is_alike = [], got == kind
    if is_alike:
        expected, got = _describe_wrong_value(checker, plain), f"{plain!r}"
        known = [mistake for mistake in checker.bank if _is_mistake(checker, mistake, plain)][:1]
    # there is no case, because nothing was called
    problem = Problem(Stage.CALLABLE, Case(""), expected, got, "not the value asked for")
    finding = Finding("value", False, f"expected {expected}; got {got}", points)
    diagnoses = [Diagnosis(mistake, got, ("value",)) for mistake in known]
    report.set_failed([finding], diagnoses, {"value": problem})
    if is_alike and not known:
        report.lines.append(("try", f'hint("{checker.exercise}") gives a first step.'))
    return report


def _accepts(checker: ValueChecker, answer: Any, value: Any, rtol: float | None = None) -> bool:
    """Compare two plain values, within ``rtol`` or the checker's own tolerance."""
    if _kind(answer) != _kind(value):
        return False
    if isinstance(value, (tuple, list)):
        return all(_accepts(checker, a, v, rtol) for a, v in zip(answer, value, strict=True))
    if isinstance(value, str):
        return answer == value.strip().casefold()
    rtol = checker.rtol if rtol is None else rtol
    try:
        return math.isclose(float(answer), float(value), rel_tol=rtol, abs_tol=checker.atol)
    except OverflowError:  # an integer of hundreds of digits
        return False


def _is_mistake(checker: ValueChecker, mistake: Mistake, answer: Any) -> bool:
    """Tell whether an answer is a mistake of the bank."""
    if mistake.recognises is None:
        return _accepts(checker, answer, mistake.value, mistake.rtol)
    try:
        return bool(mistake.recognises(answer))
    except Exception:
        return False


def _describe_wrong_value(checker: ValueChecker, answer: Any) -> str:
    """Write "another value", and which parts of a wrong tuple are already right."""
    if not isinstance(answer, tuple):
        return "another value"
    places = zip(("first", "second", "third"), answer, checker.reference, strict=False)
    right = [word for word, part, value in places if _accepts(checker, part, value)]
    words = f"; right already: the {' and the '.join(right)}" if right else ""
    return f"another value{words}"


def _cast(value: Any, reference: Any) -> Any:
    """Return a value as the kind of the reference: ``[x]``, text or a boolean for a number."""
    if isinstance(value, tuple) and len(value) == 1 and not isinstance(reference, tuple | list):
        return value[0]
    if isinstance(value, str | bool) and _kind(reference) == "a number":
        try:
            return float(value)
        except ValueError:
            return value
    return value


def _kind(value: Any) -> str:
    """Say what kind of answer a value is."""
    if isinstance(value, (tuple, list)):
        kinds = {
            "list" if isinstance(item, tuple | list) else _kind(item).removeprefix("a ")
            for item in value
        }
        what = kinds.pop() if len(kinds) == 1 else "value"
        return f"{len(value)} {what}{'' if len(value) == 1 else 's'}"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a word"
    return "a number"
