"""Judge: compare what an answer did with what the reference did, and report the first difference.

Role: ``find_problems`` takes two observations of one case and works through the stages in the order
of ``Stage``. It sees only arrays and facts, never the answer itself. Messages give the evidence and
never a reference value.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum, auto
from typing import Any

import torch

from vitedu.checks.judging.compare import (
    describe_difference,
    dtype_name,
    is_close,
    is_rounded,
    is_same_error,
    join_names,
    run_reader,
    tolerance,
)
from vitedu.checks.observing.case import Case
from vitedu.checks.observing.errors import RaisedError
from vitedu.checks.observing.limits import SECONDS, WAITING, WAITS
from vitedu.checks.observing.observation import FRESHNESS, SIDE_EFFECTS, STABILITY, Observation


class Stage(IntEnum):
    """What is judged, in this order. A report shows the first stage that fails."""

    CALLABLE = auto()  # a function or class, as the exercise asks
    SIGNATURE = auto()
    OPERATIONS = auto()  # no forbidden operation ran
    CALL = auto()  # the call returns, or raises the right error
    STRUCTURE = auto()  # names and shapes of a layer's parameters
    TYPE = auto()
    SHAPE = auto()
    DTYPE = auto()  # one that cannot take the place of the right one
    CLOTHES = auto()  # the right kind of value in another type or shape: judging goes on
    PRECISION = auto()  # another width, or numbers for a mask: judging goes on
    DEVICE = auto()
    FINITE = auto()
    VALUES = auto()
    FACTS = auto()
    SECOND_CALL = auto()  # a second call is right too, and neither call changes any setting
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
    credit: float = 0.0  # the share of the part's points that it leaves


def cast_clothes(
    case: Case, got: Observation, want: Observation
) -> tuple[Observation, Problem | None]:
    """Cast outputs that are right but for their type or a shape of one number, and say so.

    Booleans are taken for numbers where one number is asked for, numbers for booleans nowhere.

    Returns:
        What the answer did, with such outputs as they should be; the first of them as a problem.
    """
    problem = None
    if got.error is not None:
        return got, None
    for name, wanted in want.arrays.items():
        kind = got.types.get(name, "")
        right = want.types.get(name, kind)
        if name not in got.arrays or kind != right and kind.startswith("number"):
            continue
        ours = got.arrays[name]
        if kind.endswith(" of 1") and ours.shape == (1, *wanted.shape):
            ours = ours[0]  # [x] for x
        cast = _cast(ours, wanted, kind == right)
        if cast is None:
            continue
        asked, given = (
            f"{kind}, shape {tuple(x.shape)}, dtype {dtype_name(x.dtype)}"
            for kind, x in ((right, wanted), (kind, ours))
        )
        devices = got.devices | {n: x for n, x in want.devices.items() if n == name}
        arrays, types = got.arrays | {name: cast}, got.types | {name: right}
        got = replace(got, arrays=arrays, types=types, devices=devices)
        words = f"{name}: {asked}", f"{given}, whose numbers are judged"
        problem = problem or Problem(Stage.CLOTHES, case, *words, credit=CLOTHES)
    return got, problem


def _cast(ours: torch.Tensor, wanted: torch.Tensor, has_right_type: bool) -> torch.Tensor | None:
    """Return the numbers of an output as they should come; None if they do or cannot."""
    is_one = wanted.ndim == 0 and ours.numel() == 1
    is_wide = wanted.dtype == torch.float32 and ours.dtype == torch.float64
    cast = ours.reshape(()) if is_one else ours
    if cast.shape != wanted.shape or ours.is_complex():
        return None
    if has_right_type and not is_wide and ours.shape == wanted.shape:
        return None
    if wanted.dtype == torch.bool != ours.dtype or ours.dtype == torch.bool and not is_one:
        return cast if ours.dtype == wanted.dtype else None
    keeps_numbers = wanted.is_floating_point() or not cast.is_floating_point()
    return cast.to(wanted.dtype) if keeps_numbers and (is_wide or not has_right_type) else cast


CLOTHES = 0.5  # the credit for "returns" if a value has another type or shape


def find_problems(case: Case, got: Observation, want: Observation) -> Iterator[Problem]:
    """Yield the problems of precision on one case, which hide no other, and the first other one."""
    if not case.on_accelerator:
        run_reader(case, got, want)
    differences = _compare_devices(got) if case.on_accelerator else _compare(case, got, want)
    for stage, words in differences:
        if words and case.driver == "second_call" and stage is Stage.VALUES:
            words = (*words[:2], "the first call is right, a call with other values is not")
        if words:
            yield Problem(stage, case, *words)
            if stage is not Stage.PRECISION:
                return


Differences = Iterator[tuple[Stage, Any]]  # each with (expected, got, headline, credit), or None


def _compare_devices(got: Observation) -> Differences:
    """Compare a call with inputs on an accelerator: it works and its results are there too."""
    if got.error is not None and not got.undecided:
        yield Stage.DEVICE, ("work on any device", error_text(got.error, got.seconds))
    for name, kind in got.devices.items():
        if kind != "accelerator" and not got.undecided:
            yield Stage.DEVICE, (f"{name} on the device of the inputs", f"{name} on {kind}")


def _compare(case: Case, got: Observation, want: Observation) -> Differences:
    """Compare two observations stage by stage; whoever takes the first needs no other."""
    is_second = case.driver == "second_call"
    if is_second:
        yield Stage.SECOND_CALL, _judge_second_call(got, want)
    yield Stage.CALL, _judge_call(case, got)
    if wrong := [f"{kind}: {join_names(names)}" for kind, names in got.parameters.items()]:
        words = "parameters with the names and sizes in the text", "; ".join(wrong)
        yield Stage.STRUCTURE, words
    yield Stage.TYPE, _judge_type(case, got, want)
    yield from sorted(_compare_outputs(case, got, want), key=lambda difference: difference[0])
    for fact, wanted in want.facts.items():
        if got.facts.get(fact) != wanted and fact != SIDE_EFFECTS:
            ours = _remove_common_names(got.facts.get(fact, "it is not so"), wanted)
            yield Stage.FACTS, (fact, ours)
    if extra := sorted(set(got.modified) - set(want.modified)):
        words = "inputs left as they were", f"the call modified {' and '.join(extra)} in place"
        yield Stage.UNCHANGED, words
    yield Stage.GRADIENTS, _judge_gradients(case, got, want)
    if not is_second:
        yield Stage.SECOND_CALL, _judge_second_call(got, want)


def _compare_outputs(case: Case, got: Observation, want: Observation) -> Differences:
    """Compare all outputs: shapes, dtypes, devices, numbers."""
    arrays = got.arrays | got.draws
    for name, wanted in (want.arrays | want.draws).items():
        ours, device = arrays.get(name), want.devices.get(name)
        if device and got.devices.get(name) != device:
            yield Stage.DEVICE, (f"{name} on {device}", f"on {got.devices.get(name)}")
        if ours is None:
            if device is None or got.devices.get(name) in (None, "cpu"):
                yield Stage.SHAPE, (name, "nothing of that name")
            continue  # what is on another device was not copied
        if ours.shape != wanted.shape:
            shapes = f"{name} of shape {tuple(wanted.shape)}", f"shape {tuple(ours.shape)}"
            yield Stage.SHAPE, shapes
            continue
        if ours.dtype != wanted.dtype:
            is_usable = _can_stand_for(ours.dtype, wanted.dtype)
            words = f"{name} of dtype {dtype_name(wanted.dtype)}", f"dtype {dtype_name(ours.dtype)}"
            yield (Stage.PRECISION if is_usable else Stage.DTYPE), words
            if not is_usable:
                continue
        if not ours.isfinite().all() and wanted.isfinite().all():
            kind = "NaN" if ours.isnan().any() else "infinite"
            bad = f"{int((~ours.isfinite()).sum())}/{ours.numel()} values are {kind}"
            yield Stage.FINITE, (f"{name} with finite values", bad)
        difference = describe_difference(case, ours, wanted) if name in want.arrays else ""
        if difference and is_rounded(case, ours, wanted):
            digits = f"{name}: right to the digits of float32 alone"
            yield Stage.PRECISION, ("float64 input computed in float64", digits)
        elif difference:
            is_alone = len(want.arrays) + len(want.gradients) == 1
            what = "" if is_alone or name == "output" else f"{name}: "
            yield Stage.VALUES, ("", what + difference)  # the engine says what is expected


def is_same(case: Case, ours: Observation, theirs: Observation) -> bool:
    """Tell whether two observations agree in everything except gradients: values, errors, facts."""
    run_reader(case, ours, theirs)
    if ours.error is not None or theirs.error is not None:
        return is_same_error(ours, theirs)
    is_alike = ours.behaviour() == theirs.behaviour()
    return is_alike and not any(_compare_outputs(case, ours, theirs))


def error_text(error: RaisedError, seconds: float) -> str:
    """Describe an exception with the student's line, if it has one; ``seconds`` were its limit."""
    where = ""
    if error.location and error.location[1]:
        line = error.location[1] if len(error.location[1]) <= 80 else error.location[1][:79] + "…"
        where = f"   (line {error.location[0]}: {line})"
    if error.kind == "TimeUp":
        if error.message == WAITS:
            return f"it waits, over {WAITING:g} s; look for a sleep, a lock or an input(){where}"
        return f"no result within {seconds or SECONDS:g} s; look for a loop that never ends{where}"
    if error.device_mismatch == "generator":
        return (
            "draws on another device than the generator's; draw with device=generator.device, "
            "then .to(...)"
        )
    if error.device_mismatch == "tensors":
        return "tensors on two devices; make new tensors with device=x.device of an input x"
    message = f": {error.message}" if error.message else ""
    return f"{error.kind}{message}{where}"


REFUSED = 0.5  # the credit of another error than the one asked for: torch's own, or without numbers


def _judge_call(case: Case, got: Observation):
    is_late = got.error_kind == "TimeUp"
    headline = "the call does not come to an end" if is_late else ""
    wanted, error = f"a {case.raises}", got.error
    if not case.raises:
        headline = "a part is still open" if got.is_open else headline
        return error and ("a result", error_text(error, got.seconds), headline)
    if error is None:
        words = "no error; the call returned as if nothing were wrong"
        return wanted, words, "an error is missing"
    if case.raises not in error.kinds:
        words = error_text(error, got.seconds)
        return wanted, words, headline, 0.0 if is_late else REFUSED
    if any(str(number) not in error.message for number in case.mentions):
        wanted += f" whose message names {' and '.join(map(str, case.mentions))}"
        return wanted, f"the message {error.message!r}", "", REFUSED
    return None


def _judge_type(case: Case, got: Observation, want: Observation):
    if "instance" in got.types:
        return "an nn.Module", f"an instance of {got.types['instance']}"
    for name, wanted in want.types.items():
        kind, whole = got.types.get(name), got.types.get("result")
        if kind == wanted:
            continue
        if not kind and not whole:
            return f"{name}: {wanted}", "nothing", f"{name} is missing"
        words = wanted if name == "result" else f"{name}: {wanted}"
        if not kind and whole != want.types.get("result"):
            kind, words = whole, f"{len(case.outputs)} results: {', '.join(case.outputs)}"
        return words, kind or "nothing"
    return None


def _can_stand_for(dtype: torch.dtype, wanted: torch.dtype) -> bool:
    """Tell whether later code can use a result of this dtype in place of the right one.

    A float64 tensor meets float32 weights and fails; only a bool masks; only integers index.
    """
    if dtype.is_complex:
        return False
    if wanted.is_floating_point:
        return wanted != torch.float32 or not dtype.is_floating_point
    return wanted != torch.bool != dtype and not dtype.is_floating_point


def _remove_common_names(ours: str, wanted: str) -> str:
    """Remove from a list such as "0.1: a, b; 0: c" the names that ``wanted`` has as well.

    Of many names only the first ones are kept. Other texts come back unchanged.
    """
    items = [[item.partition(": ") for item in text.split("; ")] for text in (ours, wanted)]
    own, right = ({key: names.split(", ") for key, _, names in item} for item in items)
    if not right.keys() & own.keys():
        return ours
    rest = {key: [n for n in names if n not in right.get(key, ())] for key, names in own.items()}
    texts = [
        f"{k}: {join_names(names)}" if k else join_names(names)
        for k, names in rest.items()
        if names
    ]
    return "; ".join(texts) or ours


def _judge_second_call(got: Observation, want: Observation):
    changes = got.facts.get(SIDE_EFFECTS, "")
    words_by_fact = {
        FRESHNESS: (
            "a result of this call's values",
            "the result of an earlier call with other values",
            "the same call with other values gives the earlier result",
        ),
        STABILITY: (
            STABILITY,
            "the second call wrote into what the first had returned",
            "the first result changed when the function was called again",
        ),
        SIDE_EFFECTS: (SIDE_EFFECTS, changes, "the call leaves something changed behind"),
    }
    for fact, words in words_by_fact.items():
        if not got.error and got.facts.get(fact, want.facts.get(fact)) != want.facts.get(fact):
            return words
    return None


ANOTHER_GRADIENT = "another gradient for"
UNWANTED_GRADIENT = "a gradient where there shall be none; look for a missing detach()"


def _judge_gradients(case: Case, got: Observation, want: Observation):
    if got.gradient_error and not want.gradient_error:
        return "a backward pass", got.gradient_error
    if got.detached and not want.detached:
        source = "its parameters, if x needs no gradient" if case.learns else "its inputs"
        return "results that carry gradients", f"a result that is cut off from {source}"
    wrong: list[str] = []
    right: list[str] = []
    for name, wanted in want.gradients.items():
        what, ours = f"gradient of {name}", got.gradients.get(name)
        if ours is None:
            return what, "none"
        if ours.shape != wanted.shape:  # autograd never does this, but a worker could claim it
            return what, f"a gradient of shape {tuple(ours.shape)}"
        if not ours.isfinite().all() and wanted.isfinite().all():
            return f"a finite {what}", "NaN or infinite values"
        scale = max(1.0, float(wanted.abs().max())) if wanted.numel() else 1.0
        rtol, atol = tolerance(case, wanted.dtype)
        wide = replace(case, rtol=10 * rtol, atol=10 * atol * scale)
        (right if is_close(wide, ours, wanted) else wrong).append(name)
    if not wrong:
        return None
    name, all_wrong = wrong[0], join_names(wrong)
    what = f"gradient of {name}"
    if not want.gradients[name].any():
        return what, UNWANTED_GRADIENT
    others = f"; that of {join_names(right)} is right" if right else ""
    if not any(got.gradients[name].any() for name in wrong):
        words = f"no gradient reaches {all_wrong}"
        return what, f"only zeros for {all_wrong}{others}; look for what cuts it off", words
    return what, f"{ANOTHER_GRADIENT} {all_wrong}{others}"
