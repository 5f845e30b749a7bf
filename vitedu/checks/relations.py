"""Relations: unknown mistakes whose result is related to the right one in a simple way.

Role: ``describe_relation`` tries the relations of ``relation_kinds`` one after another: a factor,
axes in another order, another normalised axis, an output that is right for the first item only, and
so on. A relation must hold on every case.
"""

import itertools
import math
from collections.abc import Callable

import torch

from vitedu.checks.case import Case
from vitedu.checks.compare import is_close
from vitedu.checks.contrast import case_settings
from vitedu.checks.mistake_files import relation_words
from vitedu.checks.observation import Observations
from vitedu.checks.relation_kinds import (
    axis_taken,
    constant_factor,
    constant_output,
    factor_by_input,
    first_item_only,
    flipped_axis,
    normalised_along_another_axis,
    one_step_less,
    one_step_more,
    other_temperature,
    permuted_axes,
    shifted_by_one,
    stretched,
    unchanged_input,
)

Match = tuple[str, str]  # id of a relation, evidence


def describe_relation(
    cases: list[Case], got: Observations, want: Observations, in_any_order: bool
) -> tuple[str, str, str, str] | None:
    """Recognise a simple relation between an answer's results and the right ones.

    Args:
        cases: the ordinary calls, without accelerator, expected errors or second call.
        got: what the answer did, by name of the case.
        want: what the reference did.
        in_any_order: also recognise the right numbers in another order.

    Returns:
        (id, what it is, the evidence, what to look at), or None. The id is "" for another order.
    """
    if match := find_relation(cases, got, want):
        name, look = relation_words(match[0])
        return match[0], name, match[1], look
    if in_any_order and (evidence := find_reordering(cases, got, want)):
        name, look = relation_words("another_order")
        return "", name, evidence, look
    return None


def find_relation(cases: list[Case], got: Observations, want: Observations) -> Match | None:
    """Find a relation that holds on every case.

    If there are several outputs, one relation for all wrong ones is tried first, then each output.

    Returns:
        (id, evidence), or None. The id is one of ``RELATIONS``.
    """
    names = list(dict.fromkeys(name for case in cases for name in want[case.name].arrays))
    calls = [case for case in cases if not case.raises]
    by_name = {
        name: [
            (case, case.args, got[case.name].arrays[name], want[case.name].arrays[name])
            for case in calls
            if got[case.name].error is None
            and name in want[case.name].arrays
            and name in got[case.name].arrays
        ]
        for name in names
    }
    if any(len(by_name[n]) < len([c for c in calls if n in want[c.name].arrays]) for n in names):
        return None
    wrong = {n: [pair for pair in by_name[n] if not is_close(pair[0], *pair[2:])] for n in names}
    wrong = {name: pairs for name, pairs in wrong.items() if pairs}
    if not wrong:
        return None
    if len(names) == 1:
        return _first_relation(by_name[names[0]])
    all_pairs = [pair for pairs in wrong.values() for pair in pairs]
    # in a single case much is related by chance
    if len({pair[0].name for pair in all_pairs}) > 1 and (match := _first_relation(all_pairs)):
        return match
    for name in wrong:
        if by_name[name][0][2].numel() > 1 and (match := _first_relation(by_name[name])):
            return match[0], f"{name}: {match[1]}"
    return None


def _first_relation(pairs) -> Match | None:
    """Find the first relation of ``RELATIONS`` that holds for all pairs."""
    if any(pair[2].numel() == 0 or pair[2].is_complex() for pair in pairs):
        return None  # the relations compare sizes and signs, which complex numbers do not have
    if any(
        not torch.isfinite(ours).all() and torch.isfinite(wanted).all()
        for _, _, ours, wanted in pairs
    ):
        return None  # NaN is related to no number
    for id_, test in RELATIONS.items():
        evidence = test(pairs)
        if evidence:
            return id_, evidence
    return None


def find_reordering(cases: list[Case], got: Observations, want: Observations) -> str:
    """Return evidence if every output has the right numbers in another order; "" otherwise."""
    first = ""
    for case in cases:
        for name, wanted in want[case.name].arrays.items():
            ours = got[case.name].arrays.get(name)
            if ours is None or ours.numel() != wanted.numel() or wanted.numel() < 4:
                return ""
            our_values, wanted_values = (
                ours.double().flatten().sort().values,
                wanted.double().flatten().sort().values,
            )
            if not is_close(case, our_values, wanted_values):
                return ""
            if not first and ours.shape == wanted.shape and not is_close(case, ours, wanted):
                place = [
                    int(i) for i in ((ours.double() - wanted.double()).abs() > 1e-6).nonzero()[0]
                ]
                first = (
                    f"every number is right, but not in its place; the first that is not: {place}"
                )
    return first


def off_by_a_term(pairs):
    """Look for a product of sizes, times a small number, by which every count is off."""
    is_number = all(case.number and ours.numel() == 1 for case, _, ours, _ in pairs)
    if not is_number or len(pairs) < 3:
        return None
    off = [float(ours) - float(wanted) for _, _, ours, wanted in pairs]
    slack = [1e-9 * abs(float(wanted)) for *_, wanted in pairs]
    rows = [_sizes(case) for case, *_ in pairs]
    shared = [name for name in rows[0] if all(name in row for row in rows)]
    for count in range(4):
        for names in itertools.combinations_with_replacement(shared, count):
            products = [math.prod(row[name] for name in names) for row in rows]
            times = next((d / p for d, p in zip(off, products, strict=True) if p), 0.0)
            if abs(times) > 12 or not (2 * times).is_integer() or not times:
                continue
            if all(abs(d - times * p) <= e for d, p, e in zip(off, products, slack, strict=True)):
                much = " * ".join(
                    [f"{abs(times):g}"] * (abs(times) != 1 or not names) + list(names)
                )
                return (
                    f"your count is {'larger' if times > 0 else 'smaller'} by {much} on every input"
                )
    return None


def _sizes(case: Case) -> dict[str, float]:
    """List the sizes of a case, and those that follow from them (num_patches, hidden)."""
    sizes = {
        n: v for n, v in case_settings(case).items() if isinstance(v, int | float) and v is not True
    }
    if {"image_size", "patch_size"} <= set(sizes):
        sizes["num_patches"] = (sizes.pop("image_size") // sizes["patch_size"]) ** 2
    if {"embed_dim", "mlp_ratio"} <= set(sizes):
        sizes["hidden"] = int(sizes["embed_dim"] * sizes.pop("mlp_ratio"))
    return sizes


RELATIONS: dict[str, Callable] = {
    relation.__name__: relation
    for relation in (
        constant_output,
        unchanged_input,
        constant_factor,
        stretched,
        one_step_more,
        one_step_less,
        axis_taken,
        off_by_a_term,
        factor_by_input,
        permuted_axes,
        flipped_axis,
        shifted_by_one,
        normalised_along_another_axis,
        other_temperature,
        first_item_only,
    )
}
