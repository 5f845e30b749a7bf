"""Compare numbers, errors and random results.

Role: ``is_close`` for arrays, and ``describe_difference``, which stands after *got* in a report.
``reader`` turns random results, which differ for every right answer, into facts that can be
compared.
"""

from collections.abc import Callable, Iterable

import numpy as np
import torch

from vitedu.checks.observing.case import Case, has_float64_inputs
from vitedu.checks.observing.observation import SIDE_EFFECTS, Observation

# (rtol, atol). float32 allows for sums of a few hundred terms in another order; float64 also for
# float32 constants in the formula.
TOLERANCE = {torch.float64: (1e-6, 1e-7), torch.float32: (1e-4, 2e-5)}


def tolerance(case: Case, dtype: torch.dtype) -> tuple[float, float]:
    """Return (rtol, atol) for one case and dtype."""
    rtol, atol = TOLERANCE.get(dtype, (0.0, 0.0))
    return (rtol if case.rtol is None else case.rtol), (atol if case.atol is None else case.atol)


def is_close(case: Case, ours: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Tell whether two arrays have one shape and agree within the case's tolerance."""
    if ours.shape != wanted.shape:
        return False
    if not (ours.is_floating_point() and wanted.is_floating_point()):
        return torch.equal(ours.double(), wanted.double())
    rtol, atol = tolerance(case, wanted.dtype)
    return torch.allclose(ours.double(), wanted.double(), rtol=rtol, atol=atol, equal_nan=True)


def is_rounded(case: Case, ours: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Tell whether a wrong result for float64 inputs is right but for the rounding of float32."""
    if wanted.dtype != torch.float64 or case.number or not has_float64_inputs(case):
        return False
    rtol, atol = TOLERANCE[torch.float32]
    return torch.allclose(ours.double(), wanted, rtol=rtol, atol=atol, equal_nan=True)


def is_same_error(ours: Observation, theirs: Observation) -> bool:
    """Tell whether two calls ended in the same error.

    The type must be the same. So must the message, unless both come from a ``raise`` by hand.
    """
    one, other = ours.error, theirs.error
    if one is None or other is None or one.kind != other.kind:
        return False
    if one.raised_by_student or other.raised_by_student:
        return one.raised_by_student == other.raised_by_student
    # torch names sizes in the order of the operands, so the order of words is ignored
    return sorted(one.message.split()) == sorted(other.message.split())


def describe_difference(case: Case, ours: torch.Tensor, wanted: torch.Tensor) -> str:
    """Describe how the values of two arrays of equal shape differ, or return ""."""
    if is_close(case, ours, wanted):
        return ""
    rtol, atol = tolerance(case, wanted.dtype)
    error = (ours.double() - wanted.double()).abs()
    allowed = atol + rtol * wanted.double().abs()
    wrong = error > allowed
    if ours.ndim == 0:
        return f"another number: {number_text(float(ours))}"
    # not torch.unravel_index: it imports torch's compiler and sympy, half a second and 30 MB
    most = torch.where(wrong, error.nan_to_num(float("inf")), -1.0).argmax()
    worst = np.unravel_index(int(most), tuple(error.shape))
    place = [int(index) for index in worst]
    largest = float(error[tuple(place)])
    return (
        f"{int(wrong.sum())}/{ours.numel()} values differ; "
        f"largest difference {largest:.2g} at {place}, "
        f"allowed {float(allowed[tuple(place)]):.1g}"
    )


def number_text(number: float) -> str:
    """Write a number with six digits; a whole number with all of its digits."""
    return f"{number:.0f}" if number.is_integer() and abs(number) < 1e15 else f"{number:.6g}"


def dtype_name(dtype: torch.dtype) -> str:
    """Write a dtype without its prefix."""
    return str(dtype).removeprefix("torch.")


def join_names(names: Iterable[str]) -> str:
    """List names, at most four of them.

    Example:
        >>> join_names("qk"), join_names("abcdefg")
        ('q and k', 'a, b, c, d and 3 more')
    """
    names = list(names)
    last = names[-1:] if len(names) < 5 else [f"{len(names) - 4} more"]
    return " and ".join(filter(None, [", ".join(names[:-1][:4]), *last]))


READERS: dict[str, tuple[Callable[[Case, Observation], None], frozenset[str]]] = {}


def reader(driver: str, facts: tuple[str, ...] = ()):
    """Register a reader ``(case, seen) -> None`` for the random results of a driver.

    The random results (``seen.draws``) are judged for shape and dtype only. The reader turns their
    values into facts that are the same for every right answer, whatever it drew. ``facts`` names
    the facts that the driver itself writes; the reader writes all others.
    """

    def register(function):
        READERS[driver] = function, frozenset(facts)
        return function

    return register


def run_reader(case: Case, *observations: Observation) -> None:
    """Let the case's reader, if it has one, add its facts to each observation once.

    Raises:
        LookupError: there are random results and no reader, so nothing would judge their values.
    """
    for seen in observations:
        if seen.draws and case.driver not in {*READERS, "second_call"}:  # it writes its own facts
            raise LookupError(f"no reader for the random results of {case.driver!r} is registered")
        if case.driver in READERS and not seen.is_read:
            function, facts = READERS[case.driver]
            # facts that came with the answer are dropped: its process could claim anything
            seen.facts = {n: x for n, x in seen.facts.items() if n in facts or n == SIDE_EFFECTS}
            seen.is_read = True
            function(case, seen)
