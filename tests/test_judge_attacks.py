"""Attacks on the judge from inside a worker: each ends with the points that it deserves, in a state that says so.

The attacks of graders.md that concern one answer, and those on the protocol. An answer of zeros earns a part of the points
by right (it runs, and has the right shapes); no trick may earn more than it.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import kept
import pytest

from vitedu import exercises
from vitedu.checks import crops
from vitedu.checks.answers import Plain
from vitedu.course.references import reference_source
from vitedu.grading import judge
from vitedu.grading.box.conversation import WorkerTrouble
from vitedu.grading.box.isolation import open_box
from vitedu.grading.box.limits import Limits
from vitedu.grading.grades import Answer
from vitedu.grading.judge import grade_answer
from vitedu.grading.line import remote_answer
from vitedu.grading.line.messages import write_plain
from vitedu.grading.line.remote_answer import GRACE
from vitedu.grading.line.wire import pack, unpack

pytestmark = pytest.mark.slow

SUPPORT = "import math, os, sys, time, gc, threading, random\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
ZEROS = "def gelu(x):\n    return x * 0\n"
RIGHT = "def gelu(x):\n    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))\n"
SEED = 7
HERE = str(Path(exercises.__file__).parents[1])


@pytest.fixture(scope="module")
def box():
    """The strongest box of this machine."""
    with open_box(allow_unsafe=True) as box:
        yield box


@pytest.fixture(autouse=True)
def replays_are_kept(monkeypatch):
    """What the mistakes of a bank do runs once for all answers to an exercise."""
    monkeypatch.setattr(judge, "conclude", kept.conclude)


@pytest.fixture(scope="module")
def hurried(box):
    """The same box with little time: a worker that is stuck costs seconds."""
    limits = Limits(load_seconds=2, call_seconds=1 + GRACE)
    return SimpleNamespace(worker=box.worker, limits=limits, apart=box.apart)


def grade(box, source, exercise="gelu", support=SUPPORT, runs=1):
    """Grade the source of an answer."""
    return grade_answer(Answer(exercise, source, support), SEED, box, runs=runs)


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


# --- tricks that earn nothing -------------------------------------------------------------------

LIAR = """
class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func.__name__ in ("allclose", "equal", "isclose"):
            return True
        return super().__torch_function__(func, types, args, kwargs or {})
    def __eq__(self, other):
        return torch.ones(()).bool()
def gelu(x):
    return (x * 0).as_subclass(Liar)
"""
FORGED = """
from vitedu.grading.box import seal, worker
seal.Seal.restore.__code__ = (lambda self: None).__code__
from vitedu.grading.line import messages
def forged(seen):
    seen.types["output"], seen.facts["all"] = "tensor", "right"
    seen.detached, seen.modified = False, ()
    seen.error, seen.operations = None, frozenset()
    return messages.write_observation(seen)
worker.write_observation = forged
"""
TRICKS = {
    "patched comparisons": "torch.allclose = torch.equal = torch.isclose = lambda *a, **k: True\n"
    + ZEROS,
    "patched import": "import builtins\nreal = __import__\nbuiltins.__import__ = lambda name, *a, **k: real('math') if 'judg' in name else real(name, *a, **k)\n"
    + ZEROS,
    "replaced modules": "for name in [n for n in sys.modules if n.startswith('vitedu')]:\n    sys.modules[name] = math\n"
    + ZEROS,
    "a tensor that lies": LIAR,
    "forged facts": FORGED + ZEROS,
    "patched assertions": "import builtins\nbuiltins.AssertionError = SystemExit\n" + ZEROS,
    "a verdict printed": inside(
        'print(\'{"state": "passed", "points": 3}\')\nsys.__stdout__.write(\'passed\')'
    ),
    "points by displayhook": inside("sys.displayhook(99)"),
    "tensors of others in memory": inside(
        "same = [o for o in gc.get_objects() if type(o) is torch.Tensor and o.shape == x.shape and o is not x]\n"
        "same += [t for f in sys._current_frames().values() for t in [f.f_locals.get('wanted')] if t is not None]",
        "same[-1] * 1.0 if same else x * 0",
    ),
    "expected values in a frame": inside(
        "frame, found = sys._getframe(), None\n"
        "while frame:\n    for name in ('want', 'expected', 'reference', 'wanted'):\n        found = frame.f_locals.get(name, found)\n    frame = frame.f_back\n",
        "found(x) if callable(found) else x * 0",
    ),
    "the reference by import": "from vitedu.encoder import gelu as given\ndef gelu(x):\n    return given(x)\n",
    "the reference inside": inside("from vitedu.encoder import gelu as given", "given(x)"),
    "the reference from a path": inside(
        "sys.path[:0] = [HERE, '.', '..']\nimport importlib\ntheirs = importlib.import_module('vitedu.checks.encoder.gelu')",
        "theirs.CHECKER.reference(x)",
    ).replace("HERE", repr(HERE)),
    "the parent killed": inside(
        "import signal\ntry:\n    os.kill(os.getppid(), signal.SIGKILL)\nexcept OSError:\n    pass"
    ),
    "a process left behind": inside("try:\n    os.fork()\nexcept OSError:\n    pass"),
    "NaN": inside("", "x * float('nan')"),
    "another dtype": inside("", "(0.5 * x * (1 + torch.erf(x / 2**0.5))).to(torch.float16)"),
    "as many zeros as a mask hides": inside("", "torch.zeros(1).expand(9 * 10**6)"),
    "more than an answer may keep": inside("", "torch.zeros(1).expand(9 * 10**7)"),
    "more than memory holds": inside("", "torch.zeros(1).expand(10**12)"),
    "a generator": "def gelu(x):\n    yield x\n",
    "no number": inside("", "'passed'"),
    "an exit in the call": inside("sys.exit(0)"),
    "an interrupt in the call": inside("raise KeyboardInterrupt"),
    "endless recursion": inside("gelu(x)"),
    "an object that no one may look at": "class Never:\n    def __getattribute__(self, name):\n        raise ValueError\ngelu = Never()\n",
    "a module in its place": "gelu = torch\n",
    "an error of many megabytes": inside("raise ValueError('x' * 10**8)"),
    "an error with a message that lies": inside(
        "class E(Exception):\n    def __str__(self):\n        return Lie('x')\nclass Lie(str):\n    def __getitem__(self, i):\n        return {}\nraise E"
    ),
}


@pytest.mark.parametrize("source", TRICKS.values(), ids=TRICKS)
def test_tricks_earn_no_more_than_zeros(box, of_zeros, source):
    """The answer fails, with no more points than an answer of zeros, and nothing of ours breaks."""
    found = grade(box, source)
    assert found.state == "failed", (found.reason, found.detail)
    assert found.points <= of_zeros, found.lines


def test_an_edited_input_costs_its_points(box):
    """The right values with the input modified in place are named as that."""
    found = grade(box, inside("y = 0.5 * x * (1 + torch.erf(x / 2**0.5))\nx.mul_(2)", "y"))
    assert found.state == "failed" and found.misconceptions == ["modifies_input"]


# --- workers that do not answer -----------------------------------------------------------------

ON_ALL_FDS = """
def shout():
    while True:
        for fd in range(3, 600):
            try:
                os.write(fd, {payload})
            except OSError:
                pass
threading.Thread(target=shout, daemon=True).start()
time.sleep(0.3)
"""
FRAME = "(60).to_bytes(8, 'little') + b'x' * 60"
GONE = {
    "an exit at import": ("os._exit(0)\n" + RIGHT, {"crashed"}),
    "an exit in the call": (inside("os._exit(0)"), {"crashed"}),
    "a crash": (inside("import ctypes\nctypes.string_at(0)"), {"crashed"}),
    "closed descriptors": (RIGHT + "os.closerange(3, 4096)\n", {"crashed"}),
    "a forged frame": (ON_ALL_FDS.format(payload=FRAME) + RIGHT, {"protocol"}),
    "noise on the pipes": (ON_ALL_FDS.format(payload="b'\\0' * 7"), {"protocol"}),
    "an endless reply": (
        ON_ALL_FDS.format(payload="b'\\xff' * 2**16") + RIGHT,
        {"flooded", "protocol"},
    ),
    "too much memory": (inside("kept = [bytearray(10**9) for _ in range(40)]"), {"memory"}),
    "too much memory in torch": (inside("kept = torch.zeros(40, 10**9)"), {"memory"}),
    "no Python": ("def gelu(x:\n    return x\n", {"syntax"}),
    "a byte of zero": ("def gelu(x):\n    return '\0'\n", {"syntax"}),
    "nested past the compiler": (
        "gelu = " + "(" * 5000 + ")" * 5000,
        {"syntax", "memory", "crashed"},
    ),
    "another name": (RIGHT.replace("gelu", "my_gelu"), {"no_cell"}),
    "a file of megabytes": (RIGHT + "#" * 2**20, {"unreadable"}),
}


@pytest.mark.parametrize(("source", "reasons"), GONE.values(), ids=GONE)
def test_what_can_not_be_judged_says_why(box, source, reasons):
    """No points and no zero: a state of its own with its reason, and the next answer is graded as ever."""
    found = grade(box, source)
    assert found.state == "not_gradable" and found.points is None, (found.state, found.lines)
    assert found.reason in reasons, (found.reason, found.detail)
    assert found.detail and found.headline


UNDONE = {
    "another way to pack": (
        "import vitedu.grading.box.worker as w\nw.pack = lambda *a: b'\\x04' + bytes(11)\n" + RIGHT,
        "passed",
    ),
    "an old nonce": (
        "import vitedu.grading.box.worker as w\nreal = w.pack\nw.pack = lambda head, *rest: real({**head, 'nonce': '0' * 16}, *rest)\n"
        + RIGHT,
        "passed",
    ),
    "pickle for a reply": (
        "import pickle\nimport vitedu.grading.box.worker as w\nw.pack = lambda *a: (8).to_bytes(8, 'little') + pickle.dumps(print)[:8]\n"
        + RIGHT,
        "passed",
    ),
    "builtins that break its worker": (
        "import builtins\nbuiltins.all = builtins.any = lambda *a: True\nbuiltins.float = lambda *a: 1.0\n"
        + ZEROS,
        "failed",
    ),
    "a request that is swallowed": (
        "import vitedu.grading.box.worker as w\nw._send = lambda fd, frame: True\n" + RIGHT,
        "passed",
    ),
}


@pytest.mark.parametrize(("source", "state"), UNDONE.values(), ids=UNDONE)
def test_what_an_answer_changes_in_its_worker_is_put_back(box, source, state):
    """The answer is judged as if it had changed nothing: a right one passes, a wrong one fails."""
    assert grade(box, source).state == state


STUCK = {
    "a loop that swallows interrupts": inside(
        "while True:\n    try:\n        time.sleep(1)\n    except BaseException:\n        pass"
    ),
    "a loop without alarms": "import signal\n"
    + inside("signal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True:\n    pass"),
    "a timer that is taken away": "import signal\n"
    + inside("signal.setitimer(signal.ITIMER_REAL, 0)\ntime.sleep(60)"),
    "no end at import": "while True:\n    pass\n" + RIGHT,
}


@pytest.mark.parametrize("source", STUCK.values(), ids=STUCK)
def test_a_stuck_worker_is_given_up_once(hurried, source):
    """After its deadline a worker is not gradable for the time it took, and no second one waits as long."""
    found = grade(hurried, source, runs=3)
    assert (found.state, found.reason) == ("not_gradable", "timeout"), (found.state, found.lines)
    assert found.runs == 1 and found.seconds < 15


def test_one_budget_holds_for_all_requests_to_a_worker(box):
    """An answer that swallows each interrupt and ends just before the deadline is given up once the whole budget is spent."""
    limits = Limits(load_seconds=4, call_seconds=4 + GRACE, worker_seconds=5)
    slow = "end = time.monotonic() + 1.2\nwhile time.monotonic() < end:\n    try:\n        time.sleep(0.1)\n    except BaseException:\n        pass"
    asked = []

    class Counted:
        """A worker that counts its requests."""

        def __init__(self, worker):
            self.worker = worker

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.worker.close()

        output = ""

        def ask(self, frame, seconds):
            asked.append(seconds)
            return self.worker.ask(frame, seconds)

    place = SimpleNamespace(worker=lambda: Counted(box.worker()), limits=limits, apart=box.apart)
    found = grade(place, inside(slow), runs=3)
    assert (found.state, found.reason, found.runs) == ("not_gradable", "timeout", 1)
    # load, look, and two of the six cases, each of three calls; the last one had only what was left
    assert 4 <= len(asked) <= 5 and asked[-1] < limits.worker_seconds - 2


def test_what_is_left_of_the_budget_is_counted_outside(monkeypatch):
    """Each request gets at most what the earlier ones left, whatever the worker says of its time."""
    now = [100.0]
    monkeypatch.setattr(remote_answer.time, "monotonic", lambda: now[0])
    granted = []

    def ask(frame, seconds):
        granted.append(round(seconds, 2))
        now[0] += 2.0
        nonce = unpack(frame)[0]["nonce"]
        return pack({"nonce": nonce, "done": write_plain(Plain(3))})

    limits = Limits(worker_seconds=5.0)
    remote = remote_answer.RemoteAnswer(SimpleNamespace(ask=ask), limits)
    assert [remote.plain().value for _ in range(4)] == [3] * 4
    assert granted == [3.0, 3.0, 1.0, 0.01]


def test_an_endless_loop_fails_as_in_the_notebook(hurried):
    """A loop that the probe can interrupt is a failed answer, named as in the notebook, and runs once."""
    found = grade(hurried, inside("while True:\n    pass"), runs=3)
    assert (found.state, found.points, found.runs) == ("failed", 0, 1)
    assert found.headline == "the call does not come to an end"


def test_work_after_the_definition_is_stopped(hurried):
    """A cell that defines the answer and then goes on without end is judged by what it defined; a pass needs all runs."""
    found = grade(hurried, RIGHT + "while True:\n    pass\n", runs=2)
    assert (found.state, found.points, found.runs) == ("passed", 3, 2)


def test_what_is_printed_is_kept_in_part(box):
    """A right answer that prints without end has its points, and the first characters are shown."""
    flood = "for _ in range(300):\n    os.write(1, b'<script>' * 10**5)\n"
    found = grade(
        box,
        flood + inside("print('shape', tuple(x.shape))", "0.5 * x * (1 + torch.erf(x / 2**0.5))"),
    )
    assert (found.state, found.points) == ("passed", 3)
    assert found.printed.startswith("shape (") and len(found.printed) < 1000


# --- luck ---------------------------------------------------------------------------------------

LUCK = "lucky = os.urandom(1)[0] % 2\ndef gelu(x):\n    return 0.5 * x * (1 + torch.erf(x / 2**0.5)) * lucky\n"


def test_luck_is_seen(box):
    """Of an answer that is right half of the time, fresh processes disagree, which is no verdict but a finding."""
    for _ in range(20):  # three agree in one of four gradings
        found = grade(box, LUCK, runs=3)
        if found.reason == "unstable":
            break
        assert found.state in ("passed", "failed")
    assert found.state == "not_gradable" and found.points is None
    assert "failed with" in found.detail
    assert len(set(found.detail.partition(": ")[2].split("; "))) == 2, found.detail
    assert [flag.kind for flag in found.flags] == ["unstable"]


def test_random_wrong_answers_are_failed_not_unstable(box):
    """Numbers that differ from call to call are wrong alike in every process."""
    found = grade(box, "def gelu(x):\n    return torch.randn_like(x)\n", runs=3)
    assert (found.state, found.runs) == ("failed", 3)


# --- forbidden operations -----------------------------------------------------------------------

HIDDEN = {
    "openly": "return F.softmax(x, dim)",
    "by its kernel": "return torch.ops.aten._softmax(x, dim, False)",
    "by another form": "return torch.softmax(x, dim, out=torch.empty_like(x))",
    "in a thread": "out = []\nt = threading.Thread(target=lambda: out.append(F.softmax(x, dim)))\nt.start()\nt.join()\nreturn out[0]",
    "outside of torch's modes": "from torch.utils._python_dispatch import _disable_current_modes\nwith torch._C.DisableTorchFunction(), _disable_current_modes():\n    return F.softmax(x, dim)",
    "with the watch taken out": "from vitedu.checks import probing\nprobing.watched = lambda seen, run: run()\nprobing._Kernels.__torch_dispatch__ = lambda self, func, types, args=(), kwargs=None: func(*args, **(kwargs or {}))\nreturn F.softmax(x, dim)",
    "through a layer": "return nn.Softmax(dim)(x)",
    "through its logarithm": "return F.log_softmax(x, dim).exp()",
    "in attention": "q = x.movedim(dim, -1)\nreturn (-F.nll_loss(F.log_softmax(q, -1).flatten(0, -2), torch.zeros(q[..., 0].numel(), dtype=torch.long), reduction='none')).exp()",
    "on another layout": "return x.float().to_mkldnn().softmax(dim).to_dense()",
    "in a function transform": "return torch.func.vmap(lambda y: torch.softmax(y, dim))(x)",
    "with the kernel put back": "import weakref\nfor f in list(weakref.finalize._registry):\n    if 'library' in str(f.peek()):\n        f()\nfor o in gc.get_objects():\n    if isinstance(o, torch.library.Library):\n        o._destroy()\nout = []\nt = threading.Thread(target=lambda: out.append(F.softmax(x, dim)))\nt.start()\nt.join()\nreturn out[0]",
    "caught": "try:\n    return F.softmax(x, dim)\nexcept RuntimeError:\n    e = (x - x.amax(dim, True)).exp()\n    return e / e.sum(dim, True)",
}


@pytest.mark.parametrize("body", HIDDEN.values(), ids=HIDDEN)
def test_forbidden_operations_earn_nothing(box, body):
    """However it is called, torch's own softmax gives no values, and its use is told."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    found = grade(box, f"def softmax(x, dim=-1):\n{lines}", "softmax")
    assert (found.state, found.points) == ("failed", 0), found.lines
    assert found.findings[0]["name"] == "allowed operations" and not found.findings[0]["passed"]
    assert "an answer without" in found.findings[0]["message"], found.lines


def test_forbidden_kernels_are_gone_for_their_exercise_alone(box):
    """Where softmax is not forbidden, it may be used."""
    source = "def scaled_dot_product_attention(q, k, v):\n    w = F.softmax(q @ k.mT / k.shape[-1] ** 0.5, -1)\n    return w @ v, w\n"
    assert grade(box, source, "scaled_dot_product_attention").state == "passed"


# --- claims that are no values ------------------------------------------------------------------


def test_forged_draws_are_read_from_the_images(box):
    """Facts about random draws are made here, from what came back: a worker's own count for nothing."""
    places = [getattr(crops, name) for name in ("WINDOW", "OWN_DRAW", "PLACES", "COIN", "APART")]
    source = f"""
from vitedu.grading.box import seal, worker
seal.Seal.restore.__code__ = (lambda self: None).__code__
from vitedu.grading.line import messages
def forged(seen):
    data, tensors = messages.write_observation(seen)
    for place in {places!r}:
        for limit in range(12):
            for words in ("so it is", "anew", "fair", "apart"):
                data["facts"].append([place.format(limit), words])
    return data, tensors
worker.write_observation = forged
def random_crop_flip(images, padding, generator):
    torch.rand(1, generator=generator)
    return images.clone()
"""
    honest = "def random_crop_flip(images, padding, generator):\n    torch.rand(1, generator=generator)\n    return images.clone()\n"
    forged, plain = (grade(box, text, "random_crop_flip") for text in (source, honest))
    assert forged.state == plain.state == "failed" and forged.points == plain.points
    mark = source.replace(
        "return data, tensors", 'data["is_read"] = True\n    return data, tensors'
    )
    assert grade(box, mark, "random_crop_flip").reason == "protocol"


VALUES = {
    "a number that equals all": "class Any(float):\n    def __eq__(self, other):\n        return True\n    __hash__ = None\ntokens_at_224 = Any(5)",
    "an object that equals all": "class Any:\n    def __eq__(self, other):\n        return True\ntokens_at_224 = Any()",
    "a number that changes": "import numbers\nclass Odd(int):\n    def __float__(self):\n        return 197.0\ntokens_at_224 = Odd(5)",
    "NaN": "tokens_at_224 = float('nan')",
    "many digits": "tokens_at_224 = 10**5000",
    "a list in itself": "tokens_at_224 = []\ntokens_at_224.append(tokens_at_224)",
    "a huge array": "tokens_at_224 = torch.zeros(10**8)",
    "a function": "def tokens_at_224():\n    return 197",
    "a word": "tokens_at_224 = '197'",
}


@pytest.mark.parametrize("source", VALUES.values(), ids=VALUES)
def test_values_that_pretend_earn_nothing(box, source):
    """A value crosses as plain data; what it would say about itself stays behind."""
    found = grade(box, source, "tokens_at_224")
    assert found.points in (0, None) and found.state != "passed", found.lines
    assert found.state == "failed" or found.reason in ("memory", "protocol"), found.detail


CLAIMS = {
    "a device that nobody can read": 'data["devices"].append(["output", "cuda"])\n    data["tensors"], tensors = [], []',
    "no arrays": 'data["tensors"], tensors = [], []',
    "empty arrays": "tensors = [t.flatten()[:0] for t in tensors]",
    "scalars": "tensors = [torch.zeros(()) for t in tensors]",
    "many axes": "tensors = [torch.zeros([1] * 16) for t in tensors]",
    "complex numbers": "tensors = [t.to(torch.complex64) for t in tensors]",
    "NaN": 'tensors = [t * float("nan") for t in tensors]',
    "a pass by exception": 'data["error"] = dict(kind="ValueError", kinds=["ValueError"], message="12", where=None, by_hand=True, clash="")',
    "undecided": 'data["undecided"] = True\n    data["tensors"], tensors = [], []',
    "not implemented": 'data["error"] = dict(kind="NotImplementedError", kinds=[], message="", where=None, by_hand=True, clash="")',
    "out of time": 'data["error"] = dict(kind="TimeUp", kinds=[], message="", where=None, by_hand=True, clash="")',
}


@pytest.mark.parametrize(
    "exercise", ["patchify", "attention_macs", "train_one_epoch", "random_crop_flip"]
)
@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_forged_observations_fail_and_break_nothing(box, exercise, claim):
    """Whatever a worker claims that an answer did, there is a verdict, and no full points without the right values."""
    forging = f"""
from vitedu.grading.box import seal, worker
seal.Seal.restore.__code__ = (lambda self: None).__code__
from vitedu.grading.line import messages
def forged(seen):
    data, tensors = messages.write_observation(seen)
    {claim}
    return data, tensors
worker.write_observation = forged
"""
    found = grade(
        box,
        forging + reference_source(exercises.find(exercise)),
        exercise,
        SUPPORT + "from vitedu.training import reflect\n",
    )
    assert found.state == "failed", (found.reason, found.detail)
    assert found.points < found.max_points / 2


def test_many_large_results_are_refused(monkeypatch, box):
    """Results of many megabytes in every call are not kept: the grader's memory is bounded."""
    monkeypatch.setattr("vitedu.grading.line.remote_answer.MOST_BYTES", 1000)
    found = grade(box, RIGHT)
    assert found.reason == "protocol" and "all results together" in found.detail


def test_two_threads_grade_as_one(box):
    """Gradings at the same time do not disturb each other."""
    sources = [RIGHT, ZEROS, inside("", "x + 1"), RIGHT] * 2
    alone = [grade(box, source) for source in sources[:4]] * 2
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda source: grade(box, source), sources))
    for one, other in zip(alone, together, strict=True):
        assert (one.state, one.points, one.lines) == (other.state, other.points, other.lines)


def test_faults_of_the_box_are_ours():
    """Where no worker can be had, or no checker be run, the grade says that it is no fault of the answer."""

    class Broken:
        def worker(self):
            raise WorkerTrouble("grader", "no worker started.")

    found = grade(Broken(), RIGHT, runs=3)
    assert (found.state, found.reason, found.points) == ("not_gradable", "grader", None)
    found = grade(SimpleNamespace(worker=None), RIGHT)
    assert found.reason == "grader" and "TypeError" in found.detail
    with pytest.raises(ValueError, match="runs must be at least 1"):
        grade(Broken(), RIGHT, runs=0)


def test_controls_are_graded_as_ever_afterwards(box, of_zeros):
    """After all of it the right answer has full points and zeros have theirs, in three processes each."""
    right = reference_source(exercises.find("gelu"))
    found = grade(box, right, runs=3)
    assert (found.state, found.points, found.runs) == ("passed", 3, 3)
    assert grade(box, ZEROS, runs=3).points == of_zeros
