"""Judges: hold what an answer did against what the reference did, and say the first difference.

Role: ``compare`` two observations of one case, in the order of judgement: call, structure, type, shape, dtype,
device, finite, values, facts, unchanged, gradients. It looks at arrays and facts alone. Messages give the evidence and never
a reference value.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from vitedu.checks.probing import Case, Observation

STAGES = (
    "call",
    "structure",
    "type",
    "shape",
    "dtype",
    "device",
    "finite",
    "values",
    "facts",
    "unchanged",
    "gradients",
)

# float32: sums of a few hundred terms in another order; float64: the same, and float32 constants in the formula
TOLERANCE = {torch.float64: (1e-6, 1e-7), torch.float32: (1e-4, 2e-5)}


@dataclass(frozen=True)
class Problem:
    """The first thing that is wrong with an answer on one case."""

    stage: str
    case: Case
    expected: str
    got: str


def compare(case: Case, got: Observation, want: Observation) -> Problem | None:
    """Find the first difference on one case, or None."""
    if case.on_accelerator:
        return _compare_devices(case, got)
    read(case, got, want)
    for stage, judge in _JUDGES.items():
        words = judge(case, got, want)
        if words:
            return Problem(stage, case, *words)
    return None


# --- random answers -----------------------------------------------------------------------------

READERS: dict[str, tuple[Callable[[Case, Observation], None], frozenset[str]]] = {}


def reader(driver: str, given: tuple[str, ...] = ()):
    """Register what reads the facts out of the random results of a driver: ``(case, seen) -> None``.

    ``given`` names the facts that the driver writes itself; any other is the reader's to write.

    Arrays whose name starts with "random:" are judged for shape and dtype; their values are free. The reader turns
    them into facts that hold for every right answer ("fact:...") and into nothing that depends on the draw.
    """

    def register(function):
        READERS[driver] = function, frozenset(given)
        return function

    return register


def read(case: Case, *observations: Observation) -> None:
    """Let the case's reader add its facts, once."""
    for seen in observations:
        if case.driver in READERS and "read" not in seen.facts:
            function, given = READERS[case.driver]
            seen.facts = {  # what an answer's process says about a draw counts for nothing
                name: fact
                for name, fact in seen.facts.items()
                if not name.startswith("fact:") or name in given
            }
            seen.facts["read"] = True
            function(case, seen)


def is_compared(name: str) -> bool:
    """Tell whether the values of an array are held against the reference's."""
    return not name.startswith(("grad:", "random:"))


# --- stages -------------------------------------------------------------------------------------


def _judge_call(case: Case, got: Observation, want: Observation):
    if case.raises:
        if got.error is None:
            return f"a {case.raises}", "no error; the call returned as if nothing were wrong"
        if case.raises not in got.error.kinds:
            return f"a {case.raises}", f"{trouble_text(got)}"
        missing = [str(number) for number in case.mentions if str(number) not in got.error.message]
        if missing:
            numbers = " and ".join(str(number) for number in case.mentions)
            return (
                f"a {case.raises} whose message names {numbers}",
                f"the message {got.error.message!r}",
            )
        return None
    if got.error is not None:
        return "a result", trouble_text(got)
    return None


def trouble_text(seen: Observation) -> str:
    """Describe an exception with the student's line, if it has one."""
    error = seen.error
    where = ""
    if error.where and error.where[1]:
        line = error.where[1] if len(error.where[1]) <= 80 else error.where[1][:79] + "…"
        where = f"   (line {error.where[0]}: {line})"
    if error.kind == "TimeUp":
        limit = seen.facts.get("seconds", 10)
        return f"no result within {limit:g} s; look for a loop that never ends{where}"
    if "device type for generator" in error.message:
        return "draws on another device than the generator's; draw with device=generator.device, then .to(...)"
    if "same device" in error.message:
        return "tensors on two devices; make new tensors with device=x.device of an input x"
    message = f": {error.message}" if error.message else ""
    return f"{error.kind}{message}{where}"


_ADVICE = {
    "None": "; look for a missing `return`",
    "generator": "; look for `yield`",
    "coroutine": "; look for `async def`",
    "number with a graph behind it": "; look for a sum of losses without .item()",
}


def _judge_type(case: Case, got: Observation, want: Observation):
    if "type:instance" in got.facts:
        return "an nn.Module", f"an instance of {got.facts['type:instance']}"
    for name, wanted in want.facts.items():
        if not name.startswith("type:") or got.facts.get(name) == wanted:
            continue
        what = name.removeprefix("type:")
        if f"type:{what}" not in got.facts and "type:result" in got.facts:
            what, found = "result", got.facts["type:result"]
            wanted = f"{len(case.outputs)} results: {', '.join(case.outputs)}"
        else:
            found = got.facts.get(name, "nothing")
        return f"{what}: {wanted}" if what != "result" else wanted, found + _ADVICE.get(found, "")
    if "type:result" in got.facts and "type:result" not in want.facts:
        return "a result", got.facts["type:result"]
    return None


def _judge_structure(case: Case, got: Observation, want: Observation):
    kinds = ("missing", "unexpected", "misshapen")
    found = {kind: got.facts.get(f"parameters {kind}", ()) for kind in kinds}
    wrong = [f"{kind}: {', '.join(names)}" for kind, names in found.items() if names]
    if wrong:
        return "parameters with the names and sizes in the text", "; ".join(wrong)
    return None


def _arrays(got: Observation, want: Observation, prefix: bool):
    for name, wanted in want.arrays.items():
        if name.startswith("grad:") == prefix:
            yield name, got.arrays.get(name), wanted


def _judge_shape(case: Case, got: Observation, want: Observation):
    for name, ours, wanted in _arrays(got, want, False):
        device = f"device:{name}"
        if ours is None and device in want.facts and got.facts.get(device) not in (None, "cpu"):
            continue  # a tensor that can not be read from there; the device is judged later
        name = name.removeprefix("random:")
        if ours is None:
            return f"{name}", "nothing of that name"
        if ours.shape != wanted.shape:
            return f"{name} of shape {tuple(wanted.shape)}", f"shape {tuple(ours.shape)}"
    return None


def _judge_dtype(case: Case, got: Observation, want: Observation):
    for name, ours, wanted in _arrays(got, want, False):
        if ours is not None and ours.dtype != wanted.dtype:
            name = name.removeprefix("random:")
            return f"{name} of dtype {short(wanted.dtype)}", f"dtype {short(ours.dtype)}"
    in_double = any(wanted.dtype == torch.float64 for wanted in want.arrays.values())
    if in_double and "narrowed" in got.operations and "narrowed" not in want.operations:
        return "float64 input computed in float64", "values rounded to a smaller dtype on the way"
    return None


def short(dtype: torch.dtype) -> str:
    """Write a dtype without its prefix."""
    return str(dtype).removeprefix("torch.")


def _judge_device(case: Case, got: Observation, want: Observation):
    for fact, wanted in want.facts.items():
        if fact.startswith("device:") and got.facts.get(fact) != wanted:
            return f"{fact[7:]} on {wanted}", f"on {got.facts.get(fact)}"
    return None


def _judge_finite(case: Case, got: Observation, want: Observation):
    for name, ours, wanted in _arrays(got, want, False):
        bad = ~torch.isfinite(ours) if ours.is_floating_point() else torch.zeros(())
        if bad.any() and torch.isfinite(wanted).all():
            kind = "NaN" if torch.isnan(ours).any() else "infinite"
            return (
                f"{name} with finite values",
                f"{int(bad.sum())}/{ours.numel()} values are {kind}",
            )
    return None


def _judge_values(case: Case, got: Observation, want: Observation):
    for name, ours, wanted in _arrays(got, want, False):
        if not is_compared(name):
            continue
        difference = values_differ(case, ours, wanted)
        if difference:
            what = "" if len(want.arrays) == 1 or name == "output" else f"{name}: "
            return f"{name} as the text defines it", what + difference
    return None


def _judge_facts(case: Case, got: Observation, want: Observation):
    for fact, wanted in want.facts.items():  # facts of a chapter's own driver
        if fact.startswith("fact:") and got.facts.get(fact) != wanted:
            return fact[5:], str(got.facts.get(fact, "it is not so"))
    return None


def tolerance(case: Case, dtype: torch.dtype) -> tuple[float, float]:
    """Give (rtol, atol) for one case."""
    rtol, atol = TOLERANCE.get(dtype, (0.0, 0.0))
    return (rtol if case.rtol is None else case.rtol), (atol if case.atol is None else case.atol)


def close(case: Case, ours: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Tell whether two arrays of equal shape agree within the case's tolerance."""
    if ours.shape != wanted.shape:
        return False
    if not (ours.is_floating_point() and wanted.is_floating_point()):
        return torch.equal(ours.double(), wanted.double())
    rtol, atol = tolerance(case, wanted.dtype)
    return torch.allclose(ours.double(), wanted.double(), rtol=rtol, atol=atol, equal_nan=True)


def values_differ(case: Case, ours: torch.Tensor, wanted: torch.Tensor) -> str:
    """Describe how the values differ, or return ""."""
    if close(case, ours, wanted):
        return ""
    rtol, atol = tolerance(case, wanted.dtype)
    error = (ours.double() - wanted.double()).abs()
    wrong = error > atol + rtol * wanted.double().abs()
    if ours.ndim == 0:
        return f"another number: {number_text(float(ours))}"
    # torch's own unravel_index would import its compiler first, and sympy: half a second, 30 MB
    worst = np.unravel_index(int(error.nan_to_num(float("inf")).argmax()), tuple(error.shape))
    place = [int(index) for index in worst]
    largest = float(error[tuple(place)])
    return (
        f"{int(wrong.sum())}/{ours.numel()} values differ; largest difference {largest:.2g} at {place}, "
        f"allowed {atol + rtol * wanted.double().abs().max():.1g}"
    )


def number_text(number: float) -> str:
    """Write a number with six digits, a whole one with all of them."""
    return f"{number:.0f}" if number.is_integer() and abs(number) < 1e15 else f"{number:.6g}"


def _judge_unchanged(case: Case, got: Observation, want: Observation):
    extra = set(got.facts.get("modified", ())) - set(want.facts.get("modified", ()))
    if extra:
        return (
            "inputs left as they were",
            f"the call modified {' and '.join(sorted(extra))} in place",
        )
    return None


def _judge_gradients(case: Case, got: Observation, want: Observation):
    if got.facts.get("gradient error") and not want.facts.get("gradient error"):
        return "a backward pass", got.facts["gradient error"]
    if got.facts.get("detached") and not want.facts.get("detached"):
        return (
            "results that carry gradients",
            "a result that is cut off from its inputs",
        )
    for name, ours, wanted in _arrays(got, want, True):
        what = f"gradient of {name.removeprefix('grad:')}"
        if ours is None:
            return what, "none"
        if ours.shape != wanted.shape:  # no autograd gives that; a worker may claim it
            return what, f"a gradient of shape {tuple(ours.shape)}"
        if (
            ours.is_floating_point()
            and not torch.isfinite(ours).all()
            and torch.isfinite(wanted).all()
        ):
            return f"a finite {what}", "NaN or infinite values"
        scale = max(1.0, float(wanted.abs().max())) if wanted.numel() else 1.0
        rtol, atol = tolerance(case, wanted.dtype)
        if not torch.allclose(
            ours.double(), wanted.double(), rtol=10 * rtol, atol=10 * atol * scale, equal_nan=True
        ):
            return what, "another gradient; look for a part that is detached or done in place"
    return None


_JUDGES = {
    "call": _judge_call,
    "structure": _judge_structure,
    "type": _judge_type,
    "shape": _judge_shape,
    "dtype": _judge_dtype,
    "device": _judge_device,
    "finite": _judge_finite,
    "values": _judge_values,
    "facts": _judge_facts,
    "unchanged": _judge_unchanged,
    "gradients": _judge_gradients,
}


def _compare_devices(case: Case, got: Observation) -> Problem | None:
    """Judge one call with inputs on an accelerator."""
    if got.undecided:
        return None
    if got.error is not None:
        return Problem("device", case, "work on any device", trouble_text(got))
    wrong = {
        name[7:]: kind
        for name, kind in got.facts.items()
        if name.startswith("device:") and kind != "accelerator"
    }
    if wrong:
        name, kind = next(iter(wrong.items()))
        return Problem("device", case, f"{name} on the device of the inputs", f"{name} on {kind}")
    return None


def same(case: Case, ours: Observation, theirs: Observation) -> bool:
    """Tell whether two observations show the same behaviour: values, errors, parameters; gradients aside."""
    read(case, ours, theirs)
    if (ours.error is None) != (theirs.error is None):
        return False
    if ours.error is not None:
        return ours.error.kind == theirs.error.kind
    facts = [
        {k: v for k, v in seen.facts.items() if k.startswith(("type:", "fact:", "parameters"))}
        for seen in (ours, theirs)
    ]
    if facts[0] != facts[1]:
        return False
    names = [
        {name for name in seen.arrays if not name.startswith("grad:")} for seen in (ours, theirs)
    ]
    return names[0] == names[1] and all(
        ours.arrays[name].dtype == theirs.arrays[name].dtype
        and (
            close(case, ours.arrays[name], theirs.arrays[name])
            if is_compared(name)
            else ours.arrays[name].shape == theirs.arrays[name].shape
        )
        for name in names[0]
    )
