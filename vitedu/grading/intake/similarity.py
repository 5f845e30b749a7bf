"""Flag nearly equal answers in a class, for a person to look at. Points do not change.

Role: ``compare_class``. An answer is the set of its runs of ``RUN`` consecutive tokens, without
names. Runs of the reference do not count, because they belong to the course's skeleton or are
obvious. Runs that more than ``COMMON`` of the class wrote do not count either. Pairs are found
through the runs that they share, so that not every pair is compared.

Reference: Schleimer, Wilkerson and Aiken 2003, "Winnowing". Here all runs are kept, because classes
are small.
"""

from collections import Counter, defaultdict
from functools import cache, lru_cache

from vitedu.course.references import reference_source
from vitedu.exercises import find
from vitedu.grading.grades import Answer, Flag
from vitedu.grading.intake.normalising import definition, tokens
from vitedu.grading.intake.stubs import is_stub

RUN = 6  # tokens in a run
ALIKE = 0.8  # a pair of answers is alike if it shares this part of all its runs
ENOUGH = 25  # a pair of students is flagged from this many common runs on
COMMON = 0.1  # a run that a larger share of the class wrote does not count
FEW = 4  # in a small class, a run counts if at most so many students wrote it
SHOWN = 5  # the most partners named in a flag


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
        sets = {s: runs(own[exercise]) for s, own in answers.items() if exercise in own}
        for pair, alike, common in _pairs(_rare(sets)):
            shared[pair].append((exercise, alike, common))
    partners: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for (one, other), found in shared.items():
        total = sum(common for _, _, common in found)
        if total < ENOUGH:
            continue
        words = ", ".join(
            f"{id} {alike:.0%}{_to_the_letter(answers[one][id], answers[other][id])}"
            for id, alike, _ in found
        )
        partners[one].append((total, f"{other}: {words}"))
        partners[other].append((total, f"{one}: {words}"))
    flags = {}
    for student, others in partners.items():
        others.sort(key=lambda item: (-item[0], item[1]))
        more = f"; and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
        message = "nearly the same as " + "; ".join(text for _, text in others[:SHOWN]) + more
        flags[student] = [Flag("similar", message)]
    return flags


def runs(answer: Answer) -> frozenset[tuple[str, ...]]:
    """Return the runs of tokens of an answer, without those of the reference; a stub has none."""
    return _own_runs(answer.source, answer.exercise)


@lru_cache(maxsize=1000)  # many students have the same stub or answer
def _own_runs(source: str, exercise: str) -> frozenset[tuple[str, ...]]:
    try:
        node = definition(source, exercise)
        if node is None or is_stub(node, exercise):
            return frozenset()
        return _runs(tokens(source, exercise)) - _reference_runs(exercise)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()


def _runs(words: list[str]) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(words[i : i + RUN]) for i in range(len(words) - RUN + 1))


@cache
def _reference_runs(exercise: str) -> frozenset[tuple[str, ...]]:
    return _runs(tokens(reference_source(find(exercise)), exercise))


def _rare(sets: dict[str, frozenset]) -> dict[str, frozenset]:
    """Drop the runs that many students wrote."""
    count = Counter(run for own in sets.values() for run in own)
    most = max(FEW, COMMON * len(sets))
    common = {run for run, number in count.items() if number > most}
    return {student: own - common for student, own in sets.items()}


def _pairs(sets: dict[str, frozenset]):
    """Yield (pair of students, shared part, number of common runs) for answers that are alike."""
    holders = defaultdict(list)
    for student in sorted(sets):
        for run in sets[student]:
            holders[run].append(student)
    together: Counter[tuple[str, str]] = Counter()
    for students in holders.values():
        for i, one in enumerate(students):
            together.update((one, other) for other in students[i + 1 :])
    for (one, other), common in together.items():
        alike = common / len(sets[one] | sets[other])
        if alike >= ALIKE:
            yield (one, other), alike, common


def _to_the_letter(one: Answer, other: Answer) -> str:
    return " to the letter" if one.source.strip() == other.source.strip() else ""
