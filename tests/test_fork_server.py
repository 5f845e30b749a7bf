"""A fork server that dies costs nobody a point, nor does the answer that ends it."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from run_answer import grade_cells

from vitedu.grading.box import isolation
from vitedu.grading.box.isolation import Box, IsolationError
from vitedu.grading.running import SERVER_ENDED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is forked"),
]
RIGHT = "import math, torch\ndef gelu(x):\n    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))\n"
SLOW = RIGHT.replace("(x)", "(x, waited=__import__('time').sleep(1))", 1)
ENDS_IT = SLOW.replace("waited", "ends_them_all")


class Fragile(Box):
    """A box whose fork server ends while an answer with the words ``ends_them_all`` runs.

    Attributes:
        deaths: how often that may still happen, in this box and in those that it opens.
    """

    deaths = separate = 0

    def worker(self):
        """Give a worker that is watched."""
        worker, process = super().worker(), self._process
        ask = worker.ask

        def watched(frame, seconds):
            if b"ends_them_all" in frame and Fragile.deaths:
                Fragile.deaths -= 1
                threading.Timer(0.1, process.kill).start()
            return ask(frame, seconds)

        worker.ask = watched
        return worker

    def open_separate(self):
        """Count the answers that have a box of their own."""
        Fragile.separate += 1
        return super().open_separate()


@pytest.fixture(scope="module")
def shared():
    """A box, opened once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(isolation, "Box", Fragile)
        box = isolation.open_box(allow_unsafe=True)
    with box:
        yield box


@pytest.fixture
def box(shared):
    """The box, with no death ahead."""
    Fragile.deaths = Fragile.separate = 0
    yield shared
    Fragile.deaths = 0


def grade(box, source):
    """Grade an answer in three processes."""
    return grade_cells(box, "gelu", source, seed=5, runs=3)


def test_answer_that_ends_it_every_time_is_told_and_takes_nobody_along(box):
    """It has no points and no 0, and a reason; one that ran beside it is repeated by itself.

    Three processes have agreed on each of the others in the end. That an answer after a death
    starts the process again is a test of the box, in ``test_isolation``.
    """
    Fragile.deaths = 100
    with ThreadPoolExecutor(2) as pool:
        beside = [pool.submit(grade, box, SLOW)]
        killer = pool.submit(grade, box, ENDS_IT)
        beside.append(pool.submit(grade, box, RIGHT))
    result = killer.result()
    assert (result.state, result.reason, result.points) == ("not_gradable", "crashed", None)
    assert result.detail.endswith(SERVER_ENDED)
    # it met the shared process and one of its own; a third where its death was seen before theirs
    assert 97 <= Fragile.deaths <= 98
    for future in beside:
        result = future.result()
        assert (result.state, result.points, result.runs) == ("passed", 3, 3), result.detail
    assert Fragile.separate >= 1


def test_process_that_can_not_be_started_again_is_the_graders_fault(box, monkeypatch):
    """What is given up then says so, is no 0, and is graded by the next run of the command."""
    Fragile.deaths = 100

    def nothing(self):
        raise IsolationError("no more processes")

    monkeypatch.setattr(Box, "_launch", nothing)
    result = grade(box, ENDS_IT)
    assert (result.state, result.reason, result.points) == ("not_gradable", "grader", None)
    assert "no more processes" in result.detail
