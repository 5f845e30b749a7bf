"""vitedu.exporting: ``my_vit.py`` holds the student's own parts, works, and says what is whose."""

import ast
import importlib
import itertools
import json
import linecache
import os
import re
import subprocess
import sys
import types
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from proof.entries import entry_of
from torch import nn

import vitedu
from vitedu import attention, check
from vitedu.__main__ import main
from vitedu.course import results
from vitedu.course.references import defined_names, reference_source
from vitedu.data import cifar10
from vitedu.data.image_folder import read_photo, to_square
from vitedu.data.photograph import square_photograph
from vitedu.exercises import BY_ID
from vitedu.exporting import export, importing, parts, trial
from vitedu.exporting.export import _is_in_file, export_model
from vitedu.exporting.source import Unreadable, collect
from vitedu.fitting.checkpoints import save_checkpoint
from vitedu.pretrained import reading
from vitedu.pretrained.loading import load_pretrained
from vitedu.pretrained.published import preprocessing
from vitedu.vit import PRESETS, VisionTransformer, ViTConfig

pytestmark = pytest.mark.slow  # the file runs and trains

HEAD = "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
BLOCKED = ("vitedu", "torchvision", "safetensors", "einops", "timm")
numbers = itertools.count()

SOLVED = "def gelu(x): return x * (1 + torch.erf(x / 2**0.5)) / 2\n"
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


def pieces(text):
    """Split a text into statements, by the names that they define."""
    found = {}
    for node in ast.parse(text).body:
        names = [alias.asname or alias.name for alias in getattr(node, "names", [])]
        for name in names or defined_names(node):
            found[name] = ast.unparse(node)
    return found


def read(answer, exercise):
    """Collect the statements of an answer that calls parts of the package."""
    return collect(answer, exercise, _is_in_file)


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
        for exercise in parts.PARTS.values():
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
    marks = [mark(text, exercise.number) for exercise in parts.PARTS.values()]
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


DEED = """
import contextlib, io, torch
def deed(module):
    torch.manual_seed(0)
    model = module.VisionTransformer(module.ViTConfig(depth=1, embed_dim=12))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    images, labels = torch.randint(256, (20, 3, 32, 32)).byte(), torch.arange(20) % 2
    with contextlib.redirect_stdout(io.StringIO()) as said:
        module.train_and_measure(model, images, labels, 2)
    return said.getvalue(), [parameter.tolist() for parameter in model.parameters()]
"""


def zeros_like(result):
    """Give the same shape of result with zeros in it."""
    if isinstance(result, dict):
        return {k: v if k == "params" else zeros_like(v) for k, v in result.items()}
    if isinstance(result, list | tuple):
        return type(result)(map(zeros_like, result))
    return result * 0


@pytest.mark.parametrize("name", parts.PARTS)
def test_a_part_that_passed_alone_is_called(name):
    """Nineteen parts come from the package, and zeros in the twentieth change a run."""
    made = parts.make_parts({name: {name: parts.reference_part(name)}}, {})
    text = parts.assemble(made)
    assert text.count(" is still open\n") == 19
    scope = {}
    exec(DEED, scope)
    before = scope["deed"](module_of(text))
    module = module_of(text)
    part = getattr(module, name)
    whole = getattr(part, "forward", part)
    setattr(
        part if isinstance(part, type) else module,
        "forward" if isinstance(part, type) else name,
        lambda *arguments, **options: zeros_like(whole(*arguments, **options)),
    )
    assert scope["deed"](module) != before


def test_file_holds_no_text_of_an_open_exercise(folder):
    """Of each reference its longest line is looked for; --complete has them all, marked."""
    text = write(folder, SOLVED, "gelu")
    complete = export_model(complete=True)
    assert complete.name == "my_vit_complete.py" and "vitedu has" not in complete.read_text("utf-8")
    for name in parts.PARTS.keys() - {"gelu"}:
        body = parts.reference_part(name).split('"""')[-1]
        longest = max(body.splitlines(), key=len)
        assert longest not in text and longest in complete.read_text("utf-8"), name
    assert "it also needs vitedu" in text
    assert largest_error(module_of(complete.read_text("utf-8")), ViTConfig(depth=1)) < 1e-5


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

    done = run("--test")
    assert not done.returncode and "costs ln 10 = 2.303" in done.stdout, done.stderr
    assert "without a gradient: none" in done.stdout
    done = run("--train", "photos", "--epochs", "3")
    assert not done.returncode and "epoch 3: loss" in done.stdout, done.stderr
    done = run("light.jpg")
    assert done.stdout.splitlines()[0].endswith("light"), done.stderr


def test_one_photograph_has_one_answer_in_four_ways(solved, tmp_path):
    """Of the package, of predict, of published weights and of the student's file."""
    from PIL import Image

    large = Image.fromarray(square_photograph("chelsea", 224).transpose(1, 2, 0)).resize(
        (1500, 1200)
    )
    large.save(path := tmp_path / "cat.jpg", quality=95)
    name = f"vit_pico_patch4_32{reading.SHIPPED}"
    model, about = module_of(solved[1]).load_model(reading.FOLDER / name)
    mine = module_of(solved[1])
    ways = [
        torch.tensor(square_photograph(path, 32)),
        torch.tensor(read_photo(path, lambda photo: to_square(photo, 32))).permute(2, 0, 1),
        mine.read_photo(path, 32),
    ]
    images = [mine.normalise_pixels(each, **statistics(about)) for each in ways]
    with Image.open(path) as photo:
        images.append(preprocessing(name)(photo))
    with torch.no_grad():
        logits = [model(image[None]) for image in images]
    assert all((each - logits[0]).abs().max() < 1e-4 for each in logits)


def statistics(about):
    """Give the mean and deviation of a model's images."""
    return {name: about["data"][name] for name in ("mean", "std")}


def save_run(folder, model):
    """Write weights as a run of ``vitedu train`` and the shipped models have them."""
    about = {"class_names": list(cifar10.CLASS_NAMES), "mean": cifar10.MEAN, "std": cifar10.STD}
    save_checkpoint(folder, model.half(), {"model": asdict(model.config), "data": about})


def test_weights_of_the_package_load_in_half_precision(solved, tmp_path):
    """A folder of weights and their description; what cannot be used is one line."""
    module = module_of(solved[1])
    ours = VisionTransformer(PRESETS["vit_tiny_patch4_32"])
    save_run(tmp_path / "tiny", ours)
    loaded, about = module.load_model(tmp_path / "tiny")
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        assert torch.allclose(loaded(images), ours.float().eval()(images), atol=1e-5)
    assert about["data"]["class_names"][9] == "truck" and not loaded.training
    textbook = [f"vit_{size}_patch4_32{reading.SHIPPED}" for size in ("pico", "tiny")]
    for name in reading.shipped_models().keys() & set(textbook):
        loaded, about = module.load_model(reading.FOLDER / name)
        normalised = module.normalise_pixels(images * 60 + 120, **statistics(about))
        with torch.no_grad():
            difference = loaded(normalised) - load_pretrained(name)(normalised)
        assert difference.abs().max() < 1e-5, name
    (tmp_path / "bad").write_text("no picture, and no weights")
    with pytest.raises(SystemExit, match="bad cannot be read as a photograph"):
        module.read_photo(tmp_path / "bad", 32)
    with pytest.raises(SystemExit, match="nowhere needs one folder of images for each class"):
        module.train_on_folder(tmp_path / "nowhere", 1, tmp_path / "weights.pt")
    with pytest.raises(SystemExit, match="There are no weights in .*nowhere"):
        module.load_model(tmp_path / "nowhere")
    with pytest.raises(SystemExit, match="bad cannot be used: "):
        module.load_model(tmp_path / "bad")
    shorter = VisionTransformer(ViTConfig(depth=1))
    shorter.config = ours.config
    save_run(tmp_path / "other", shorter)
    with pytest.raises(SystemExit, match="other/model.safetensors cannot be used: Missing"):
        module.load_model(tmp_path / "other")


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
    """Turn scores into weights: not negative, and summing to 1 along ``dim``.

    Args:
        x: scores of any shape.
    """
    e = (x - x.amax(dim, keepdim=True)).exp()  # größer als 0
    return e / e.sum(dim, keepdim=True)
'''
    text = write(folder, stub + ATTENTION, "softmax", "scaled_dot_product_attention")
    assert mark(text, "2.1") == "yours"
    assert "\nfrom vitedu.encoder import gelu  # 3.2 is still open\n" in text
    assert 'EncoderBlock = course_part("EncoderBlock", globals())  # 3.4 is still open' in text
    assert 'along ``dim``."""\n    e = ' in text and "größer" in text
    assert largest_error(module_of(text), PRESETS["vit_pico_patch4_32"]) < 1e-5
    assert "my_vit.py: 1 of its 20 parts are yours." in capsys.readouterr().out
    export_model()
    assert "my_vit.py: 2 of its 20 parts are yours." in capsys.readouterr().out


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
    statements, scope = collect(answer, "gelu", lambda name, value: False), {}
    exec("\n".join(statements.values()), scope)
    x = torch.linspace(-3, 3, 7)
    assert torch.equal(scope["gelu"](x), answer(x))
    assert trial.try_parts(parts.make_parts({"gelu": statements}, {})).fault == ""


REFUSED = {
    "the notebook's TABLE, a Tensor": "TABLE = torch.ones(1)\ndef gelu(x): return x * TABLE",
    "made inside a function": "def make(n):\n    def gelu(x): return x * n\n    return gelu\n"
    "gelu = make(2)",
    "the notebook's gelu, a partial|is a partial": "import functools\n"
    "gelu = functools.partial(F.gelu, approximate='none')",
    "no text of yours": "gelu = F.gelu",
    "cannot be found": "exec('def gelu(x): return F.gelu(x)')",
    "vitedu.training.reflect|builds on vitedu": "from vitedu.ground.files import data_folder\n"
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
    assert collect(cls, "Mlp", lambda name, value: False)["Mlp"] == text.rstrip()
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
    part = parts.make_parts({"Mlp": pieces(mlp.format(""))}, {})["Mlp"]
    assert "self.act = GELU()" in part.statements["Mlp"]
    assert part.mark == "# 3.3, yours; nn.GELU is read as the file's GELU"
    part = parts.make_parts({"Mlp": pieces(mlp.format("approximate='tanh'"))}, {})["Mlp"]
    assert "nn.GELU(approximate='tanh')" in part.statements["Mlp"] and part.notes == []


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
    with pytest.raises(parts.ExportError, match=words):
        parts.make_parts({"softmax": pieces(softmax), "gelu": pieces(gelu)}, {})


def test_equal_helpers_stand_once_and_a_foreign_part_is_not_replaced():
    """A gelu inside the text of 2.1 that is not the one of 3.2 makes 2.1 fall back."""
    helper = "def helper(x): return x.exp()\n"
    text = parts.assemble(
        parts.make_parts({"softmax": pieces(helper + SOFTMAX), "gelu": pieces(helper + GELU)}, {})
    )
    assert text.count("def helper") == 1
    inside = SOFTMAX.replace("helper", "gelu")
    foreign = pieces(f"def gelu(x): return x.exp()\n{inside}")
    answers = {"softmax": foreign, "gelu": pieces(helper + GELU)}
    part = parts.make_parts(answers, {})["softmax"]
    assert not part.is_yours and "a gelu that is not the one of 3.2 gelu: rename it" in part.mark
    # his own gelu of 3.2, after a restart
    answers["softmax"] = pieces(helper + GELU + inside)
    part = parts.make_parts(answers, {})["softmax"]
    assert part.is_yours and "gelu" not in part.statements


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
    """A check says so once; export asks for --force or another name."""
    write(folder, SOLVED, "gelu")
    mine = folder / "my_vit.py"
    edited = mine.read_text("utf-8").replace("embed_dim: int = 96", "embed_dim: int = 48")
    mine.write_text(edited, "utf-8")
    heads = "def merge_heads(x): return x.transpose(1, 2).flatten(2)\n"
    for times in (1, 0):
        assert write(folder, heads, "merge_heads") == edited
        assert capsys.readouterr().out.count(f"You edited {mine}, so it stays") == times
    assert main(["export"]) == 2 and "--force" in capsys.readouterr().err
    assert main(["export", "--force"]) == 0
    assert mark(mine.read_text("utf-8"), "2.4") == "yours"
    mine.write_bytes(mine.read_bytes().replace(b"\n", b"\r\n"))  # an editor of Windows
    assert main(["export"]) == 0
    assert main(["export", "other.py"]) == 0 and (folder / "other.py").is_file()


def test_folder_that_cannot_be_written_is_one_line(folder, capsys, monkeypatch):
    """Neither a check nor an export ends in a traceback, and the old file stays."""
    before = write(folder, SOLVED, "gelu")
    (folder / "file").write_text("")
    capsys.readouterr()
    assert main(["export", "file/my_vit.py"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1

    def refuse(place, content):
        raise PermissionError(13, "Permission denied", f".{place.name}.new")

    monkeypatch.setattr(export, "write_whole", refuse)
    assert write(folder, "def merge_heads(x): return x.transpose(1, 2).flatten(2)", "merge_heads")
    said = (
        f"my_vit.py stays as it was: {folder / 'my_vit.py'} cannot be written (Permission denied)"
    )
    assert said in capsys.readouterr().out
    assert (folder / "my_vit.py").read_text("utf-8") == before


def test_a_store_of_the_version_before_or_a_damaged_one_keeps_the_reference(folder, capsys):
    """What passed once has no text then; the mark says what to do, and nothing is lost."""
    write(folder, SOLVED, "gelu")
    store = Path(os.environ["VITEDU_HOME"]) / "progress.json"
    stored = json.loads(store.read_text("utf-8"))
    source = stored["exercises"]["gelu"].pop("source")
    missing = "the reference's: yours passed, but its text is not stored: check it again"
    for text in (
        None,
        source["statements"] | {"gelu": "def gelu(x: retu"},
        {"torch": "import torch"},
    ):
        if text:
            stored["exercises"]["gelu"]["source"] = {"statements": text}
        store.write_text(json.dumps(stored), "utf-8")
        assert mark(export_model().read_text("utf-8"), "3.2") == missing
    stored["exercises"]["gelu"]["source"] = {"statements": {"gelu": 3}}
    store.write_text(json.dumps(stored), "utf-8")
    assert mark(export_model().read_text("utf-8"), "3.2") == missing


def test_slow_parts_give_way_where_a_model_is_trained(folder, capsys, monkeypatch):
    """Right, and slow: the report hands out the reference, and so does the import; the file's is
    his."""
    monkeypatch.setattr(sys, "meta_path", [importing.Finder(), *sys.meta_path])
    body = "(r - r.max()).exp() / (r - r.max()).exp().sum() for r in x.reshape(-1, x.shape[-1])"
    loops = f"""def softmax(x, dim=-1):
    x = x.transpose(dim, -1)
    rows = [{body}]
    return torch.stack(rows).reshape(x.shape).transpose(dim, -1)
"""
    report = check(own(folder, loops).softmax)
    assert report.passed and report.implementation is attention.softmax
    out = capsys.readouterr().out
    assert "softmax is right, and slow: a training step takes over three times that of the" in out
    text = (folder / "my_vit.py").read_text("utf-8")
    assert mark(text, "2.1").startswith("yours; right, and slow") and body in text
    assert importlib.import_module("my_vit").softmax is attention.softmax
    assert "yours (2.1); 2.1 slow, so the reference's runs here." in capsys.readouterr().out
    heads = "def merge_heads(x): return x.transpose(1, 2).flatten(2)\n"
    assert check(own(folder, heads).merge_heads).implementation is not attention.merge_heads


def test_setting_keeps_nothing_and_reset_forgets(folder, monkeypatch):
    """VITEDU_KEEP_SOURCES=0 stores no text and writes no file; ``reset`` forgets the text."""
    write(folder, SOLVED, "gelu")
    statements = results.load()["gelu"]["source"]["statements"]
    assert statements == {"gelu": SOLVED.rstrip()}
    vitedu.reset("gelu")
    assert "gelu" not in results.load()
    assert "gelu  # 3.2 is still open\n" in export_model().read_text("utf-8")
    monkeypatch.setenv("VITEDU_KEEP_SOURCES", "0")
    (folder / "my_vit.py").unlink()
    assert check(own(folder, SOLVED).gelu).passed
    assert "source" not in results.load()["gelu"] and not (folder / "my_vit.py").exists()
    text = export_model().read_text("utf-8")
    assert mark(text, "3.2").endswith("yours passed, but its text is not stored: check it again")


def test_import_before_anything_passed_gives_the_references(folder, capsys, monkeypatch):
    """A notebook begins so for whoever skipped the one before; no file is written for it."""
    monkeypatch.setattr(sys, "meta_path", [importing.Finder(), *sys.meta_path])
    first = importlib.import_module("my_vit").gelu
    assert first(torch.zeros(4)).tolist() == 4 * [0.0]
    said = "my_vit.py, which is not there yet: 0 of its 20 parts are yours.\n"
    assert capsys.readouterr().out == said and not (folder / "my_vit.py").exists()
    write(folder, SOLVED, "gelu")
    capsys.readouterr()
    assert importlib.import_module("my_vit").gelu is not first
    assert "1 of its 20 parts are yours (3.2)." in capsys.readouterr().out


def test_references_of_the_file_are_no_answers(folder, monkeypatch):
    """A check cell that runs again without the cell of the answer says so, and stores nothing."""
    monkeypatch.setattr(sys, "meta_path", [importing.Finder(), *sys.meta_path])
    assert check(importlib.import_module("my_vit").gelu).is_reference and results.load() == {}
    write(folder, SOLVED, "gelu")
    assert check(importlib.import_module("my_vit").gelu).passed


def test_import_follows_each_version(folder, capsys, monkeypatch):
    """Also from another folder, and after a rewrite of equal size within the same second."""
    monkeypatch.setattr(sys, "meta_path", [importing.Finder(), *sys.meta_path])
    solved = SOLVED.replace("\n", "  # A\n")
    write(folder, solved, "gelu")
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    first = importlib.import_module("my_vit").gelu

    said = f"{folder / 'my_vit.py'}: 1 of its 20 parts are yours (3.2)."
    assert said in capsys.readouterr().out
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
    *_, gelu, alias, last = collect(helper, "softmax", lambda name, value: False).values()
    assert "return x * (1 + torch.erf" in gelu and alias == "g = gelu"
    assert last == "def softmax(x): return g(x)"


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
    assert [mark(text, number) for number in ("2.1", "3.2", "3.3")] == ["yours"] * 3
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
            assert trial.try_parts(made).fault == "" and trial.find_idle(made) == {}
        assert torch.get_default_dtype() is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(torch.get_rng_state(), before)
    assert trial.NAME not in sys.modules


def test_pixels_are_normalised_as_the_shipped_models_were_trained():
    """Mean and deviation in the file are those of the photographs that the package ships."""
    text = (Path(parts.__file__).parent / "my_vit.txt").read_text("utf-8")
    assert f"_MEAN, _STD = {cifar10.MEAN}, {cifar10.STD}" in text
