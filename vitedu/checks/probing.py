"""Probes: call an answer on known inputs and write down what it returned, as arrays and facts.

Role: ``Case`` (what to do), ``observe`` (do it), ``Observation`` (what happened). Nothing is judged
here. Imports the standard library, numpy and torch only, and no reference, so that this file can
also run in the grader's worker, which must not hold the solutions.

The drivers ``call`` (functions), ``module`` (layer classes) and ``again`` (a second call) are here.
Other drivers are in ``vitedu.checks.drivers``.
"""

import contextlib
import copy
import itertools
import numbers
import zlib
from collections.abc import Callable, Iterator
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
    pace_now,
    quiet,
    reseeded,
    seed_everything,
    settings_left,
    student_frames,
    text_of,
    time_limit,
)

TOO_MANY = 10**7  # a result with more values is not stored; no right answer has so many


class Recipe:
    """An argument that is not plain data. ``build`` makes a new one for every call."""

    def plain(self) -> dict[str, Any]:
        """Return the constructor arguments of an equal recipe: plain data and tensors."""
        return dict(vars(self))

    def build(self) -> Any:
        """Build the argument."""
        raise NotImplementedError

    def changed(self, built: Any) -> bool:
        """Tell whether the call modified the built argument."""
        return False


@dataclass(frozen=True)
class Case:
    """One call to make. It holds plain data and recipes only."""

    name: str  # in words, with the numbers: "2 images of 12 x 18 px, patch size 3"
    args: dict[str, Any] = field(default_factory=dict)  # by parameter name, in order
    part: str = "values"  # the part it belongs to; "values" also decides "returns" and "gradients"
    driver: str = "call"
    keywords: tuple[str, ...] = ()  # arguments that are passed by keyword
    outputs: tuple[str, ...] = ("output",)  # names of the results; several names mean a tuple
    gradients: tuple[str, ...] = ()  # arguments whose gradients are compared
    init: dict[str, Any] = field(default_factory=dict)  # driver "module": arguments of the class
    state: dict[str, torch.Tensor] = field(default_factory=dict)  # driver "module": parameters
    number: bool = False  # the result is a number: Python, NumPy or a 0-d tensor
    raises: str = ""  # name of the expected exception, or ""
    mentions: tuple[Any, ...] = ()  # numbers that its message must name
    rtol: float | None = None  # tolerance; default by dtype
    atol: float | None = None
    # only devices are judged; without an accelerator, meta tensors take its place
    on_accelerator: bool = False
    watched: bool = True  # whether the operations that run are written down, see ``watched``
    extra: dict[str, Any] = field(default_factory=dict)  # options of the driver

    def __repr__(self) -> str:
        return f"Case({self.name!r}, part={self.part!r})"  # without the inputs, which are long


def size_of(case: Case) -> int:
    """Count the numbers in a case's tensors, as an estimate of its work."""
    return sum(
        value.numel()
        for value in [*case.state.values(), *case.args.values()]
        if isinstance(value, torch.Tensor)
    )


class Clash(Enum):
    """What was on two devices when a call failed for that reason."""

    NONE = ""
    TENSORS = "tensors"
    GENERATOR = "generator"


@dataclass(frozen=True)
class Trouble:
    """An exception that an answer raised, as text."""

    kind: str  # its class name
    kinds: tuple[str, ...]  # the names of its class and all base classes
    message: str
    where: tuple[int, str] | None  # line number and source line in the student's code
    by_hand: bool = False  # raised by a raise statement in the student's code
    clash: Clash = Clash.NONE


@dataclass(frozen=True)
class Parameters:
    """How the parameters of a layer differ from those of the case, by name."""

    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    misshapen: tuple[str, ...] = ()  # each with the wrong shape that it has


@dataclass
class Observation:
    """What an answer did on one case. Names are those of the case's outputs and arguments."""

    arrays: dict[str, torch.Tensor] = field(default_factory=dict)  # outputs, compared by value
    draws: dict[str, torch.Tensor] = field(default_factory=dict)  # random outputs
    gradients: dict[str, torch.Tensor] = field(default_factory=dict)  # by argument or parameter
    types: dict[str, str] = field(default_factory=dict)  # of outputs, as a student names them
    devices: dict[str, str] = field(default_factory=dict)  # of outputs that are tensors
    facts: dict[str, str] = field(default_factory=dict)  # what should hold -> what was observed
    # "argument in output" -> what the output is for other values of the argument alone
    effects: dict[str, str] = field(default_factory=dict)
    parameters: Parameters = Parameters()
    modified: tuple[str, ...] = ()  # arguments that the call changed
    detached: bool = False  # an output carries no gradient
    gradient_error: str = ""  # the error that ended the backward pass
    seconds: float = 0.0  # the time limit, if it was reached
    is_read: bool = False  # the reader has added its facts; see judging.reader
    # (returned tensor, its values at that time), used by the driver ``again`` only
    live: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
    error: Trouble | None = None
    operations: frozenset[str] = frozenset()  # names of the torch operations that ran
    printed: str = ""  # the beginning of what it printed
    undecided: bool = False  # the call could not be made with meta tensors

    def tensors(self) -> list[torch.Tensor]:
        """Return all arrays, draws and gradients."""
        return [*self.arrays.values(), *self.draws.values(), *self.gradients.values()]

    def behaviour(self) -> dict[tuple[str, str], Any]:
        """Return all that is judged exactly, but for what is left: types, facts, parameters."""
        return (
            {("type", name): kind for name, kind in self.types.items()}
            | {("fact", name): found for name, found in self.facts.items() if name != LEFT}
            | {("parameters", kind): names for kind, names in vars(self.parameters).items()}
        )


DRIVERS: dict[str, Callable] = {}


def driver(function):
    """Register a driver ``(answer, case, seen: Observation) -> None`` under its name."""
    DRIVERS[function.__name__] = function
    return function


def observe(answer: Any, case: Case, seconds: float = 10.0) -> Observation:
    """Run one case on an answer, a function or a class, for at most ``seconds`` of wall-clock time.

    Never raises because of the answer, and leaves no setting changed.
    """
    seen = Observation()
    with quiet() as sink, neutral_settings():
        try:
            with time_limit(seconds):
                if case.on_accelerator:
                    _observe_on_accelerator(answer, case, seen)
                else:
                    _run(answer, case, zlib.crc32(case.name.encode()), seen)
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


def _run(answer: Any, case: Case, seed: int, seen: Observation) -> None:
    """Let the case's driver work, and write down what it leaves behind for good."""
    seed_everything(seed)
    pace = pace_now()
    DRIVERS[case.driver](answer, case, seen)
    left = [f"{SEEDED} of {name}" for name in reseeded()]
    left = [*seen.facts.get(LEFT, "").split("; "), *settings_left(pace), *left]
    seen.facts[LEFT] = "; ".join(dict.fromkeys(words for words in left if words))


def describe(error: BaseException) -> Trouble:
    """Describe an exception as text."""
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
    """Find out from torch's message which things were on two devices: the error has no own type."""
    if "device type for generator" in message:
        return Clash.GENERATOR
    return Clash.TENSORS if "same device" in message else Clash.NONE


# --- drivers ------------------------------------------------------------------------------------


@driver
def call(answer, case: Case, seen: Observation) -> None:
    """Call a function on the case's arguments."""
    args = build_args(case)
    is_done, result = watched(seen, case, lambda: apply(answer, case, args))
    if not is_done:
        args = build_args(case)
        result = apply(answer, case, args)
    keep_results(seen, case, result)
    seen.modified = changed_args(case, args)
    if case.gradients:
        torch.set_grad_enabled(True)  # if the call switched it off, the part "again" reports that
        args, leaves = build_args(case), {}
        for name in case.gradients:
            for place, leaf in tensors_in(name, args[name]):
                leaves[place] = leaf.requires_grad_()
            # copies, because autograd does not allow in-place edits of leaves
            args[name] = tree_map(lambda leaf: leaf.clone(), args[name])
        keep_gradients(seen, lambda: apply(answer, case, args), leaves)
        if case.part != "values":
            return
        args = build_args(case)
        given = [leaf for name in case.gradients for leaf in tensors_in(name, args[name])]
        for _, leaf in given:
            leaf.requires_grad_()
        with contextlib.suppress(Exception), quiet(), torch.no_grad():
            apply(answer, case, args)
        frozen = [place for place, leaf in given if not leaf.requires_grad]
        seen.modified += tuple(f"{place} (which no longer learns)" for place in frozen)


def tensors_in(name: str, value: Any) -> list[tuple[str, torch.Tensor]]:
    """List the tensors of an argument that is a tensor or a list, each with its name.

    Example:
        >>> [place for place, _ in tensors_in("layers", [torch.zeros(1), torch.zeros(2)])]
        ['layers[0]', 'layers[1]']
    """
    if isinstance(value, list):
        return [(f"{name}[{i}]", x) for i, x in enumerate(value) if isinstance(x, torch.Tensor)]
    return [(name, value)] if isinstance(value, torch.Tensor) else []


@driver
def module(answer, case: Case, seen: Observation) -> None:
    """Construct a layer class, load the case's parameters by name, and call the instance."""
    layer = construct(answer, case, seen)
    if layer is None:
        return
    seen.facts[CONSTRUCTED] = "yes"
    kept = case.extra.get("kept")
    layer.train(in_train_mode(case))
    before = state_of(layer)
    args = build_args(case)
    is_done, result = watched(seen, case, lambda: apply(layer, case, args))
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
        parameters, frozen = nn.Module.named_parameters(layer), case.extra.get("frozen", ())
        leaves |= {name: value for name, value in parameters if name not in frozen}
        args |= {name: leaves[name].clone() for name in case.gradients}
        keep_gradients(seen, lambda: apply(layer, case, args), leaves)
        if not seen.gradient_error:  # in the other mode results are attached as well
            layer.train(not layer.training)
            with quiet():
                seen.detached |= _is_detached(_results(apply(layer, case, args)))


def in_train_mode(case: Case) -> bool:
    """Tell whether a case calls its layer in train mode. A right layer returns the same in both."""
    return case.extra.get("training", bool(case.gradients) or "kept" in case.extra)


def construct(answer, case: Case, seen: Observation) -> nn.Module | None:
    """Build ``answer(*init)`` and load the case's parameters; write down how they differ.

    Returns:
        The layer, or None if it is no module or its parameters have other names or shapes.
    """
    kept = case.extra.get("kept", [])
    try:
        layer = kept[0] if kept else answer(*[build(value) for value in case.init.values()])
    finally:
        after_answer()
    kept.append(layer)
    if not isinstance(layer, nn.Module):
        seen.types["instance"] = type_name(layer)
        return None
    # called through nn.Module, because the class may override named_parameters
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
                parameter.copy_(value)  # in place, as an optimizer does
            else:
                parameter.data = value.clone()
    return layer


# --- a second call --------------------------------------------------------------------------------

CONSTRUCTED = "the class can be constructed"
REMEMBERED = "other values give another result"
OVERWRITTEN = "earlier results stay as they were"
REPEATED = "the same call gives the same result"
ALONE = "an item alone gives the same as in its batch"
LEFT = "everything is left as it was"


def called_again(cases: list[Case]) -> list[Case]:
    """Return the case of a second call: the first case with other values, in the part "again"."""
    main = [c for c in cases if c.part == "values" and not (c.raises or c.on_accelerator)]
    for case in main[:1]:
        args, state = other_values(case.args), other_values(case.state)
        name = f"{case.name}, called again with other values"
        extra = {"driver": case.driver, "options": _options(case, cases)}
        return [
            replace(
                case,
                name=name,
                args=args,
                state=state,
                part="again",
                driver="again",
                gradients=(),
                extra=case.extra | extra,
            )
        ]
    return []


def _options(case: Case, cases: list[Case]) -> dict[str, list]:
    """List the numbers that other cases pass by keyword for arguments that this case leaves out."""
    found: dict[str, list] = {}
    for name in [name for c in cases for name in c.keywords if name not in case.args]:
        values = [c.args.get(name) for c in cases]
        found[name] = list(dict.fromkeys(x for x in values if isinstance(x, int | float)))
    return found


def other_values(value: Any) -> Any:
    """Return arguments of the same shapes and dtypes with other values; plain numbers stay.

    Arguments without any tensor give a table: there tuples and lists come in reverse.
    """
    steps = itertools.count()
    leaves = tree_leaves(value, is_leaf=lambda x: isinstance(x, Recipe))
    if isinstance(value, dict) and not any(isinstance(x, Recipe | torch.Tensor) for x in leaves):
        return {n: x[::-1] if isinstance(x, tuple | list) else x for n, x in value.items()}

    def changed(x: Any) -> Any:
        if isinstance(x, Recipe):
            return type(x)(**other_values(x.plain()))
        if not isinstance(x, torch.Tensor):
            return x
        flipped = x.detach().flip(tuple(range(x.ndim)))
        if not x.is_floating_point():  # each is rolled further, because pairs may be counted
            return flipped.roll(next(steps), 0) if x.ndim else flipped
        # a factor for each number: some results ignore one common factor or another order
        factors = torch.linspace(0.5, 1, max(1, x.numel()), dtype=x.dtype, device=x.device)
        return flipped * factors[: x.numel()].reshape(x.shape)

    return tree_map(changed, value, is_leaf=lambda x: isinstance(x, Recipe))


@driver
def again(answer, case: Case, seen: Observation) -> None:
    """Make the case's call after a call with other values, on the same layer if there is one.

    Writes down whether the second result is the first one, whether the first result changed, which
    settings and random states either call changed for good, and which arguments have an effect.
    """
    own = ("driver", "options")
    extra = {name: value for name, value in case.extra.items() if name not in own} | {"kept": []}
    later = replace(case, driver=case.extra["driver"], extra=extra)
    others = {"args": other_values(case.args), "state": other_values(case.state)}
    before = replace(later, **others, watched=False)
    first = Observation()
    for seed, this, noted in ((0x5EED, before, first), (0x15EED, later, seen)):
        _run(answer, this, seed, noted)
        torch.set_grad_enabled(True)
    later = replace(later, watched=False)
    # who saves memory may do so only where no graph is built
    without_graph = [Observation(), Observation()]
    if later.driver in ("call", "module"):
        with contextlib.suppress(Exception), torch.no_grad():
            for this, noted in zip((before, later), without_graph, strict=True):
                this = replace(this, extra=this.extra | {"training": False})
                DRIVERS[this.driver](answer, this, noted)
    written = dict.fromkeys(name for noted in without_graph for name in noted.modified)
    seen.modified += tuple(
        f"{name} (under no_grad)" for name in written if name not in seen.modified
    )
    kept = [*first.live, *without_graph[0].live]
    stays = all(torch.equal(now, then) for now, then in _finite(kept))
    seen.facts[OVERWRITTEN] = "they stay" if stays else "they changed"
    is_same = tells(seen.arrays) and any(
        _alike(now.arrays, then.arrays) for now, then in ((seen, first), without_graph) if now.arrays
    )
    seen.facts[REMEMBERED] = "the earlier result" if is_same else "another result"
    left = [words for noted in (first, seen) for words in noted.facts[LEFT].split("; ")]
    seen.facts[LEFT] = "; ".join(dict.fromkeys(words for words in left if words))

    def results(this: Case) -> dict[str, torch.Tensor]:
        seed_everything(len(case.name))
        noted = Observation()
        try:
            DRIVERS[this.driver](answer, this, noted)
        except Exception:
            return {}
        return noted.arrays

    if later.driver in ("call", "module", "layer_from_layer"):
        seen.facts |= _probed(results, later, seen)
    if seen.arrays.keys() & set(case.outputs):
        seen.effects = _effects(results, later, case.extra["options"], seen)


SEEDED = "another seed for the global random numbers"


def _probed(results: Callable[[Case], dict], case: Case, seen: Observation) -> dict[str, str]:
    """Call again with the same values, and with one item of the batch.

    Returns:
        For each of these calls, whether the result is the same.
    """
    words = {True: SAME, False: "another result"}
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
    return facts


def _effects(results, case: Case, options: dict[str, list], seen: Observation) -> dict[str, str]:
    """Say for each argument and output whether other values of this argument alone change it."""
    effects: dict[str, list[str]] = {}
    for name, other in _each_alone(case, options):
        found = results(other)
        for output in (output for output in case.outputs if output in seen.arrays):
            is_same = output in found and _alike(
                {"": seen.arrays[output]}, {"": found[output]}, 0.0 if case.number else 1e-5
            )
            words = SAME if is_same else OTHER if found else "no result"
            if is_same and not tells({output: seen.arrays[output]}):
                words = "too little to tell"
            effects.setdefault(f"{name} in {output}", []).append(words)
    return {place: ", ".join(words) for place, words in effects.items()}


SAME, OTHER = "the same", "another"  # in ``Observation.effects``


def _each_alone(case: Case, options: dict[str, list]) -> Iterator[tuple[str, Case]]:
    """Yield (argument, the case with another value for this argument alone).

    Args:
        case: the call.
        options: values for arguments that the case leaves out; they are passed by keyword.
    """
    for name, value in case.init.items():
        for other in _others(value):
            yield (
                name,
                replace(case, init=case.init | {name: other}, extra=case.extra | {"kept": []}),
            )
    for name, value in case.args.items():
        for other in _others(value):
            yield name, replace(case, args=case.args | {name: other})
        fields = value.plain() if isinstance(value, Recipe) else {}
        for field_, plain in fields.items():
            for other in _others(plain) if isinstance(plain, int | float) else ():
                new = type(value)(**fields | {field_: other})
                yield f"{name}.{field_}", replace(case, args=case.args | {name: new})
    for name, values in options.items():
        for other in values:
            keywords = (*case.keywords, name)
            yield name, replace(case, args=case.args | {name: other}, keywords=keywords)


def _others(value: Any) -> list:
    """List other values of the same kind; they need not be possible ones."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [x for x in (1, 2 * value) if x != value]
    if isinstance(value, float):
        return [value / 2, value + 1]
    if isinstance(value, torch.Tensor) and not value.is_floating_point():
        return [other_values(value), value.flatten()[:1].expand_as(value)]
    if any(isinstance(x, torch.Tensor) for x in tree_leaves(_fields(value))):
        return [other_values(value)]
    if isinstance(value, tuple | list) and value:  # a size, or a list of sizes
        return [
            value[::-1],
            type(value)([*value[:-1], value[-1] + 1]),
            type(value)([value[0] + 1, *value[1:]]),
            type(value)([2 * x for x in value]),
        ]
    return []


def tells(arrays: dict[str, torch.Tensor]) -> bool:
    """Tell whether results say anything: many other calls give a share of 0 or 1 as well."""
    return any(x.numel() != 1 or x.item() not in (0, 1) for x in arrays.values())


def _alike(some: dict[str, torch.Tensor], others: dict[str, torch.Tensor], off=0.0) -> bool:
    """Tell whether two sets of arrays agree up to ``off`` times the largest value of each array."""
    return some.keys() == others.keys() and all(
        one.shape == other.shape
        and float((one.double() - other.double()).abs().max())
        <= off * float(one.double().abs().max())
        for one, other in _finite((x, others[name]) for name, x in some.items())
        if one.numel()
    )


def _finite(pairs):
    """Replace NaN by numbers in pairs of arrays, because NaN does not equal itself."""
    for pair in pairs:
        yield tuple(x.detach().nan_to_num() if x.is_floating_point() else x for x in pair)


def state_of(model: nn.Module) -> dict[str, str]:
    """Describe what a call must not change: the modes of a model's parts, and frozen parameters."""
    modes = {
        name or "the model itself": "in train mode" if part.training is True else "in eval mode"
        for name, part in nn.Module.named_modules(model)
    }
    learn = {
        name: "learning" if value.requires_grad else "frozen"
        for name, value in nn.Module.named_parameters(model)
    }
    return modes | learn


def changes_of(model: nn.Module, before: dict[str, str]) -> str:
    """Say what a call changed since ``state_of`` returned ``before``, or ""."""
    now = state_of(model)
    changed = [
        f"{name} is {now[name]}" for name in before if now.get(name, "") not in ("", before[name])
    ]
    more = f" and {len(changed) - 2} more" if len(changed) > 2 else ""
    return ", ".join(changed[:2]) + more


# --- arguments and results ----------------------------------------------------------------------


def build(value: Any) -> Any:
    """Make a new argument from plain data or a recipe."""
    if isinstance(value, Recipe):
        return value.build()
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return copy.deepcopy(value)


def build_args(case: Case) -> dict[str, Any]:
    """Make new arguments for one call."""
    return with_views({name: build(value) for name, value in case.args.items()}, case.extra)


def with_views(args: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """Let ``extra["views"]`` (name -> another argument) be the first places of the other."""
    for name, other in extra.get("views", {}).items():
        args[name] = args[other][tuple(map(slice, args[name].shape))]
    return args


def apply(function, case: Case, args: dict[str, Any]) -> Any:
    """Call a function with the case's positional and keyword arguments."""
    positional = [value for name, value in args.items() if name not in case.keywords]
    try:
        return function(*positional, **{name: args[name] for name in case.keywords})
    finally:
        after_answer()


def _nothing() -> None:
    """Do nothing; the default of ``after_answer``."""


# Called whenever an answer's code has run. The grader's worker replaces it by ``Seal.restore``,
# which undoes what the code changed in torch and in these modules.
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
    if type(now) not in (torch.Tensor, nn.Parameter):
        return True  # a subclass may say of itself that it equals everything
    kinds = [(x.shape, x.dtype, x.device, x.requires_grad) for x in (now, before)]
    if kinds[0] != kinds[1] or torch.equal(now, before):
        return kinds[0] != kinds[1]
    return not torch.equal(
        now.nan_to_num() if now.is_floating_point() else now,
        before.nan_to_num() if before.is_floating_point() else before,
    )


def keep_results(seen: Observation, case: Case, result: Any) -> None:
    """Store what a call returned under the case's output names."""
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
    """Store one value: its type, and its numbers if it is a tensor on the CPU.

    Args:
        seen: the observation to write to.
        name: of the output.
        value: what was returned.
        number: accept Python, NumPy and torch numbers alike, as float64.
        drawn: store the numbers as random (``draws``) instead of as values (``arrays``).
    """
    is_tensor = type(value) in (torch.Tensor, nn.Parameter)
    if number and not isinstance(value, (complex, np.complexfloating)):
        size = value.numel() if is_tensor else getattr(value, "size", 1)
        if is_tensor or isinstance(value, (numbers.Number, np.generic, np.ndarray)):
            if size == 1:
                flat = value.detach().reshape(()) if is_tensor else np.asarray(value).reshape(())
                seen.types[name] = "number"
                as_tensor = torch.tensor(float(flat), dtype=torch.float64, device="cpu")
                seen.arrays[name] = as_tensor
                return
    kind = seen.types[name] = type_name(value)
    if kind == "tensor":
        seen.devices[name] = value.device.type
        if value.device.type == "cpu":
            kept = seen.draws if drawn else seen.arrays
            kept[name] = value.detach().resolve_conj().resolve_neg().clone()
            seen.live.append((value, kept[name]))


def type_name(value: Any) -> str:
    """Name the type of a value in a student's words; "tensor" means an ordinary dense tensor."""
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
        if value.numel() > TOO_MANY:  # an expanded tensor can be larger than the memory
            return f"tensor of shape {tuple(value.shape)}"
        return "tensor"
    return type(value).__name__


def keep_gradients(seen: Observation, run: Callable, leaves: dict[str, torch.Tensor]) -> None:
    """Store the gradients of a fixed weighted sum of all outputs with respect to the leaves."""
    try:
        with quiet():  # what the call prints was stored the first time
            result = run()
        torch.set_grad_enabled(True)
    except Exception as error:
        seen.gradient_error = f"{type(error).__name__}: {error}"[:300]
        return
    outputs = _results(result)
    attached = [x for x in outputs if x.requires_grad]
    seen.detached = _is_detached(outputs)
    if not attached:
        return
    total = sum(((x * mixture(x)).sum() for x in attached), start=attached[0].new_zeros(()))
    try:
        gradients = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    except RuntimeError as error:
        seen.gradient_error = f"RuntimeError: {error}"[:300]
        return
    for (name, leaf), gradient in zip(leaves.items(), gradients, strict=True):
        gradient = torch.zeros_like(leaf) if gradient is None else gradient.detach()
        seen.gradients[name] = gradient


def _results(result: Any) -> list[torch.Tensor]:
    """List the tensors that a call returned."""
    several = result if isinstance(result, (tuple, list)) else [result]
    return [x for x in several if isinstance(x, torch.Tensor)]


def _is_detached(results: list[torch.Tensor]) -> bool:
    """Tell whether a result carries no gradient; a Python number counts as detached."""
    attached = sum(x.requires_grad for x in results)
    return attached < max(1, sum(x.is_floating_point() for x in results))


def mixture(x: torch.Tensor) -> torch.Tensor:
    """Return fixed weights of x's shape, all different, so that no gradients cancel."""
    steps = torch.arange(1, x.numel() + 1, dtype=torch.float64, device=x.device)
    return steps.cos().reshape(x.shape).to(x.dtype)


# --- what ran -----------------------------------------------------------------------------------


class _Calls(TorchFunctionMode):
    """Collect the names of the torch functions and methods that are called."""

    def __init__(self, names: set[str]):
        super().__init__()
        self.names = names

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.add(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


class _Kernels(TorchDispatchMode):
    """Collect the names of the kernels that run, and ``narrowed`` for float64 rounded to less."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # otherwise torch imports its compiler, which takes two seconds

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
        return result


def hands_double(case: Case) -> bool:
    """Tell whether a case hands in float64, so that rounding it to less is a mistake."""
    handed = tree_leaves([_fields(value) for value in (*case.args.values(), *case.state.values())])
    return any(isinstance(x, torch.Tensor) and x.dtype == torch.float64 for x in handed)


def _fields(value: Any) -> Any:
    """Return the fields of a recipe; any other value stays as it is."""
    return value.plain() if isinstance(value, Recipe) else value


def watched(seen: Observation, case: Case, run: Callable) -> tuple[bool, Any]:
    """Run and write down which operations ran, if somebody asks for them.

    Watching makes a call several times slower, so it is left out where the exercise forbids nothing
    and no float64 could be rounded, and in the further calls of ``again``.

    Returns:
        (True, result), or (False, None) if the run failed: then it must be repeated unwatched,
        because watching itself may have been the reason.
    """
    if not case.watched:
        return True, run()
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
    """Simulate a GPU with meta tensors: refuse to mix devices, as CUDA does.

    Kernels run on zeros on the CPU, and their results become meta tensors. Torch's own meta kernels
    would import its compiler.
    """

    _should_skip_dynamo = _Kernels._should_skip_dynamo
    was_read = False  # whether a number was read from a meta tensor, which has none

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = str(func.overloadpacket)
        handed = [*args, *kwargs.values()]
        if any(isinstance(x, list | tuple) for x in handed):
            handed = tree_leaves(handed)
        tensors = [x for x in handed if isinstance(x, torch.Tensor)]
        target = torch.device(kwargs.get("device") or "cpu").type if "device" in kwargs else None
        copies = name in ("aten._to_copy", "aten.copy", "aten.copy_")
        # copies may cross devices, and CUDA accepts indices on the CPU
        judged = tensors[:1] if copies or name.startswith("aten.index") else tensors
        if len({x.device.type for x in judged if x.ndim or x.device.type != "cpu"}) > 1:
            raise RuntimeError("expected all tensors to be on the same device, the accelerator")
        source = kwargs.get("generator")
        if source is not None and (target or "cpu") != source.device.type:
            raise RuntimeError("Expected another device type for generator, the accelerator's")
        if kwargs.get("device") is not None:
            kwargs["device"] = torch.device("cpu")
        zeros = [_on_each(_as_zeros, x) for x in args]
        result = func(*zeros, **{key: _on_each(_as_zeros, x) for key, x in kwargs.items()})
        if name.endswith("_"):
            return args[0]
        on_meta = target == "meta" if target else any(x.device.type == "meta" for x in judged)
        self.was_read |= on_meta and isinstance(result, bool | int | float)
        return _on_each(_as_meta, result) if on_meta else result


def _on_each(function: Callable, value: Any) -> Any:
    """Call a function on a value, or on all values in a list or tuple."""
    return tree_map(function, value) if isinstance(value, list | tuple) else function(value)


def _as_zeros(x: Any) -> Any:
    return (
        torch.zeros(x.shape, dtype=x.dtype)
        if isinstance(x, torch.Tensor) and x.device.type == "meta"
        else x
    )


def _as_meta(x: Any) -> Any:
    return torch.empty(x.shape, dtype=x.dtype, device="meta") if isinstance(x, torch.Tensor) else x


def _observe_on_accelerator(answer, case: Case, seen: Observation) -> None:
    """Call the answer with tensors on CUDA, or with meta tensors if there is no GPU.

    An error that has nothing to do with devices leaves the case undecided, for meta tensors have no
    values.
    """
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
        # The sizes are right, so the answer refuses the device; but it may have tested values,
        # which meta tensors do not have.
        if is_raised_by_hand(error) and not devices.was_read:
            raise
        seen.undecided = True
        return
    outputs = result if isinstance(result, (tuple, list)) else [result]
    for name, value in zip(case.outputs, outputs, strict=False):
        value = next(value.parameters(), None) if isinstance(value, nn.Module) else value
        if isinstance(value, torch.Tensor):
            seen.devices[name] = "accelerator" if value.device.type == device else value.device.type
