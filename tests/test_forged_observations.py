"""What a worker says is a claim: whatever it claims, the judge neither breaks nor gives points for it."""

import copy
import random
import time

import pytest
import torch

from vitedu import exercises
from vitedu.checks import diagnosing
from vitedu.checks.answers import LocalAnswer
from vitedu.checks.diagnosing import Replays
from vitedu.checks.engine import Checker, Gathered, conclude, find_checker, gather
from vitedu.checks.guard import neutral_settings
from vitedu.checks.probing import Observation, Trouble
from vitedu.grading.line.messages import read_observation, write_observation
from vitedu.grading.line.wire import DTYPES, WireError

pytestmark = pytest.mark.bank

JUDGED = [e.id for e in exercises.EXERCISES if isinstance(find_checker(e.id), Checker)]
SEED, ROUNDS = 3, 2
SECONDS = 30.0  # of one verdict on a crowded machine; alone it takes less than one

STRANGE = {
    "nothing": lambda x: None,
    "one number": lambda x: torch.tensor(3.0),
    "empty": lambda x: x.new_zeros(0),
    "no rows": lambda x: x.new_zeros(0, *x.shape),
    "another shape": lambda x: torch.zeros(7),
    "many axes": lambda x: torch.zeros([1] * 16),
    "large": lambda x: torch.zeros(1000, 1000),
    "flat": lambda x: x.flatten() + 1,
    "nan": lambda x: torch.full_like(x, float("nan")) if x.is_floating_point() else x + 1,
    "infinite": lambda x: torch.full_like(x, float("inf")) if x.is_floating_point() else x + 1,
    "huge": lambda x: torch.full_like(x, 3e38) if x.is_floating_point() else x + 1,
    "one nan": lambda x: x.double().fill_(float("nan")),
    "shifted": lambda x: x + 1,
    **{
        f"as {name}": lambda x, dtype=dtype: (x * 0 + 7).to(dtype) for name, dtype in DTYPES.items()
    },
}
WORDS = (
    "",
    "x" * 8000,
    "<script>alert(1)</script>",
    "=cmd()",
    "tensor",
    "\ud800",
    "\0",
    "unchanged",
)


def trouble(chance: random.Random) -> Trouble:
    """Claim an error."""
    kind = chance.choice(["ValueError", "TimeUp", "NotImplementedError", "=x", "", "MemoryError"])
    return Trouble(
        kind,
        (kind,) * chance.randint(0, 5),
        chance.choice(WORDS),
        chance.choice([None, (10**5, "x" * 200)]),
        chance.random() < 0.5,
    )


def forge(seen: Observation, chance: random.Random) -> Observation:
    """Claim something else than what was seen; every array is another one."""
    forged = copy.deepcopy(seen)
    for group in ("arrays", "draws", "gradients"):
        strange = {
            n: STRANGE[chance.choice(list(STRANGE))](x) for n, x in getattr(seen, group).items()
        }
        setattr(forged, group, {n: x for n, x in strange.items() if x is not None})
    for told in (forged.facts, forged.types, forged.devices):
        for name in list(told):
            if chance.random() < 0.3:
                told[name] = chance.choice(WORDS)
            elif chance.random() < 0.1:
                del told[name]
    if chance.random() < 0.3:
        forged.detached, forged.modified = not forged.detached, ()
    if chance.random() < 0.2:
        forged.error = trouble(chance)
    forged.operations = frozenset(chance.sample(["narrowed", "aten.add", "made (1,)", "=x"], 2))
    forged.undecided = chance.random() < 0.5
    try:
        return read_observation(*write_observation(forged))
    except WireError:  # it does not even arrive
        return Observation(error=trouble(chance))


@pytest.mark.parametrize("exercise", JUDGED)
def test_no_claim_breaks_the_judge_or_earns_points(exercise, monkeypatch):
    """Forged arrays, facts and errors of every kind: a verdict in time, less than all points, the reference still all."""
    monkeypatch.setattr(diagnosing, "PAIR_SECONDS", 0.1)  # some pairs are tried; none is looked for
    checker = find_checker(exercise)
    with neutral_settings():
        cases = checker.draw(SEED)
        honest = gather(checker, cases, LocalAnswer(checker.reference))
        replays = Replays()  # the mistakes of the bank run in the first round alone
        right = conclude(checker, cases, copy.deepcopy(honest), SEED, replays=replays)
        assert right.passed
        for number in range(ROUNDS):
            chance = random.Random(f"{exercise} {number}")
            got = {name: forge(seen, chance) for name, seen in honest.got.items()}
            start = time.perf_counter()
            report = conclude(checker, cases, Gathered(honest.look, got), SEED, replays=replays)
            assert time.perf_counter() - start < SECONDS
            assert not report.passed and report.points < report.max_points
            assert len(str(report.lines)) < 20_000 and len(report.picture) < 500_000
