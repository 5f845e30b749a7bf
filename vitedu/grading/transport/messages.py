"""The messages between the grader and a worker, as plain data: cases out, observations back.

Role: writes and reads cases (only what an answer may know), what an answer is, values and
observations. Data from a worker is read strictly: known fields of the right type, short clean
texts, few and small tensors; anything else is a ``WireError``, which every ``read`` may raise. The
content is still not trusted, because student code ran in the process that wrote it. Imports the
standard library, numpy and torch only.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import torch

from vitedu.checks.answers import PlainValue
from vitedu.checks.arguments import RECIPES
from vitedu.checks.case import Case
from vitedu.checks.errors import RaisedError
from vitedu.checks.observation import Observation
from vitedu.grading.transport.wire import MAX_ARRAY, MAX_DIGITS, NAME_OF, WireError, clean

# The fields of a case that a worker gets. What decides stays here: the part, the expected error,
# the tolerances, and the name, which describes the case.
CASE_FIELDS = (
    "args driver keywords outputs gradients init state number on_accelerator record_operations "
    "extra".split()
)
# the most characters of each kind of text; a fact may list all parameters of a model
WORD, NAME, TEXT, FACT = 60, 200, 600, 8000
# field -> the most characters of its texts; of all others NAME
LIMITS = dict.fromkeys(("kind", "kinds"), WORD)
LIMITS |= dict.fromkeys(("signature", "message", "printed", "failures"), TEXT)
LIMITS |= dict.fromkeys(("types", "devices", "facts", "effects", "gradient_error"), FACT)
MAX_NUMBER = 10**6  # of seconds, and of lines
MAX_LIST = 512  # the most entries of a list
MAX_OPERATIONS = 5000
MAX_TOTAL = 6 * 2**20  # the most bytes of all arrays of an observation

_DEFAULTS = vars(Case(""))

_GROUPS = ("arrays", "draws", "gradients")  # the fields of an observation that hold tensors
_NOT_SENT = {*_GROUPS, "snapshots", "is_read"}  # only the judge reads draws


# --- cases --------------------------------------------------------------------------------------


def write_case(case: Case, name: str) -> tuple[dict, list[torch.Tensor]]:
    """Write what an answer may know about a case, under a name that tells nothing.

    Fields with their usual values are left out.
    """
    tensors: list[torch.Tensor] = []
    fields = {
        field: write_value(value, tensors)
        for field, value in vars(case).items()
        if field in CASE_FIELDS and value != _DEFAULTS[field]
    }
    return {"name": name, "fields": fields}, tensors


def read_case(data: dict, tensors: Sequence[torch.Tensor]) -> Case:
    """Read a case in the worker, which trusts its parent."""
    fields = {name: read_value(value, tensors) for name, value in data["fields"].items()}
    return Case(data["name"], **fields)


def write_value(value: Any, tensors: list[torch.Tensor]) -> Any:
    """Write a value as JSON data, and append its tensors to a list.

    Lists, tuples, dicts, tensors, recipes and numbers that JSON lacks become ``{tag: content}``.

    Raises:
        WireError: a value of this type cannot be sent.
    """
    kind = type(value)
    if value is None or kind in (bool, str):
        return value
    if kind is int and abs(value) < 10 ** (MAX_DIGITS - 1):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if kind in (list, tuple):
        return {kind.__name__: [write_value(item, tensors) for item in value]}
    if kind is dict and all(type(key) is str for key in value):
        return {"dict": [[key, write_value(item, tensors)] for key, item in value.items()]}
    if isinstance(value, torch.Tensor):
        tensors.append(value.detach())
        return {"tensor": len(tensors) - 1}
    if RECIPES.get(kind.__name__) is kind:
        return {kind.__name__: write_value(value.plain(), tensors)}
    raise WireError(f"a {kind.__name__} crosses no wire.")


def read_value(data: Any, tensors: Sequence[torch.Tensor]) -> Any:
    """Read what ``write_value`` wrote, in the worker, which trusts its parent."""
    if not isinstance(data, dict):
        return data
    ((tag, content),) = data.items()
    if tag == "float":
        return float(content)
    if tag == "dict":
        return {key: read_value(item, tensors) for key, item in content}
    if tag == "tensor":
        return tensors[content]
    if tag in RECIPES:
        return RECIPES[tag](**read_value(content, tensors))
    items = [read_value(item, tensors) for item in content]
    return tuple(items) if tag == "tuple" else items


# --- answers and values ------------------------------------------------------------------------


def write_plain(plain: PlainValue) -> dict:
    """Write a value; one that no frame can carry becomes unknown."""
    try:
        value = write_value(plain.value, [])
    except WireError:
        return write_plain(PlainValue(kind=f"{plain.kind}, too large to be read", is_known=False))
    return {**vars(plain), "value": value}


def _read_plain(data: Any) -> Any:
    """Read a value of an exercise: a number, a word, nothing, or a tuple of them."""
    if data is None or isinstance(data, bool | int | float):
        return data
    if isinstance(data, str):
        return clean(data, TEXT)
    if isinstance(data, dict) and list(data) == ["tuple"]:
        return tuple(_read_plain(item) for item in _items(data["tuple"], MAX_LIST))
    if data in [{"float": word} for word in ("nan", "inf", "-inf")]:
        return float(data["float"])
    raise WireError(f"a {type(data).__name__} is no value of an exercise.")


@dataclass(frozen=True)
class LoadResult:
    """The result of executing an answer's code."""

    is_defined: bool  # the code defined the name of the exercise
    trouble: RaisedError | None = None  # the first error of a statement of the answer's cell
    timed_out: bool = False
    # failed statements of the support: (names that they would bind, why, module imported from)
    failures: tuple[tuple[tuple[str, ...], str, str], ...] = ()
    printed: str = ""


# --- observations -------------------------------------------------------------------------------


def write_observation(seen: Observation) -> tuple[dict, list[torch.Tensor]]:
    """Write an observation; of a tensor that is too large or has a rare dtype, only its type."""
    types, names, bytes_left = dict(seen.types), [], MAX_TOTAL
    tensors: list[torch.Tensor] = []
    for group in _GROUPS:
        for name, array in getattr(seen, group).items():
            size = array.numel() * array.element_size()
            if array.dtype in NAME_OF and size <= min(MAX_ARRAY, bytes_left):
                names.append([group, name])
                tensors.append(array)
                bytes_left -= size
            elif group != "gradients":
                is_rare = array.dtype not in NAME_OF
                words = str(array.dtype) if is_rare else f"shape {tuple(array.shape)}"
                types[name] = f"tensor of {words}"
    data = {
        name: write_fields(value) for name, value in vars(seen).items() if name not in _NOT_SENT
    }
    return {**data, "types": write_fields(types), "tensors": names}, tensors


def read_observations(data: Any, tensors: list[torch.Tensor], limit: int) -> list[Observation]:
    """Read the observations of one reply, at least one and at most ``limit``."""
    observations, start = [], 0
    for item in _items(data, limit):
        names = item.get("tensors") if isinstance(item, dict) else None
        end = start + len(_items(names, MAX_LIST))
        observations.append(read_observation(item, tensors[start:end]))
        start = end
    if not observations or start != len(tensors):
        raise WireError(f"{len(observations)} observations name {start} of {len(tensors)} arrays.")
    return observations


def read_observation(data: Any, tensors: list[torch.Tensor]) -> Observation:
    """Read an observation that a worker sent."""
    if not isinstance(data, dict):
        raise WireError("an observation has fields.")
    names = read_fields(tuple[tuple[str, str], ...], data.get("tensors"))
    seen = read_fields(Observation, {name: data[name] for name in data if name != "tensors"})
    if len(names) != len(tensors) or len(set(names)) != len(names):
        raise WireError(f"{len(names)} names for {len(tensors)} arrays.")
    if any(x.numel() * x.element_size() > MAX_ARRAY for x in tensors):
        raise WireError(f"an array has at most {MAX_ARRAY} bytes.")
    for (group, name), tensor in zip(names, tensors, strict=True):
        if group not in _GROUPS:
            raise WireError(f"there is no such group of tensors: {group[:WORD]!r}.")
        getattr(seen, group)[name] = tensor
    return seen


# --- fields -------------------------------------------------------------------------------------


def write_fields(value: Any) -> Any:
    """Write an object of a dataclass as plain data; of long lists the beginning."""
    if is_dataclass(value):
        return {name: write_fields(each) for name, each in vars(value).items()}
    if isinstance(value, dict):
        return [list(pair) for pair in value.items()]
    if isinstance(value, tuple | list):
        return [write_fields(each) for each in value[:MAX_LIST]]
    if isinstance(value, frozenset):
        return sorted(value)[:MAX_OPERATIONS]
    return value.value if isinstance(value, Enum) else value


@cache
def _hints(kind: type) -> dict[str, Any]:
    return {name: hint for name, hint in get_type_hints(kind).items() if name not in _NOT_SENT}


def read_fields(hint: Any, data: Any, limit: int = NAME) -> Any:
    """Read plain data as a value of exactly this type, such as ``LoadResult``.

    Texts are cut to ``limit`` characters, and those of fields to ``LIMITS``.
    """
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        if not isinstance(data, dict) or set(data) != set(hints):
            raise WireError(f"expected the keys {', '.join(sorted(hints))}.")
        return kind(**{n: read_fields(h, data[n], LIMITS.get(n, NAME)) for n, h in hints.items()})
    if kind is UnionType:
        return None if data is None else read_fields(inner[0], data, limit)
    if kind is dict:
        pairs = read_fields(tuple[tuple[str, str], ...], data, limit)
        return {name[:NAME]: text for name, text in pairs}
    if kind is tuple and inner[-1] is not ...:
        if len(_items(data, len(inner))) != len(inner):
            raise WireError(f"expected a list of {len(inner)}.")
        return tuple(read_fields(h, item, limit) for h, item in zip(inner, data, strict=True))
    if kind in (tuple, frozenset):
        items = _items(data, MAX_LIST if kind is tuple else MAX_OPERATIONS)
        return kind(read_fields(inner[0], item, limit) for item in items)
    if kind is str:
        return clean(data, limit)
    if kind is Any:
        return _read_plain(data)
    if kind in (int, float) and type(data) in (int, kind) and 0 <= data < MAX_NUMBER:
        return data
    if kind is bool and type(data) is bool:
        return data
    if issubclass(kind, Enum) and data in [each.value for each in kind]:
        return kind(data)
    raise WireError(f"this is no {kind.__name__}.")


def _items(data: Any, limit: int) -> list:
    if not isinstance(data, list) or len(data) > limit:
        raise WireError(f"expected a list of at most {limit}.")
    return data
