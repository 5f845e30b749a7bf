"""The messages between the grader and a worker, as plain data: cases out, observations back.

Role: writes and reads cases (only what an answer may know), what an answer is, values and
observations. Data from a worker is read strictly: known fields of the right type, short clean
texts, few and small tensors; anything else is a ``WireError``. The content is still not trusted,
because student code ran in the process that wrote it. Imports the standard library, numpy and torch
only.
"""

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
_KEYS = {"tensors", "parameters", "modified", "detached", "gradient_error", "seconds", "error"}
_KEYS |= {"operations", "printed", "undecided", *_WORDS}


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
    """Read what an answer is, as a worker sent it.

    Raises:
        WireError: the data has another form.
    """
    data = _dict(data, {field.name for field in fields(AnswerInfo)})
    flags = {key: _flag(data[key]) for key in ("is_empty", "is_class", "is_layer", "is_callable")}
    return AnswerInfo(
        **flags,
        kind=clean(data["kind"], WORD),
        signature=clean(data["signature"], TEXT),
        refusals=tuple(clean(text, NAME) for text in _list(data["refusals"], MAX_LIST)),
    )


def write_plain(plain: PlainValue) -> dict:
    """Write a value; one that no frame can carry becomes unknown."""
    try:
        value = Writer().write(plain.value)
    except WireError:
        return write_plain(PlainValue(kind=f"{plain.kind}, too large to be read", is_known=False))
    return {**vars(plain), "value": value}


def read_plain(data: Any) -> PlainValue:
    """Read a value that a worker sent: numbers, strings, booleans and tuples of them.

    Raises:
        WireError: the data has another form.
    """
    data = _dict(data, {field.name for field in fields(PlainValue)})
    value, kind = _short(Reader().read(data["value"])), clean(data["kind"], WORD)
    return PlainValue(value, _flag(data["is_empty"]), _flag(data["is_known"]), kind)


def _short(value: Any) -> Any:
    if isinstance(value, tuple) and len(value) <= MAX_LIST:
        return tuple(_short(item) for item in value)
    if isinstance(value, str):
        return clean(value, TEXT)
    if value is None or isinstance(value, bool | int | float):
        return value
    raise WireError(f"a {type(value).__name__} of this size is no value of an exercise.")


# --- loading ------------------------------------------------------------------------------------


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
    """Read a ``LoadResult`` that a worker sent.

    Raises:
        WireError: the data has another form.
    """
    data = _dict(data, {field.name for field in fields(LoadResult)})
    failures = []
    for item in _list(data["failures"], MAX_LIST):
        if len(_list(item, 3)) != 3:
            raise WireError("a lost statement has names, a reason and an origin.")
        names = tuple(clean(name, NAME) for name in _list(item[0], MAX_LIST))
        failures.append((names, clean(item[1], TEXT), clean(item[2], NAME)))
    return LoadResult(
        is_defined=_flag(data["is_defined"]),
        trouble=read_trouble(data["trouble"]),
        timed_out=_flag(data["timed_out"]),
        failures=tuple(failures),
        printed=clean(data["printed"], TEXT),
    )


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
        "tensors": names,
        "types": [list(pair) for pair in types.items()],
        "devices": [list(pair) for pair in seen.devices.items()],
        "facts": [list(pair) for pair in seen.facts.items()],
        "effects": [list(pair) for pair in seen.effects.items()],
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
    """Read the observations of one reply, at least one and at most ``limit``.

    Raises:
        WireError: the data has another form.
    """
    observations, start = [], 0
    for item in _list(data, limit):
        names = item.get("tensors") if isinstance(item, dict) else None
        end = start + len(_list(names, MAX_LIST))
        observations.append(read_observation(item, tensors[start:end]))
        start = end
    if not observations or start != len(tensors):
        raise WireError(f"{len(observations)} observations name {start} of {len(tensors)} arrays.")
    return observations


def read_observation(data: Any, tensors: list[torch.Tensor]) -> Observation:
    """Read an observation that a worker sent. ``is_read`` is not sent: only the judge sets it.

    Raises:
        WireError: the data has another form.
    """
    data = _dict(data, _KEYS)
    names = [_pair(item) for item in _list(data["tensors"], MAX_LIST)]
    if len(names) != len(tensors) or len(set(names)) != len(names):
        raise WireError(f"{len(names)} names for {len(tensors)} arrays.")
    if any(x.numel() * x.element_size() > MAX_ARRAY for x in tensors):
        raise WireError(f"an array has at most {MAX_ARRAY} bytes.")
    groups: dict[str, Any] = {group: {} for group in _GROUPS}
    for (group, name), tensor in zip(names, tensors, strict=True):
        if group not in groups:
            raise WireError(f"there is no such group of tensors: {group[:WORD]!r}.")
        groups[group][name] = tensor
    words: dict[str, Any] = {
        key: dict(_pair(item) for item in _list(data[key], MAX_LIST)) for key in _WORDS
    }
    parameters = _dict(data["parameters"], {field.name for field in fields(Parameters)})
    seconds = data["seconds"]
    if type(seconds) not in (int, float) or not 0 <= seconds < 1e6:
        raise WireError("a time limit is a number of seconds.")
    return Observation(
        **groups,
        **words,
        parameters=Parameters(**{kind: _names(who) for kind, who in parameters.items()}),
        modified=_names(data["modified"]),
        detached=_flag(data["detached"]),
        gradient_error=clean(data["gradient_error"], FACT),
        seconds=seconds,
        error=read_trouble(data["error"]),
        operations=frozenset(clean(x, NAME) for x in _list(data["operations"], MAX_OPERATIONS)),
        printed=clean(data["printed"], TEXT),
        undecided=_flag(data["undecided"]),
    )


def _pair(item: Any) -> tuple[str, str]:
    """Read a name and its text."""
    if not isinstance(item, list) or len(item) != 2:
        raise WireError("expected a name and a text.")
    return clean(item[0], NAME), clean(item[1], FACT)


def _names(data: Any) -> tuple[str, ...]:
    return tuple(clean(word, NAME) for word in _list(data, MAX_LIST))


def write_trouble(error: RaisedError | None) -> dict | None:
    """Write an error, or None."""
    if error is None:
        return None
    location, mismatch = error.location and list(error.location), error.device_mismatch.value
    changes = {"kinds": list(error.kinds), "location": location, "device_mismatch": mismatch}
    return {**vars(error), **changes}


def read_trouble(data: Any) -> RaisedError | None:
    """Read an error, or None.

    Raises:
        WireError: the data has another form.
    """
    if data is None:
        return None
    data = _dict(data, {field.name for field in fields(RaisedError)})
    location = data["location"]
    if location is not None:
        number, line = location if len(_list(location, 2)) == 2 else (None, None)
        if type(number) is not int or not 0 <= number < 10**6:
            raise WireError("a place is a line number and the line.")
        location = number, clean(line, NAME)
    return RaisedError(
        kind=clean(data["kind"], WORD),
        kinds=tuple(clean(kind, WORD) for kind in _list(data["kinds"], 50)),
        message=clean(data["message"], TEXT),
        location=location,
        raised_by_student=_flag(data["raised_by_student"]),
        device_mismatch=_device_mismatch(data["device_mismatch"]),
    )


def _device_mismatch(data: Any) -> DeviceMismatch:
    if data not in [kind.value for kind in DeviceMismatch]:
        raise WireError("there is no such clash of devices.")
    return DeviceMismatch(data)


# --- strict reading -----------------------------------------------------------------------------


def _dict(data: Any, keys: set[str]) -> dict:
    if not isinstance(data, dict) or set(data) != keys:
        raise WireError(f"expected the keys {', '.join(sorted(keys))}.")
    return data


def _list(data: Any, limit: int) -> list:
    if not isinstance(data, list) or len(data) > limit:
        raise WireError(f"expected a list of at most {limit}.")
    return data


def _flag(data: Any) -> bool:
    if type(data) is not bool:
        raise WireError("expected true or false.")
    return data
