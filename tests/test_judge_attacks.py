"""Attacks on the judge from inside a worker: each ends with the points that it deserves.

What a whole class is attacked with stands in ``attacks``; here are attacks that need a box with
little time, or a look at the judge. An answer of zeros earns a part of the points by right (it
runs, and has the right shapes); no trick may earn more than it.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
import replay_caches
from run_answer import grade_cells

from vitedu import exercises
from vitedu.checks.observing.answers import PlainValue
from vitedu.checks.training import random_crop_flip_reader
from vitedu.course.references import reference_source
from vitedu.grading import judge
from vitedu.grading.box.conversation import WorkerTrouble
from vitedu.grading.box.isolation import IsolationError
from vitedu.grading.box.limits import Limits
from vitedu.grading.transport.messages import write_plain
from vitedu.grading.transport.wire import pack, unpack

pytestmark = pytest.mark.slow
SUPPORT = "import math, os, sys, time, threading\nimport torch\nimport torch.nn.functional as F\n"
ZEROS = "def gelu(x):\n    return x * 0\n"
RIGHT = "def gelu(x):\n    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))\n"
SEED = 7
HERE = str(Path(exercises.__file__).parents[1])


@pytest.fixture(autouse=True)
def replays_are_kept(monkeypatch):
    """What the mistakes of a bank do runs once for all answers to an exercise."""
    monkeypatch.setattr(judge, "judge_observations", replay_caches.judge_observations)


@pytest.fixture(scope="module")
def hurried(box):
    """The same box with little time: a worker that is stuck costs seconds."""
    limits = Limits(load_seconds=2, call_seconds=1 + judge.GRACE)
    return SimpleNamespace(worker=box.worker, limits=limits, open_separate=box.open_separate)


def grade(box, source, exercise="gelu", support=SUPPORT, runs=1):
    """Grade the source of an answer."""
    return grade_cells(box, exercise, support, source, seed=SEED, runs=runs)


@pytest.fixture(scope="module")
def of_zeros(box):
    """Points of an answer that returns zeros."""
    points = grade(box, ZEROS).points
    assert 0 < points < 3
    return points


def inside(body: str, result: str = "x * 0") -> str:
    """Write an answer that does something in its call."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"def gelu(x):\n{lines}    return {result}\n"


# the worker's own module, which no import gives an answer
WORKER = """
import sys
class Found:
    def __init__(self):
        frame = sys._getframe()
        while "_SILENT" not in frame.f_globals:
            frame = frame.f_back
        vars(self)["both"] = frame.f_globals, vars(frame.f_globals["worker"])
    def __getattr__(self, name):
        return next(names[name] for names in self.both if name in names)
    def __setattr__(self, name, value):
        for names in self.both:
            if name in names:
                names[name] = value
w = Found()
"""
UNRESTORED = f"{WORKER}w.ModuleState.restore.__code__ = (lambda self: None).__code__\n"

# --- tricks that earn nothing: those that are not in ``attacks`` ---------------------------------

FORGED = f"""{UNRESTORED}
before = w.write_observation
def forged(seen):
    seen.types["output"], seen.facts["all"] = "tensor", "right"
    seen.detached, seen.modified = False, ()
    seen.error, seen.operations = None, frozenset()
    return before(seen)
w.write_observation = forged
"""
NAMES = "[name for name in sys.modules if name.startswith('vitedu')]"
LIE = """class E(Exception):
    def __str__(self):
        return Lie('x')
class Lie(str):
    def __getitem__(self, i):
        return {}
raise E"""
TRICKS = {
    "replaced modules": f"for name in {NAMES}:\n    sys.modules[name] = math\n{ZEROS}",
    "forged facts": FORGED + ZEROS,
    "the reference by import": "from vitedu.encoder import gelu as given\n"
    "def gelu(x):\n    return given(x)\n",
    "the reference from a path": inside(
        f"import importlib\nsys.path[:0] = [{HERE!r}, '.', '..']\n"
        "theirs = importlib.import_module('vitedu.checks.writing.checker')",
        "theirs.find_checker('gelu').reference(x)",
    ),
    "no number": inside("", "'passed'"),
    "endless recursion": inside("gelu(x)"),
    "an object that no one may look at": "class Never:\n    def __getattribute__(self, name):\n"
    "        raise ValueError\ngelu = Never()\n",
    "a module in its place": "gelu = torch\n",
    "an error with a message that lies": inside(LIE),
}


@pytest.mark.parametrize("source", TRICKS.values(), ids=TRICKS)
def test_tricks_earn_no_more_than_zeros(box, of_zeros, source):
    """The answer fails, with no more points than an answer of zeros; nothing of ours breaks."""
    result = grade(box, source)
    assert result.state == "failed", (result.reason, result.detail)
    assert result.points <= of_zeros, result.lines


def test_an_edited_input_costs_its_points(box):
    """The right values with the input modified in place are named as that."""
    result = grade(box, inside("y = 0.5 * x * (1 + torch.erf(x / 2**0.5))\nx.mul_(2)", "y"))
    assert result.state == "failed" and result.misconceptions == ["modifies_input"]


# --- workers that do not answer -----------------------------------------------------------------

FORGED_FRAMES = """
def shout():
    while True:
        for fd in range(3, 600):
            try:
                os.write(fd, (60).to_bytes(8, 'little') + b'x' * 60)
            except OSError:
                pass
threading.Thread(target=shout, daemon=True).start()
time.sleep(0.3)
"""
GONE = {
    "forged frames before a reply": ("protocol", FORGED_FRAMES + RIGHT),
    "another name": ("no_cell", RIGHT.replace("gelu", "my_gelu")),
}


@pytest.mark.parametrize(("reasons", "source"), GONE.values(), ids=GONE)
def test_what_can_not_be_judged_says_why(box, reasons, source):
    """No points and no zero: a state of its own with its reason."""
    result = grade(box, source)
    assert result.state == "not_gradable" and result.points is None, (result.state, result.lines)
    assert result.reason in reasons.split(), (result.reason, result.detail)
    assert result.detail and result.headline


UNDONE = {
    "another way to pack": WORKER + "w.pack = lambda *a: b'\\x04' + bytes(11)\n" + RIGHT,
    "an old nonce": f"{WORKER}real = w.pack\n"
    "w.pack = lambda head, *rest: real({**head, 'nonce': '0' * 16}, *rest)\n" + RIGHT,
    "pickle for a reply": f"import pickle\n{WORKER}"
    "w.pack = lambda *a: (8).to_bytes(8, 'little') + pickle.dumps(print)[:8]\n" + RIGHT,
    "builtins that break its worker": "import builtins\nbuiltins.float = lambda *a: 1.0\n"
    "builtins.all = builtins.any = lambda *a: True\n" + ZEROS,
}


@pytest.mark.parametrize("source", UNDONE.values(), ids=UNDONE)
def test_what_an_answer_changes_in_its_worker_is_put_back(box, source):
    """The answer is judged as if it had changed nothing: right ones pass, a wrong one fails."""
    assert grade(box, source).state == ("failed" if source.endswith(ZEROS) else "passed")


SWALLOWS = """while True:
    try:
        time.sleep(1)
    except BaseException:
        pass"""
STUCK = "import signal\n" + inside("signal.setitimer(signal.ITIMER_REAL, 0)\ntime.sleep(60)")


def test_a_loop_that_swallows_interrupts_fails(hurried):
    """Every line of it raises once the time is over, so it ends as in the notebook."""
    result = grade(hurried, inside(SWALLOWS), runs=3)
    assert (result.state, result.points, result.runs) == ("failed", 0, 1), result.lines


def test_a_stuck_worker_is_given_up_once(hurried):
    """After its deadline a worker is not gradable, and no second one waits as long."""
    result = grade(hurried, STUCK, runs=3)
    assert (result.state, result.reason) == ("not_gradable", "timeout"), result.lines
    assert result.runs <= 1 and result.seconds < 30


SLOW = """end = time.monotonic() + 1.2
while time.monotonic() < end:
    try:
        time.sleep(0.1)
    except BaseException:
        pass"""


def test_one_budget_holds_for_all_requests_of_a_draw(box, of_zeros):
    """An answer that ends just before each deadline has one limit, and no second draw."""
    limits = Limits(call_seconds=4 + judge.GRACE)
    place = SimpleNamespace(worker=box.worker, limits=limits, open_separate=box.open_separate)
    result = grade(place, inside(SLOW), runs=3)
    assert (result.state, result.runs) == ("failed", 1), result.lines
    assert result.points <= of_zeros and result.seconds < 30


def test_what_is_left_of_the_budget_is_counted_outside(monkeypatch):
    """Each request gets at most what the earlier ones left, whatever the worker says of time."""
    now = [100.0]
    monkeypatch.setattr(judge.time, "monotonic", lambda: now[0])
    granted = []

    def ask(frame, seconds):
        granted.append(round(seconds, 2))
        now[0] += 2.0
        nonce = unpack(frame)["nonce"]
        return pack({"nonce": nonce, "done": write_plain(PlainValue(3))})

    limits = Limits(call_seconds=5.0)
    remote = judge.RemoteAnswer(SimpleNamespace(ask=ask), limits)
    assert [remote.plain().value for _ in range(4)] == [3] * 4
    assert granted == [3.0, 3.0, 1.0, 0.01]


def test_an_endless_loop_fails_as_in_the_notebook(hurried):
    """A loop that the probe can interrupt fails, named as in the notebook, and runs once."""
    result = grade(hurried, inside("while True:\n    pass"), runs=3)
    assert (result.state, result.points, result.runs) == ("failed", 0, 1)
    assert result.headline == "the call does not come to an end"


def test_work_after_the_definition_is_stopped(hurried):
    """A cell that goes on without end is judged by what it defined; a pass needs all runs."""
    result = grade(hurried, RIGHT + "while True:\n    pass\n", runs=2)
    assert (result.state, result.points, result.runs) == ("passed", 3, 2)


def test_what_is_printed_is_kept_in_part(box):
    """A right answer that prints without end has its points; the first characters are shown."""
    flood = "for _ in range(300):\n    os.write(1, b'<script>' * 10**5)\n"
    printing = inside("print('shape', tuple(x.shape))", "0.5 * x * (1 + torch.erf(x / 2**0.5))")
    result = grade(box, flood + printing)
    assert (result.state, result.points) == ("passed", 3)
    assert result.printed.startswith("shape (") and len(result.printed) < 1000


# --- luck ---------------------------------------------------------------------------------------

LUCK = RIGHT.replace("return ", "return os.urandom(1)[0] % 2 * ")


def test_luck_is_seen(box):
    """Of an answer that is right now and then, draws disagree: a finding."""
    for _ in range(20):  # three agree in one of four gradings
        result = grade(box, LUCK, runs=3)
        if result.reason == "unstable":
            break
        assert result.state in ("passed", "failed")
    assert result.state == "not_gradable" and result.points is None
    assert "failed with" in result.detail
    assert len(set(result.detail.partition(": ")[2].split("; "))) > 1, result.detail
    assert [flag.kind for flag in result.flags] == ["unstable"]


def test_random_wrong_answers_are_failed_not_unstable(box):
    """Numbers that differ from call to call are wrong alike in every process."""
    result = grade(box, "def gelu(x):\n    return torch.randn_like(x)\n", runs=3)
    assert (result.state, result.runs) == ("failed", 3)


# --- forbidden operations -----------------------------------------------------------------------


def test_forbidden_operations_earn_nothing_and_are_told(box):
    """The finding names the rule; the ways to hide a call stand in ``attacks/forbidden.toml``."""
    result = grade(box, "def softmax(x, dim=-1):\n    return F.softmax(x, dim)\n", "softmax")
    assert (result.state, result.points) == ("failed", 0), result.lines
    assert result.findings[0]["name"] == "allowed operations" and not result.findings[0]["passed"]
    assert "an answer without" in result.findings[0]["message"], result.lines


def test_forbidden_kernels_are_gone_for_their_exercise_alone(box):
    """Where softmax is not forbidden, it may be used."""
    source = (
        "def scaled_dot_product_attention(q, k, v):\n"
        "    w = F.softmax(q @ k.mT / k.shape[-1] ** 0.5, -1)\n    return w @ v, w\n"
    )
    assert grade(box, source, "scaled_dot_product_attention").state == "passed"


# --- claims that are no values ------------------------------------------------------------------


DRAWS = f"""{UNRESTORED}
before = w.write_observation
def forged(seen):
    data = before(seen)
    for place in PLACES:
        data["facts"].append([place, "so it is"])
    return data
w.write_observation = forged
"""
ONE_DRAW = """
def random_crop_flip(images, padding, generator):
    torch.rand(1, generator=generator)
    return images.clone()
"""


def test_forged_draws_are_read_from_the_images(box):
    """Facts about draws are made here, from what came back: a worker's own count for nothing."""
    places = [random_crop_flip_reader.WINDOW, random_crop_flip_reader.DRAWS]
    forging = DRAWS.replace("PLACES", repr(places)) + ONE_DRAW
    forged, plain = (grade(box, text, "random_crop_flip") for text in (forging, ONE_DRAW))
    assert forged.state == plain.state == "failed" and forged.points == plain.points
    mark = 'data["is_read"] = True\n    return data'
    marked = forging.replace("return data", mark)
    assert grade(box, marked, "random_crop_flip").reason == "protocol"


ANY = "class Any({}):\n    def __eq__(self, other):\n        return True\n    __hash__ = None\n"
ODD = "class Odd(int):\n    def __float__(self):\n        return 197.0\n"
VALUES = {
    "a number that equals all": ANY.format("float") + "tokens_at_224 = Any(5)",
    "an object that equals all": ANY.format("") + "tokens_at_224 = Any()",
    "a number that changes": ODD + "tokens_at_224 = Odd(5)",
    "NaN": "tokens_at_224 = float('nan')",
    "many digits": "tokens_at_224 = 10**5000",
    "a list in itself": "tokens_at_224 = []\ntokens_at_224.append(tokens_at_224)",
    "a huge array": "tokens_at_224 = torch.zeros(10**8)",
    "a function": "def tokens_at_224():\n    return 197",
    "words": "tokens_at_224 = '196, 197'",
}


@pytest.mark.parametrize("source", VALUES.values(), ids=VALUES)
def test_values_that_pretend_earn_nothing(box, source):
    """A value crosses as plain data; what it would say about itself stays behind."""
    result = grade(box, source, "tokens_at_224")
    assert result.points in (0, None) and result.state != "passed", result.lines
    assert result.state == "failed" or result.reason in ("memory", "protocol"), result.detail


def test_many_large_results_are_refused(monkeypatch, box):
    """Results of many megabytes in every call are not kept: the grader's memory is bounded."""
    monkeypatch.setattr(judge, "MAX_BYTES", 1000)
    result = grade(box, RIGHT)
    assert result.reason == "protocol" and "all results together" in result.detail


def test_two_threads_grade_as_one(box):
    """Gradings at the same time do not disturb each other."""
    sources = [RIGHT, ZEROS, inside("", "x + 1")] * 2
    alone = [grade(box, source) for source in sources[:3]] * 2
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda source: grade(box, source), sources))
    for one, other in zip(alone, together, strict=True):
        assert (one.state, one.points, one.lines) == (other.state, other.points, other.lines)


def test_faults_of_the_box_are_ours():
    """Where no worker can be had, or no checker be run, the grade blames no answer."""

    class Broken:
        def worker(self):
            raise WorkerTrouble("grader", "no worker started.")

        def open_separate(self):
            raise IsolationError("no box")

        limits = Limits()

    result = grade(Broken(), RIGHT, runs=3)
    assert (result.state, result.reason, result.points) == ("not_gradable", "grader", None)


def test_controls_are_graded_as_ever_afterwards(box, of_zeros):
    """After all of it the right answer has full points, and zeros have theirs."""
    result = grade(box, reference_source(exercises.find("gelu")), runs=3)
    assert (result.state, result.points, result.runs) == ("passed", 3, 3)
    assert grade(box, ZEROS, runs=3).points == of_zeros
