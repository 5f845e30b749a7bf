"""The messages between the grader and a worker, as plain data: cases out, observations back.

Role: writes and reads cases (only what an answer may know), what an answer is, values and
observations. Data from a worker is read strictly: known fields of the right type, short clean
texts, few and small tensors; anything else is a ``WireError``, which every ``read`` may raise. The
content is still not trusted, because student code ran in the process that wrote it. Imports the
standard library, numpy and torch only.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import torch

from vitedu.checks.answers import AnswerInfo, PlainValue
from vitedu.checks.arguments import RECIPES
from vitedu.checks.case import Case
from vitedu.checks.errors import DeviceMismatch, RaisedError
from vitedu.checks.observation import Observation, Parameters
from vitedu.grading.transport.wire import MAX_ARRAY, NAME_OF, Reader, WireError, Writer, clean

# The fields of a case that a worker gets. What decides stays here: the part, the expected error,
# the tolerances, and the name, which describes the case.
CASE_FIELDS = (
    "args driver keywords outputs gradients init state number on_accelerator record_operations "
    "extra".split()
)
# the most characters of each kind of text; a fact may list all parameters of a model
WORD, NAME, TEXT, FACT = 60, 200, 600, 8000
MAX_LIST = 512  # the most entries of a list
MAX_OPERATIONS = 5000
MAX_TOTAL = 6 * 2**20  # the most bytes of all arrays of an observation

_DEFAULTS = vars(Case(""))

_GROUPS = ("arrays", "draws", "gradients")  # the fields of an observation that hold tensors
_WORDS = ("types", "devices", "facts", "effects")  # the fields that map names to texts


# --- cases --------------------------------------------------------------------------------------


def write_case(case: Case, name: str) -> tuple[dict, list[torch.Tensor]]:
    """Write what an answer may know about a case, under a name that tells nothing.

    Fields with their usual values are left out.
    """
    writer, values = Writer(RECIPES), vars(case)
    names = [field for field in CASE_FIELDS if values[field] != _DEFAULTS[field]]
    data = {field: writer.write(values[field]) for field in names}
    return {"name": name, "fields": data}, writer.tensors


def read_case(data: dict, tensors: list[torch.Tensor]) -> Case:
    """Read a case in the worker, which trusts its parent."""
    reader = Reader(tensors, RECIPES)
    return Case(data["name"], **{key: reader.read(data["fields"][key]) for key in data["fields"]})


# --- answers and values ------------------------------------------------------------------------


def write_answer_info(info: AnswerInfo) -> dict:
    """Write what an answer is."""
    refusals = [refusal[:NAME] for refusal in info.refusals]
    return {**vars(info), "signature": info.signature[:TEXT], "refusals": refusals}


def read_answer_info(data: Any) -> AnswerInfo:
    """Read what an answer is, as a worker sent it."""
    readers: dict[str, Any] = dict.fromkeys(
        ("is_empty", "is_class", "is_layer", "is_callable"), _flag
    )
    readers |= {"kind": _text(WORD), "signature": _text(TEXT), "refusals": _list(_text(NAME))}
    return AnswerInfo(**_fields(data, readers))


def write_plain(plain: PlainValue) -> dict:
    """Write a value; one that no frame can carry becomes unknown."""
    try:
        value = Writer().write(plain.value)
    except WireError:
        return write_plain(PlainValue(kind=f"{plain.kind}, too large to be read", is_known=False))
    return {**vars(plain), "value": value}


def read_plain(data: Any) -> PlainValue:
    """Read a value that a worker sent: numbers, strings, booleans and tuples of them."""
    readers: dict[str, Any] = {"is_empty": _flag, "is_known": _flag, "kind": _text(WORD)}
    readers["value"] = lambda value: _short(Reader().read(value))
    return PlainValue(**_fields(data, readers))


def _short(value: Any) -> Any:
    if isinstance(value, tuple) and len(value) <= MAX_LIST:
        return tuple(_short(item) for item in value)
    if isinstance(value, str):
        return clean(value, TEXT)
    if value is None or isinstance(value, bool | int | float):
        return value
    raise WireError(f"a {type(value).__name__} of this size is no value of an exercise.")


# --- loading and errors -------------------------------------------------------------------------


@dataclass(frozen=True)
class LoadResult:
    """The result of executing an answer's code."""

    is_defined: bool  # the code defined the name of the exercise
    trouble: RaisedError | None = None  # the first error of a statement of the answer's cell
    timed_out: bool = False
    # failed statements of the support: (names that they would bind, why, module imported from)
    failures: tuple[tuple[tuple[str, ...], str, str], ...] = ()
    printed: str = ""


def write_load_result(result: LoadResult) -> dict:
    """Write the result of executing an answer's code."""
    failures = [[list(names)[:MAX_LIST], *rest] for names, *rest in result.failures[:MAX_LIST]]
    return {**vars(result), "trouble": write_trouble(result.trouble), "failures": failures}


def read_load_result(data: Any) -> LoadResult:
    """Read a ``LoadResult`` that a worker sent."""
    readers: dict[str, Any] = {"is_defined": _flag, "timed_out": _flag, "trouble": read_trouble}
    readers["failures"] = _list(_tuple(_list(_text(NAME)), _text(TEXT), _text(NAME)))
    return LoadResult(**_fields(data, {**readers, "printed": _text(TEXT)}))


def write_trouble(error: RaisedError | None) -> dict | None:
    """Write an error, or None."""
    if error is None:
        return None
    location, mismatch = error.location and list(error.location), error.device_mismatch.value
    changes = {"kinds": list(error.kinds), "location": location, "device_mismatch": mismatch}
    return {**vars(error), **changes}


def read_trouble(data: Any) -> RaisedError | None:
    """Read an error, or None."""
    if data is None:
        return None
    readers: dict[str, Any] = {
        "kind": _text(WORD),
        "kinds": _list(_text(WORD), 50),
        "message": _text(TEXT),
    }
    place = _tuple(lambda line: int(_number(line, 10**6, int)), _text(NAME))
    readers |= {"location": lambda data: data if data is None else place(data)}
    readers |= {"raised_by_student": _flag, "device_mismatch": _device_mismatch}
    return RaisedError(**_fields(data, readers))


def _device_mismatch(data: Any) -> DeviceMismatch:
    if data not in [kind.value for kind in DeviceMismatch]:
        raise WireError("there is no such clash of devices.")
    return DeviceMismatch(data)


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
        **{kind: [list(pair) for pair in getattr(seen, kind).items()] for kind in _WORDS},
        "tensors": names,
        "types": [list(pair) for pair in types.items()],
        "parameters": {kind: list(who) for kind, who in vars(seen.parameters).items()},
        "modified": list(seen.modified),
        "detached": seen.detached,
        "gradient_error": seen.gradient_error,
        "seconds": seen.seconds,
        "error": write_trouble(seen.error),
        "operations": sorted(seen.operations)[:MAX_OPERATIONS],
        "printed": seen.printed,
        "undecided": seen.undecided,
    }
    return data, tensors


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
    """Read an observation that a worker sent. ``is_read`` is not sent: only the judge sets it."""
    seen = _fields(data, _OBSERVATION)
    names = seen.pop("tensors")
    if len(names) != len(tensors) or len(set(names)) != len(names):
        raise WireError(f"{len(names)} names for {len(tensors)} arrays.")
    if any(x.numel() * x.element_size() > MAX_ARRAY for x in tensors):
        raise WireError(f"an array has at most {MAX_ARRAY} bytes.")
    groups: dict[str, Any] = {group: {} for group in _GROUPS}
    for (group, name), tensor in zip(names, tensors, strict=True):
        if group not in groups:
            raise WireError(f"there is no such group of tensors: {group[:WORD]!r}.")
        groups[group][name] = tensor
    return Observation(**{**seen, **{key: dict(seen[key]) for key in _WORDS}}, **groups)


# --- strict reading: each returns a value of the right type or raises ``WireError`` -------------


def _fields(data: Any, readers: dict[str, Callable[[Any], Any]]) -> dict[str, Any]:
    if not isinstance(data, dict) or set(data) != set(readers):
        raise WireError(f"expected the keys {', '.join(sorted(readers))}.")
    return {key: read(data[key]) for key, read in readers.items()}


def _list(read: Callable[[Any], Any], limit: int = MAX_LIST) -> Callable[[Any], tuple]:
    return lambda data: tuple(read(item) for item in _items(data, limit))


def _tuple(*readers: Callable[[Any], Any]) -> Callable[[Any], tuple]:
    def read_all(data):
        if len(_items(data, len(readers))) != len(readers):
            raise WireError(f"expected a list of {len(readers)}.")
        return tuple(read(item) for read, item in zip(readers, data, strict=True))

    return read_all


def _items(data: Any, limit: int) -> list:
    if not isinstance(data, list) or len(data) > limit:
        raise WireError(f"expected a list of at most {limit}.")
    return data


def _text(limit: int) -> Callable[[Any], str]:
    return lambda data: clean(data, limit)


def _flag(data: Any) -> bool:
    if not isinstance(data, bool):
        raise WireError("expected true or false.")
    return data


def _number(data: Any, limit: float, *types: type) -> float:
    if type(data) not in types or not 0 <= data < limit:
        raise WireError(f"expected a number below {limit:g}.")
    return data


_PAIRS = _list(_tuple(_text(NAME), _text(FACT)))
_NAMES = _list(_text(NAME))
_OPERATIONS = _list(_text(NAME), MAX_OPERATIONS)
_PARAMETERS = dict.fromkeys([field.name for field in fields(Parameters)], _NAMES)
_OBSERVATION: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("tensors", *_WORDS), _PAIRS),
    "parameters": lambda data: Parameters(**_fields(data, _PARAMETERS)),
    "modified": _NAMES,
    "detached": _flag,
    "gradient_error": _text(FACT),
    "seconds": lambda data: _number(data, 1e6, int, float),
    "error": read_trouble,
    "operations": lambda data: frozenset(_OPERATIONS(data)),
    "printed": _text(TEXT),
    "undecided": _flag,
}
