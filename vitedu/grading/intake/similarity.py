"""Flag nearly equal answers in a class, for a person to look at. Points do not change.

Role: ``split_tokens`` removes what an author chooses freely: names, comments, layout, type hints.
``token_runs`` reads an answer as the set of its runs of ``RUN`` tokens; ``compare_class`` compares
these numbers and no text. Runs of the reference do not count, because they belong to the course's
skeleton or are obvious. Runs that more than ``COMMON_SHARE`` of the class wrote do not count
either. Pairs are found through the runs that they share, so that not every pair is compared.

Reference: Schleimer, Wilkerson and Aiken 2003, "Winnowing". Here all runs are kept, because classes
are small.
"""

import ast
import builtins
import hashlib
import re
from collections import Counter, defaultdict
from functools import cache, lru_cache

from vitedu.course.parsing import parse
from vitedu.course.references import reference_source
from vitedu.exercises import find
from vitedu.grading.grades import Answer, Flag
from vitedu.grading.intake.statements import is_stub

RUN = 6  # tokens in a run
MIN_OVERLAP = 0.8  # a pair of answers is alike if it shares this part of all its runs
MIN_RUNS = 25  # a pair of students is flagged from this many common runs on
COMMON_SHARE = 0.1  # a run that a larger share of the class wrote does not count
MAX_WRITERS = 4  # in a small class, a run counts if at most so many students wrote it
MAX_RUNS = 5_000  # of an answer; a long reference has 300
PARTNERS = 5  # the most partners named in a flag
# the names that stay; all others are the author's
FIXED = {*dir(builtins), "torch", "nn", "F", "math", "np", "einops", "rearrange", "einsum", "self"}
_TOKEN = re.compile(r"\w+|[^\w\s]")


def compare_class(answers: dict[str, dict[str, Answer]]) -> dict[str, list[Flag]]:
    """Find students whose answers are nearly the same.

    Args:
        answers: student -> exercise -> answer.

    Returns:
        student -> flags of kind "similar", only for students who have any.
    """
    shared: dict[tuple[str, str], list[tuple[str, float, int]]] = defaultdict(list)
    exercises = sorted({id for own in answers.values() for id in own})
    for exercise in exercises:
        if find(exercise).kind == "value":
            continue
        sets = {s: frozenset(own[exercise].runs) for s, own in answers.items() if exercise in own}
        for pair, overlap, common in _find_pairs(_drop_common(sets)):
            shared[pair].append((exercise, overlap, common))
    partners: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for (one, other), matches in shared.items():
        total = sum(common for _, _, common in matches)
        if total < MIN_RUNS:
            continue
        words = ", ".join(
            f"{id} {overlap:.0%}{_identity_note(answers[one][id], answers[other][id])}"
            for id, overlap, _ in matches
        )
        partners[one].append((total, f"{other}: {words}"))
        partners[other].append((total, f"{one}: {words}"))
    flags = {}
    for student, others in partners.items():
        others.sort(key=lambda item: (-item[0], item[1]))
        more = f"; and {len(others) - PARTNERS} more" if len(others) > PARTNERS else ""
        message = "nearly the same as " + "; ".join(text for _, text in others[:PARTNERS]) + more
        flags[student] = [Flag("similar", message)]
    return flags


def token_runs(answer: Answer) -> tuple[int, ...]:
    """Return the runs of tokens of an answer as numbers, without those of the reference.

    A stub has none. Of a very long answer, the ``MAX_RUNS`` lowest numbers stand for all: they are
    the same in a copy.
    """
    runs = _split_runs(split_tokens(answer.source, answer.exercise))
    return tuple(sorted(runs - _reference_runs(answer.exercise))[:MAX_RUNS])


@lru_cache(256)
def split_tokens(source: str, name: str) -> list[str]:
    """Split the last definition of a name into tokens, with one token for the author's names.

    There are none of a stub, or where nothing defines the name or the text is no Python.

    Example:
        >>> split_tokens("total = first.sum(dim=1)", "total")
        ['v', '=', 'v', '.', 'sum', '(', 'dim', '=', '1', ')']
    """
    tokens = []
    try:
        for node in parse(source).body:
            targets = {t.id for t in getattr(node, "targets", []) if isinstance(t, ast.Name)}
            if name in targets | {getattr(node, "name", None)}:
                text = "" if is_stub(node) else ast.unparse(_Normaliser().visit(node))
                tokens = _TOKEN.findall(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return tokens


def _split_runs(words: list[str]) -> frozenset[int]:
    runs = (" ".join(words[i : i + RUN]) for i in range(len(words) - RUN + 1))
    digests = (hashlib.blake2b(run.encode(), digest_size=8).digest() for run in runs)
    return frozenset(int.from_bytes(digest) for digest in digests)


@cache
def _reference_runs(exercise: str) -> frozenset[int]:
    return _split_runs(split_tokens(reference_source(find(exercise)), exercise))


def _drop_common(sets: dict[str, frozenset]) -> dict[str, frozenset]:
    count = Counter(run for own in sets.values() for run in own)
    most = max(MAX_WRITERS, COMMON_SHARE * len(sets))
    common = {run for run, number in count.items() if number > most}
    return {student: own - common for student, own in sets.items()}


def _find_pairs(sets: dict[str, frozenset]):
    """Yield (pair of students, shared part, number of common runs) for answers that are alike."""
    holders = defaultdict(list)
    for student in sorted(sets):
        for run in sets[student]:
            holders[run].append(student)
    counts: Counter[tuple[str, str]] = Counter()
    for students in holders.values():
        for i, one in enumerate(students):
            counts.update((one, other) for other in students[i + 1 :])
    for (one, other), common in counts.items():
        overlap = common / len(sets[one] | sets[other])
        if overlap >= MIN_OVERLAP:
            yield (one, other), overlap, common


def _identity_note(one: Answer, other: Answer) -> str:
    return " to the letter" if one.source.strip() == other.source.strip() else ""


class _Normaliser(ast.NodeTransformer):
    """Renames names and drops docstrings and types. Attributes and keywords stay: torch's names."""

    def visit_Name(self, node):
        node.id = node.id if node.id in FIXED else "v"
        return node

    def visit_arg(self, node):
        node.arg, node.annotation = node.arg if node.arg in FIXED else "v", None
        return node

    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        if node.value is None:
            return None
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_FunctionDef(self, node):
        node.returns = None
        return self.visit_ClassDef(node)

    def visit_ClassDef(self, node):
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            node.body = node.body[1:] or [ast.Pass()]
        self.generic_visit(node)
        return node
