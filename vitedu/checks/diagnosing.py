"""Diagnosis: which mistake, exactly, gives what we saw?

Role: replay known mistakes (one, then several together) and compare; where none fits, test whether the answer is
the right one under a simple relation: a constant factor, transposed, shifted, flipped, rounded, the same numbers
in another order. Nothing is claimed that does not reproduce the answer on every case.
"""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from vitedu.checks.judging import close, number_text, read, same
from vitedu.checks.mistakes import Mistake
from vitedu.checks.probing import Case, Observation, observe

Misconception = Mistake  # until every exercise is written in the new form

PAIR_SECONDS = 1.0  # of computing; looking for two mistakes together while a student waits
MOST = 5  # so many mistakes made together are still told apart


@dataclass(frozen=True)
class Diagnosis:
    """A recognised mistake: the words of a report."""

    id: str
    name: str
    expected: str
    got: str
    why: str
    look: str
    parts: tuple[str, ...]  # the findings that it explains


Seen = dict[str, Observation]  # case name -> what happened


def replayed(
    make: Callable[[frozenset[str]], Any],
    bank: list[Mistake],
    cases: list[Case],
    got: Seen,
    want: Seen,
    most: int = MOST,
) -> list[Mistake]:
    """Find the mistakes of the bank, as few as possible, that together reproduce an answer on all cases.

    Cases where the answer was wrong are tried first, small ones before large: most candidates fall at the first.
    ``make`` gives the reference with the named mistakes made, or None where they do not go together.
    """
    order = sorted(
        cases, key=lambda case: (same(case, got[case.name], want[case.name]), _size(case))
    )

    def reproduces(implementation: Any) -> bool:
        return all(same(case, got[case.name], observe(implementation, case, 2.0)) for case in order)

    singles = [mistake for mistake in bank if mistake.part not in _OTHER_ASPECTS]
    for mistake in singles:
        if reproduces(mistake.build() if mistake.build else make(frozenset({mistake.id}))):
            return [mistake]
    if most == 1:
        return []
    combinable = [mistake for mistake in singles if mistake.build is None]
    start = time.process_time()  # so that a busy machine names no less
    wrong = [case for case in order if not same(case, got[case.name], want[case.name])]
    telling = list({case.part: case for case in reversed(wrong)}.values())  # one of each part
    alone = {  # what each mistake explains by itself: the right pair explains much
        mistake.id: _explained(make(frozenset({mistake.id})), telling, got, want)
        for mistake in combinable
    }
    pairs = itertools.combinations(combinable, 2)
    for pair in sorted(pairs, key=lambda pair: -len(alone[pair[0].id] | alone[pair[1].id])):
        if time.process_time() - start > PAIR_SECONDS:
            break
        together = make(frozenset(mistake.id for mistake in pair))
        if together is not None and reproduces(together):
            return list(pair)
    several: list[Mistake] = []
    while len(several) < most:  # always add the mistake that explains most of what is left
        told = set().union(*(alone[mistake.id] for mistake in several))
        best = max(combinable, key=lambda m: len(alone[m.id] - told), default=None)
        if best is None or not alone[best.id] - told:
            break
        several.append(best)
        together = make(frozenset(m.id for m in several)) if len(several) > 2 else None
        if together is not None and reproduces(together):
            return several
    return []


def apart(output: str, cases: list[Case], got: Seen, want: Seen) -> tuple[list[Case], Seen]:
    """Give the calls that returned an output, and what they did as if all other outputs were right."""
    kept = [
        case
        for case in cases
        if got[case.name].error is None
        and output in want[case.name].arrays
        and output in got[case.name].arrays
    ]
    alone = {}
    for case in kept:
        ours, right = got[case.name], want[case.name]
        alone[case.name] = replace(
            ours,
            arrays=right.arrays | {output: ours.arrays[output]},
            facts=dict(right.facts),
            types=right.types | {output: ours.types[output]},
        )
    return kept, alone


def _explained(implementation: Any, cases: list[Case], got: Seen, want: Seen) -> set:
    """List what a mistake explains by itself: (case, fact or array) where the answer is wrong in just this way."""
    explained = set()
    for case in cases:
        ours, theirs, right = got[case.name], observe(implementation, case, 2.0), want[case.name]
        read(case, ours, theirs, right)
        if ours.error is not None and theirs.error is not None:
            if ours.error.kind == theirs.error.kind:
                explained.add((case.name, "error"))
            continue
        done = [seen.behaviour() for seen in (ours, theirs, right)]
        explained |= {
            (case.name, *what)
            for what, found in done[0].items()
            if found != done[2].get(what, found) and found == done[1].get(what)
        }
        outputs = [seen.arrays | seen.draws for seen in (ours, theirs, right)]
        for name, array in outputs[0].items():
            other, wanted = outputs[1].get(name), outputs[2].get(name)
            if other is None or wanted is None:
                continue
            kinds = [(x.shape, x.dtype) for x in (array, other, wanted)]
            if kinds[0] == kinds[1] != kinds[2]:
                explained.add((case.name, f"kind of {name}"))
            elif (
                name in ours.arrays and close(case, array, other) and not close(case, array, wanted)
            ):
                explained.add((case.name, name))
    return explained


def _size(case: Case) -> int:
    """Estimate the work of a case: small ones are replayed first."""
    return sum(
        value.numel()
        for value in [*case.state.values(), *case.args.values()]
        if isinstance(value, torch.Tensor)
    )


_OTHER_ASPECTS = ("errors", "gradients", "unchanged", "any device")  # recognised from facts, below


def relation(cases: list[Case], got: Seen, want: Seen) -> tuple[str, str] | None:
    """Recognise an answer that is the right one under a simple relation, on every case.

    Returns:
        (id, evidence), or None. The id is one of ``_RELATIONS``.
    """
    pairs = [
        (case, case.args, got[case.name].arrays[name], wanted)
        for case in cases
        if got[case.name].error is None
        for name, wanted in want[case.name].arrays.items()
        if name in got[case.name].arrays
    ]
    if len(pairs) < len([c for c in cases if not c.raises]):
        return None
    wrong = [pair for pair in pairs if not close(pair[0], pair[2], pair[3])]
    names = {name for case in cases for name in want[case.name].arrays}
    if len(names) > 1:  # several outputs: explain the wrong ones; the others are right
        pairs = wrong
    if not wrong or any(pair[2].numel() == 0 for pair in pairs):
        return None
    if any(
        not torch.isfinite(ours).all() and torch.isfinite(wanted).all()
        for _, _, ours, wanted in wrong
    ):
        return None  # nothing relates NaN to a number
    for id_, test in _RELATIONS.items():
        evidence = test(pairs)
        if evidence:
            return id_, evidence
    return None


def _constant(pairs):
    values = {
        float(ours.flatten()[0])
        for _, _, ours, _ in pairs
        if bool((ours == ours.flatten()[0]).all())
    }
    if len(values) == 1 and all(bool((ours == ours.flatten()[0]).all()) for _, _, ours, _ in pairs):
        if all(ours.numel() > 1 or len(pairs) > 1 for _, _, ours, _ in pairs):
            return f"every value is {number_text(values.pop())}, whatever the input"
    return None


def _unchanged_input(pairs):
    for name in pairs[0][1]:
        if all(
            isinstance(args.get(name), torch.Tensor)
            and args[name].shape == ours.shape
            and torch.equal(args[name].double(), ours.double())
            for _, args, ours, _ in pairs
        ):
            return f"the output is {name}, unchanged"
    return None


def _factor(pairs):
    ratios = []
    for case, _, ours, wanted in pairs:
        if ours.shape != wanted.shape or not wanted.is_floating_point():
            return None
        ours, wanted = ours.double(), wanted.double()
        energy = (wanted * wanted).sum()
        if energy == 0:
            continue
        ratio = float((ours * wanted).sum() / energy)
        if not close(case, ours, wanted * ratio) or abs(ratio) < 1e-6:
            return None
        ratios.append(ratio)
    if ratios and max(ratios) - min(ratios) < 1e-3 * abs(ratios[0]) and abs(ratios[0] - 1) > 1e-3:
        return f"your output equals the expected one times {ratios[0]:.2f}"
    return None


def _offset(pairs):
    if any(ours.shape != wanted.shape for _, _, ours, wanted in pairs):
        return None
    offsets = [
        float((ours.double() - wanted.double()).mean())
        for _, _, ours, wanted in pairs
        if ours.numel() > 1
    ]
    if not offsets or max(offsets) - min(offsets) > 1e-3 * abs(offsets[0]):
        return None
    if all(
        close(case, ours.double(), wanted.double() + offsets[0]) for case, _, ours, wanted in pairs
    ):
        return f"your output equals the expected one plus {offsets[0]:.3g}"
    return None


def _permuted(pairs):
    if any(ours.ndim != wanted.ndim for _, _, ours, wanted in pairs):
        return None
    sizes = {ours.ndim for _, _, ours, _ in pairs if ours.ndim > 1}
    count = min(sizes, default=0)  # only the last axes are common to all
    which = "axes" if len(sizes) == 1 else f"last {count} axes"
    for axes in itertools.permutations(range(count)):
        if list(axes) == sorted(axes):
            continue
        if all(close(case, ours, _reordered_axes(wanted, axes)) for case, _, ours, wanted in pairs):
            return f"your output equals the expected one with its {which} in the order {axes}"
    return None


def _reordered_axes(x: torch.Tensor, axes: tuple[int, ...]) -> torch.Tensor:
    """Permute the last axes of a tensor; one with fewer axes stays as it is."""
    first = x.ndim - len(axes)
    return x.permute(*range(first), *(first + axis for axis in axes)) if first >= 0 else x


def _flipped(pairs):
    if any(ours.shape != wanted.shape for _, _, ours, wanted in pairs):
        return None
    ndim = min(ours.ndim for _, _, ours, _ in pairs)
    for axis in range(-ndim, 0):
        if all(close(case, ours, wanted.flip(axis)) for case, _, ours, wanted in pairs):
            return f"your output equals the expected one read backwards along axis {axis}"
    return None


def _shifted(pairs):
    if any(ours.shape != wanted.shape for _, _, ours, wanted in pairs):
        return None
    ndim = min(ours.ndim for _, _, ours, _ in pairs)
    for axis in range(-ndim, 0):
        long = [pair for pair in pairs if pair[2].shape[axis] > 1]
        if not any(ours.shape[axis] > 2 for _, _, ours, _ in long):
            continue
        for step in (1, -1):
            if all(
                close(case, _inner(ours, axis, step), _inner(wanted, axis, -step))
                for case, _, ours, wanted in long
            ):
                side = "later" if step > 0 else "earlier"
                return f"your values stand one place {side} along axis {axis} than expected"
    return None


def _inner(x: torch.Tensor, axis: int, step: int) -> torch.Tensor:
    """Drop the first (step > 0) or the last entry along an axis."""
    size = x.shape[axis] - 1
    return x.narrow(axis, 1 if step > 0 else 0, size)


def _normalised_elsewhere(pairs):
    found = set()
    for case, _, ours, wanted in pairs:
        if close(case, ours, wanted):
            continue
        mine, right = _unit_sums(ours), _unit_sums(wanted)
        if not mine - right or not right - mine:
            return None
        found.add((max(mine - right), max(right - mine)))
    if not found:
        return None
    mine, right = max(found)
    where = f"along axis {mine}; it should along axis {right}"
    return f"your output sums to 1 {where}" + (
        "" if len(found) == 1 else ", or others, as dim says"
    )


def _unit_sums(x: torch.Tensor) -> set[int]:
    """List the axes along which a tensor sums to 1, counted from the end."""
    ones = torch.ones((), dtype=torch.float64)
    return {
        axis for axis in range(-x.ndim, 0) if torch.allclose(x.double().sum(axis), ones, atol=1e-3)
    }


def _first_only(pairs):
    usable = [
        pair
        for pair in pairs
        if pair[2].ndim > 1 and pair[2].shape == pair[3].shape and pair[2].shape[0] > 1
        if any(
            len(x) == len(pair[2])
            for x in pair[1].values()
            if isinstance(x, torch.Tensor) and x.ndim
        )
    ]
    if usable and all(
        close(case, ours[0], wanted[0]) and not close(case, ours, wanted)
        for case, _, ours, wanted in usable
    ):
        if all(
            close(case, ours, wanted) for case, _, ours, wanted in pairs if ours.shape[:1] == (1,)
        ):
            return "the first item of the batch is right, the others are not"
    return None


_RELATIONS: dict[str, Callable] = {
    "constant_output": _constant,
    "unchanged_input": _unchanged_input,
    "constant_factor": _factor,
    "constant_offset": _offset,
    "permuted_axes": _permuted,
    "flipped_axis": _flipped,
    "shifted_by_one": _shifted,
    "normalised_along_another_axis": _normalised_elsewhere,
    "first_item_only": _first_only,
}


def reordered(cases: list[Case], got: Seen, want: Seen) -> str:
    """Say so if every output holds the right numbers in another order; "" otherwise."""
    first = ""
    for case in cases:
        for name, wanted in want[case.name].arrays.items():
            ours = got[case.name].arrays.get(name)
            if ours is None or ours.numel() != wanted.numel() or wanted.numel() < 4:
                return ""
            left, right = (
                ours.double().flatten().sort().values,
                wanted.double().flatten().sort().values,
            )
            if not close(case, left, right):
                return ""
            if not first and ours.shape == wanted.shape and not close(case, ours, wanted):
                place = [int(i) for i in ((ours - wanted).abs() > 1e-6).nonzero()[0]]
                first = (
                    f"every number is right, but not in its place; the first that is not: {place}"
                )
    return first
