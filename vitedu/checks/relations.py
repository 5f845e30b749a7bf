"""Relations: unknown mistakes whose result is related to the right one in a simple way.

Role: ``describe_relation`` tries the relations of ``relation_kinds`` one after another: a factor,
axes in another order, another normalised axis, an output that is right for the first item only, and
so on. A relation must hold on every case.
"""

from vitedu.checks.case import Case
from vitedu.checks.compare import is_close
from vitedu.checks.mistake_files import relation_words
from vitedu.checks.observation import Observations
from vitedu.checks.relation_kinds import RELATIONS

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
    pairs: dict[str, list[tuple]] = {}  # by output
    for case in cases:
        for name, wanted in want[case.name].arrays.items():
            ours = got[case.name].arrays.get(name)
            if got[case.name].error is not None or ours is None:
                return None
            pairs.setdefault(name, []).append((case, ours, wanted))
    wrong = {name: [pair for pair in some if not is_close(*pair)] for name, some in pairs.items()}
    all_wrong = [pair for some in wrong.values() for pair in some]
    if not all_wrong or len(pairs) == 1:
        return _first_relation(*pairs.values()) if all_wrong else None
    # in a single case much is related by chance
    if len({case.name for case, *_ in all_wrong}) > 1 and (match := _first_relation(all_wrong)):
        return match
    for name, some in pairs.items():
        if wrong[name] and some[0][1].numel() > 1 and (match := _first_relation(some)):
            return match[0], f"{name}: {match[1]}"
    return None


def _first_relation(pairs) -> Match | None:
    """Find the first relation of ``RELATIONS`` that holds for all pairs."""
    if any(ours.numel() == 0 or ours.is_complex() for _, ours, _ in pairs):
        return None  # the relations compare sizes and signs, which complex numbers do not have
    if any(not x.isfinite().all() and y.isfinite().all() for _, x, y in pairs):
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
            if not is_close(case, *(x.double().flatten().sort().values for x in (ours, wanted))):
                return ""
            if not first and ours.shape == wanted.shape and not is_close(case, ours, wanted):
                off = (ours.double() - wanted.double()).abs() > 1e-6
                words = "every number is right, but not in its place; the first that is not"
                first = f"{words}: {off.nonzero()[0].tolist()}"
    return first
