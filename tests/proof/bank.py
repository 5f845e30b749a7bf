"""Count how many mistakes a checker rejects and names, and how many right answers it accepts.

Role: runs each checker on its bank and on its right answers, over many seeds, in several processes.
The seeds are students of classes, and a mistake must cost all students of a class the same.
``make proof`` prints the counts, and tests require them to be complete. ``main_unseen`` takes each
mistake out of its bank first.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from typing import NamedTuple, TypeVar

from proof.entries import entry_of
from proof.general import general_answers
from vitedu import exercises
from vitedu.checks.engine import judge_answer
from vitedu.checks.explaining.diagnose import ReplayCache
from vitedu.checks.explaining.report import Report
from vitedu.checks.explaining.values import ValueChecker
from vitedu.checks.writing.checker import Checker, find_checker
from vitedu.checks.writing.inputs import SPLIT
from vitedu.checks.writing.mistakes import Mistake

T = TypeVar("T")

# the most of an exercise's points that a mistake may cost one student of a class more
SPREAD = 0.02
CLASS_SIZE = 5
MOST_WORDS = 120  # of a report that are seen at once


@dataclass
class CatchCount:
    """The counts of one exercise."""

    exercise: str
    mistakes: int = 0  # wrong answers times seeds
    rejected: int = 0
    named: int = 0
    fair: int = 0  # kept half of the points at most, or three quarters where it passed
    alike: int = 0  # earned points within ``SPREAD`` of the other students' of the class
    answers: int = 0  # right answers times seeds
    accepted: int = 0
    words: int = 0  # in the longest first view of a report on a mistake
    troubles: list[str] = field(default_factory=list)  # what went wrong, in words

    @property
    def holds(self) -> bool:
        """Whether all mistakes were rejected, named and cost alike, and right answers accepted."""
        whole = self.rejected == self.named == self.fair == self.alike == self.mistakes
        return whole and self.accepted == self.answers and self.words <= MOST_WORDS


class Judgement(NamedTuple):
    """One answer of an exercise and the report on it."""

    mistake: str  # its id, or "" for a right answer
    number: int  # of the answer among all of the exercise
    answer: object
    seed: int
    report: Report


def right_answers(exercise_id: str) -> list:
    """List the right answers of an exercise, the reference first; a tuple also as a list."""
    checker = find_checker(exercise_id)
    if isinstance(checker, ValueChecker):
        value = checker.reference
        return [value, list(value) if isinstance(value, tuple) else value]
    return [checker.reference, *entry_of(exercise_id).right]


def wrong_answers(exercise_id: str) -> list[tuple[str, object]]:
    """List (id of the mistake, wrong answer) for an exercise: its bank, then the general ones."""
    checker = find_checker(exercise_id)
    if isinstance(checker, ValueChecker):
        return [(m.id, m.value) for m in checker.bank]
    own = [
        (mistake.id, build_answer(checker, mistake, variant))
        for mistake in checker.bank
        for variant in range(1 + len(mistake.also))
    ]
    return [*own, *general_answers(checker).items()]


def build_answer(checker: Checker, mistake: Mistake, variant: int = 0):
    """Return the wrong answer of one mistake: of its ``edits``, or of one of ``also``."""
    return checker.combine([mistake.variants()[variant]])


def mistaken(exercise_id: str, *ids: str):
    """Return the reference with the named mistakes made, or None if they cannot be combined."""
    checker = find_checker(exercise_id)
    return checker.combine([mistake for mistake in checker.bank if mistake.id in ids])


def students(count: int) -> list[int]:
    """Give the seeds of ``count`` students, five a class, who share the sizes of their inputs."""
    return [(1 + n // CLASS_SIZE) * SPLIT + n for n in range(count)]


def judge_answers(
    exercise_id: str,
    seeds: Iterable[int],
    find_cache: Callable = lambda seed: ReplayCache(),
    sample: Callable = list,
) -> Iterator[Judgement]:
    """Judge all wrong and right answers of one exercise with every seed.

    Each seed is another student: answers that remember earlier calls are made anew for it.
    ``find_cache`` gives what a seed's replays are kept in, ``sample`` the wrong ones that count.
    """
    checker = find_checker(exercise_id)
    for seed in seeds:
        cache = find_cache(seed)
        right = [("", answer) for answer in right_answers(exercise_id)]
        for number, (id_, answer) in enumerate([*sample(wrong_answers(exercise_id)), *right]):
            report = judge_answer(checker, answer, seed, cache)
            yield Judgement(id_, number, answer, seed, report)


def measure(exercise_id: str, seeds: Iterable[int]) -> CatchCount:
    """Judge all wrong and right answers of one exercise with every seed, and count."""
    return count(exercise_id, judge_answers(exercise_id, seeds))


def count(exercise_id: str, reports: Iterable[Judgement]) -> CatchCount:
    """Count what ``judged`` yields for one exercise."""
    row = CatchCount(exercise_id)
    points = defaultdict(list)  # of one mistake in one class
    for id_, number, answer, seed, report in reports:
        if id_:
            row.mistakes += 1
            row.rejected += not report.is_flawless
            row.fair += is_fair(report)
            if not is_fair(report):
                row.troubles.append(f"seed {seed}: {id_} keeps {report.points:g} points")
            row.words = max(row.words, words := count_words(report))
            if words > MOST_WORDS:
                row.troubles.append(f"seed {seed}: the report on {id_} shows {words} words")
            row.named += report.misconceptions == [id_] and not contradicts_itself(report)
            if contradicts_itself(report):
                row.troubles.append(f"seed {seed}: the report on {id_} contradicts itself")
            points[id_, number, seed if seed < SPLIT else seed // SPLIT].append(report.points)
            if report.misconceptions != [id_]:
                names = " and ".join(report.misconceptions) or "nothing"
                row.troubles.append(f"seed {seed}: {id_} was {report.status}, named {names}")
        else:
            row.answers += 1
            row.accepted += report.is_flawless
            if not report.is_flawless:
                name = getattr(answer, "__name__", answer)
                row.troubles.append(f"seed {seed}: the right answer {name} was {report.status}")
    for (id_, *_), earned in points.items():
        if max(earned) - min(earned) <= SPREAD * exercises.find(exercise_id).points:
            row.alike += len(earned)
        else:
            points_text = ", ".join(f"{one:g}" for one in sorted(set(earned)))
            row.troubles.append(f"{id_} earned students of one class {points_text} points")
    return row


def is_fair(report: Report) -> bool:
    """Tell whether the points follow the verdict."""
    share = report.points / report.max_points
    return 0.749 < share < 1 if report.passed else share < 0.501


def contradicts_itself(report: Report) -> bool:
    """Tell whether a line of a report says that something holds, and another that it does not."""
    rows = dict(reversed(report.lines))
    crossed = [f.message for f in report.findings if not f.passed and not f.skipped]
    is_wrong = any(" values differ" in message for message in crossed)
    return (
        rows.get("expected", "-") in rows.get("right", "").split("; ")
        or (is_wrong and report.headline.startswith("the values are right"))
        or any(f.message in rows.get("right", "").split("; ") for f in report.remarks)
    )


def count_words(report: Report) -> int:
    """Count the words that a page shows of a report at once, without what the answer printed."""
    rows = [f"{label} {text}" for label, text in report.first_view() if label != "printed"]
    return len(" ".join([report.head, *rows]).split())


def side_by_side(
    work: Callable[[str], T], ids: list[str], processes: int | None = None
) -> Iterator[T]:
    """Yield what ``work`` gives for every exercise, in order.

    Args:
        work: can be sent to another process.
        ids: of the exercises.
        processes: number of worker processes; default one for each core.
    """
    processes = processes or os.cpu_count() or 1
    if processes == 1:
        yield from map(work, ids)
        return
    with ProcessPoolExecutor(processes, get_context("spawn"), initializer=_one_thread) as pool:
        yield from pool.map(work, ids)


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def catch_matrix(exercise_ids: list[str], num_seeds: int, processes: int | None = None):
    """Yield a ``CatchCount`` for every exercise, each answer judged for ``num_seeds`` students."""
    return side_by_side(partial(measure, seeds=students(num_seeds)), exercise_ids, processes)


# --- mistakes that the bank does not hold -------------------------------------------------------


@dataclass
class Unseen:
    """What a checker says about each mistake of an exercise after it was taken out of the bank."""

    exercise: str
    mistakes: int = 0
    rejected: int = 0
    related: int = 0  # recognised as a relation: a factor, another order of axes ...
    false: list[str] = field(default_factory=list)  # another mistake of the bank was named


def measure_unseen(exercise_id: str, seed: int = 0) -> Unseen:
    """Judge each mistake of a bank with a checker from whose bank it was taken out."""
    checker = find_checker(exercise_id)
    result = Unseen(exercise_id)
    if isinstance(checker, ValueChecker):
        return result
    ids, cache = {mistake.id for mistake in checker.mistakes}, ReplayCache()
    for mistake in checker.bank:
        blind = replace(
            checker, bank=tuple(other for other in checker.bank if other.id != mistake.id)
        )
        report = judge_answer(blind, build_answer(checker, mistake), seed, cache)
        result.mistakes += 1
        result.rejected += not report.is_flawless
        names = [id_ for id_ in report.misconceptions if id_ in ids]
        if names:
            result.false.append(f"{mistake.id} was named {' and '.join(names)}")
        result.related += bool(report.misconceptions) and not names
    return result


def main_unseen(exercise_ids: list[str]) -> int:
    """Print what checkers say about unknown mistakes; return 0 if all were rejected, else 1."""
    ids = exercise_ids or [
        exercise.id for exercise in exercises.EXERCISES if exercise.kind != "value"
    ]
    titles = ("rejected", "recognised", "other name")
    print(_row("exercise", titles) + "   each mistake taken out of the bank")
    rows = []
    for row in side_by_side(measure_unseen, ids):
        rows.append(row)
        counts = (f"{row.rejected}/{row.mistakes}", row.related, len(row.false))
        print(_row(row.exercise, counts), flush=True)
        for line in row.false:
            print(f"    {line}")
    total = sum(row.mistakes for row in rows)
    counts = (
        f"{sum(row.rejected for row in rows)}/{total}",
        sum(row.related for row in rows),
        sum(len(row.false) for row in rows),
    )
    print(_row("all", counts))
    return 0 if all(row.rejected == row.mistakes for row in rows) else 1


def main_bank(exercise_ids: list[str], num_seeds: int) -> int:
    """Print the catch matrix; return 0 if everything holds, else 1."""
    ids = exercise_ids or [exercise.id for exercise in exercises.EXERCISES]
    for exercise_id in ids:
        exercises.find(exercise_id)
    titles = ("rejected", "named", "alike", "accepted")
    print(_row("exercise", titles) + f"   over {num_seeds} seeds")
    total = CatchCount("all")
    for row in catch_matrix(ids, num_seeds):
        total.words = max(total.words, row.words)
        for name in ("mistakes", "rejected", "named", "fair", "alike", "answers", "accepted"):
            setattr(total, name, getattr(total, name) + getattr(row, name))
        print(_line(row), flush=True)
        for trouble in row.troubles[:5]:
            print(f"    {trouble}")
        if len(row.troubles) > 5:
            print(f"    ... and {len(row.troubles) - 5} more")
    print(_line(total))
    return 0 if total.holds else 1


def _line(row: CatchCount) -> str:
    counts = (
        f"{row.rejected}/{row.mistakes}",
        f"{row.named}/{row.mistakes}",
        f"{row.alike}/{row.mistakes}",
        f"{row.accepted}/{row.answers}",
    )
    return _row(row.exercise, counts) + ("" if row.holds else "   ✗")


def _row(name: str, columns: Iterable) -> str:
    return f"{name:<32}" + "".join(f"{column:>12}" for column in columns)
