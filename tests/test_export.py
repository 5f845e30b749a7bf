"""vitedu.exporting: ``my_vit.py`` holds the student's own parts, works, and says what is whose."""

import importlib
import itertools
import json
import linecache
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch
from proof.entries import entry_of
from torch import nn

import vitedu
from vitedu import check
from vitedu.__main__ import main
from vitedu.course import results
from vitedu.course.references import reference_source
from vitedu.exercises import BY_ID
from vitedu.exporting import importing, parts, trial
from vitedu.exporting.export import ExportError, export_model
from vitedu.exporting.source import Unreadable, collect
from vitedu.vit import PRESETS, VisionTransformer, ViTConfig

HEAD = "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
BLOCKED = ("vitedu", "torchvision", "safetensors", "einops", "timm")
MODEL = [exercise.id for exercise in parts.PARTS if exercise.part == "model"]
numbers = itertools.count()

ATTENTION = """
def scaled_dot_product_attention(q, k, v):
    # my own way
    weights = softmax(q @ k.mT / math.sqrt(q.shape[-1]))
    return weights @ v, weights
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Give a student's folder, in which texts are stored."""
    monkeypatch.delenv("VITEDU_KEEP_SOURCES")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("my_vit", None)


def own(folder, text):
    """Import a text as a file of the student."""
    name = f"mine_{next(numbers)}"
    (folder / f"{name}.py").write_text(HEAD + text, encoding="utf-8")
    importlib.invalidate_caches()
    return importlib.import_module(name)


def write(folder, text, *ids):
    """Check definitions of a text; give ``my_vit.py``."""
    module = own(folder, text)
    for name in ids:
        assert check(getattr(module, name)).passed
    return (folder / "my_vit.py").read_text("utf-8")


def read(answer, exercise):
    """Collect the text of an answer that calls parts of the package."""
    return collect(answer, exercise, lambda name, value: "vitedu" in (value.__module__ or ""))


def module_of(text):
    """Run a file and give it as a module."""
    module = types.ModuleType("exported")
    sys.modules["exported"] = module
    exec(compile(text, "my_vit.py", "exec"), vars(module))
    return module


def mark(text, number):
    """Give the mark of a part, in one line."""
    found = re.search(rf"^# {re.escape(number)}, (.*(?:\n#   .*)*)", text, flags=re.M)[1]
    return re.sub(r"\n# +", " ", found)


def largest_error(module, config):
    """Compare logits with the package's, for the same weights."""
    torch.manual_seed(0)
    ours, mine = VisionTransformer(config).eval(), module.VisionTransformer(config).eval()
    for parameter in ours.parameters():
        nn.init.normal_(parameter, std=0.1)
    mine.load_state_dict(ours.state_dict())
    images = torch.randn(2, 3, config.image_size, config.image_size)
    with torch.no_grad():
        return (ours(images) - mine(images)).abs().max().item()


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """Give (folder, text) of a solved course: right answers in other styles, all parts called."""
    folder = tmp_path_factory.mktemp("solved")
    wanted = {"PatchEmbed": "ByProduct", "MultiHeadAttention": "OfParts", "Mlp": "WithOwnGelu"}
    wanted |= {"train_one_epoch": "with_closure", "random_crop_flip": "by_loop"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VITEDU_HOME", str(folder / "home"))
        patch.delenv("VITEDU_KEEP_SOURCES")
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        for exercise in parts.PARTS:
            if exercise.id == "scaled_dot_product_attention":
                answer = own(folder, f"from vitedu.attention import softmax\n{ATTENTION}")
                answer = answer.scaled_dot_product_attention
            elif exercise.id == "VisionTransformer":
                names = "vit import ViTConfig, initialise, BlockWithoutBias, EncoderBlock"
                head = f"from vitedu.{names}\nfrom vitedu.patches import *\n"
                answer = own(folder, head + reference_source(exercise)).VisionTransformer
            else:
                right = entry_of(exercise.id).right
                names = [each.__name__ for each in right]
                name = wanted.get(exercise.id, names[0])
                path = Path(__file__).parent / f"proof/{exercise.chapter}/{exercise.file_stem}.py"
                answer = getattr(own(folder, path.read_text("utf-8")), name)
            assert check(answer, exercise.id).passed, exercise.id
        text = export_model().read_text("utf-8")
    return folder, text


def test_solved_course_is_the_student_s_own_and_gives_the_package_s_logits(solved):
    """All twenty parts are his; logits to 1e-5 at the sizes of two presets; the same keys."""
    folder, text = solved
    marks = [mark(text, exercise.number) for exercise in parts.PARTS]
    assert len(marks) == 20 and all(words.startswith("yours") for words in marks), marks
    assert not any("not called" in words for words in marks[:13]), marks
    module = module_of(text)
    for name in ("vit_pico_patch4_32", "vit_micro_patch8_32"):
        assert largest_error(module, PRESETS[name]) < 1e-5
    small = ViTConfig(embed_dim=32, depth=1, num_heads=2, qkv_bias=False)
    assert largest_error(module, small) < 1e-5
    assert module.ViTConfig() == module.ViTConfig(embed_dim=96, depth=4, num_heads=3)
    fields = ("num_patches", "num_tokens", "num_prefix_tokens", "grid_size")
    pico = PRESETS["vit_pico_patch4_32"]
    assert [getattr(module.ViTConfig(), f) for f in fields] == [getattr(pico, f) for f in fields]
    assert "# my own way" in text


@pytest.mark.parametrize("name", MODEL)
def test_zeros_in_place_of_a_part_change_the_logits(solved, name):
    """So every part of the model really runs."""
    module = module_of(solved[1])
    torch.manual_seed(0)
    images = torch.randn(2, 3, 32, 32)
    model = module.VisionTransformer(module.ViTConfig())
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.1)
    with torch.no_grad():
        before = model(images)
        part = getattr(module, name)

        whole = getattr(part, "forward", part)

        def zeros(*arguments, **options):
            result = whole(*arguments, **options)
            return tuple(r * 0 for r in result) if isinstance(result, tuple) else result * 0

        if isinstance(part, type):
            part.forward = zeros
        else:
            setattr(module, name, zeros)
        assert not torch.allclose(model(images), before)


def test_file_runs_alone_and_trains_and_names(solved, tmp_path):
    """With every library but torch and Pillow away: --test, one epoch on a folder, a photograph."""
    from PIL import Image

    (tmp_path / "my_vit.py").write_text(solved[1], "utf-8")
    for kind in ("dark", "light"):
        (tmp_path / "photos" / kind).mkdir(parents=True)
        for i in range(8):
            shade = (10 + i, 20, 30) if kind == "dark" else (240 - i, 230, 220)
            Image.new("RGB", (40, 36), shade).save(tmp_path / "photos" / kind / f"{i}.png")
    Image.new("CMYK", (50, 40), (9, 9, 9, 9)).save(tmp_path / "light.jpg")
    code = f"import sys, runpy\nfor n in {BLOCKED}: sys.modules[n] = None\n"
    code += "del sys.argv[0]\nrunpy.run_path('my_vit.py', run_name='__main__')"

    def run(*words):
        command = [sys.executable, "-c", code, "my_vit.py", *words]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, env=environment
        )

    done = run("light.jpg")
    assert done.returncode and "There are no weights in" in done.stderr
    done = run("--test")
    assert not done.returncode and "costs ln 10 = 2.303" in done.stdout, done.stderr
    assert "without a gradient: no parameter" in done.stdout
    done = run("--train", "photos", "--epochs", "3")
    assert not done.returncode and "epoch 3: loss" in done.stdout, done.stderr
    done = run("light.jpg")
    assert done.stdout.splitlines()[0].endswith("light"), done.stderr


def test_weights_in_half_precision_fit(solved, tmp_path):
    """A safetensors file of the package's own model, in float16, loads by --weights."""
    from safetensors.torch import save_file

    (tmp_path / "my_vit.py").write_text(solved[1], "utf-8")
    model = VisionTransformer(PRESETS["vit_pico_patch4_32"]).half()
    save_file(model.state_dict(), tmp_path / "pico.safetensors")
    module = module_of(solved[1])
    module.__file__ = str(tmp_path / "my_vit.py")
    loaded, size, names = module._load(str(tmp_path / "pico.safetensors"))
    assert torch.equal(loaded.head.weight, model.head.weight.float())
    assert (size, len(names)) == (32, 10)
    (tmp_path / "bad").write_text("no picture, and no weights")
    with pytest.raises(SystemExit, match="bad cannot be read as a photograph"):
        module._read(tmp_path / "bad", 32)
    with pytest.raises(SystemExit, match="nowhere needs one folder of images for each class"):
        module._train(tmp_path / "nowhere", 1)
    with pytest.raises(SystemExit, match="bad cannot be read as weights"):
        module._load(str(tmp_path / "bad"))
    save_file(VisionTransformer(ViTConfig()).state_dict(), tmp_path / "large.safetensors")
    with pytest.raises(SystemExit, match="does not fit ViTConfig above: size mismatch"):
        module._load(str(tmp_path / "large.safetensors"))


def test_check_of_the_file_passes_part_by_part(solved, capsys):
    """``vitedu check my_vit.py`` judges all twenty parts, and no file beside it changes."""
    folder, text = solved
    assert main(["check", str(folder / "my_vit.py")]) == 0, capsys.readouterr().out
    assert capsys.readouterr().out.count("  passed") == 20
    assert (folder / "my_vit.py").read_text("utf-8") == text


def test_half_solved_course_marks_what_is_open(folder, capsys):
    """His parts beside the reference's; the docstring of the stub is one line; logits agree."""
    stub = '''
def softmax(x: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """Turn scores into weights: positive, and summing to 1 along ``dim``.

    Args:
        x: scores of any shape.
    """
    e = (x - x.amax(dim, keepdim=True)).exp()  # größer als 0
    return e / e.sum(dim, keepdim=True)
'''
    text = write(folder, stub + ATTENTION, "softmax", "scaled_dot_product_attention")
    assert mark(text, "2.1") == "yours" and mark(text, "3.2") == "the reference's: still open"
    assert 'along ``dim``."""\n    e = ' in text and "größer" in text
    assert largest_error(module_of(text), PRESETS["vit_pico_patch4_32"]) < 1e-5
    assert "1 of 13 parts of the model" in capsys.readouterr().out
    export_model()
    assert "2 of 13 parts of the model and 0 of 7" in capsys.readouterr().out


def test_template_alone_is_the_reference():
    """Nothing solved: no fault, no idle part."""
    made = parts.make_parts({}, {})
    assert (trial.find_fault(made), trial.find_idle(made)) == ("", {})


BROUGHT = {
    "lambda and alias": "my_gelu = lambda x: x * (1 + torch.erf(x / 2**0.5)) / 2\ngelu = my_gelu",
    "constant": "HALF = 0.5\ndef gelu(x):\n    return HALF * x * (1 + torch.erf(x / 2**0.5))",
    "decorator and mixin": """
def loud(function):
    import functools
    @functools.wraps(function)
    def inner(*a): return function(*a)
    return inner
@loud
def gelu(x): return x * (1 + torch.erf(x / 2**0.5)) / 2""",
    "in an if, after another": """
def gelu(x): return x
if True:
    def gelu(x: "Größe") -> Unknown:
        '''Ä'''; y = torch.erf(x / 2**0.5); return x * (1 + y) / 2""".replace(" -> Unknown", ""),
    "renamed import": "from math import sqrt as root\nimport torch as t\n"
    "def gelu(x): return x * (1 + t.erf(x / root(2))) / 2",
    "two in one line": "import math; gelu = lambda x: x * (1 + torch.erf(x / 2**0.5)) / 2; y = 1",
}


@pytest.mark.parametrize("case", BROUGHT)
def test_what_an_answer_names_comes_along(folder, case):
    """The text stands alone and computes what the answer computes."""
    answer = own(folder, BROUGHT[case]).gelu
    text = collect(answer, "gelu", lambda name, value: False)
    scope = {}
    exec(text, scope)
    x = torch.linspace(-3, 3, 7)
    assert torch.equal(scope["gelu"](x), answer(x))
    assert trial.find_fault(parts.make_parts({"gelu": text}, {})) == ""


REFUSED = {
    "the notebook's TABLE, a Tensor": "TABLE = torch.ones(1)\ndef gelu(x): return x * TABLE",
    "made inside a function": "def make(n):\n    def gelu(x): return x * n\n    return gelu\n"
    "gelu = make(2)",
    "the notebook's gelu, a partial|is a partial": "import functools\n"
    "gelu = functools.partial(F.gelu, approximate='none')",
    "no text of yours": "gelu = F.gelu",
    "cannot be found": "exec('def gelu(x): return F.gelu(x)')",
    "vitedu.training.reflect|builds on vitedu": "from vitedu.files import data_folder\n"
    "def gelu(x): return data_folder()",
    "which is not defined": "def gelu(x): return nowhere(x)",
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_no_text_can_bring_has_its_reason(folder, reason):
    """The reference stands in its place then, and the reason is in the mark."""
    with pytest.raises(Unreadable, match=reason):
        collect(own(folder, REFUSED[reason]).gelu, "gelu", lambda name, value: False)


def test_a_method_replaced_later_is_not_exported(folder):
    """What is found must be what runs."""
    text = "class Mlp(nn.Module):\n    def forward(self, x): return x\n"
    cls = own(folder, text).Mlp
    assert collect(cls, "Mlp", lambda name, value: False).endswith(text)
    cls.forward = lambda self, x: 2 * x
    with pytest.raises(Unreadable, match="text of Mlp that runs cannot be found"):
        collect(cls, "Mlp", lambda name, value: False)


def test_fault_falls_back_with_its_reason(folder, capsys):
    """A right answer that cannot run without gradients gives way to the reference, with a word."""
    path = Path(__file__).parent / "proof/attention/softmax.py"
    assert check(own(folder, path.read_text("utf-8")).as_gradient, "softmax").passed
    said = "the reference's: yours passed, but with it the file ends in RuntimeError: element 0"
    assert mark((folder / "my_vit.py").read_text("utf-8"), "2.1").startswith(said)
    assert "my_vit.py keeps the reference's softmax: yours passed" in capsys.readouterr().out


def test_idle_parts_say_so(folder):
    """Attention that calls torch's softmax; a part whose caller is idle names that one."""
    body = "    w = torch.softmax(q @ k.mT / k.shape[-1] ** 0.5, -1)\n    return w @ v, w\n"
    attention = own(folder, f"def scaled_dot_product_attention(q, k, v):\n{body}")
    name = "scaled_dot_product_attention"
    text = read(attention.scaled_dot_product_attention, name)
    why = {"softmax": f"your {name} uses torch.softmax"}
    assert trial.find_idle(parts.make_parts({name: text}, {})) == why
    path = Path(__file__).parent / "proof/attention/multi_head_attention.py"
    text = read(own(folder, path.read_text("utf-8")).AsInTimm, "MultiHeadAttention")
    idle = trial.find_idle(parts.make_parts({"MultiHeadAttention": text}, {}))
    assert idle["softmax"] == f"your MultiHeadAttention does without {name}"


def test_layers_of_torch_are_read_as_the_file_s_own():
    """nn.LayerNorm and nn.GELU, but not the GELU with tanh; and the mark says so."""
    mlp = """import torch
from torch import nn
class Mlp(nn.Module):
    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(embed_dim, hidden_dim), nn.Linear(hidden_dim, embed_dim)
        self.act = nn.GELU({})
    def forward(self, x): return self.fc2(self.act(self.fc1(x)))
"""
    part = parts.make_parts({"Mlp": mlp.format("")}, {})["Mlp"]
    assert "self.act = GELU()" in part.text
    assert part.mark == "# 3.8, yours; nn.GELU is read as the file's GELU"
    part = parts.make_parts({"Mlp": mlp.format("approximate='tanh'")}, {})["Mlp"]
    assert "nn.GELU(approximate='tanh')" in part.text and part.notes == []


SOFTMAX = "def softmax(x, dim=-1):\n    e = helper(x)\n    return e / e.sum(dim, keepdim=True)\n"
GELU = "def gelu(x):\n    return helper(x)\n"
CLASHES = {
    "helper in your gelu is not the one of your softmax: give helper another name": (
        f"def helper(x): return x.exp()\n{SOFTMAX}",
        f"def helper(x): return F.gelu(x)\n{GELU}",
    ),
    "helper in your gelu is not the one of your softmax": (
        f"import math as helper\n{SOFTMAX}",
        f"import cmath as helper\n{GELU}",
    ),
    "initialise in your softmax is not what my_vit.py itself calls so": (
        f"def initialise(x): return x\n{SOFTMAX.replace('helper', 'initialise')}",
        GELU.replace("helper", "torch.relu"),
    ),
}


@pytest.mark.parametrize("words", CLASHES)
def test_one_name_for_two_things_is_an_error(words):
    """It says which name to change, and where."""
    softmax, gelu = CLASHES[words]
    with pytest.raises(ExportError, match=words):
        parts.make_parts({"softmax": softmax, "gelu": gelu}, {})


def test_equal_helpers_stand_once_and_a_foreign_part_is_not_replaced():
    """A gelu inside the text of 2.1 that is not the one of 3.2 makes 2.1 fall back."""
    helper = "def helper(x): return x.exp()\n"
    text = parts.assemble(
        parts.make_parts({"softmax": helper + SOFTMAX, "gelu": helper + GELU}, {})
    )
    assert text.count("def helper") == 1
    inside = SOFTMAX.replace("helper", "gelu")
    answers = {"softmax": f"def gelu(x): return x.exp()\n{inside}", "gelu": helper + GELU}
    part = parts.make_parts(answers, {})["softmax"]
    assert not part.is_yours and "a gelu that is not the one of 3.2 gelu: rename it" in part.mark
    answers["softmax"] = helper + GELU + inside  # his own gelu of 3.2, after a restart
    part = parts.make_parts(answers, {})["softmax"]
    assert part.is_yours and "def gelu" not in part.text


def test_clash_leaves_verdict_and_file(folder, capsys):
    """``check`` prints one line; ``export`` is a wrong use."""
    one = "def helper(x): return x - x.amax(-1, keepdim=True)\n"
    softmax = SOFTMAX.replace("helper(x)", "(x - x.amax(dim, keepdim=True) + 0 * len(LIST)).exp()")
    before = write(folder, f"LIST = [1, 2]\n{softmax}", "softmax")
    capsys.readouterr()
    gelu = "def gelu(x): return x * (1 + torch.erf(x / LIST**0.5)) / 2\n"
    after = write(folder, f"{one}LIST = 2\n{gelu}", "gelu")
    out = capsys.readouterr().out
    assert "my_vit.py stays as it was: LIST in your gelu is not the one of your softmax" in out
    assert before == after
    assert main(["export"]) == 2
    assert "LIST in your gelu" in capsys.readouterr().err


def test_edited_file_is_never_written_over(folder, capsys):
    """A new one stands beside it; export asks for --force."""
    solved = "def gelu(x): return x * (1 + torch.erf(x / 2**0.5)) / 2\n"
    write(folder, solved, "gelu")
    mine, beside = folder / "my_vit.py", folder / "my_vit_new.py"
    edited = mine.read_text("utf-8").replace("embed_dim: int = 96", "embed_dim: int = 48")
    mine.write_text(edited, "utf-8")
    heads = "def merge_heads(x): return x.transpose(1, 2).flatten(2)\n"
    assert write(folder, heads, "merge_heads") == edited
    assert mark(beside.read_text("utf-8"), "2.4") == "yours"
    assert "You edited my_vit.py, so it stays as it is" in capsys.readouterr().out
    assert main(["export"]) == 2 and "--force" in capsys.readouterr().err
    beside.write_text("mine too")
    assert write(folder, heads, "merge_heads") == edited and beside.read_text() == "mine too"
    assert "you edited my_vit.py and my_vit_new.py" in capsys.readouterr().out
    assert main(["export", "--force"]) == 0
    assert mark(mine.read_text("utf-8"), "2.4") == "yours"
    mine.write_bytes(mine.read_bytes().replace(b"\n", b"\r\n"))  # an editor of Windows
    assert main(["export"]) == 0
    assert main(["export", "other.py"]) == 0 and (folder / "other.py").is_file()


def test_folder_that_cannot_be_written_is_one_line(folder, capsys):
    """Neither a check nor an export ends in a traceback."""
    (folder / "file").write_text("")
    assert main(["export", "file/my_vit.py"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_setting_keeps_nothing_and_reset_forgets(folder, monkeypatch):
    """VITEDU_KEEP_SOURCES=0 stores no text and writes no file; ``reset`` forgets the text."""
    solved = "def gelu(x): return x * (1 + torch.erf(x / 2**0.5)) / 2\n"
    write(folder, solved, "gelu")
    assert results.load()["gelu"]["source"]["text"].endswith(solved)
    vitedu.reset("gelu")
    assert "gelu" not in results.load()
    assert mark(export_model().read_text("utf-8"), "3.2") == "the reference's: still open"
    monkeypatch.setenv("VITEDU_KEEP_SOURCES", "0")
    (folder / "my_vit.py").unlink()
    assert check(own(folder, solved).gelu).passed
    assert "source" not in results.load()["gelu"] and not (folder / "my_vit.py").exists()
    text = export_model().read_text("utf-8")
    assert mark(text, "3.2").endswith("yours passed, but its text is not stored: check it again")


def test_import_follows_each_version(folder, capsys, monkeypatch):
    """Also from another folder, and after a rewrite of equal size within the same second."""
    monkeypatch.setattr(sys, "meta_path", [importing.Finder, *sys.meta_path])
    solved = "def gelu(x): return x * (1 + torch.erf(x / 2**0.5)) / 2  # A\n"
    write(folder, solved, "gelu")
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    first = importlib.import_module("my_vit").gelu

    assert (
        f"{folder / 'my_vit.py'} holds your 3.2 and the reference's 1.1, 1.10,"
        in capsys.readouterr().out
    )
    monkeypatch.chdir(folder)
    write(folder, solved.replace("# A", "# B"), "gelu")
    second = importlib.import_module("my_vit").gelu

    for function, letter in ((first, "A"), (second, "B")):
        line = function.__code__.co_firstlineno
        assert linecache.getline(function.__code__.co_filename, line).endswith(f"# {letter}\n")
    block = own(folder, "from my_vit import gelu as g\ndef gelu(x): return g(x)\n").gelu
    with pytest.raises(Unreadable, match="two things called gelu: rename one"):
        collect(block, "gelu", lambda name, value: False)
    helper = own(folder, "from my_vit import gelu as g\ndef softmax(x): return g(x)\n").softmax
    text = collect(helper, "softmax", lambda name, value: False)
    assert "return x * (1 + torch.erf" in text and text.endswith("def softmax(x): return g(x)\n")


CELLS = [
    HEAD + "from vitedu import check",
    "def softmax(x, dim=-1): return x",
    "%%capture\ndef softmax(x, dim=-1):\n    e = (x - x.amax(dim, keepdim=True)).exp()\n"
    "    return e / e.sum(dim, keepdim=True)\n",
    "!true\ngelu = lambda x: x * (1 + torch.erf(x / 2**0.5)) / 2; r = check(gelu, 'gelu')",
    "r = check(softmax)",
    "class Base(nn.Module):\n    pass",
    "class Mlp(Base):\n    def __init__(self, embed_dim, hidden_dim):\n        super().__init__()\n"
    "        self.fc1 = nn.Linear(embed_dim, hidden_dim)\n"
    "        self.fc2 = nn.Linear(hidden_dim, embed_dim)\n"
    "    def forward(self, x):\n        return self.fc2(gelu(self.fc1(x)))\nr = check(Mlp)",
    "%%time\ndef merge_heads(x): return x.transpose(1, 2).flatten(2)",
    "r = check(merge_heads)",
    "from my_vit import Mlp as M; print(M)",
]


def test_cells_of_a_notebook(folder):
    """Classes with and without methods, magics, an older text; a class's text has no source."""
    code = f"""
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in {CELLS!r}:
    result = shell.run_cell(cell, store_history=True)
    result.raise_error()
"""
    environment = os.environ | {"PYTHONPATH": str(Path(vitedu.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    text = (folder / "my_vit.py").read_text("utf-8")
    assert [mark(text, number) for number in ("2.1", "3.2", "3.8")] == ["yours"] * 3
    assert "class Base(nn.Module):\n    pass\n" in text
    assert "yours passed, but the text of merge_heads" in mark(text, "2.4")
    assert "<class 'my_vit.Mlp'>" in done.stdout
    stored = json.loads(next(Path(os.environ["VITEDU_HOME"]).glob("*.json")).read_text("utf-8"))
    assert "softmax" in stored["exercises"] and BY_ID["softmax"].part == "model"


def test_trial_leaves_the_process_as_it_was():
    """Random numbers, default dtype, profile and modules; it works under other defaults too."""
    made, before = parts.make_parts({}, {}), torch.get_rng_state()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad(), torch.device("meta"):
            assert trial.find_fault(made) == "" and trial.find_idle(made) == {}
        assert torch.get_default_dtype() is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(torch.get_rng_state(), before)
    assert trial.NAME not in sys.modules


def test_pixels_are_normalised_as_the_shipped_models_were_trained():
    """Mean and deviation in the file are those of the photographs that the package ships."""
    from vitedu.data import cifar10
    from vitedu.exporting import parts

    text = (Path(parts.__file__).parent / "my_vit.txt").read_text("utf-8")
    assert f"_MEAN, _STD = {cifar10.MEAN}, {cifar10.STD}" in text
