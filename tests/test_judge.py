"""The judge of the grader: the notebook's verdict, in isolation, with nothing to gain inside."""

import ast
import io
import tokenize
from pathlib import Path

import pytest
from run_answer import grade_cells

from vitedu import exercises
from vitedu.checks.engine import judge_answer
from vitedu.checks.explaining.values import ValueChecker
from vitedu.checks.writing.checker import MOST_POLISH, find_checker
from vitedu.checks.writing.mistakes import apply_edits, bare_source
from vitedu.course.notebooks import exercise_cells, read, shelf_path
from vitedu.course.references import defined_names, module_source, reference_source
from vitedu.grading import judge
from vitedu.grading.box.limits import MB, Limits
from vitedu.grading.box.package_view import base_files, visible_sources
from vitedu.grading.transport import wire

pytestmark = pytest.mark.slow
NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
SUPPORT = """
import math
from collections.abc import Callable, Mapping, Sequence
import torch
import torch.nn.functional as F
from torch import nn
from vitedu import check, hint, solution
from vitedu.attention import MultiHeadAttention
from vitedu.encoder import GELU
from vitedu.plots import patches as plots
from vitedu.training import reflect
from vitedu.vit import PRESETS, BlockWithoutBias, VisionTransformer, ViTConfig, initialise
"""
ALL = [exercise.id for exercise in exercises.EXERCISES]
# functions, a value, a class, a loop over batches, random draws
OF_EVERY_KIND = (
    "patchify softmax tokens_at_224 MultiHeadAttention evaluate random_crop_flip".split()
)
SEED = 11


def grade(box, exercise, source, support=SUPPORT, runs=1, seed=SEED, polish=MOST_POLISH):
    """Grade the source of an answer."""
    return grade_cells(box, exercise, support, source, seed=seed, runs=runs, polish=polish)


def in_the_notebook(exercise, source):
    """Judge the same source in this process."""
    names = {}
    exec(module_source(exercises.find(exercise).module), names)
    exec(source, names)
    return judge_answer(find_checker(exercise), names[exercise], SEED)


# --- the verdict of the notebook ----------------------------------------------------------------


def wrong(exercise):
    """Give a wrong answer: the reference with the bank's first edit, or a wrong value of it."""
    checker = find_checker(exercise)
    if isinstance(checker, ValueChecker):
        mistake = checker.bank[0]
        value = mistake.example if callable(mistake.value) else mistake.value
        return f"{exercise} = {value!r}"
    mistake = next(mistake for mistake in checker.bank if mistake.edits)
    return apply_edits(bare_source(exercise), [mistake.edits])


@pytest.mark.parametrize("exercise", OF_EVERY_KIND)
def test_grades_are_those_of_the_notebook(box, exercise):
    """A known mistake has the name, the points and the words of the notebook."""
    source = wrong(exercise)
    result, report = grade(box, exercise, source), in_the_notebook(exercise, source)
    assert report.misconceptions and report.status == "failed", str(report)
    assert result.misconceptions == report.misconceptions, (result.detail, result.lines)
    assert (result.state, result.points) == ("failed", report.points)
    assert result.headline == report.headline and result.picture == report.picture
    assert result.lines == [list(line) for line in report.lines]


ODD = [("PatchEmbed", "nn.Conv2d(in_", "nn.Conv2d(8 * in_"), ("drop_path", "not training or ", "")]


@pytest.mark.parametrize(("exercise", "old", "new"), ODD)
def test_odd_answers_are_judged_as_in_the_notebook(box, exercise, old, new):
    """A refusal counts beside wrong parameters; replayed mistakes draw what an answer drew."""
    source = bare_source(exercise).replace(old, new)
    result, report = grade(box, exercise, source, runs=3), in_the_notebook(exercise, source)
    assert 0 < result.points == report.points and result.headline == report.headline


REMARKS = {
    "patchify": """def patchify(images, patch_size):
    B, C, H, W = images.shape
    gh, gw = H // patch_size, W // patch_size
    x = images.reshape(B, C, gh, patch_size, gw, patch_size)
    return x.permute(0, 2, 4, 1, 3, 5).reshape(B, gh * gw, -1)
""",
    "softmax": """def softmax(x, dim=-1):
    exp = (x.float() - x.float().amax(dim, True)).exp()
    return exp / exp.sum(dim, True)
""",
}


@pytest.mark.parametrize("exercise", REMARKS)
def test_remarks_are_those_of_the_notebook(box, exercise):
    """An answer with the idea passes; polish costs the same points, told in the same words."""
    result = grade(box, exercise, REMARKS[exercise])
    report = in_the_notebook(exercise, REMARKS[exercise])
    assert report.passed and report.remarks and report.points < report.max_points
    assert (result.state, result.points) == ("passed", report.points), result.lines
    assert result.headline == report.headline
    assert result.lines == [list(line) for line in report.lines]
    parts = [
        (f.name, f.passed, f.is_polish, round(f.points, 2), f.message) for f in report.findings
    ]
    keys = ("name", "passed", "polish", "points", "message")
    assert [tuple(finding[key] for key in keys) for finding in result.findings] == parts
    lenient = grade(box, exercise, REMARKS[exercise], polish=0)
    assert lenient.points == lenient.max_points and lenient.state == "passed"


def test_stubs_of_the_notebooks_are_not_attempted(box):
    """A cell that was left as it was has no points and says why, and so has one without code."""
    stubs = {}
    for name in {exercises.find(exercise).stem for exercise in OF_EVERY_KIND}:
        notebook = read(NOTEBOOKS / shelf_path(f"{name}.ipynb"))
        stubs |= {id: notebook.cells[index].source for index, id in exercise_cells(notebook)}
    cells = [(exercise, stubs[exercise]) for exercise in OF_EVERY_KIND]
    cells += [("gelu", "# nothing yet\n\n"), ("softmax", "def softmax(x, dim=-1):\n    ...")]
    for exercise, source in cells:
        stub = grade(box, exercise, source, runs=3)
        assert (stub.state, stub.points, stub.attempted) == ("failed", 0, False), exercise
        assert stub.runs <= 1 and stub.headline == "not attempted"


def test_the_same_seed_repeats_a_grading(box):
    """Two gradings with one seed have the same words; another seed has other inputs."""
    source = wrong("layer_norm")
    first, again, other = (grade(box, "layer_norm", source, seed=seed) for seed in (1, 1, 2))
    assert first.lines == again.lines != other.lines


def test_later_runs_leave_second_calls_and_devices_to_the_first(box, monkeypatch):
    """They repeat what luck could decide; the verdict still holds what the first run saw."""
    asked, observe_all = [], judge.RemoteAnswer.observe_all

    def noted(remote, cases, seconds):
        asked.append({c.part for c in cases if c.driver == "second_call" or c.on_accelerator})
        assert any(case.part == "values" for case in cases)
        return observe_all(remote, cases, seconds)

    monkeypatch.setattr(judge.RemoteAnswer, "observe_all", noted)
    right = reference_source(exercises.find("patchify"))
    forgetful = f"{right}\nmade = patchify\ndef patchify(images, patch_size, seen={{}}):\n"
    forgetful += "    return seen.setdefault(images.shape, made(images, patch_size))"
    for source, is_right in ((right, True), (forgetful, False)):
        asked.clear()
        grade_ = grade(box, "patchify", source, runs=3)
        assert asked == [{"again", "any device"}, set(), set()]
        assert (grade_.runs, grade_.state == "passed") == (3, is_right), grade_.lines
        assert is_right or 0 < grade_.points < grade_.max_points


# --- what is there for an answer, and what is not -----------------------------------------------


def test_only_earlier_references_are_visible():
    """Sources hold every earlier reference, neither this nor a later one."""
    for place in range(-1, len(ALL), 8):
        names = {}
        for module, source in visible_sources(place).items():
            names[module] = {id for node in ast.parse(source).body for id in defined_names(node)}
        assert set().union(*names.values()) & set(ALL) == {*ALL[: place + 1]}
        assert all(id in names[exercises.find(id).module] for id in ALL[: place + 1])


def test_visible_references_have_no_comments():
    """A comment might explain a later exercise."""
    for module, source in visible_sources(len(ALL)).items():
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        assert not any(token.type == tokenize.COMMENT for token in tokens), module


def test_the_box_holds_no_reference_and_no_checker():
    """What lies on its disk names no exercise's solution, no bank and no expected value."""
    files = base_files()
    for name, text in files.items():
        assert not any(f"def {id}(" in text or f"class {id}(" in text for id in ALL), name
        assert not any(word in text for word in ("Mistake(", "= shaped(", "def cases(")), name
    chapters = {f"vitedu/{stem}.py" for stem in "patches attention encoder training vit".split()}
    assert not chapters & set(files) and "vitedu/checks/engine.py" not in files
    assert not any(word in name for word in ("alternatives", "bank", "mistakes") for name in files)


LOOK_AROUND = """
def softmax(x, dim=-1):
    import importlib, os, sys
    import vitedu
    from vitedu.patches import patchify, sincos_positions_2d, tokens_at_224
    assert patchify(torch.zeros(1, 1, 4, 4), 2).shape == (1, 4, 4) and tokens_at_224 == 197
    found = []
    for module, names in {LATER!r}.items():
        for name in names:
            thing = getattr(importlib.import_module(module), name, None)
            if thing is not None and type(thing).__name__ != "Absent":
                found.append(name)
    for module in ("vitedu.checks.attention", "vitedu.checks.engine", "proof.bank", "vitedu.data"):
        try:
            found += [module] if hasattr(importlib.import_module(module), "__file__") else []
        except ImportError:
            pass
    folder = os.path.dirname(vitedu.__file__)
    for path, _, files in os.walk(folder):
        found += [name for name in files if name in ("patches.py", "attention.py", "engine.py")]
    for place in ({HERE!r}, {HERE!r} + "/attention.py", os.path.expanduser("~")):
        try:
            os.listdir(place) if os.path.isdir(place) else open(place).close()
            found += [place] if {HERE!r} in place else []
        except OSError:
            pass
    raise LookupError(f"found: {{found}}")
"""


def test_nothing_to_find_inside(box):
    """An answer that looks for references finds earlier ones alone, on disk and among modules."""
    later = {}
    for exercise in exercises.EXERCISES[ALL.index("softmax") :]:
        later.setdefault(exercise.module, []).append(exercise.id)
    here = str(Path(exercises.__file__).parent)
    source = LOOK_AROUND.replace("{LATER!r}", repr(later)).replace("{HERE!r}", repr(here))
    result = grade(box, "softmax", source.replace("{{found}}", "{found}"))
    if box.level != "full":
        pytest.skip(f"this machine isolates only partly: {box.level}")
    assert "LookupError: found: []" in str(result.lines), result.lines


def test_earlier_answers_are_references_whatever_the_notebook_made_of_them(box):
    """A wrong patchify in the support costs unpatchify nothing; no notebook's check is believed."""
    support = SUPPORT + "def patchify(images, patch_size):\n    return images * 0\n"
    source = reference_source(exercises.find("unpatchify")) + "\nx = torch.ones(1, 1, 4, 4)\n"
    source += "assert torch.equal(unpatchify(patchify(x, 2), 2, (4, 4)), x)"
    assert grade(box, "unpatchify", source, support).state == "passed"
    checked = "\nreport = check(softmax)\nassert report.passed\n"
    checked += "softmax = report.implementation\nhint('softmax')\n"
    right = reference_source(exercises.find("softmax"))
    assert grade(box, "softmax", right + checked).state == "passed"
    assert grade(box, "softmax", wrong("softmax") + checked).points < 4


# --- honest oddities ----------------------------------------------------------------------------

GELU = "def gelu(x):\n    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))\n"
SETTINGS = "torch.set_default_dtype(torch.float64)\ntorch.set_grad_enabled(False)\n"
LOST = "import nothing_such\nfrom nowhere import a, b\n"
ODD = {
    "warnings as errors": (SUPPORT, "import warnings\nwarnings.simplefilter('error')\n"),
    "other settings": (SUPPORT, SETTINGS),
    "support that fails": (f"{LOST}{SUPPORT}data = load_data()\nimport math, no_such\n", ""),
}


@pytest.mark.parametrize(("support", "before"), ODD.values(), ids=ODD)
def test_honest_oddities_have_full_points(box, support, before):
    """What stands around a right answer costs nothing; more of it in ``attacks/honest.toml``."""
    odd = grade(box, "gelu", before + GELU, support)
    assert (odd.state, odd.points) == ("passed", 3), (odd.detail, odd.headline, odd.lines)


@pytest.mark.parametrize("library", ["torchvision", "no_such_library"])
def test_answer_that_needs_another_library_is_not_gradable_and_says_why(box, library):
    """In one state, with one reason, whether or not this machine has the library."""
    sources = (
        f"from {library} import gelu as theirs\ngelu = theirs\n",
        f"import {library}\ndef gelu(x):\n    return {library}.gelu(x)\n",
        f"def gelu(x):\n    import {library}\n    return {library}.gelu(x)\n",
    )
    for source in sources:
        result = grade(box, "gelu", source)
        assert (result.state, result.reason, result.points) == ("not_gradable", "import", None)
        assert f"No module named '{library}'" in result.detail


def test_answer_that_needs_too_much_memory_is_not_gradable(box):
    """Torch refuses 400 GB with an error, which is no wrong answer."""
    result = grade(box, "gelu", "import torch\ndef gelu(x):\n    return torch.zeros(10**11)\n")
    assert (result.state, result.reason) == ("not_gradable", "memory"), result.detail


def test_values_of_all_kinds_have_full_points(box):
    """Tensors, NumPy numbers, lists and capital letters are alike, as in the notebook."""
    numbers = "import numpy as np\n" + SUPPORT
    for source in ("torch.tensor(197)", "np.int64(197)", "196 + 1.0"):
        assert grade(box, "tokens_at_224", f"tokens_at_224 = {source}", numbers).state == "passed"
    for source in ("[False, True]", "(np.bool_(False), True)", "torch.tensor([False, True])"):
        value = grade(box, "order_blindness", f"order_blindness = {source}", numbers)
        assert value.state == "passed", (source, value.lines)


def test_a_real_earlier_class_serves_a_later_answer(box):
    """A block is built of what the notebook imports, by alias and inside functions too."""
    source = reference_source(exercises.find("EncoderBlock"))
    source = source.replace("MultiHeadAttention(", "attention_module.MultiHeadAttention(")
    support = "import torch\nfrom torch import nn\n"
    support += "import vitedu.attention as attention_module\nfrom vitedu.encoder import *\n"
    assert grade(box, "EncoderBlock", source, support).state == "passed"


@pytest.mark.parametrize(
    ("source", "state", "points"),
    [
        ("stem_tokens = 784", "passed", 2),
        ("stem_tokens = (224 // 8) ** 2  # three halvings", "passed", 2),
        ("stem_tokens = 783", "failed", 0),
        ("stem_tokens = 'many'", "failed", 0),
    ],
)
def test_a_value_is_judged_once(box, source, state, points):
    """It has no draws; the verdict is that of the checker."""
    result = grade(box, "stem_tokens", source, runs=3)
    assert (result.state, result.points, result.runs) == (state, points, 1)


def test_no_reply_is_kept_that_no_frame_could_be():
    """What a line takes in and what a frame may hold are one number: memory rests on it."""
    assert Limits().reply_mb * MB == wire.MAX_FRAME
