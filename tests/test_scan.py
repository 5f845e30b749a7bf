"""Flags for a person: needless calls, the reference, near-identical answers."""

import ast
import inspect
import random
import textwrap
import time
from functools import cache
from pathlib import Path

import pytest
from proof.bank import right_answers
from run_answer import read_cells

from vitedu.course.notebooks import exercise_cells, find_notebooks, read
from vitedu.course.references import reference_source
from vitedu.exercises import EXERCISES, find
from vitedu.grading.grades import Answer
from vitedu.grading.intake import flags
from vitedu.grading.intake.flags import MIN_TOKENS, count_own_tokens, mark, split_tokens


def scanned(exercise, source, support="import torch, math\nfrom torch import nn"):
    """Give kind -> message."""
    answer = read_cells(exercise, support, source).answers[exercise]
    return {flag.kind: flag.message for flag in answer.flags}


@cache
def alternatives():
    """Give the right answers that the checkers know, as a list of sources for each exercise."""
    answers = {}
    for exercise in EXERCISES:
        if exercise.kind != "value":
            for answer in right_answers(exercise.id)[1:]:
                if answer.__name__ != "<lambda>":
                    node = ast.parse(textwrap.dedent(inspect.getsource(answer))).body[0]
                    source = ast.unparse(renamed(node, {node.name: exercise.id}))
                    answers.setdefault(exercise.id, []).append(source)
    return answers


def renamed(node, names):
    """Copy a statement with other names."""
    node = ast.parse(ast.unparse(node)).body[0]
    for inner in ast.walk(node):
        for field in ("id", "arg", "name"):
            if getattr(inner, field, None) in names:
                setattr(inner, field, names[getattr(inner, field)])
    return node


SUPPORT = "import math, torch\nfrom torch import nn\nfrom vitedu import attention as reference"
HONEST = [exercise.id for exercise in EXERCISES if exercise.kind != "value"]

# --- one answer ----------------------------------------------------------------------------------
TELLING = """
sys._getframe(1).f_locals
gc.get_objects()
from ctypes import cdll
import numpy.ctypeslib, ctypes
(lambda: 0).__globals__
().__class__.__subclasses__()
from vitedu.checks import engine
from vitedu.checks.api import judge, observe
import vitedu.grading.box.worker as worker
torch.__spec__.loader
os._exit(0)
sys.settrace(abs)
getattr(abs, '__globals__')
sys.meta_path.clear()
os.getenv('LD_PRELOAD')
import mmap
from socket import create_connection
from torch.utils import cpp_extension
torch.ops.load_library('a.so')
""".strip().splitlines()


@pytest.mark.parametrize("line", TELLING)
def test_a_way_to_what_judges_is_found(line):
    """In the answer, and in any cell above it."""
    support, helper = "import torch, math, sys, os, gc", f"def helper(x):\n    {line}\n    return x"
    assert "dangerous" in scanned("gelu", f"def gelu(x):\n    {line}\n    return x", support)
    assert "dangerous" in scanned("gelu", "def gelu(x): return helper(x)", f"{support}\n{helper}")
    assert "dangerous" in scanned("gelu", "def gelu(x): return x", f"{support}\n{helper}")
    assert "dangerous" not in scanned("gelu", "def gelu(x): return x", support)


def test_environment_concerns_only_in_the_answer_itself():
    """A cell above that asks it for a name is what honest notebooks do."""
    for line in ("os.environ.get('USER')", "os.getenv('USER')"):
        assert "dangerous" in scanned(
            "gelu", f"def gelu(x):\n    {line}\n    return x", "import os"
        )
        assert "dangerous" not in scanned("gelu", "def gelu(x): return x", f"import os\n{line}")


ORDINARY = """
import os; os.makedirs('out', exist_ok=True)
import inspect; inspect.signature(abs)
import gc; gc.collect()
import warnings; warnings.simplefilter('ignore')
x = type(x)(x.__class__)
from pathlib import Path; Path('a').read_text()
super().__setattr__('a', 1)
vars(x).update(a=1)
torch.set_default_dtype(torch.float32)
import time, sys; print(sys.version)
""".strip().splitlines()


@pytest.mark.parametrize("line", ORDINARY)
def test_what_students_write_without_thought_is_no_concern(line):
    """Folders, garbage, signatures: no harm can come of them in the box."""
    assert scanned("gelu", f"def gelu(x):\n    {line}\n    return x") == {}


def test_imports_that_every_notebook_has_are_no_concern():
    """Nothing is flagged without a reason."""
    assert scanned("gelu", "gelu = 1", "import torch") == {}


@pytest.mark.parametrize("exercise", HONEST)
def test_honest_answers_have_no_flags(exercise):
    """Every right answer that the checkers know, in its many styles."""
    for source in alternatives().get(exercise, ()):
        assert scanned(exercise, source, SUPPORT) == {}, source


def test_reference_is_known_under_other_names_and_layout():
    """Renamed, stripped of comments, docstrings and hints; a changed step is another answer.

    Where the text forces nearly all of it, as in PatchEmbed, being equal says nothing.
    """
    forced, free = (reference_source(find(id)) for id in ("PatchEmbed", "patchify"))
    assert count_own_tokens(forced) < MIN_TOKENS <= count_own_tokens(free)
    for exercise in EXERCISES:
        source = reference_source(exercise)
        long = exercise.kind != "value" and count_own_tokens(source) >= MIN_TOKENS
        assert ("like_reference" in scanned(exercise.id, source)) == long
    bare = ast.unparse(ast.parse(reference_source(find("patchify"))))
    names = {"images": "bilder", "gh": "rows", "x": "out"}
    other = "# mine\n" + ast.unparse(renamed(ast.parse(bare).body[0], names))
    assert "bilder" in other and split_tokens(other, "patchify") == split_tokens(bare, "patchify")
    assert "like_reference" in scanned("patchify", other)
    assert "like_reference" not in scanned("patchify", bare.replace("0, 2, 4, 1", "0, 4, 2, 1"))


def test_scan_never_raises():
    """On code that does not parse, or parses to something deep."""
    for source in ("def (", "x = " + "1+" * 20_000 + "1", "\0", "gelu = 3", ""):
        assert scanned("gelu", source) == {}


# --- a class -------------------------------------------------------------------------------------

ODD = """
def patchify(images, patch_size):
    batch, colours, height, width = images.shape
    if height % patch_size != 0 or width % patch_size != 0:
        raise ValueError(f"cannot cut {height}x{width} into {patch_size}")
    collected = []
    for top in range(0, height, patch_size):
        for left in range(0, width, patch_size):
            window = images[:, :, top : top + patch_size, left : left + patch_size]
            collected.append(window.contiguous().view(batch, colours * patch_size ** 2))
    return torch.stack(collected, 1)
"""
RENAMED = {
    "images": "x",
    "batch": "b",
    "collected": "out",
    "window": "tile",
    "top": "i",
    "left": "j",
}


def compare_class(answers):
    """Compare answers as the grader does, which reads them first."""
    read = cache(mark)  # many have the same
    return flags.compare_class(
        {
            student: {id: read(answer) for id, answer in own.items()}
            for student, own in answers.items()
        }
    )


def made_class(size):
    """A class in which answers repeat, as they do: everybody has one of four for each exercise."""
    draw = random.Random(0)
    four = {
        id: [*sources[:3], reference_source(find(id))] for id, sources in alternatives().items()
    }
    return {
        f"s{number:03}": {id: Answer(id, draw.choice(sources)) for id, sources in four.items()}
        for number in range(size)
    }


@pytest.mark.slow
def test_copies_are_found_and_nobody_else():
    """Renamed and commented, in a class of 200 where honest answers repeat; in a few seconds."""
    answers = made_class(200)
    copy = ast.unparse(renamed(ast.parse(ODD).body[0], RENAMED))
    answers["s007"]["patchify"] = Answer("patchify", ODD)
    answers["s123"]["patchify"] = Answer("patchify", "# all my own work\n" + copy)
    start = time.process_time()
    flags = compare_class(answers)
    seconds = time.process_time() - start
    assert set(flags) == {"s007", "s123"}
    (flag,) = flags["s007"]
    assert flag.kind == "similar" and flag.message.endswith(" aside, as s123: patchify")
    assert seconds < 10  # 1 s on an idle core


def test_two_students_are_enough_for_a_pair_and_the_same_reference_is_none():
    """What both took from the reference does not count, and neither do short answers and values."""
    pair = {name: {"patchify": Answer("patchify", ODD)} for name in ("ann", "bob")}
    assert compare_class(pair)["ann"][0].message.endswith("bob: patchify")
    ids = [exercise.id for exercise in EXERCISES]
    same = {id: Answer(id, reference_source(find(id))) for id in ids}
    assert compare_class({"ann": same, "bob": same}) == {}
    short = {name: {"gelu": Answer("gelu", "def gelu(x):\n    return x + 1 - 1")} for name in "ab"}
    assert compare_class(short) == {}


def test_untouched_stubs_are_no_copies():
    """Everybody has them."""
    stubs = {}
    for path in find_notebooks(Path(__file__).parents[1] / "notebooks"):
        notebook = read(path)
        for index, id in exercise_cells(notebook):
            stubs[id] = Answer(id, notebook.cells[index].source)
    assert compare_class({name: stubs for name in ("ann", "bob")}) == {}


def test_comparing_never_raises():
    """Broken answers have no runs."""
    broken = {name: {"gelu": Answer("gelu", "def (")} for name in ("ann", "bob")}
    assert compare_class(broken) == compare_class({}) == {}
