"""The messages between the grader and a worker, as plain data: cases out, observations back.

Role: writes and reads cases (only what an answer may know), what an answer is, values and
observations. Data from a worker is read strictly: known fields of the right type, short clean
texts, few and small tensors; anything else is a ``WireError``, which every ``read`` may raise. The
content is still not trusted, because student code ran in the process that wrote it. Imports the
standard library, numpy and torch only.
"""

import math
from dataclasses import is_dataclass, replace
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import torch

from vitedu.checks.observing.answers import PlainValue
from vitedu.checks.observing.arguments import RECIPES
from vitedu.checks.observing.case import Case
from vitedu.checks.observing.observation import Observation
from vitedu.grading.transport.wire import MAX_ARRAY, MAX_DIGITS, NAME_OF, WireError, clean

# The fields of a case that a worker gets. What decides stays here: the part, the expected error,
# the tolerances, and the name, which describes the case.
CASE_FIELDS = (
    "args driver keywords outputs gradients init state number on_accelerator record_operations "
    "seed turned views through training learns frozen keeps_parameters repeats options other_mode "
    "sizes".split()
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
_NOT_SENT = {"snapshots", "is_read"}  # of an observation; only the judge reads draws


def write_case(case: Case, name: str) -> dict:
    """Write what an answer may know about a case, under a name that tells nothing.

    Fields with their usual values are left out. Which error is expected stays here; a layer that
    has to refuse is told only that it keeps its own parameters.
    """
    if case.raises and case.init:
        case = replace(case, keeps_parameters=True)
    fields = {
        field: write_value(value)
        for field, value in vars(case).items()
        if field in CASE_FIELDS and value != _DEFAULTS[field]
    }
    return {"name": name, "fields": fields}


def read_case(data: dict) -> Case:
    """Read a case in the worker, which trusts its parent."""
    fields = {name: read_value(value) for name, value in data["fields"].items()}
    return Case(data["name"], **fields)


def write_value(value: Any) -> Any:
    """Write a value as data of a frame.

    Lists, tuples, dicts, recipes and numbers that JSON lacks become ``{tag: content}``.
    """
    kind = type(value)
    if value is None or kind in (bool, str):
        return value
    if kind is int and abs(value) < 10 ** (MAX_DIGITS - 1):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if kind in (list, tuple):
        return {kind.__name__: [write_value(item) for item in value]}
    if kind is dict and all(type(key) is str for key in value):
        return {"dict": [[key, write_value(item)] for key, item in value.items()]}
    if isinstance(value, torch.Tensor):
        return value.detach()
    if RECIPES.get(kind.__name__) is kind:
        return {kind.__name__: write_value(value.plain())}
    raise WireError(f"a {kind.__name__} crosses no wire.")


def read_value(data: Any) -> Any:
    """Read what ``write_value`` wrote, in the worker, which trusts its parent."""
    if not isinstance(data, dict):
        return data
    ((tag, content),) = data.items()
    if tag == "float":
        return float(content)
    if tag == "dict":
        return {key: read_value(item) for key, item in content}
    if tag in RECIPES:
        return RECIPES[tag](**read_value(content))
    items = [read_value(item) for item in content]
    return tuple(items) if tag == "tuple" else items


def write_plain(plain: PlainValue) -> dict:
    """Write a value; one that no frame can carry becomes unknown."""
    try:
        value = write_value(plain.value)
    except WireError:
        return write_plain(PlainValue(kind=f"{plain.kind}, too large to be read", is_known=False))
    return {**vars(plain), "value": value}


def _read_plain(data: Any) -> Any:
    """Read a value of an exercise: a number, a word, nothing, or a tuple of them."""
    if data is None or isinstance(data, bool | int | float):
        return data
    if isinstance(data, str):
        return clean(data, TEXT)
    ((tag, content),) = data.items() if isinstance(data, dict) and len(data) == 1 else [("", "")]
    if tag == "tuple":
        return tuple(_read_plain(item) for item in _items(content, MAX_LIST))
    if tag == "float" and content in ("nan", "inf", "-inf"):
        return float(content)
    raise WireError(f"a {type(data).__name__} is not a value of an exercise.")


# --- observations -------------------------------------------------------------------------------


def write_observation(seen: Observation) -> dict:
    """Write an observation; of a tensor that is too large or has a rare dtype, only its type."""
    types, bytes_left = dict(seen.types), MAX_TOTAL
    groups: dict[str, Any] = {"arrays": {}, "draws": {}, "gradients": {}}
    for group, sent in groups.items():
        for name, array in getattr(seen, group).items():
            size = array.numel() * array.element_size()
            if array.dtype in NAME_OF and size <= min(MAX_ARRAY, bytes_left):
                sent[name] = array
                bytes_left -= size
            elif group != "gradients":
                is_rare = array.dtype not in NAME_OF
                words = str(array.dtype) if is_rare else f"shape {tuple(array.shape)}"
                types[name] = f"tensor of {words}"
    return write_fields(replace(seen, types=types, **groups))


def write_fields(value: Any) -> Any:
    """Write an object of a dataclass as data of a frame; of long lists the beginning."""
    if is_dataclass(value):
        fields = vars(value).items()
        return {name: write_fields(each) for name, each in fields if name not in _NOT_SENT}
    if isinstance(value, dict):
        return [[name, write_fields(each)] for name, each in value.items()]
    if isinstance(value, tuple | list):
        return [write_fields(each) for each in value[:MAX_LIST]]
    if isinstance(value, frozenset):
        return sorted(value)[:MAX_OPERATIONS]
    return value.value if isinstance(value, Enum) else value


@cache
def _hints(kind: type) -> dict[str, Any]:
    return {name: hint for name, hint in get_type_hints(kind).items() if name not in _NOT_SENT}


def read_fields(hint: Any, data: Any, limit: int = NAME) -> Any:
    """Read plain data as a value of exactly this type, such as ``PlainValue``.

    Texts are cut to ``limit`` characters, and those of fields to ``LIMITS``.
    """
    kind: Any = get_origin(hint) or hint
    inner = get_args(hint)
    if isinstance(kind, type) and is_dataclass(kind):
        fields = _hints(kind)
        if not isinstance(data, dict) or set(data) != set(fields):
            raise WireError(f"expected the keys {', '.join(sorted(fields))}.")
        read = {n: read_fields(h, data[n], LIMITS.get(n, NAME)) for n, h in fields.items()}
        return kind(**read)
    if kind is UnionType:
        return None if data is None else read_fields(inner[0], data, limit)
    if kind is dict:
        pairs = [_items(pair, 2, least=2) for pair in _items(data, MAX_LIST)]
        return {clean(name, NAME): read_fields(inner[1], each, limit) for name, each in pairs}
    if kind is tuple and inner[-1] is not ...:
        items = _items(data, len(inner), least=len(inner))
        return tuple(read_fields(h, item, limit) for h, item in zip(inner, items, strict=True))
    if kind in (tuple, frozenset):
        items = _items(data, MAX_LIST if kind is tuple else MAX_OPERATIONS)
        return kind(read_fields(inner[0], item, limit) for item in items)
    return clean(data, limit) if kind is str else _read_single(kind, data)


def _read_single(kind: Any, data: Any) -> Any:
    """Read a number, a truth, a tensor, a word of a list, or a value of an exercise."""
    if kind is Any:
        return _read_plain(data)
    if kind is torch.Tensor:
        is_right = isinstance(data, kind) and data.numel() * data.element_size() <= MAX_ARRAY
    elif issubclass(kind, Enum):
        is_right = isinstance(data, str) and data in [each.value for each in kind]
        data = kind(data) if is_right else data
    elif kind is bool:
        is_right = type(data) is bool
    else:
        is_right = type(data) in (int, kind) and 0 <= data < MAX_NUMBER
    if not is_right:
        raise WireError(f"this is no {kind.__name__}, or one that is too large.")
    return data


def _items(data: Any, limit: int, least: int = 0) -> list:
    if not isinstance(data, list) or not least <= len(data) <= limit:
        raise WireError(f"expected a list of {least} to {limit}.")
    return data
