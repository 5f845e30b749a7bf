"""An answer in a worker: every case is answered, and a strange reply is refused."""

import pytest
import torch

from vitedu.checks.observing.answers import LocalAnswer
from vitedu.checks.observing.case import Case
from vitedu.grading.box import worker
from vitedu.grading.box.limits import Limits
from vitedu.grading.judge import PORTION, RemoteAnswer
from vitedu.grading.transport.wire import WireError, pack, unpack

CASES = [Case(str(n), {"x": torch.arange(n) * 1.0}, record_operations=False) for n in (3, 5, 4)]


class Here:
    """A worker in this process that counts the requests."""

    def __init__(self, function):
        self.session, self.asked = worker.Session(), 0
        self.session.answer = LocalAnswer(function)

    def ask(self, frame, seconds):
        """Answer a request."""
        self.asked += 1
        request = unpack(frame, is_trusted=True)
        done = getattr(self.session, f"_{request['do']}")(request)
        return pack({"nonce": request["nonce"], "done": done})


def observed(function):
    """Give what a function did on all cases, and the number of requests."""
    here = Here(function)
    return list(RemoteAnswer(here, Limits()).observe_all(CASES, 5.0)), here.asked


def test_every_case_is_answered_once_and_in_order():
    """In one request, as they are small."""
    observations, asked = observed(lambda x: 2 * x)
    assert asked == 1
    for one, case in zip(observations, CASES, strict=True):
        assert torch.equal(one.arrays["output"], 2 * case.args["x"])


@pytest.mark.parametrize(("size", "times"), [(PORTION, 1), (3, 10**5)], ids=["cases", "results"])
def test_what_is_large_comes_in_several_frames(size, times):
    """No frame is too long, and every case is still run once, in order."""
    cases, calls = [Case(str(n), {"x": torch.full((size,), n * 1.0)}) for n in range(3)], []

    def repeat(x):
        calls.append(x[0].item())
        return x.repeat(times)

    here = Here(repeat)
    observations = list(RemoteAnswer(here, Limits()).observe_all(cases, 5.0))
    assert here.asked == 3 and calls == [0, 1, 2]
    assert [one.arrays["output"][-1].item() for one in observations] == [0, 1, 2]


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


@pytest.mark.parametrize("reply", [None, [], 5, {}, "x", [5], [{}], [None] * 4], ids=repr)
def test_replies_of_another_form_are_refused(reply):
    """A reply is a list of observations, of at least one case and of no more than were asked."""
    here = Here(lambda x: x)
    here.session._observe = lambda request: reply
    with pytest.raises(WireError):
        list(RemoteAnswer(here, Limits()).observe_all(CASES, 5.0))
