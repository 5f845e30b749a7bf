"""What a worker says is a claim: the judge neither breaks nor gives points for it."""

import copy
import random
import time

import pytest
import torch
from conftest import sample

from vitedu import exercises
from vitedu.checks.engine import ObservedAnswer, judge_observations, observe_answer
from vitedu.checks.explaining import diagnose
from vitedu.checks.explaining.diagnose import ReplayCache
from vitedu.checks.observing.answers import LocalAnswer
from vitedu.checks.observing.errors import RaisedError
from vitedu.checks.observing.observation import Observation
from vitedu.checks.observing.settings import neutral_settings
from vitedu.checks.writing.checker import Checker, find_checker
from vitedu.grading.transport.messages import read_fields, write_observation
from vitedu.grading.transport.wire import DTYPES, WireError

pytestmark = pytest.mark.bank
JUDGED = [e.id for e in exercises.EXERCISES if isinstance(find_checker(e.id), Checker)]
SEED = 3
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


def claim_error(chance: random.Random) -> RaisedError:
    """Claim an error."""
    kind = chance.choice(["ValueError", "TimeUp", "NotImplementedError", "=x", "", "MemoryError"])
    return RaisedError(
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
    for texts in (forged.facts, forged.types, forged.devices):
        for name in list(texts):
            if chance.random() < 0.3:
                texts[name] = chance.choice(WORDS)
            elif chance.random() < 0.1:
                del texts[name]
    if chance.random() < 0.3:
        forged.detached, forged.modified = not forged.detached, ()
    if chance.random() < 0.2:
        forged.error = claim_error(chance)
    forged.operations = frozenset(chance.sample(["narrowed", "aten.add", "made (1,)", "=x"], 2))
    forged.undecided = chance.random() < 0.5
    try:
        return read_fields(Observation, write_observation(forged))
    except WireError:  # it does not even arrive
        return Observation(error=claim_error(chance))


def make_judge(exercise, monkeypatch):
    """Give what tells whether the reference's observations, forged, are judged without any gain."""
    monkeypatch.setattr(diagnose, "MAX_PAIRS", 3)  # some pairs are tried; none is looked for
    checker = find_checker(exercise)
    cases = checker.draw(SEED)
    honest = observe_answer(checker, cases, LocalAnswer(checker.reference), 10.0, {})
    cache = ReplayCache()  # the mistakes of the bank run once
    assert judge_observations(checker, cases, copy.deepcopy(honest), SEED, cache=cache).passed

    def judge(forger):
        got = {name: forger(copy.deepcopy(seen)) for name, seen in honest.observations.items()}
        start = time.perf_counter()
        forged = ObservedAnswer(honest.info, got)
        report = judge_observations(checker, cases, forged, SEED, cache=cache)
        assert time.perf_counter() - start < SECONDS
        assert not report.passed and report.points < report.max_points
        assert len(str(report.lines)) < 20_000 and len(report.picture) < 500_000
        return report

    return judge


@pytest.mark.parametrize("exercise", sample(JUDGED))
def test_no_claim_breaks_the_judge_or_earns_points(exercise, monkeypatch):
    """Forged arrays, facts and errors: a verdict in time, with less than all points.

    Of every third exercise, and in the weekly workflow of all.
    """
    with neutral_settings():
        chance = random.Random(exercise)
        make_judge(exercise, monkeypatch)(lambda seen: forge(seen, chance))


# what a worker may claim of every case: written over what crosses, or made of the tensors
RAISED = {"kinds": [], "message": "", "location": None, "raised_by_student": True}
NO_TENSORS = {"arrays": [], "draws": [], "gradients": []}
CLAIMS = {
    "a device that nobody can read": {"devices": [["output", "cuda"]], **NO_TENSORS},
    "no arrays": NO_TENSORS,
    "empty arrays": lambda t: t.flatten()[:0],
    "scalars": lambda t: torch.zeros(()),
    "many axes": lambda t: torch.zeros([1] * 16),
    "complex numbers": lambda t: t.to(torch.complex64),
    "NaN": lambda t: t * float("nan"),
    "a pass by exception": {"error": RAISED | {"kind": "ValueError", "kinds": ["ValueError"]}},
    "undecided": {"undecided": True, **NO_TENSORS},
    "not implemented": {"error": RAISED | {"kind": "NotImplementedError"}},
    "out of time": {"error": RAISED | {"kind": "TimeUp"}},
}


@pytest.mark.parametrize("exercise", ["patchify", "attention_macs", "evaluate"])
def test_claims_about_all_cases_earn_less_than_half(exercise, monkeypatch):
    """Without the right values nothing that a worker says is worth much."""

    def claim(seen, claimed):
        data = write_observation(seen)
        if callable(claimed):
            claimed = {n: [[key, claimed(t)] for key, t in data[n]] for n in NO_TENSORS}
        return read_fields(Observation, {**data, **claimed})

    with neutral_settings():
        judge = make_judge(exercise, monkeypatch)
        for name, claimed in CLAIMS.items():
            report = judge(lambda seen, claimed=claimed: claim(seen, claimed))
            assert report.points < report.max_points / 2, name
