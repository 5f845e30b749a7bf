"""Probes: call an answer on known inputs and write down what came back, as arrays and plain facts.

Role: ``Case`` (what to do), ``observe`` (do it), ``Observation`` (what happened). Standard library, numpy and
torch only, and no reference: the same file can run where nothing may be given away. Nothing is judged here.

A driver is the way an answer is exercised: ``call`` for functions, ``module`` for classes of layers. A chapter
that needs another registers it in ``vitedu.checks.drivers``.
"""

import contextlib
import copy
import numbers
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from vitedu.checks.guard import (
    TimeUp,
    is_raised_by_hand,
    neutral_settings,
    quiet,
    seed_everything,
    settings_left,
    student_frames,
    text_of,
    time_limit,
)

TOO_MANY = 10**7  # no right answer to a case has so many values


class Recipe:
    """An argument that is not plain data: ``build`` makes a fresh one for every call."""

    def plain(self) -> dict[str, Any]:
        """Give the arguments that make this recipe again: plain data and tensors."""
        return dict(vars(self))

    def build(self) -> Any:
        """Make the argument."""
        raise NotImplementedError

    def changed(self, built: Any) -> bool:
        """Tell whether the call modified it."""
        return False


@dataclass(frozen=True)
class Case:
    """One thing to do with an answer. Plain data and recipes only."""

    name: str  # in words, with the numbers: "2 images of 12 x 18 px, patch size 3"
    args: dict[str, Any] = field(default_factory=dict)  # by parameter name, in order
    part: str = "values"  # the finding it decides; "values" also decides "returns" and "gradients"
    driver: str = "call"
    keywords: tuple[str, ...] = ()  # arguments that are given by keyword
    outputs: tuple[str, ...] = ("output",)  # names for what comes back; several mean a tuple
    gradients: tuple[str, ...] = ()  # arguments whose gradients are compared
    init: dict[str, Any] = field(default_factory=dict)  # driver "module": arguments of the class
    state: dict[str, torch.Tensor] = field(default_factory=dict)  # driver "module": its parameters
    number: bool = False  # the result is a number: Python, NumPy or 0-d tensor
    raises: str = ""  # name of the expected exception, "" for none
    mentions: tuple[Any, ...] = ()  # numbers that its message shall name
    rtol: float | None = None  # tolerance; default by dtype
    atol: float | None = None
    on_accelerator: bool = False  # judged for devices alone; meta tensors where there is none
    extra: dict[str, Any] = field(default_factory=dict)  # for the chapter's own drivers

    def __repr__(self) -> str:
        return f"Case({self.name!r}, part={self.part!r})"  # never the inputs: they fill screens


class Clash(Enum):
    """What met on two devices, where an error came of it."""

    NONE = ""
    TENSORS = "tensors"
    GENERATOR = "generator"


@dataclass(frozen=True)
class Trouble:
    """An exception that left the answer, as text."""

    kind: str  # class name
    kinds: tuple[str, ...]  # class names of it and its bases
    message: str
    where: tuple[int, str] | None  # line number and source line in the student's code
    by_hand: bool = False  # from a raise statement in the student's code
    clash: Clash = Clash.NONE


@dataclass(frozen=True)
class Parameters:
    """How the parameters of a layer differ from those of the case, by name."""

    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    misshapen: tuple[str, ...] = ()  # with the shape that they have


@dataclass
class Observation:
    """What an answer did on one case. All names are those of the case's outputs and arguments."""

    arrays: dict[str, torch.Tensor] = field(default_factory=dict)  # outputs, compared by value
    draws: dict[str, torch.Tensor] = field(default_factory=dict)  # random outputs: values are free
    gradients: dict[str, torch.Tensor] = field(default_factory=dict)  # by argument or parameter
    types: dict[str, str] = field(default_factory=dict)  # of outputs, as a student names them
    devices: dict[str, str] = field(default_factory=dict)  # of outputs that are tensors
    facts: dict[str, str] = field(default_factory=dict)  # what shall hold, in words -> what holds
    parameters: Parameters = Parameters()
    modified: tuple[str, ...] = ()  # arguments that the call changed
    detached: bool = False  # an output is cut off from its inputs
    gradient_error: str = ""  # what ended the backward pass
    seconds: float = 0.0  # the time limit, where it was reached
    is_read: bool = False  # facts were read out of the draws; see judging.reader
    # what the call gave and what it was then; kept for ``again`` alone
    live: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
    error: Trouble | None = None
    operations: frozenset[str] = frozenset()  # names of the torch operations that ran
    printed: str = ""  # the first characters of what it printed
    undecided: bool = False  # meta tensors could not answer

    def tensors(self) -> list[torch.Tensor]:
        """Give all that is kept of it as numbers."""
        return [*self.arrays.values(), *self.draws.values(), *self.gradients.values()]

    def behaviour(self) -> dict[tuple[str, str], Any]:
        """Give what it did beside its numbers: types, facts, parameters."""
        return (
            {("type", name): kind for name, kind in self.types.items()}
            | {("fact", name): found for name, found in self.facts.items()}
            | {("parameters", kind): names for kind, names in vars(self.parameters).items()}
        )


DRIVERS: dict[str, Callable] = {}


def driver(function):
    """Register a driver ``(answer, case, seen: Observation) -> None`` under its name."""
    DRIVERS[function.__name__] = function
    return function


def observe(answer: Any, case: Case, seconds: float = 10.0) -> Observation:
    """Exercise an answer on one case; never raises because of it, and leaves no setting changed.

    Args:
        answer: the student's function or class.
        case: what to do.
        seconds: wall-clock limit.
    """
    seen = Observation()
    with quiet() as sink, neutral_settings():
        try:
            with time_limit(seconds):
                if case.on_accelerator:
                    _observe_on_accelerator(answer, case, seen)
                else:
                    seed_everything(zlib.crc32(case.name.encode()))  # another one for every case
                    DRIVERS[case.driver](answer, case, seen)
        except BaseException as error:  # the student's code may raise anything at all
            seen.error = describe(error)
            if isinstance(error, TimeUp):
                seen.seconds = seconds
    seen.live.clear()
    seen.printed = (
        sink.head
        if sink.written == len(sink.head)
        else f"{sink.head}…\n({sink.written:,} characters in all)"
    )
    return seen


def describe(error: BaseException) -> Trouble:
    """Write an exception down as text."""
    frames = student_frames(error)
    return Trouble(
        kind=type(error).__name__,
        kinds=tuple(base.__name__ for base in type(error).__mro__),
        message=text_of(error)[:500],
        where=(frames[-1][1], frames[-1][3]) if frames else None,
        by_hand=is_raised_by_hand(error),
        clash=_clash_of(text_of(error)),
    )


def _clash_of(message: str) -> Clash:
    """Read an error of torch's, which has no type of its own for two devices."""
    if "device type for generator" in message:
        return Clash.GENERATOR
    return Clash.TENSORS if "same device" in message else Clash.NONE


# --- drivers ------------------------------------------------------------------------------------


@driver
def call(answer, case: Case, seen: Observation) -> None:
    """Call a function on the case's arguments."""
    args = build_args(case)
    is_done, result = watched(seen, lambda: apply(answer, case, args))
    if not is_done:
        args = build_args(case)
        result = apply(answer, case, args)
    keep_results(seen, case, result)
    seen.modified = changed_args(case, args)
    if case.gradients:
        torch.set_grad_enabled(True)  # what was left switched off is told by ``again``
        args, leaves = build_args(case), {}
        for name in case.gradients:
            for place, leaf in tensors_in(name, args[name]):
                leaves[place] = leaf.requires_grad_()
            # not leaves: editing is allowed
            args[name] = tree_map(lambda leaf: leaf.clone(), args[name])
        keep_gradients(seen, lambda: apply(answer, case, args), leaves)


def tensors_in(name: str, value: Any) -> list[tuple[str, torch.Tensor]]:
    """Give the tensors of an argument that is one, or a list of them, each with its name.

    Example:
        >>> [place for place, _ in tensors_in("layers", [torch.zeros(1), torch.zeros(2)])]
        ['layers[0]', 'layers[1]']
    """
    if isinstance(value, list):
        return [(f"{name}[{i}]", x) for i, x in enumerate(value) if isinstance(x, torch.Tensor)]
    return [(name, value)] if isinstance(value, torch.Tensor) else []


@driver
def module(answer, case: Case, seen: Observation) -> None:
    """Construct a class, load the case's parameters by name, and call the instance."""
    layer = construct(answer, case, seen)
    if layer is None:
        return
    seen.facts[CONSTRUCTED] = "yes"
    kept = case.extra.get("kept")
    layer.train(in_train_mode(case))
    before = state_of(layer)
    args = build_args(case)
    is_done, result = watched(seen, lambda: apply(layer, case, args))
    if not is_done:
        args = build_args(case)
        result = apply(layer, case, args)
    keep_results(seen, case, result)
    seen.modified = changed_args(case, args)
    if kept is not None:
        seen.facts[LEFT] = changes_of(layer, before)
    if case.gradients:
        torch.set_grad_enabled(True)
        args = build_args(case)
        leaves = {name: args[name].requires_grad_() for name in case.gradients}
        leaves |= dict(nn.Module.named_parameters(layer))
        args |= {name: leaves[name].clone() for name in case.gradients}
        keep_gradients(seen, lambda: apply(layer, case, args), leaves)


def in_train_mode(case: Case) -> bool:
    """Tell in which mode a case calls its layer; a right one gives the same in both."""
    return case.extra.get("training", bool(case.gradients) or "kept" in case.extra)


def construct(answer, case: Case, seen: Observation) -> nn.Module | None:
    """Build ``answer(*init)`` with the case's parameters; note what is missing or too much."""
    kept = case.extra.get("kept", [])
    try:
        layer = kept[0] if kept else answer(*[build(value) for value in case.init.values()])
    finally:
        after_answer()
    kept.append(layer)
    if not isinstance(layer, nn.Module):
        seen.types["instance"] = type_name(layer)
        return None
    # through nn.Module: the class may have a named_parameters of its own
    parameters = dict(nn.Module.named_parameters(layer))
    own = {name: tuple(value.shape) for name, value in parameters.items()}
    wanted = {name: tuple(value.shape) for name, value in case.state.items()}
    seen.parameters = Parameters(
        missing=tuple(sorted(set(wanted) - set(own))),
        unexpected=tuple(sorted(set(own) - set(wanted))),
        misshapen=tuple(
            f"{name} {own[name]}"
            for name in sorted(set(own) & set(wanted))
            if own[name] != wanted[name]
        ),
    )
    if own != wanted:
        return None
    with torch.no_grad():
        for name, parameter in parameters.items():
            value = case.state[name]
            if len(kept) > 1 and parameter.dtype == value.dtype and parameter.is_contiguous():
                parameter.copy_(value)  # in place, as an optimizer writes
            else:
                parameter.data = value.clone()
    return layer


# --- a second call --------------------------------------------------------------------------------

CONSTRUCTED = "the class can be constructed"
REMEMBERED = "other values give another result"
OVERWRITTEN = "earlier results stay as they were"
REPEATED = "the same call gives the same result"
ALONE = "an item alone gives the same as in its batch"
HEADS = "another num_heads gives another result"
LEFT = "everything is left as it was"


def called_again(cases: list[Case]) -> list[Case]:
    """Give the second call of an exercise: its first case with other values, or none where it is about numbers alone."""
    main = [c for c in cases if c.part == "values" and not (c.raises or c.on_accelerator)]
    for case in main[:1]:
        args, state = other_values(case.args), other_values(case.state)
        handed = tree_leaves([*args.values(), *state.values()])
        if case.number and not any(isinstance(x, (torch.Tensor, Recipe)) for x in handed):
            return []
        name, extra = f"{case.name}, called again with other values", {"driver": case.driver}
        return [
            replace(
                case, name=name, args=args, state=state, part="again", driver="again",
                gradients=(), extra=case.extra | extra,
            )
        ]  # fmt: skip
    return []


def other_values(value: Any) -> Any:
    """Give arguments of the same shapes, dtypes and flags with other values; plain numbers stay."""

    def changed(x: Any) -> Any:
        if isinstance(x, Recipe):
            return type(x)(**other_values(x.plain()))
        if not isinstance(x, torch.Tensor):
            return x
        flipped = x.detach().flip(tuple(range(x.ndim)))
        if not x.is_floating_point():
            return flipped
        # each number by another factor: some results stay when all are scaled or change places
        factors = torch.linspace(0.5, 1, max(1, x.numel()), dtype=x.dtype, device=x.device)
        return flipped * factors[: x.numel()].reshape(x.shape)

    return tree_map(changed, value, is_leaf=lambda x: isinstance(x, Recipe))


@driver
def again(answer, case: Case, seen: Observation) -> None:
    """Make the case's call after another one, with the same object where there is one; note what either leaves behind."""
    extra = {name: value for name, value in case.extra.items() if name != "driver"} | {"kept": []}
    later = replace(case, driver=case.extra["driver"], extra=extra)
    before = replace(later, args=other_values(case.args), state=other_values(case.state))
    first, left = Observation(), []
    for this, noted in ((before, first), (later, seen)):
        DRIVERS[this.driver](answer, this, noted)
        left += [words for words in settings_left() if words not in left]
        torch.set_grad_enabled(True)
    stays = all(torch.equal(now, then) for now, then in _finite(first.live))
    seen.facts[OVERWRITTEN] = "they stay" if stays else "they changed"
    is_same = bool(seen.arrays) and _alike(seen.arrays, first.arrays)
    seen.facts[REMEMBERED] = "the earlier result" if is_same else "another result"
    for noted in (first, seen):
        words = noted.facts.get(LEFT, "")
        left += [words] if words and words not in left else []
    seen.facts[LEFT] = "; ".join(left)
    if later.driver in ("call", "module", "layer_from_layer"):
        seen.facts |= _probed(answer, later, seen)


def _probed(answer, case: Case, seen: Observation) -> dict[str, str]:
    """Call once more with the same values, with one item of the batch, and with one head; say what changes."""

    def results(this: Case) -> dict[str, torch.Tensor]:
        seed_everything(len(case.name))
        noted = Observation()
        try:
            DRIVERS[this.driver](answer, this, noted)
        except Exception:
            return {}
        return noted.arrays

    words = {True: "the same", False: "another result"}
    facts = {REPEATED: words[_alike(seen.arrays, results(case), 1e-3)]}
    sizes = {len(x) for x in seen.arrays.values() if x.ndim > 1}
    batch = sizes.pop() if len(sizes) == 1 else 1
    items = {
        name: value[:1]
        for name, value in case.args.items()
        if isinstance(value, torch.Tensor) and value.ndim > 1 and len(value) == batch
    }
    if items and batch > 1:
        alone, of_all = results(replace(case, args=case.args | items)), seen.arrays.items()
        expected = {name: x[:1] for name, x in of_all if x.ndim > 1 and len(x) == batch}
        facts[ALONE] = words[_alike(expected, {n: alone[n] for n in expected if n in alone}, 1e-3)]
    if case.init.get("num_heads", 1) != 1:
        extra = case.extra | {"kept": []}
        other = results(replace(case, init=case.init | {"num_heads": 1}, extra=extra))
        shapes = {name: x.shape for name, x in other.items()}
        outputs = {n: x for n, x in seen.arrays.items() if x.shape == shapes.get(n)}
        facts[HEADS] = words[
            bool(outputs) and _alike(outputs, {n: other[n] for n in outputs}, 1e-5)
        ]
    return facts


def _alike(some: dict[str, torch.Tensor], others: dict[str, torch.Tensor], off=0.0) -> bool:
    """Tell whether arrays of the same names hold the same numbers, but for a share of the largest."""
    return some.keys() == others.keys() and all(
        one.shape == other.shape
        and float((one.double() - other.double()).abs().max())
        <= off * float(one.double().abs().max())
        for one, other in _finite((x, others[name]) for name, x in some.items())
        if one.numel()
    )


def _finite(pairs):
    """Give pairs of arrays with numbers where NaN stood: NaN equals nothing."""
    for pair in pairs:
        yield tuple(x.detach().nan_to_num() if x.is_floating_point() else x for x in pair)


def state_of(model: nn.Module) -> dict[str, str]:
    """Write down what a call shall leave as it is: the modes of a model's parts and which parameters learn."""
    modes = {
        name or "the model itself": "in train mode" if part.training else "in eval mode"
        for name, part in nn.Module.named_modules(model)
    }
    learn = {
        name: "learning" if value.requires_grad else "frozen"
        for name, value in nn.Module.named_parameters(model)
    }
    return modes | learn


def changes_of(model: nn.Module, before: dict[str, str]) -> str:
    """Say what a call changed, or ""."""
    now = state_of(model)
    changed = [
        f"{name} is {now[name]}" for name in before if now.get(name, "") not in ("", before[name])
    ]
    more = f" and {len(changed) - 2} more" if len(changed) > 2 else ""
    return ", ".join(changed[:2]) + more


# --- arguments and results ----------------------------------------------------------------------


def build(value: Any) -> Any:
    """Make a fresh argument from plain data or a recipe."""
    if isinstance(value, Recipe):
        return value.build()
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return copy.deepcopy(value)


def build_args(case: Case) -> dict[str, Any]:
    """Make fresh arguments for one call."""
    return {name: build(value) for name, value in case.args.items()}


def apply(function, case: Case, args: dict[str, Any]) -> Any:
    """Call with the case's positional and keyword arguments."""
    positional = [value for name, value in args.items() if name not in case.keywords]
    try:
        return function(*positional, **{name: args[name] for name in case.keywords})
    finally:
        after_answer()


def _nothing() -> None:
    """Stand for the grader's ``Seal.restore``."""


# called whenever an answer's code has run: the grader's worker puts back what it changed in torch and here
after_answer: Callable[[], None] = _nothing


def changed_args(case: Case, args: dict[str, Any]) -> tuple[str, ...]:
    """Name the arguments that a call modified."""
    changed = []
    for name, value in case.args.items():
        if isinstance(value, Recipe):
            differs = value.changed(args[name])
        elif before := tensors_in(name, value):
            after = [x for _, x in tensors_in(name, args[name])]
            differs = len(after) != len(before) or any(
                _differs(now, old) for now, (_, old) in zip(after, before, strict=True)
            )
        else:
            differs = isinstance(value, (list, dict)) and value != args[name]
        if differs:
            changed.append(name)
    return tuple(changed)


def _differs(now: torch.Tensor, before: torch.Tensor) -> bool:
    kind = (now.shape, now.dtype, now.device)
    return kind != (before.shape, before.dtype, before.device) or not torch.equal(
        now.nan_to_num() if now.is_floating_point() else now,
        before.nan_to_num() if before.is_floating_point() else before,
    )


def keep_results(seen: Observation, case: Case, result: Any) -> None:
    """Write down what came back under the case's output names."""
    if len(case.outputs) == 1:
        keep(seen, case.outputs[0], result, case.number)
        return
    if not isinstance(result, (tuple, list)) or len(result) != len(case.outputs):
        seen.types["result"] = type_name(result)
        return
    for name, value in zip(case.outputs, result, strict=True):
        keep(seen, name, value, case.number)


def keep(
    seen: Observation, name: str, value: Any, number: bool = False, drawn: bool = False
) -> None:
    """Write one value down: its type, and its numbers if it has any; those that were drawn stand apart."""
    is_tensor = type(value) in (torch.Tensor, nn.Parameter)
    if number and not isinstance(value, (complex, np.complexfloating)):
        size = value.numel() if is_tensor else getattr(value, "size", 1)
        if is_tensor or isinstance(value, (numbers.Number, np.generic, np.ndarray)):
            if size == 1:
                flat = value.detach().reshape(()) if is_tensor else np.asarray(value).reshape(())
                seen.types[name] = "number"
                seen.arrays[name] = torch.tensor(float(flat), dtype=torch.float64)
                return
    kind = seen.types[name] = type_name(value)
    if kind == "tensor":
        seen.devices[name] = value.device.type
        if value.device.type == "cpu":
            kept = seen.draws if drawn else seen.arrays
            kept[name] = value.detach().resolve_conj().resolve_neg().clone()
            seen.live.append((value, kept[name]))


def type_name(value: Any) -> str:
    """Name a type the way a student would say it."""
    if value is None:
        return "None"
    if isinstance(value, np.ndarray):
        return "NumPy array"
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__} of {len(value)}"
    if type(value) in (torch.Tensor, nn.Parameter):
        if value.layout != torch.strided:
            return "nested tensor" if value.is_nested else "sparse tensor"
        if value.is_nested:
            return "nested tensor"
        if value.is_quantized:
            return "quantized tensor"
        if value.numel() > TOO_MANY:  # an expanded tensor may claim more than any memory holds
            return f"tensor of shape {tuple(value.shape)}"
        return "tensor"
    return type(value).__name__


def keep_gradients(seen: Observation, run: Callable, leaves: dict[str, torch.Tensor]) -> None:
    """Write down the gradients of a fixed mixture of all outputs."""
    try:
        with quiet():  # what it prints was seen the first time
            result = run()
        torch.set_grad_enabled(True)
    except Exception as error:
        seen.gradient_error = f"{type(error).__name__}: {error}"[:300]
        return
    outputs = [
        x
        for x in (result if isinstance(result, (tuple, list)) else [result])
        if isinstance(x, torch.Tensor)
    ]
    attached = [x for x in outputs if x.requires_grad]
    floats = [x for x in outputs if x.is_floating_point()]
    seen.detached = len(attached) < max(1, len(floats))  # a Python number is cut off too
    if not attached:
        return
    total = sum(((x * mixture(x)).sum() for x in attached), start=torch.zeros(()))
    try:
        gradients = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    except RuntimeError as error:
        seen.gradient_error = f"RuntimeError: {error}"[:300]
        return
    for (name, leaf), gradient in zip(leaves.items(), gradients, strict=True):
        gradient = torch.zeros_like(leaf) if gradient is None else gradient.detach()
        seen.gradients[name] = gradient


def mixture(x: torch.Tensor) -> torch.Tensor:
    """Give fixed weights of x's shape, no two alike, so that no gradient cancels."""
    return torch.arange(1, x.numel() + 1, dtype=torch.float64).cos().reshape(x.shape).to(x.dtype)


# --- what ran -----------------------------------------------------------------------------------


class _Calls(TorchFunctionMode):
    """Collect the names of torch functions and methods that are called."""

    def __init__(self, names: set[str]):
        super().__init__()
        self.names = names

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.add(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


class _Kernels(TorchDispatchMode):
    """Collect the names of the kernels that run, and whether float64 was rounded to less."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch imports its compiler first, two seconds for nothing

    def __init__(self, names: set[str]):
        super().__init__()
        self.names = names

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.add(str(func.overloadpacket))
        result = func(*args, **(kwargs or {}))
        sources = [x for x in args[:2] if isinstance(x, torch.Tensor)]
        if (
            isinstance(result, torch.Tensor)
            and any(x.dtype == torch.float64 and x.numel() > 1 for x in sources)
            and result.is_floating_point()
            and result.dtype != torch.float64
        ):
            self.names.add("narrowed")
        if isinstance(result, torch.Tensor):
            self.names.add(f"made {tuple(result.shape)}")
        return result


def watched(seen: Observation, run: Callable) -> tuple[bool, Any]:
    """Run and note which operations ran; False where watching got in the way: then a plain run is needed."""
    names: set[str] = set()
    try:
        with _Calls(names), _Kernels(names):
            result = run()
    except Exception:
        seen.operations = frozenset(names)
        return False, None
    seen.operations = frozenset(names)
    return True, result


# --- another device -----------------------------------------------------------------------------


class _Devices(TorchDispatchMode):
    """Play a GPU with meta tensors: refuse to mix devices, as CUDA does.

    The work is done on CPU zeros and comes back as meta tensors: torch's own meta kernels would load its compiler.
    """

    _should_skip_dynamo = _Kernels._should_skip_dynamo
    was_read = False  # a number was read out of a meta tensor, which has none

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = str(func.overloadpacket)
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        target = torch.device(kwargs.get("device") or "cpu").type if "device" in kwargs else None
        copies = name in ("aten._to_copy", "aten.copy", "aten.copy_")
        judged = (
            tensors[:1] if copies or name.startswith("aten.index") else tensors
        )  # CUDA takes indices from the CPU
        if len({x.device.type for x in judged if x.ndim or x.device.type != "cpu"}) > 1:
            raise RuntimeError("expected all tensors to be on the same device, the accelerator")
        source = kwargs.get("generator")
        if source is not None and (target or "cpu") != source.device.type:
            raise RuntimeError("Expected another device type for generator, the accelerator's")
        if kwargs.get("device") is not None:
            kwargs["device"] = torch.device("cpu")
        result = func(*tree_map(_as_zeros, args), **tree_map(_as_zeros, kwargs))
        if name.endswith("_"):
            return args[0]
        on_meta = target == "meta" if target else any(x.device.type == "meta" for x in judged)
        self.was_read |= on_meta and isinstance(result, bool | int | float)
        return tree_map(_as_meta, result) if on_meta else result


def _as_zeros(x: Any) -> Any:
    return (
        torch.zeros(x.shape, dtype=x.dtype)
        if isinstance(x, torch.Tensor) and x.device.type == "meta"
        else x
    )


def _as_meta(x: Any) -> Any:
    return torch.empty(x.shape, dtype=x.dtype, device="meta") if isinstance(x, torch.Tensor) else x


def _observe_on_accelerator(answer, case: Case, seen: Observation) -> None:
    """Call on an accelerator's tensors, meta ones where there is none; what those cannot tell stays undecided."""
    device = "cuda" if torch.cuda.is_available() else "meta"
    args = build_args(case)
    target = construct(answer, case, seen) if case.driver == "module" else answer
    if target is None:
        seen.undecided = True
        return
    if isinstance(target, nn.Module):
        target = target.to(device)
    for name, value in args.items():
        if isinstance(value, (torch.Tensor, nn.Module)):
            args[name] = value.to(device)
        elif tensors_in(name, value):
            args[name] = [x.to(device) for x in value]
    devices = _Devices()
    try:
        with torch.no_grad(), devices if device == "meta" else contextlib.nullcontext():
            result = apply(target, case, args)
    except Exception as error:
        if _clash_of(text_of(error)) is not Clash.NONE:
            raise
        # a device is turned down, with sizes that are right; values that an answer may test are not there
        if is_raised_by_hand(error) and not devices.was_read:
            raise
        seen.undecided = True
        return
    outputs = result if isinstance(result, (tuple, list)) else [result]
    for name, value in zip(case.outputs, outputs, strict=False):
        value = next(value.parameters(), None) if isinstance(value, nn.Module) else value
        if isinstance(value, torch.Tensor):
            seen.devices[name] = "accelerator" if value.device.type == device else value.device.type
