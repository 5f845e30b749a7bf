"""Points without the work: a clever answer gets what it shows, doing nothing next to nothing.

The attacks on one worker (``test_judge_attacks``) are about what breaks; those in
``attacks/undeserved.toml`` are about what an answer means. Every third is graded, and every third
function answered without an idea; in the weekly workflow all are.
"""

import inspect
import tomllib
from pathlib import Path

import pytest
import replay_caches
from conftest import sample
from run_answer import grade_cells

from vitedu import exercises
from vitedu.checks import engine
from vitedu.checks.explaining.diagnose import ReplayCache
from vitedu.checks.writing.checker import find_checker
from vitedu.course.references import reference_source
from vitedu.grading import judge

pytestmark = pytest.mark.slow

# what stands above every answer in its notebook
SUPPORT = """
import math, os, threading
import torch
import torch.nn.functional as F
from torch import nn

def unseen(run):
    out = []
    thread = threading.Thread(target=lambda: out.append(run()))
    thread.start()
    thread.join()
    return out[0]

def slow(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    w = q @ k.mT
    return (w / w.sum(-1, keepdim=True)) @ v
"""

# name: (exercise, answer, state, points)
TRIES = {}
TEXT = Path(__file__).with_name("attacks").joinpath("undeserved.toml").read_text("utf-8")
for entry in tomllib.loads(TEXT)["answer"]:
    state, points = entry["worth"].split()
    points = None if points == "-" else float(points)
    TRIES[entry["name"]] = (entry["exercise"], entry["source"], state, points)


def edited(text: str, *edits: tuple[str, str]) -> str:
    """Replace pieces of a text, each of which is there once."""
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


# a right evaluation, but for the modes, which stay as they are
MODES = TRIES["modes that are not put back"][1]
BEGIN, END = "    model.eval()\n", "    return total"
NO_LIST = "lambda *a, **k: iter(())\n"
WAS = (BEGIN, "    was = [(part, part.training) for part in model.modules()]\n" + BEGIN)
# modes that equal everything, and parts of a class that says what it was asked before
EQUAL = """
class Mode:
    def __init__(self, was):
        self.was = was

    def __bool__(self):
        return self.was

    def __ne__(self, other):
        return False

"""
LEAVE_EQUAL = """
    for part, mode in was:
        part.training = Mode(mode)
"""
LEAVE_OTHER = """
    for part, mode in was:
        told = property(lambda self, mode=mode: mode, lambda self, new: None)
        part.__class__ = type("Lie", (type(part),), {"training": told})
"""
UNLISTED = edited(MODES, (BEGIN, f"    model.named_modules = model.modules = {NO_LIST}{BEGIN}"))
NOT_PUT_BACK = {
    "modes that nobody can list": f"nn.Module.named_modules = nn.Module.modules = {NO_LIST}{MODES}",
    "modes that equal everything": EQUAL + edited(MODES, WAS, (END, LEAVE_EQUAL + END)),
    "modes of another class": edited(MODES, WAS, (END, LEAVE_OTHER + END)),
}
TRIES |= {name: ("evaluate", text, "failed", 2) for name, text in NOT_PUT_BACK.items()}
TRIES["a model that lists no modules"] = ("evaluate", UNLISTED, "failed", 2)

# the bias is shared, and nobody can list it
LIE = """
class Lie(nn.Linear):
    def parameters(self, recurse=True):
        return iter(())

"""
LYING = LIE + edited(
    reference_source(exercises.find("LoRALinear")),
    ("linear = nn.Linear(old", "linear = Lie(old"),
    ("linear.bias.copy_(old.bias)", "linear.bias = old.bias"),
)
TRIES["a merged layer that hides what it shares"] = ("LoRALinear", LYING, "failed", 3)


@pytest.fixture(autouse=True)
def replays_are_kept(monkeypatch):
    """What the mistakes of a bank do runs once for all answers to an exercise."""
    monkeypatch.setattr(judge, "judge_observations", replay_caches.judge_observations)


@pytest.mark.parametrize("name", sample(TRIES))
def test_an_answer_gets_what_it_shows(box, name):
    """A forbidden operation in another dress earns nothing; mathematics earns all."""
    exercise, source, state, points = TRIES[name]
    result = grade_cells(box, exercise, SUPPORT, source)
    assert (result.state, result.points) == (state, points), (result.detail, result.lines)


LEAVING = """
def gelu(x):
    found = os.listdir(os.environ["TMPDIR"]) if not globals().get("mine") else []
    globals()["mine"] = 1
    for name in found:
        if name.startswith("left"):
            raise LookupError(name)
    open(os.environ["TMPDIR"] + "/left", "w").close()
    return x * 0
"""


def test_an_answer_leaves_nothing_to_the_next(box):
    """What one process writes, no other finds."""
    if box.level != "full":
        pytest.skip(f"this machine isolates only partly: {box.level}")
    for _ in range(2):
        result = grade_cells(box, "gelu", SUPPORT, LEAVING)
        assert "LookupError" not in str(result.lines) and result.state == "failed"


# --- what doing nothing earns --------------------------------------------------------------------


def complain(*args, **rest):
    sizes = [getattr(x, "shape", x) for x in (*args, *rest.values())]
    raise ValueError(f"{sizes}")


# answers without an idea: an argument, an error with all sizes, and by what is asked for a result
IDLE = [lambda *args, **rest: next(iter((*args, *rest.values()))), complain]
EMPTY = {"tuple": lambda *args, **rest: (0.0, 0.0), "list": lambda *args, **rest: []}
FUNCTIONS = [exercise for exercise in exercises.EXERCISES if exercise.kind == "function"]


@pytest.mark.parametrize("exercise", sample(FUNCTIONS), ids=lambda exercise: exercise.id)
def test_doing_nothing_earns_at_most_a_fifth(exercise, monkeypatch):
    """No answer without an idea has more than 20 % of the points, whatever it is named."""
    monkeypatch.setattr(engine, "diagnose", lambda *seen: [])  # a name costs no points
    checker, cache = find_checker(exercise.id), ReplayCache()
    result = str(inspect.signature(checker.reference).return_annotation).split("[")[0]
    for answer in (*IDLE, EMPTY.get(result, lambda *args, **rest: 0)):
        report = engine.judge_answer(checker, answer, 5, cache)
        assert report.points <= 0.2 * exercise.points + 0.01, report.findings
