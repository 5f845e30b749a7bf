"""Many cases in one request: every case is answered, however many one reply holds."""

import pytest
import torch

from vitedu.checks.observing.answers import LocalAnswer
from vitedu.checks.observing.case import Case
from vitedu.checks.observing.observation import Observation
from vitedu.grading.box import worker
from vitedu.grading.box.limits import Limits
from vitedu.grading.transport import remote_answer
from vitedu.grading.transport.messages import read_observations, write_observation
from vitedu.grading.transport.remote_answer import RemoteAnswer
from vitedu.grading.transport.wire import WireError

CASES = [Case(str(n), {"x": torch.arange(n) * 1.0}, record_operations=False) for n in (3, 5, 4)]


class Here:
    """A worker in this process that counts the requests."""

    output = ""

    def __init__(self, function):
        self.session, self.asked = worker.Session(), 0
        self.session.answer = LocalAnswer(function)

    def ask(self, frame, seconds):
        """Answer a request."""
        self.asked += 1
        return self.session.reply_to(frame)


def observed(function):
    """Give what a function did on all cases, and the number of requests."""
    here = Here(function)
    return list(RemoteAnswer(here, Limits()).observe_all(CASES, 5.0)), here.asked


FULL = {"reply": (worker, "is_full", bool), "request": (remote_answer, "FULL_NUMBERS", -1)}


@pytest.mark.parametrize("full", [None, *FULL])
def test_every_case_is_answered_once_and_in_order(monkeypatch, full):
    """A reply or a request that is full after one case only means more requests."""
    if full:
        place, name, value = FULL[full]
        monkeypatch.setattr(place, name, value)
    observations, asked = observed(lambda x: 2 * x)
    assert asked == (len(CASES) if full else 2)  # the first case goes alone
    for one, case in zip(observations, CASES, strict=True):
        assert torch.equal(one.arrays["output"], 2 * case.args["x"])


def test_no_case_runs_after_one_that_was_interrupted():
    """The worker replies at once; whether to go on is decided by the engine."""
    calls = []

    def interrupted(x):
        calls.append(len(x))
        raise KeyboardInterrupt

    here = Here(interrupted)
    first = next(RemoteAnswer(here, Limits()).observe_all(CASES, 5.0))
    assert first.error.kind == "KeyboardInterrupt"
    assert set(calls) == {3} and here.asked == 1


@pytest.mark.parametrize("change", ["none", "many", "no list", "no dict"])
def test_replies_of_another_form_are_refused(change):
    """A reply holds 1 to as many observations as were asked for."""
    one = write_observation(Observation(arrays={"output": torch.ones(2)}))
    data = {"none": [], "many": [one] * 3, "no list": one, "no dict": [one, 5]}[change]
    with pytest.raises(WireError):
        read_observations(data, 2)
    assert len(read_observations([one, one], 2)) == 2
