"""Count how many single-step changes of a reference its checker rejects.

Role: makes the mutants of each reference (``proof.mutants``) and lets the checker
judge them. ``make proof`` prints the counts, and a test requires them to be complete. A
survivor must name the same axis from its other end (``proof.axes``), or be explained
in its proof, as ``equivalent`` or ``left_open``. An unexplained one is a gap in the checker.
"""

import os
from dataclasses import dataclass, field, fields
from functools import partial

from proof.axes import same_axes
from proof.bank import side_by_side
from proof.entries import Survivors, entry_of
from proof.mutants import Mutant, mutants, shortcuts
from vitedu import exercises
from vitedu.checks.engine import judge_answer
from vitedu.checks.explaining.diagnose import ReplayCache
from vitedu.checks.writing.checker import Checker, find_checker
from vitedu.checks.writing.mistakes import run_source
from vitedu.course.references import reference_source
from vitedu.exercises import Exercise

SECONDS = 2.0  # time limit of a check of one mutant


class _Verdict(Checker):
    """A checker that only decides, and diagnoses nothing."""

    mistakes = ()


def strip_names(checker: Checker) -> Checker:
    """Copy a checker without its bank and picture, to be faster if only the verdict counts."""
    values = {f.name: getattr(checker, f.name) for f in fields(checker)}
    return _Verdict(**values | {"picture": None})


@dataclass
class Count:
    """The counts of one exercise."""

    exercise: str
    mutants: int = 0
    equivalent: int = 0
    left_open: int = 0
    rejected: int = 0
    unexplained: list[str] = field(default_factory=list)  # survivors without explanation
    outdated: list[str] = field(default_factory=list)  # explanations of what is no survivor

    @property
    def holds(self) -> bool:
        """Whether every mutant is rejected or explained, and every explanation is needed."""
        return not self.unexplained and not self.outdated

    @property
    def share(self) -> float:
        """The share of the mutants that is rejected, not counting equivalent ones."""
        return self.rejected / max(1, self.mutants - self.equivalent)


def mutable_exercises() -> list[str]:
    """List the exercises whose reference is code."""
    return [exercise.id for exercise in exercises.EXERCISES if exercise.kind != "value"]


def mutants_of(exercise: Exercise) -> list[Mutant]:
    """Make the mutants of a reference, with those for special arguments. Given methods stay."""
    source, given = reference_source(exercise), find_checker(exercise.id).given
    return [*mutants(source, given), *shortcuts(source, entry_of(exercise.id).special)]


def build_mutant(mutant: Mutant, name: str, module: str):
    """Execute a mutant with the names of its module; None if that fails."""
    try:
        return run_source(mutant.source, name, module)
    except Exception:  # for example in a default or a decorator
        return None


def match_explanations(table: Survivors, changes: set[str]) -> dict[str, set[str]]:
    """Return the changes that each entry of a table explains.

    An entry that is a whole change explains this one. Any other entry explains every change that
    contains it.

    Example:
        >>> changes = {"x.sum(dim=1)", "x.sum(dim=0)"}
        >>> match_explanations({"the same axis": ("dim=1",)}, changes)["dim=1"]
        {'x.sum(dim=1)'}
    """
    entries = [entry for group in table.values() for entry in group]
    return {
        entry: {entry} & changes or {change for change in changes if entry in change}
        for entry in entries
    }


def passing_seed(checker: Checker, answer, draws: dict[int, ReplayCache]) -> int | None:
    """Return the first seed with which an answer passes, or None."""
    return next(
        (s for s, cache in draws.items() if judge_answer(checker, answer, s, cache).is_flawless),
        None,
    )


def count_mutants(exercise_id: str, seeds: range) -> Count:
    """Judge every mutant of one exercise. It counts as rejected if it fails with every seed."""
    exercise = exercises.find(exercise_id)
    checker = strip_names(find_checker(exercise_id))
    count = Count(exercise_id)
    mutants = mutants_of(exercise)
    changes = {mutant.change for mutant in mutants}
    entry = entry_of(exercise_id)
    equivalent = match_explanations(entry.equivalent, changes)
    left_open = match_explanations(entry.left_open, changes)
    same = same_axes(exercise_id)
    draws = {seed: ReplayCache() for seed in seeds}  # the reference runs once with each
    survivors = set()
    limit = os.environ.get("VITEDU_TIME_LIMIT")
    os.environ["VITEDU_TIME_LIMIT"] = str(SECONDS)
    try:
        for mutant in mutants:
            count.mutants += 1
            answer = build_mutant(mutant, exercise_id, exercise.module)
            seed = None if answer is None else passing_seed(checker, answer, draws)
            if seed is None:
                count.rejected += 1
                continue
            survivors.add(mutant.change)
            if any(mutant.change in group for group in equivalent.values()) or same(mutant.source):
                count.equivalent += 1
            elif any(mutant.change in group for group in left_open.values()):
                count.left_open += 1
            else:
                count.unexplained.append(f"{mutant.change}   (seed {seed})")
    finally:
        os.environ.pop("VITEDU_TIME_LIMIT")
        if limit is not None:
            os.environ["VITEDU_TIME_LIMIT"] = limit
    both = equivalent | left_open
    count.outdated = sorted(e for e, group in both.items() if not group or group - survivors)
    return count


def main_mutate(exercise_ids: list[str], num_seeds: int) -> int:
    """Print the counts; return 0 if every survivor is explained, else 1."""
    ids = exercise_ids or mutable_exercises()
    for exercise_id in ids:
        if exercise_id not in mutable_exercises():
            exercises.find(exercise_id)
            raise ValueError(f"{exercise_id} is a value; there is no code to change.")
    titles = ("mutants", "equivalent", "left open", "rejected", "share")
    print(
        f"{'exercise':<32}"
        + "".join(f"{title:>12}" for title in titles)
        + f"   over {num_seeds} seeds"
    )
    total = Count("all")
    for count in side_by_side(partial(count_mutants, seeds=range(num_seeds)), ids):
        for name in ("mutants", "equivalent", "left_open", "rejected"):
            setattr(total, name, getattr(total, name) + getattr(count, name))
        total.unexplained += count.unexplained
        total.outdated += count.outdated
        print(_line(count), flush=True)
        for change in count.unexplained:
            print(f"    passes: {change}")
        for change in count.outdated:
            print(f"    explained, but not a survivor: {change}")
    print(_line(total))
    return 0 if total.holds else 1


def _line(count: Count) -> str:
    numbers = (count.mutants, count.equivalent, count.left_open, count.rejected)
    return (
        f"{count.exercise:<32}"
        + "".join(f"{number:>12}" for number in numbers)
        + f"{100 * count.share:>11.1f}%"
        + ("" if count.holds else "   ✗")
    )
