"""What the grader and a worker say to each other, as plain data: cases out, observations back.

Role: write cases (only what an answer may know), looks, values and observations, and read them back. What comes from
a worker is read strictly: known facts of the right type, short clean texts, few and small tensors; else ``WireError``.
It stays a claim: student code ran where it was written. Standard library, numpy and torch only.
"""

from dataclasses import dataclass, fields
from typing import Any

import torch

from vitedu.checks.answers import Look, Plain
from vitedu.checks.arguments import RECIPES
from vitedu.checks.probing import Case, Observation, Trouble
from vitedu.grading.line.wire import MAX_ARRAY, NAME_OF, Reader, WireError, Writer, clean

# what decides stays with the judge: the finding, the expected error, tolerances, and the name in words
TOLD = (
    "args driver keywords outputs gradients init state number on_accelerator extra".split()
)  # fields of a case that a worker gets

WORD, NAME, TEXT, FACT = 60, 200, 600, 8000  # characters; a fact may list all parameters of a model
MOST = 512  # facts, names in a fact, arrays
MOST_OPERATIONS = 5000
ROOM = 6 * 2**20  # bytes of all arrays of an observation

_TEXTS = ("type:", "device:", "fact:", "gradient error")
_FLAGS = ("attached:", "detached")
_NAMES = ("modified", "parameters missing", "parameters unexpected", "parameters misshapen")
_NUMBERS = ("seconds",)


# --- cases --------------------------------------------------------------------------------------


def write_case(case: Case, name: str) -> tuple[dict, list[torch.Tensor]]:
    """Write what an answer may know of a case, under a name that says nothing."""
    writer = Writer(RECIPES)
    told = {field: writer.write(getattr(case, field)) for field in TOLD}
    return {"name": name, "told": told}, writer.tensors


def read_case(data: dict, tensors: list[torch.Tensor]) -> Case:
    """Read a case; for the worker, which trusts its parent."""
    reader = Reader(tensors, RECIPES)
    return Case(data["name"], **{field: reader.read(data["told"][field]) for field in TOLD})


# --- looks and values ---------------------------------------------------------------------------


def write_look(look: Look) -> dict:
    """Write what an answer is."""
    data = {field.name: getattr(look, field.name) for field in fields(Look)}
    refusals = [refusal[:NAME] for refusal in look.refusals]
    return {**data, "signature": look.signature[:TEXT], "refusals": refusals}


def read_look(data: Any) -> Look:
    """Read what a worker says an answer is.

    Raises:
        WireError: it is no such thing.
    """
    data = _dict(data, {field.name for field in fields(Look)})
    flags = {name: _flag(data[name]) for name in ("idle", "is_class", "is_layer", "is_callable")}
    return Look(
        **flags,
        kind=clean(data["kind"], WORD),
        signature=clean(data["signature"], TEXT),
        refusals=tuple(clean(text, NAME) for text in _list(data["refusals"], MOST)),
    )


def write_plain(plain: Plain) -> dict:
    """Write a value; one that cannot cross is of an unknown kind."""
    try:
        value = Writer().write(plain.value)
    except WireError:
        return write_plain(Plain(kind=f"{plain.kind}, too large to be read", is_known=False))
    return {
        "value": value,
        "idle": plain.idle,
        "is_known": plain.is_known,
        "kind": plain.kind,
    }


def read_plain(data: Any) -> Plain:
    """Read a value that a worker sent: numbers, words, booleans and tuples of them.

    Raises:
        WireError: it is something else.
    """
    data = _dict(data, {"value", "idle", "is_known", "kind"})
    value = _short(Reader().read(data["value"]))
    return Plain(value, _flag(data["idle"]), _flag(data["is_known"]), clean(data["kind"], WORD))


def _short(value: Any) -> Any:
    if isinstance(value, tuple) and len(value) <= MOST:
        return tuple(_short(item) for item in value)
    if isinstance(value, str):
        return clean(value, TEXT)
    if value is None or isinstance(value, bool | int | float):
        return value
    raise WireError(f"a {type(value).__name__} of this size is no value of an exercise.")


# --- loading ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Loaded:
    """What came of an answer's code."""

    defined: bool  # the name of the exercise is there
    trouble: Trouble | None = None  # the first error of a statement of the answer's cell
    timed_out: bool = False
    lost: tuple[
        tuple[tuple[str, ...], str, str], ...
    ] = ()  # of the support: names, why, imported from
    printed: str = ""


def write_loaded(loaded: Loaded) -> dict:
    """Write what came of the code."""
    lost = [[list(names)[:MOST], why, origin] for names, why, origin in loaded.lost[:MOST]]
    return {**vars(loaded), "trouble": write_trouble(loaded.trouble), "lost": lost}


def read_loaded(data: Any) -> Loaded:
    """Read what a worker says came of the code.

    Raises:
        WireError: it is no such thing.
    """
    data = _dict(data, {field.name for field in fields(Loaded)})
    lost = []
    for item in _list(data["lost"], MOST):
        if len(_list(item, 3)) != 3:
            raise WireError("a lost statement has names, a reason and an origin.")
        names = tuple(clean(name, NAME) for name in _list(item[0], MOST))
        lost.append((names, clean(item[1], TEXT), clean(item[2], NAME)))
    return Loaded(
        defined=_flag(data["defined"]),
        trouble=read_trouble(data["trouble"]),
        timed_out=_flag(data["timed_out"]),
        lost=tuple(lost),
        printed=clean(data["printed"], TEXT),
    )


# --- observations -------------------------------------------------------------------------------


def write_observation(seen: Observation) -> tuple[dict, list[torch.Tensor]]:
    """Write what an answer did; a tensor that is too large or of a rare dtype leaves its type alone."""
    facts, names, tensors, room = dict(seen.facts), [], [], ROOM
    for name, array in seen.arrays.items():
        size = array.numel() * array.element_size()
        if array.dtype in NAME_OF and size <= min(MAX_ARRAY, room):
            names.append(name)
            tensors.append(array)
            room -= size
        else:
            words = (
                str(array.dtype) if array.dtype not in NAME_OF else f"shape {tuple(array.shape)}"
            )
            facts[f"type:{name}"] = f"tensor of {words}"
    operations = sorted(name for name in seen.operations if not name.startswith("made "))
    data = {
        "arrays": names,
        "facts": [[k, list(v) if isinstance(v, tuple) else v] for k, v in facts.items()],
        "error": write_trouble(seen.error),
        "operations": operations[:MOST_OPERATIONS],
        "printed": seen.printed,
        "undecided": seen.undecided,
    }
    return data, tensors


def read_observation(data: Any, tensors: list[torch.Tensor]) -> Observation:
    """Read what a worker says an answer did.

    Raises:
        WireError: it is no such thing.
    """
    keys = {"arrays", "facts", "error", "operations", "printed", "undecided"}
    data = _dict(data, keys)
    names = [clean(name, NAME) for name in _list(data["arrays"], MOST)]
    if len(names) != len(tensors) or len(set(names)) != len(names):
        raise WireError(f"{len(names)} names for {len(tensors)} arrays.")
    if any(x.numel() * x.element_size() > MAX_ARRAY for x in tensors):
        raise WireError(f"an array has at most {MAX_ARRAY} bytes.")
    operations = _list(data["operations"], MOST_OPERATIONS)
    return Observation(
        arrays=dict(zip(names, tensors, strict=True)),
        facts=dict(_fact(item) for item in _list(data["facts"], MOST)),
        error=read_trouble(data["error"]),
        operations=frozenset(clean(name, NAME) for name in operations),
        printed=clean(data["printed"], TEXT),
        undecided=_flag(data["undecided"]),
    )


def _fact(item: Any) -> tuple[str, Any]:
    """Read one fact; what a judge adds itself ("read") is none that a worker may bring."""
    if not isinstance(item, list) or len(item) != 2:
        raise WireError("a fact has a name and a content.")
    name, content = clean(item[0], NAME), item[1]
    if name.startswith(_TEXTS):
        return name, clean(content, FACT)
    if name.startswith(_FLAGS):
        return name, _flag(content)
    if name in _NAMES:
        return name, tuple(clean(word, NAME) for word in _list(content, MOST))
    if name in _NUMBERS and type(content) in (int, float) and 0 <= content < 1e6:
        return name, content
    raise WireError(f"there is no such fact: {name[:WORD]!r}.")


def write_trouble(error: Trouble | None) -> dict | None:
    """Write an error down, if there is one."""
    if error is None:
        return None
    where = error.where and list(error.where)
    return {**vars(error), "kinds": list(error.kinds), "where": where}


def read_trouble(data: Any) -> Trouble | None:
    """Read an error, if there is one.

    Raises:
        WireError: it is no such thing.
    """
    if data is None:
        return None
    data = _dict(data, {"kind", "kinds", "message", "where", "by_hand"})
    where = data["where"]
    if where is not None:
        if len(_list(where, 2)) != 2 or type(where[0]) is not int or not 0 <= where[0] < 10**6:
            raise WireError("a place is a line number and the line.")
        where = where[0], clean(where[1], NAME)
    return Trouble(
        kind=clean(data["kind"], WORD),
        kinds=tuple(clean(kind, WORD) for kind in _list(data["kinds"], 50)),
        message=clean(data["message"], TEXT),
        where=where,
        by_hand=_flag(data["by_hand"]),
    )


# --- strict reading -----------------------------------------------------------------------------


def _dict(data: Any, keys: set[str]) -> dict:
    if not isinstance(data, dict) or set(data) != keys:
        raise WireError(f"expected the keys {', '.join(sorted(keys))}.")
    return data


def _list(data: Any, most: int) -> list:
    if not isinstance(data, list) or len(data) > most:
        raise WireError(f"expected a list of at most {most}.")
    return data


def _flag(data: Any) -> bool:
    if type(data) is not bool:
        raise WireError("expected true or false.")
    return data
