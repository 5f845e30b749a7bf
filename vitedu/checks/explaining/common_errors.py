"""Errors that everybody meets, explained whatever the exercise: the table is ``errors.toml``."""

import builtins
import contextlib
import difflib
import inspect
import re
from typing import Any

import torch
from torch import nn

from vitedu.checks.judging.judge import Problem, Stage
from vitedu.checks.observing.case import Case
from vitedu.checks.observing.observation import Observation
from vitedu.checks.writing.mistake_files import read_errors
from vitedu.course.run_above import is_defined_above, menu

# as a message names them -> what has the attributes
_OWNERS = {
    "Tensor": torch.Tensor,
    "torch": torch,
    "torch.nn": nn,
    "torch.nn.functional": nn.functional,
}
_STAGES = {Stage.CALL, Stage.STRUCTURE, Stage.TYPE, Stage.SHAPE, Stage.GRADIENTS}
_USUAL = {"torch", "nn", "F", "math", "self", *filter(str.islower, dir(builtins))}


def explain(problem: Problem, seen: Observation, reference: Any) -> dict[str, str]:
    """Return "why", "try" and perhaps "headline" of the first common error that fits, or {}.

    Args:
        problem: the first of the report.
        seen: what the answer did on its case.
        reference: its arguments are names that a student knows.
    """
    error = seen.error
    is_meant = problem.case.raises or (error and error.raised_by_student)
    if is_meant or problem.stage not in _STAGES:
        return {}
    text = error.message if error else f"expected {problem.expected}; got {problem.got}"
    for entry in read_errors():
        match = entry["message"].search(text)
        is_kind = "kind" not in entry or (error and error.kind == entry["kind"])
        line = error.location[1] if error and error.location else ""
        is_kind = is_kind and entry.get("line", "") in line
        if not match or not is_kind or (entry.get("printed") and not seen.printed):
            continue
        groups = match.groups("")
        names = _known_names(problem.case, seen, reference, groups)
        with contextlib.suppress(KeyError):  # its words ask for a name that is not known
            words = {key: entry[key] for key in ("headline", "why", "try") if key in entry}
            return {key: text.format(*groups, **names) for key, text in words.items()}
    return {}


def _known_names(case: Case, seen: Observation, reference: Any, groups) -> dict[str, str]:
    """Return "near", "attribute" and "menu" for the last group, as far as they are known."""
    if seen.error is None or not groups:
        return {}
    name, line = groups[-1], seen.error.location[1] if seen.error.location else ""
    attributes = {key.split(".")[0] for key in case.state} | set(case.init)
    if seen.error.kind == "AttributeError":
        is_own = re.search(rf"\bself\.{re.escape(name)}\b", line)  # the layer's, not None's
        places = [dir(_OWNERS[groups[0]]) if groups[0] in _OWNERS else attributes if is_own else ()]
    else:  # the student's own names go before the usual ones
        arguments = inspect.signature(getattr(reference, "forward", reference)).parameters
        own = {*re.findall(r"(?<![.\w])[^\W\d]\w*", line), *arguments, *case.init}
        places = [own, _USUAL]
    near = [n for names in places for n in difflib.get_close_matches(name, {*names} - {name}, n=1)]
    known = {"near": near[0]} if near else {}
    if seen.error.kind == "NameError" and is_defined_above(name):
        known["menu"] = menu()
    return known | ({"attribute": name} if name in attributes else {})
