"""Judge: compare what an answer did with what the reference did, and report the first difference.

Role: ``find_problem`` takes two observations of one case and works through the stages in the order
of ``Stage``. It sees only arrays and facts, never the answer itself. Messages give the evidence and
never a reference value.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import Any

import torch

from vitedu.checks.case import Case, hands_double
from vitedu.checks.compare import (
    at_most_four,
    read,
    short,
    tolerance,
    values_differ,
    without_effect,
)
from vitedu.checks.error_text import error_headline, trouble_text
from vitedu.checks.observation import LEFT, OVERWRITTEN, REMEMBERED, Observation


class Stage(IntEnum):
    """What is judged, in this order. A report shows the first stage that fails."""

    CALLABLE = auto()  # a function or class, as the exercise asks
    SIGNATURE = auto()
    OPERATIONS = auto()  # no forbidden operation ran
    CALL = auto()  # the call returns, or raises the right error
    STRUCTURE = auto()  # names and shapes of a layer's parameters
    TYPE = auto()
    SHAPE = auto()
    DTYPE = auto()
    DEVICE = auto()
    FINITE = auto()
    VALUES = auto()
    FACTS = auto()
    AGAIN = auto()  # a second call is right too, and neither call changes any setting
    EFFECTS = auto()  # every argument has its effect
    UNCHANGED = auto()  # the inputs are not modified
    GRADIENTS = auto()


@dataclass(frozen=True)
class Problem:
    """The first thing that is wrong with an answer on one case."""

    stage: Stage
    case: Case
    expected: str
    got: str
    headline: str = ""  # the headline of the report; default: that of the stage


def find_problem(case: Case, got: Observation, want: Observation) -> Problem | None:
    """Find the first problem on one case; None if the observations agree."""
    if case.on_accelerator:
        return _compare_devices(case, got)
    read(case, got, want)
    left = _judge_again(got, want) if got.error is None else None
    if left and case.driver == "again":
        return Problem(Stage.AGAIN, case, *left)
    for stage, judge in _JUDGES.items():
        words = judge(case, got, want)
        if words and case.driver == "again" and stage is Stage.VALUES:
            words = (*words[:2], "the first call is right, a call with other values is not")
        if words:
            return Problem(stage, case, *words)
    return Problem(Stage.AGAIN, case, *left) if left else None


def _compare_devices(case: Case, got: Observation) -> Problem | None:
    """Judge a case with inputs on an accelerator: the call works and its results are there too."""
    if got.undecided:
        return None
    if got.error is not None:
        return Problem(Stage.DEVICE, case, "work on any device", trouble_text(got))
    wrong = {name: kind for name, kind in got.devices.items() if kind != "accelerator"}
    if wrong:
        name, kind = next(iter(wrong.items()))
        return Problem(
            Stage.DEVICE, case, f"{name} on the device of the inputs", f"{name} on {kind}"
        )
    return None


def _judge_call(case: Case, got: Observation, want: Observation):
    if case.raises:
        if got.error is None:
            words = "no error; the call returned as if nothing were wrong"
            return f"a {case.raises}", words, "an error is missing"
        if case.raises not in got.error.kinds:
            return f"a {case.raises}", trouble_text(got), error_headline(got)
        missing = [str(number) for number in case.mentions if str(number) not in got.error.message]
        if missing:
            numbers = " and ".join(str(number) for number in case.mentions)
            return (
                f"a {case.raises} whose message names {numbers}",
                f"the message {got.error.message!r}",
            )
        return None
    if got.error is not None:
        return "a result", trouble_text(got), error_headline(got)
    return None


_ADVICE = {
    "None": "; look for a missing `return`",
    "generator": "; look for `yield`",
    "coroutine": "; look for `async def`",
    "number with a graph behind it": "; look for a sum of losses without .item()",
}


def _judge_type(case: Case, got: Observation, want: Observation):
    if "instance" in got.types:
        return "an nn.Module", f"an instance of {got.types['instance']}"
    for name, wanted in want.types.items():
        if got.types.get(name) == wanted:
            continue
        whole = got.types.get("result", "")
        if name not in got.types and not whole:
            return f"{name}: {wanted}", "nothing", f"{name} is missing"
        if name not in got.types and whole not in ("", want.types.get("result")):
            name, found = "result", whole
            wanted = f"{len(case.outputs)} results: {', '.join(case.outputs)}"
        else:
            found = got.types.get(name, "nothing")
        return f"{name}: {wanted}" if name != "result" else wanted, found + _ADVICE.get(found, "")
    if "result" in got.types and "result" not in want.types:
        return "a result", got.types["result"]
    return None


def _judge_structure(case: Case, got: Observation, want: Observation):
    found = vars(got.parameters)
    wrong = [f"{kind}: {at_most_four(names)}" for kind, names in found.items() if names]
    if wrong:
        return "parameters with the names and sizes in the text", "; ".join(wrong)
    return None


def _outputs(got: Observation, want: Observation) -> Iterator[tuple[str, Any, torch.Tensor]]:
    """Yield (name, the answer's array or None, the reference's array) for every output."""
    ours = got.arrays | got.draws
    for name, wanted in (want.arrays | want.draws).items():
        yield name, ours.get(name), wanted


def _judge_shape(case: Case, got: Observation, want: Observation):
    for name, ours, wanted in _outputs(got, want):
        if ours is None and name in want.devices and got.devices.get(name) not in (None, "cpu"):
            continue  # it is on another device and was not copied; Stage.DEVICE judges that
        if ours is None:
            return f"{name}", "nothing of that name"
        if ours.shape != wanted.shape:
            return f"{name} of shape {tuple(wanted.shape)}", f"shape {tuple(ours.shape)}"
    return None


def _judge_dtype(case: Case, got: Observation, want: Observation):
    for name, ours, wanted in _outputs(got, want):
        if ours is not None and ours.dtype != wanted.dtype:
            return f"{name} of dtype {short(wanted.dtype)}", f"dtype {short(ours.dtype)}"
    is_narrowed = "narrowed" in got.operations and "narrowed" not in want.operations
    in_double = any(wanted.dtype == torch.float64 for wanted in want.tensors())
    if is_narrowed and in_double and hands_double(case):
        return "float64 input computed in float64", "values rounded to a smaller dtype on the way"
    return None


def _judge_device(case: Case, got: Observation, want: Observation):
    for name, wanted in want.devices.items():
        if got.devices.get(name) != wanted:
            return f"{name} on {wanted}", f"on {got.devices.get(name)}"
    return None


def _judge_finite(case: Case, got: Observation, want: Observation):
    for name, ours, wanted in _outputs(got, want):
        bad = ~torch.isfinite(ours) if ours.is_floating_point() else torch.zeros_like(ours)
        if bad.any() and torch.isfinite(wanted).all():
            kind = "NaN" if torch.isnan(ours).any() else "infinite"
            return (
                f"{name} with finite values",
                f"{int(bad.sum())}/{ours.numel()} values are {kind}",
            )
    return None


# stands for ``Checker.proves["values"]``, which the engine puts in its place
DEFINED = "the values of the definition"


def _judge_values(case: Case, got: Observation, want: Observation):
    written = " and ".join(sorted(set(got.modified) - set(want.modified)))
    also = f"; the call wrote into {written} as well" if written else ""
    for name, wanted in want.arrays.items():
        difference = values_differ(case, got.arrays[name], wanted)
        if difference:
            is_alone = len(want.arrays) + len(want.gradients) == 1
            what = "" if is_alone or name == "output" else f"{name}: "
            return DEFINED, what + difference + also
    return None


def _judge_facts(case: Case, got: Observation, want: Observation):
    for fact, wanted in want.facts.items():
        if got.facts.get(fact) != wanted and fact != LEFT:
            return fact, _other(got.facts.get(fact, "it is not so"), wanted)
    return None


def _other(found: str, wanted: str) -> str:
    """Remove from a list such as "0.1: a, b; 0: c" the names that ``wanted`` has as well.

    Of many names only the first ones are kept. Other texts come back unchanged.
    """
    lists = [
        {
            key: names.split(", ")
            for key, _, names in (item.partition(": ") for item in text.split("; "))
        }
        for text in (found, wanted)
    ]
    if not lists[1].keys() & lists[0].keys():
        return found
    left = {k: [n for n in names if n not in lists[1].get(k, ())] for k, names in lists[0].items()}
    return (
        "; ".join(
            f"{k}: {at_most_four(names)}" if k else at_most_four(names)
            for k, names in left.items()
            if names
        )
        or found
    )


def _judge_effects(case: Case, got: Observation, want: Observation):
    words = without_effect(case, got, want)
    return words and ("a result that depends on every argument", words, words)


def _judge_again(got: Observation, want: Observation):
    said = {
        REMEMBERED: (
            "a result of this call's values",
            "the result of an earlier call with other values",
            "the same call with other values gives the earlier result",
        ),
        OVERWRITTEN: (
            OVERWRITTEN,
            "the second call wrote into what the first had returned",
            "the first result changed when the function was called again",
        ),
        LEFT: (LEFT, got.facts.get(LEFT, ""), "the call leaves something changed behind"),
    }
    for fact, words in said.items():
        if fact in got.facts and got.facts[fact] != want.facts.get(fact):
            return words
    return None


def _judge_unchanged(case: Case, got: Observation, want: Observation):
    extra = set(got.modified) - set(want.modified)
    if extra:
        return (
            "inputs left as they were",
            f"the call modified {' and '.join(sorted(extra))} in place",
        )
    return None


NO_GRADIENT = "a gradient where there shall be none; look for a missing detach()"


def _judge_gradients(case: Case, got: Observation, want: Observation):
    if got.gradient_error and not want.gradient_error:
        return "a backward pass", got.gradient_error
    if got.detached and not want.detached:
        return (
            "results that carry gradients",
            "a result that is cut off from its inputs",
        )
    wrong: list[str] = []
    right: list[str] = []
    for name, wanted in want.gradients.items():
        what, ours = f"gradient of {name}", got.gradients.get(name)
        if ours is None:
            return what, "none"
        if ours.shape != wanted.shape:  # autograd never does this, but a worker could claim it
            return what, f"a gradient of shape {tuple(ours.shape)}"
        if (
            ours.is_floating_point()
            and not torch.isfinite(ours).all()
            and torch.isfinite(wanted).all()
        ):
            return f"a finite {what}", "NaN or infinite values"
        scale = max(1.0, float(wanted.abs().max())) if wanted.numel() else 1.0
        rtol, atol = tolerance(case, wanted.dtype)
        is_same = torch.allclose(
            ours.double(), wanted.double(), rtol=10 * rtol, atol=10 * atol * scale, equal_nan=True
        )
        (right if is_same else wrong).append(name)
    if not wrong:
        return None
    name, all_wrong = wrong[0], _few(wrong)
    what = f"gradient of {name}"
    if not want.gradients[name].any():
        return what, NO_GRADIENT
    others = f"; that of {_few(right)} is right" if right else ""
    if not any(got.gradients[name].any() for name in wrong):
        words = f"no gradient reaches {all_wrong}"
        return what, f"only zeros for {all_wrong}{others}; look for what cuts it off", words
    remedy = "look for a part that is detached or done in place"
    words = f"another gradient for {all_wrong}{others}; {remedy}"
    return what, words


def _few(names: list[str]) -> str:
    """List names, at most three of them.

    Example:
        >>> _few(["q", "k"]), _few(["a", "b", "c", "d", "e"])
        ('q and k', 'a, b, c and 2 more')
    """
    if len(names) > 3:
        return f"{', '.join(names[:3])} and {len(names) - 3} more"
    return " and ".join(names)


_JUDGES = {
    Stage.CALL: _judge_call,
    Stage.STRUCTURE: _judge_structure,
    Stage.TYPE: _judge_type,
    Stage.SHAPE: _judge_shape,
    Stage.DTYPE: _judge_dtype,
    Stage.DEVICE: _judge_device,
    Stage.FINITE: _judge_finite,
    Stage.VALUES: _judge_values,
    Stage.FACTS: _judge_facts,
    Stage.EFFECTS: _judge_effects,
    Stage.UNCHANGED: _judge_unchanged,
    Stage.GRADIENTS: _judge_gradients,
}
