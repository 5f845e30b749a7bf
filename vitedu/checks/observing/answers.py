"""The interface between the engine and an answer, and an answer in this process.

Role: ``Source`` (the interface), ``AnswerInfo`` (what shows without running it), ``PlainValue`` (an
answer that is a value), ``LocalAnswer`` (the implementation). The engine reaches an answer only
through ``Source``, so the same code judges an answer in another process (``vitedu.grading``).
Imports the standard library, numpy and torch only, and no reference.
"""

import contextlib
import dis
import inspect
import numbers
import time
import types
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from vitedu.checks.observing.case import Case
from vitedu.checks.observing.observation import Observation
from vitedu.checks.observing.observe import observe

MIN_SECONDS = 0.5  # seconds for a case even if the time of all cases is used up
Call = tuple[int, tuple[str, ...]]  # number of positional arguments, names of the keywords


@dataclass(frozen=True)
class AnswerInfo:
    """What an answer is, as far as this shows without running it."""

    is_empty: bool = False  # nothing was written: None, ..., or a function with an empty body
    is_class: bool = False
    is_layer: bool = False  # an instance of nn.Module
    is_callable: bool = False
    kind: str = ""  # the name of its type; for a class, the class's name
    signature: str = ""  # "" if it cannot be read
    refusals: tuple[str, ...] = ()  # for each call: why the signature does not accept it, or ""


@dataclass(frozen=True)
class PlainValue:
    """An answer that is a value, as Python numbers, strings, booleans and tuples of them."""

    value: Any = None
    is_empty: bool = False  # None or ...
    is_known: bool = True  # False if it cannot be converted
    kind: str = ""  # the name of its type


class Source(Protocol):
    """An answer, wherever it lives: what ``LocalAnswer`` does."""

    def info(self, calls: list[Call]) -> AnswerInfo: ...
    def observe_all(self, cases: list[Case], seconds: float) -> Iterator[Observation]: ...
    def plain(self) -> PlainValue: ...


class LocalAnswer:
    """An answer in this process."""

    def __init__(self, answer: Any):
        self.answer = answer

    def info(self, calls: list[Call]) -> AnswerInfo:
        """Describe the answer and say whether its signature accepts these calls.

        Only its type and signature are read; none of its code runs.
        """
        answer, kind = self.answer, type(self.answer)
        if answer is None or answer is Ellipsis or _is_stub(answer):
            return AnswerInfo(is_empty=True)
        is_class = issubclass(kind, type)  # isinstance would read the answer's own __class__
        info = AnswerInfo(
            is_class=is_class,
            is_layer=issubclass(kind, nn.Module),
            is_callable=callable(answer),
            kind=_NAME(answer if is_class else kind),
        )
        if info.is_callable:
            # a builtin, or an object with a broken signature: the call decides
            with contextlib.suppress(Exception):
                signature = inspect.signature(answer)
                refusals = tuple(_refusal_text(signature, *call) for call in calls)
                return replace(info, signature=str(signature), refusals=refusals)
        return info

    def observe_all(self, cases: list[Case], seconds: float) -> Iterator[Observation]:
        """Run cases on it, for ``seconds`` of computing together, half a second each after that."""
        start = time.thread_time()
        for case in cases:
            remaining = seconds - (time.thread_time() - start)
            yield observe(self.answer, case, max(MIN_SECONDS, remaining))

    def plain(self) -> PlainValue:
        """Give it as a plain value."""
        kind = _NAME(type(self.answer))
        if self.answer is None or self.answer is Ellipsis:
            return PlainValue(is_empty=True, kind=kind)
        try:
            return PlainValue(to_plain(self.answer), kind=kind)
        except TypeError:
            return PlainValue(is_known=False, kind=kind)


_NAME = type.__dict__["__name__"].__get__  # a metaclass may override __name__


def _is_stub(answer: Any) -> bool:
    """Tell whether a function's body is only a docstring, ``pass`` or ``...``."""
    if not is_function(answer):
        return False
    no_work = {"RESUME", "NOP", "LOAD_CONST", "RETURN_CONST", "RETURN_VALUE", "CACHE"}
    instructions = list(dis.get_instructions(answer))
    constants = {i.argval for i in instructions if i.opname in ("LOAD_CONST", "RETURN_CONST")}
    return all(i.opname in no_work for i in instructions) and constants <= {None}


def is_written(answer: Any) -> bool:
    """Tell whether a function, or a method of a class, does more than raise NotImplementedError."""
    members = [answer, *getattr(answer, "__dict__", {}).values()]
    code = [x.__code__ for x in members if is_function(x)]
    return any(
        {*each.co_names} - {"NotImplementedError"} or each.co_nlocals > each.co_argcount
        for each in code
    )


def is_function(x: Any) -> bool:
    """Tell whether something is a function of Python, whatever it says of itself."""
    return type(x) is types.FunctionType


def _refusal_text(signature: inspect.Signature, positional: int, keywords: tuple[str, ...]) -> str:
    """Say why a signature does not accept a call, or ""."""
    try:
        signature.bind(*[None] * positional, **dict.fromkeys(keywords))
    except TypeError as error:
        return str(error)
    return ""


def to_plain(value: Any) -> Any:
    """Convert NumPy and torch scalars and sequences to Python values, and strings to lower case.

    Raises:
        TypeError: it has another type.
    """
    if isinstance(value, str):
        return value.strip().casefold()
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
    if isinstance(value, (torch.Tensor, np.ndarray, np.generic)):
        value = (value.reshape(()) if tuple(value.shape) == (1,) else value).tolist()
    if isinstance(value, (list, tuple)):
        return tuple(to_plain(item) for item in value)
    if isinstance(value, numbers.Real):
        return value if isinstance(value, int) else float(value)
    raise TypeError(f"a {type(value).__name__} is no value of an exercise")
