"""Errors of a student's code, as text: what was raised, where, and by whom."""

import dis
import functools
from dataclasses import dataclass


@dataclass(frozen=True)
class RaisedError:
    """An exception that an answer raised, as text."""

    kind: str  # its class name
    kinds: tuple[str, ...]  # the names of its class and all base classes
    message: str
    location: tuple[int, str] | None  # line number and source line in the student's code
    raised_by_student: bool = False  # raised by a raise statement in the student's code

    @property
    def device_mismatch(self) -> str:
        """What was on two devices: "generator", "tensors", or "". Torch's error has no own type."""
        if "device type for generator" in self.message:
            return "generator"
        return "tensors" if "same device" in self.message else ""


def describe_error(error: BaseException) -> RaisedError:
    """Describe an exception as text."""
    return RaisedError(
        kind=type(error).__name__,
        kinds=tuple(base.__name__ for base in type(error).__mro__),
        message=message_of(error)[:500],
        location=_student_line(error),
        raised_by_student=is_raised_by_student(error),
    )


def message_of(error: BaseException) -> str:
    """Return an error's message, whatever its ``__str__`` does."""
    try:
        return str.__str__(str(error))  # __str__ may return a subclass of str with other methods
    except Exception:
        return "(its message cannot be shown)"


def is_raised_by_student(error: BaseException) -> bool:
    """Tell whether an error comes from a ``raise`` statement in the student's own code."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not _is_student_code(trace.tb_frame.f_code.co_filename):
        return False
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == dis.opmap["RAISE_VARARGS"]


@functools.cache
def _is_student_code(filename: str) -> bool:
    """Tell whether code is neither the package's nor a library's."""
    import sysconfig

    ours = __file__.rsplit("checks", 1)[0]
    if "site-packages" in filename or "dist-packages" in filename:
        return False  # of any environment, because one environment may include another
    return not filename.startswith((ours, sysconfig.get_paths()["stdlib"], "<frozen"))


def _student_line(error: BaseException) -> tuple[int, str] | None:
    """Return number and text of the last line of the student's code that an error passed."""
    import linecache

    place, trace = None, error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if _is_student_code(name):
            place = trace.tb_lineno, linecache.getline(name, trace.tb_lineno).strip()
        trace = trace.tb_next
    return place
