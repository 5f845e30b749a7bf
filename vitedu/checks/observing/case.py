"""A case: one call to make, as plain data.

Role: ``Case``, and ``Recipe`` for arguments that are not plain data, and what builds and changes
arguments.
"""

import copy
import itertools
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only


class Recipe:
    """An argument that is not plain data. ``build`` makes a new one for every call."""

    def plain(self) -> dict[str, Any]:
        """Return the constructor arguments of an equal recipe: plain data and tensors."""
        return dict(vars(self))

    def build(self) -> Any:
        """Build the argument."""
        raise NotImplementedError

    def is_modified(self, argument: Any) -> bool:
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
    # only devices are judged: meta tensors stand for those on an accelerator
    on_accelerator: bool = False
    record_operations: bool = True  # write down which operations run
    seed: int | None = None  # of what an answer draws; default: a hash of the name
    turned: bool = False  # the axes of every tensor stand in reverse order in memory
    views: dict[str, str] = field(default_factory=dict)  # argument -> another that it is part of
    through: int | None = None  # of how many outputs, the first ones, gradients count; default: all
    # of driver "module":
    training: bool | None = None  # the mode of the layer; default: as ``in_train_mode`` says
    learns: bool | None = None  # gradients of parameters are compared; False: none in this case
    frozen: tuple[str, ...] = ()  # parameters that get no gradient
    keeps_parameters: bool = False  # the layer runs with its own parameters, not those of ``state``
    repeats: str = ""  # of driver "second_call": the driver of the call
    instances: list[Any] | None = None  # of driver "second_call": layers that earlier calls built
    options: tuple[str, ...] = ()  # of drivers that train, measure or sort a model: see there
    other_mode: tuple[str, ...] = ()  # its parts in the mode that the model is not in
    sizes: int | list[int] = 1  # of the batches into which a driver splits the first argument

    @property
    def is_usual(self) -> bool:
        """Whether it is an ordinary call, whose results are compared by value."""
        return not (self.raises or self.on_accelerator or self.driver == "second_call")

    def __repr__(self) -> str:
        return f"Case({self.name!r}, part={self.part!r})"  # without the inputs, which are long


def size_of(case: Case) -> int:
    """Count the numbers in a case's tensors, as an estimate of its work."""
    leaves = tree_leaves((case.state, case.args))
    return sum(x.numel() for x in leaves if isinstance(x, torch.Tensor))


def build(value: Any) -> Any:
    """Make a new argument from plain data or a recipe."""
    if isinstance(value, Recipe):
        return value.build()
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return copy.deepcopy(value)


def build_args(case: Case) -> dict[str, Any]:
    """Make new arguments for one call."""
    return lay_out({n: build(value) for n, value in case.args.items()}, case.turned, case.views)


def lay_out(args: dict[str, Any], turned: bool, views: dict[str, str]) -> dict[str, Any]:
    """Lay arguments out in memory, as fields of ``Case`` say."""
    if turned:
        args = tree_map_only(torch.Tensor, lambda x: _reverse(_reverse(x).contiguous()), args)
    for name, other in views.items():
        args[name] = args[other][tuple(map(slice, args[name].shape))]
    return args


def _reverse(x: torch.Tensor) -> torch.Tensor:
    return x.permute(*reversed(range(x.ndim)))


def tensors_in(name: str, value: Any) -> list[tuple[str, torch.Tensor]]:
    """List the tensors of an argument that is a tensor or a list, each with its name.

    Example:
        >>> [place for place, _ in tensors_in("layers", [torch.zeros(1), torch.zeros(2)])]
        ['layers[0]', 'layers[1]']
    """
    if isinstance(value, list):
        return [(f"{name}[{i}]", x) for i, x in enumerate(value) if isinstance(x, torch.Tensor)]
    return [(name, value)] if isinstance(value, torch.Tensor) else []


def is_float(value: Any) -> bool:
    """Tell whether an argument holds tensors that can get gradients."""
    tensors = tensors_in("", value)
    return bool(tensors) and all(x.is_floating_point() for _, x in tensors)


def other_values(value: Any) -> Any:
    """Return arguments of the same shapes and dtypes with other values; plain numbers stay.

    Arguments without any tensor give a table: there tuples and lists come in reverse.
    """
    steps = itertools.count()
    leaves = tree_leaves(value, is_leaf=lambda x: isinstance(x, Recipe))
    if isinstance(value, dict) and not any(isinstance(x, Recipe | torch.Tensor) for x in leaves):
        return {n: x[::-1] if isinstance(x, tuple | list) else x for n, x in value.items()}

    def change(x: Any) -> Any:
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

    return tree_map(change, value, is_leaf=lambda x: isinstance(x, Recipe))


def has_float64_inputs(case: Case) -> bool:
    """Tell whether a case hands in float64, so that rounding it to less is a mistake."""
    values = (*case.args.values(), *case.state.values())
    leaves = tree_leaves([x.plain() if isinstance(x, Recipe) else x for x in values])
    return any(isinstance(x, torch.Tensor) and x.dtype == torch.float64 for x in leaves)
