"""Right answers that a notebook spreads out: what is taken out of it works as the notebook does.

Each notebook is read, sliced and graded as a class's would be. Right answers have full points. What
cannot be taken along is not gradable, with the reason, and never 0.
"""

from types import SimpleNamespace

import pytest
from attacks import IMPORTS, RIGHT, VALUE, code, notebook

from vitedu.exercises import find
from vitedu.grading.box.limits import Limits
from vitedu.grading.grades import Submission
from vitedu.grading.intake.extraction import extract
from vitedu.grading.judge import grade_answer
from vitedu.grading.transport.remote_answer import GRACE

pytestmark = pytest.mark.slow

HEADS = """class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"{embed_dim} columns, {num_heads} heads")
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=qkv_bias)
        self.proj = nn.Linear(embed_dim, embed_dim)
"""
FORWARD = """def forward(self, x):
    B, T, D = x.shape
    q, k, v = self.qkv(x).view(B, T, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
    scores = q @ k.mT / q.shape[-1] ** 0.5
    weights = (scores - scores.amax(-1, True)).exp()
    weights = weights / weights.sum(-1, True)
    return self.proj((weights @ v).transpose(1, 2).reshape(B, T, D)), weights
"""
METHOD = "".join(f"    {line}\n" for line in FORWARD.splitlines())
WHOLE = f"{HEADS}\n{METHOD}"
ADD = """def add_to_class(Class):
    def wrapper(function):
        setattr(Class, function.__name__, function)
    return wrapper
"""
BODY = RIGHT.split("\n", 1)[1]
WITH_ROOT = "def gelu(x):\n    return x * 0.5 * (1 + torch.erf(x / sqrt(2)))\n"
WITH_ONE = f"def softmax(x, dim=-1):\n    return {VALUE} * ONE\n"
WITH_EXP = """def softmax(x, dim=-1):
    e = exp(x - amax(x, dim, True))
    return e / e.sum(dim, True)
"""
MHA, MATH = "MultiHeadAttention", "from math import *"
COUNTS = f"def softmax(x, dim=-1):\n    global calls\n    calls += 1\n{BODY}"
APPENDS = f"calls = []\n\ndef softmax(x, dim=-1):\n    calls.append(1)\n{BODY}"
SCRIPTED = f"@torch.jit.script\ndef softmax(x, dim: int = -1):\n{BODY}"
ATTACHES = "def attach(kind, function):\n    kind.forward = function"
DECORATED = "@add_to_class(MultiHeadAttention)\n" + FORWARD
ITSELF = "class MultiHeadAttention(MultiHeadAttention):\n" + METHOD
LATER = 'setattr(MultiHeadAttention, "forward", forward)'

SET_UP = "def set_up():\n    global ONE\n    ONE = 1.0\n\nset_up()"

# name: (exercise, cells before, the cell, cells after)
RIGHT_ONES = {
    "star import of math": ("gelu", [MATH], WITH_ROOT, []),
    "star import in the own cell": ("gelu", [], f"{MATH}\n\n{WITH_ROOT}", []),
    "star import of torch": ("softmax", ["from torch import *"], WITH_EXP, []),
    "star import of torch.nn": (MHA, ["from torch.nn import *"], WHOLE.replace("nn.", ""), []),
    "state of the module": ("softmax", ["calls = 0"], COUNTS, []),
    "state in the own cell": ("softmax", [], APPENDS, []),
    "setattr": (MHA, [], HEADS, [FORWARD, LATER]),
    "assigned later": (MHA, [], HEADS, [FORWARD + "\nMultiHeadAttention.forward = forward"]),
    "a class decorator": (MHA, [ADD], HEADS, [DECORATED]),
    "a function that attaches": (MHA, [ATTACHES], HEADS, [FORWARD, f"attach({MHA}, forward)"]),
    "built on itself": (MHA, [HEADS], ITSELF, []),
    "made inside a function": ("softmax", [SET_UP], WITH_ONE, []),
    "a constant below": ("softmax", [], WITH_ONE, ["ONE = 1.0"]),
    "a table below": (
        "softmax",
        [],
        WITH_ONE.replace("ONE", "TABLE['one']"),
        ["TABLE = {}\nTABLE['one'] = 1.0"],
    ),
    "compiled": ("softmax", [], f"@torch.compile\n{RIGHT}", []),
    "compiled with settings": ("softmax", [], f"@torch.compile(dynamic=True)\n{RIGHT}", []),
    "compiled afterwards": ("softmax", [], f"{RIGHT}\nsoftmax = torch.compile(softmax)", []),
    "scripted": ("softmax", [], SCRIPTED, []),
}

# name: (cells before, the cell, word of the detail)
MISSING = "import no_such_library\n\n" + WITH_ONE.replace("ONE", "no_such_library.one")
OPEN_ONES = {
    "made by training": (["for step in range(3):\n    ONE = fit(step)"], WITH_ONE, "ONE"),
    "made in a cell that does not parse": (["ONE = 1.0\nthis is no Python"], WITH_ONE, "ONE"),
    "a star import": (["from no_such_library import *"], WITH_ONE, "no_such_library"),
    "a library that is not here": ([], MISSING, "no_such_library"),
}

# what an answer raises itself is an error like any other
RAISED = {
    "an import error": "raise ImportError('no library')",
    "a module that is not there": "raise ModuleNotFoundError(\"No module named 'scipy'\")",
    "a memory error": "raise MemoryError",
    "the allocator's words": "raise RuntimeError('DefaultCPUAllocator: cannot allocate memory')",
    "a name": "raise NameError(\"name 'torch' is not defined\")",
    "in a helper's clothes": "error = MemoryError\n    raise error",
}
TYPO = "def softmax(x, dim=-1):\n    return wieghts\n"


def graded(box, tmp_path, exercise, before, cell, after):
    """Hand a notebook in and have one exercise graded."""
    cells = [code(text) for text in [IMPORTS, *before]]
    cells += [code(cell, exercise), *(code(text) for text in after)]
    path = tmp_path / f"{find(exercise).stem}.ipynb"
    path.write_text(notebook(cells), encoding="utf-8")
    extraction = extract(Submission("Anna", (path,)))
    return grade_answer(extraction.answers[exercise], 11, box, runs=1)


@pytest.mark.parametrize("tried", RIGHT_ONES.values(), ids=RIGHT_ONES)
def test_a_right_answer_that_is_spread_out_has_full_points(box, tmp_path, tried):
    """Whatever the answer needs comes along, wherever it stands."""
    grade = graded(box, tmp_path, *tried)
    assert (grade.state, grade.points) == ("passed", grade.max_points), (grade.detail, grade.lines)


@pytest.mark.parametrize("tried", OPEN_ONES.values(), ids=OPEN_ONES)
def test_what_cannot_come_along_is_open_and_never_0(box, tmp_path, tried):
    """The notebook binds the name, the slice cannot: a person decides, told which name it is."""
    before, cell, word = tried
    grade = graded(box, tmp_path, "softmax", before, cell, [])
    assert (grade.state, grade.reason) == ("not_gradable", "import"), grade.lines
    assert word in grade.detail


ATTENTION = """def scaled_dot_product_attention(q, k, v):
    weights = softmax(q @ k.mT / k.shape[-1] ** 0.5{more})
    return weights @ v, weights
"""
WRONG = "def softmax(x, dim=-1, mask=None):\n    return x * 0\n"
LOOPS = "def softmax(x, dim=-1):\n    while True:\n        pass\n"
CUTS = "def softmax(x, dim=-1):\n    return [][0]\n"


@pytest.mark.parametrize("softmax", [WRONG, LOOPS, CUTS], ids=["zeros", "endless", "an error"])
def test_one_mistake_costs_its_own_points(box, tmp_path, softmax):
    """References stand in for an earlier answer that did not pass, and the student is told."""
    attention = ATTENTION.format(more="")
    name = "scaled_dot_product_attention"
    limits = Limits(call_seconds=4 + GRACE)  # an endless one is waited for, twice
    box = SimpleNamespace(worker=box.worker, limits=limits, open_separate=box.open_separate)
    grade = graded(box, tmp_path, name, [softmax], attention, [])
    assert (grade.state, grade.points) == ("passed", grade.max_points), grade.lines
    words = "references stood in for softmax, which did not pass"
    assert [flag.message for flag in grade.flags if flag.kind == "stand_ins"] == [words]
    wrong = graded(box, tmp_path, name, [softmax], attention.replace("k.mT", "-k.mT"), [])
    assert wrong.state == "failed" and wrong.points > 0


def test_a_right_earlier_answer_needs_no_reference(box, tmp_path):
    """With an argument more than the reference has; whether it passed or was not graded."""
    own = RIGHT.replace("dim=-1", "dim=-1, mask=None")
    attention = ATTENTION.format(more=", mask=None")
    grade = graded(box, tmp_path, "scaled_dot_product_attention", [own], attention, [])
    assert grade.state == "passed" and "stand_ins" not in {flag.kind for flag in grade.flags}


def test_what_only_ones_own_wrong_answer_could_serve_is_open(box, tmp_path):
    """The reference has no mask: the later answer may be right, so that a person decides."""
    attention = ATTENTION.format(more=", mask=None")
    grade = graded(box, tmp_path, "scaled_dot_product_attention", [WRONG], attention, [])
    assert (grade.state, grade.reason) == ("not_gradable", "depends")
    assert "unexpected keyword argument 'mask'" in grade.detail
    unknown = ATTENTION.format(more=", axis=-1")  # its own softmax has no axis either
    grade = graded(box, tmp_path, "scaled_dot_product_attention", [WRONG], unknown, [])
    assert grade.state == "failed"


def test_an_earlier_definition_counts_where_the_last_is_no_attempt(box, tmp_path):
    """A tensor in its place, which only running shows; never because the last one is wrong."""
    tensor = "import torch\nmaker = torch.zeros\nsoftmax = maker(3)"
    assert graded(box, tmp_path, "softmax", [], RIGHT, [tensor]).state == "passed"
    assert graded(box, tmp_path, "softmax", [], RIGHT, [CUTS]).state == "failed"


@pytest.mark.parametrize("line", RAISED.values(), ids=RAISED)
def test_an_answer_cannot_choose_to_be_open(box, tmp_path, line):
    """An error that it raises itself costs its points, as in the notebook."""
    cell = f"def softmax(x, dim=-1):\n    {line}\n"
    grade = graded(box, tmp_path, "softmax", ["torch = torch"], cell, [])
    assert (grade.state, grade.points) == ("failed", 0.0), grade.detail


def test_a_name_that_nothing_binds_is_a_mistake(box, tmp_path):
    """Also where another function has such a name of its own."""
    other = "def other(x):\n    wieghts = x\n    return wieghts"
    grade = graded(box, tmp_path, "softmax", [other], TYPO, [])
    assert (grade.state, grade.points) == ("failed", 0.0)
