"""The mutation run: what is changed, what is not, and that the checkers reject it."""

import ast
import functools
import random

import pytest
import torch
from conftest import sample

from proof import axes, mutation
from proof.axes import same_axes
from proof.entries import entry_of
from proof.mutants import Mutant, mutants
from proof.mutation import build_mutant, count_mutants
from vitedu import exercises
from vitedu.checks.engine import judge_answer
from vitedu.checks.explaining.diagnose import ReplayCache
from vitedu.checks.writing.checker import find_checker

pytestmark = pytest.mark.bank
mutants_of = functools.cache(mutation.mutants_of)  # three tests look at all of them
EXERCISES = sample(mutation.mutable_exercises())  # `make proof` and the weekly workflow take all
SAMPLE = 2  # mutants of an exercise that must pass, and that must fail; `make proof` judges all

TOY = '''
def shares(x: list[int], dim: int = -1, *, keep=True):
    """Divide by the sum, 0 twice."""
    if x.ndim < 1 or x.numel() == 0:
        raise ValueError(f"got {x.ndim + 1}")
    total = x.sum(dim=dim, keepdim=True)
    for row in x[1:]:
        total += row
    return x / total
'''


def changes(source: str, given: tuple[str, ...] = ()) -> set[str]:
    """Collect the changed lines of all mutants."""
    return {mutant.change for mutant in mutants(source, given)}


MADE = {
    "arithmetic": "return x * total",
    "dropped operand": "return x",
    "swapped operands": "return total / x",
    "comparison": "if x.ndim <= 1 or x.numel() == 0:",
    "equality": "if x.ndim < 1 or x.numel() != 0:",
    "and for or": "if x.ndim < 1 and x.numel() == 0:",
    "dropped condition": "if x.ndim < 1:",
    "turned condition": "if not (x.ndim < 1 or x.numel() == 0):",
    "constant": "if x.ndim < 1 or x.numel() == 1:",
    "axis": "def shares(x: list[int], dim: int=-2, *, keep=True):",
    "no default": "def shares(x: list[int], dim: int, *, keep=True):",
    "boolean": "total = x.sum(dim=dim, keepdim=False)",
    "keyword": "total = x.sum(keepdim=True)",
    "call": "total = x",
    "name alike": "total = x.mean(dim=dim, keepdim=True)",
    "sibling": "total = x.sum(dim=x, keepdim=True)",
    "slice": "for row in x[:1]:",
    "no slice": "for row in x:",
    "one turn": "break",
    "update": "total -= row",
    "assignment": "total = row",
    "type of error": "raise TypeError(...)",
    "statement": "without: total += row",
    "no error": "without: raise ValueError(...)",
}


def test_every_kind_of_change_is_made():
    """Each kind of single-step change appears among the mutants of a toy function."""
    toy_changes = changes(TOY)
    assert not {kind for kind, change in MADE.items() if change not in toy_changes}


def test_no_mutant_changes_words_or_annotations():
    """Docstrings, messages and annotations stay in every mutant, and none equals the original."""
    original = ast.unparse(ast.parse(TOY))
    texts = [mutant.source for mutant in mutants(TOY)]
    assert original not in texts
    assert len(texts) == len(set(texts))
    for text in texts:
        assert '"""Divide by the sum, 0 twice."""' in text
        assert "x: list[int]" in text
        assert "raise" not in text or "(f'got {x.ndim + 1}')" in text


def test_every_mutant_of_a_reference_is_a_program_with_one_change():
    """Each mutant compiles, and says what changed."""
    for exercise_id in EXERCISES:
        for mutant in mutants_of(exercises.find(exercise_id)):
            compile(mutant.source, "<mutant>", "exec")
            assert mutant.change not in ("", "without: "), mutant.source


def test_given_methods_stay():
    """What the notebook gives is not mutated; the rest of the class is."""
    source = (
        "class A:\n  def __init__(self):\n    self.n = 3\n  def forward(self, x):\n    return x + 5"
    )
    toy_changes = changes(source, ("__init__",))
    assert not any("self.n" in change for change in toy_changes)
    assert "return x + 6" in toy_changes
    assert "self.n = 4" in changes(source)


def test_mutants_of_a_class_run():
    """A mutant of a class with super() is built in its module's names and has the right parts."""
    exercise = exercises.find("EncoderBlock")
    mutant = next(m for m in mutants_of(exercise) if m.change == "x = x - attended")
    block = build_mutant(mutant, "EncoderBlock", exercise.module)(8, 2)
    assert {name for name, _ in block.named_children()} == {"norm1", "attn", "norm2", "mlp"}


def test_a_mutant_that_can_not_be_defined_counts_as_rejected():
    """A default that cannot be evaluated leaves nothing to judge."""
    assert build_mutant(Mutant("", "", "def gelu(x=1 / 0): ..."), "gelu", "vitedu.encoder") is None


def test_unexplained_survivors_and_idle_explanations_are_reported(monkeypatch):
    """A mutant that passes without a reason, or a reason without such a mutant, fails the run."""
    monkeypatch.setattr(mutation, "match_explanations", lambda *_: {"never made": set()})
    monkeypatch.setattr(mutation, "same_axes", lambda exercise_id: lambda source: False)
    count = count_mutants("merge_heads", range(1))
    assert "return x.transpose(2, 1).flatten(2)" in " ".join(count.unexplained)
    assert count.outdated == ["never made"]
    assert not count.holds


def test_time_limit_of_the_run_is_left_as_it_was(monkeypatch):
    """The short limit for mutants ends with the run, also where another was set."""
    monkeypatch.setenv("VITEDU_TIME_LIMIT", "7")
    count_mutants("merge_heads", range(1))
    assert mutation.os.environ["VITEDU_TIME_LIMIT"] == "7"


@functools.cache
def with_same_axes(exercise_id: str) -> set[str]:
    """Give the changes that only count an axis from its other end."""
    same, all_mutants = same_axes(exercise_id), mutants_of(exercises.find(exercise_id))
    return {mutant.change for mutant in all_mutants if same(mutant.source)}


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_no_survivor_has_two_reasons(exercise_id):
    """Each entry explains survivors of its own, none of them an axis from its other end."""
    entry, all_mutants = entry_of(exercise_id), mutants_of(exercises.find(exercise_id))
    changes = {mutant.change for mutant in all_mutants}
    groups = [g for table in (entry.equivalent, entry.left_open) for g in table.values()]
    entries = [entry for group in groups for entry in group]
    assert len(entries) == len(set(entries))
    matches = [mutation.match_explanations({"": (entry,)}, changes)[entry] for entry in entries]
    assert all(matches)
    assert sum(map(len, matches)) == len(set().union(*matches))
    assert not set().union(*matches) & with_same_axes(exercise_id)


def test_checker_rejects_every_mutant():
    """Every single-step mutant is rejected, or explained in the tables, which hold nothing else."""
    count = count_mutants("merge_heads", range(1))
    assert count.holds, (count.unexplained, count.outdated)
    assert count.mutants == count.rejected + count.equivalent + count.left_open


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_a_sample_of_mutants_is_judged_as_the_tables_say(exercise_id, monkeypatch):
    """What the tables or the axes explain passes, and the other mutants fail."""
    checker, exercise = (
        mutation.strip_names(find_checker(exercise_id)),
        exercises.find(exercise_id),
    )
    by_change = {mutant.change: mutant for mutant in mutants_of(exercise)}
    explained = set(with_same_axes(exercise_id))
    for table in (entry_of(exercise_id).equivalent, entry_of(exercise_id).left_open):
        explained |= set().union(*mutation.match_explanations(table, set(by_change)).values())
    draw, cache = random.Random(exercise_id), ReplayCache()
    for changes, passes in ((explained, True), (by_change.keys() - explained, False)):
        if not passes:  # some never end
            monkeypatch.setenv("VITEDU_TIME_LIMIT", str(mutation.SECONDS))
        for change in draw.sample(sorted(changes), min(SAMPLE, len(changes))):
            answer = build_mutant(by_change[change], exercise_id, exercise.module)
            passed = answer is not None and judge_answer(checker, answer, 0, cache).is_flawless
            assert passed == passes, change


@pytest.mark.parametrize(
    "new",
    [
        "return x.flip(-2).sum(dim=1)",
        "return x.flip(0).sum(dim=0)",
        "return x.flip(0).sum(dim=-1) * 1",
        "return x.flip(0, 1).sum(dim=-1)",
    ],
)
def test_same_axes_are_told_from_other_axes_and_other_changes(monkeypatch, new):
    """Only a change of the end is the same; ranks are those that the reference met."""
    text = "def merge_heads(x):\n    {}"
    monkeypatch.setattr(
        axes, "reference_source", lambda _: text.format("return x.flip(0).sum(dim=-1)")
    )
    monkeypatch.setattr(axes, "find_checker", lambda _: None)

    class Passed:
        is_flawless = True

    def judged(checker, answer, seed):
        answer(torch.zeros(2, 3))
        return Passed

    monkeypatch.setattr(axes, "judge_answer", judged)
    same = same_axes.__wrapped__("merge_heads")
    assert same(text.format(new)) == (new == "return x.flip(-2).sum(dim=1)")


def test_verdict_is_that_of_the_checker():
    """The judge of the run decides as the checker does, and names nothing."""
    checker = find_checker("gelu")
    plain = mutation.strip_names(checker)
    assert plain.reference is checker.reference
    assert plain.forbidden == checker.forbidden
    assert plain.mistakes == ()
