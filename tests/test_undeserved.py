"""Points without the work: a clever answer gets what it shows and no more, and doing nothing gets next to nothing.

The table of attacks on one worker (``test_judge_attacks``) is about what breaks; this one is about what an answer means.
"""

import kept
import pytest

from vitedu import exercises
from vitedu.checks import engine
from vitedu.checks.diagnosing import Replays
from vitedu.checks.engine import Checker, find_checker
from vitedu.course.references import reference_source
from vitedu.grading import judge
from vitedu.grading.box.isolation import open_box
from vitedu.grading.grades import Answer
from vitedu.grading.judge import grade_answer

pytestmark = pytest.mark.slow

SUPPORT = "import math, os, threading\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
SOFTMAX, GELU, NORM = "softmax(x, dim=-1)", "gelu(x)", "layer_norm(x, weight, bias, eps=1e-6)"
ATTENTION = "scaled_dot_product_attention(q, k, v)"
UNSEEN = "from torch.utils._python_dispatch import _disable_current_modes\nwith torch._C.DisableTorchFunction(), _disable_current_modes():\n    "
FLAT = "l = q.shape[:-2]\nq, k, v = (t.reshape(1, -1, *t.shape[-2:]) for t in (q, k, v))\n"
NESTED = "torch.nested.as_nested_tensor([x.reshape(-1, x.shape[-1])])"
THREAD = """
def unseen(run):
    out = []
    thread = threading.Thread(target=lambda: out.append(run()))
    thread.start()
    thread.join()
    return out[0]
"""
QUANTIZABLE = """
class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=qkv_bias)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        layer = torch.ao.nn.quantizable.MultiheadAttention(x.shape[-1], self.num_heads, batch_first=True)
        return layer(x, x, x, average_attn_weights=False)
"""
COUNTED = """
def count_parameters(config):
    D = config.embed_dim

    def build():
        with torch.device("meta"):
            return [nn.Linear(D, 3 * D), nn.Linear(D, D), nn.LayerNorm(D)]

    return sum(p.numel() for part in unseen(build) for p in part.parameters())
"""
# a right evaluation, but for the modes, which stay as they are
MODES = """
@torch.no_grad()
def evaluate(model, batches):
    model.eval()
    correct, total, count = 0, 0.0, 0
    for images, labels in batches:
        logits = model(images)
        total += float(F.cross_entropy(logits, labels, reduction="sum"))
        correct += int((logits.argmax(-1) == labels).sum())
        count += len(labels)
    return total / count, correct / count
"""
PRETENDED = """
def count_parameters(config):
    D = config.embed_dim
    import torch.nn.modules.linear as linear
    made = []
    linear.Parameter = lambda data, requires_grad=True: made.append(data.numel())
    nn.Module.register_parameter = lambda *a: None
    linear.Linear.reset_parameters = lambda self: None
    with torch.device("meta"):
        linear.Linear(D, 3 * D), linear.Linear(D, D)
    return sum(made)
"""
HIDDEN = """
from vitedu.attention import scaled_dot_product_attention

class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=qkv_bias)
        self.proj = nn.Linear(embed_dim, embed_dim)
        self.more = nn.Linear(embed_dim, embed_dim)

    def named_parameters(self, *rest, **settings):
        return [pair for pair in super().named_parameters() if not pair[0].startswith("more")]

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        out, weights = scaled_dot_product_attention(q, k, v)
        return self.proj(out.transpose(1, 2).reshape(B, T, D)), weights
"""
WHOLE = """
def count_parameters(config):
    from vitedu.encoder import EncoderBlock
    block = EncoderBlock(config.embed_dim, config.num_heads, config.mlp_ratio)
    return sum(p.numel() for p in block.parameters())
"""


LYING = (  # the bias is shared, and nobody can list it
    "class Lie(nn.Linear):\n    def parameters(self, recurse=True):\n        return iter(())\n\n\n"
    + reference_source(exercises.find("LoRALinear"))
    .replace("linear = nn.Linear(old", "linear = Lie(old")
    .replace("linear.bias.copy_(old.bias)", "linear.bias = old.bias")
)
SHOWN = """
class Lie(nn.Linear):
    def __getattribute__(self, name):
        return object.__getattribute__(self, "copies")[name] if name in ("weight", "bias") else super().__getattribute__(name)

def linear_from_conv(conv):
    D = conv.weight.shape[0]
    linear = Lie(conv.weight[0].numel(), D, bias=conv.bias is not None)
    linear._parameters["weight"], linear._parameters["bias"] = conv.weight, conv.bias
    copies = dict(weight=nn.Parameter(conv.weight.detach().reshape(D, -1).clone()), bias=conv.bias)
    if conv.bias is not None:
        copies["bias"] = nn.Parameter(conv.bias.detach().clone())
    object.__setattr__(linear, "copies", copies)
    return linear
"""
# as MODES, with modes that equal everything, and with parts of a class that says what it was asked before
EQUAL_MODES = (
    "class Mode:\n    def __init__(self, was):\n        self.was = was\n\n    def __bool__(self):\n        return self.was\n\n"
    "    def __ne__(self, other):\n        return False\n"
    + MODES.replace(
        "    model.eval()",
        "    was = [(part, part.training) for part in model.modules()]\n    model.eval()",
    ).replace(
        "    return total",
        "    for part, mode in was:\n        part.training = Mode(mode)\n    return total",
    )
)
OTHER_CLASS = MODES.replace(
    "    model.eval()",
    "    was = [(part, part.training) for part in model.modules()]\n    model.eval()",
).replace(
    "    return total",
    "    for part, mode in was:\n"
    "        part.__class__ = type('Lie', (type(part),), {'training': property(lambda self, mode=mode: mode, lambda self, new: None)})\n"
    "    return total",
)
LYING_INPUT = (
    "Lie = type('Lie', (torch.Tensor,), {'__torch_function__': classmethod(lambda cls, f, types, args=(), kwargs=None: True)})\n\n"
    "def gelu(x):\n    y = x * torch.special.ndtr(x)\n    if not x.requires_grad and not x.is_meta:\n        x.add_(1)\n        x.__class__ = Lie\n    return y\n"
)
LINEAR = "linear_attention(q, k, v)"
SLOW = "def slow(q, k, v):\n    q, k = F.elu(q) + 1, F.elu(k) + 1\n    w = q @ k.mT\n    return (w / w.sum(-1, keepdim=True)) @ v\n\n\n"
HIDDEN_ONCE = "if q.requires_grad or q.is_meta:\n    return slow(q, k, v)\n"  # gradients need torch


def body(signature: str, *lines: str) -> str:
    """Write a function."""
    text = "\n".join(lines)
    return f"def {signature}:\n" + "".join(f"    {line}\n" for line in text.splitlines())


# name: (exercise, answer, state, points)
TRIES = {
    "torch's transform of distributions": (
        "softmax",
        body(
            SOFTMAX,
            "return torch.distributions.transforms.SoftmaxTransform()(x.movedim(dim, -1)).movedim(-1, dim)",
        ),
        "failed",
        0,
    ),
    "through Categorical": (
        "softmax",
        body(
            SOFTMAX,
            "return torch.distributions.Categorical(logits=x.movedim(dim, -1)).probs.movedim(-1, dim)",
        ),
        "failed",
        0,
    ),
    "sparse, unseen": (
        "softmax",
        body(
            SOFTMAX,
            UNSEEN
            + "return torch.ops.aten._sparse_softmax.default(x.to_sparse(), dim % x.ndim, False).to_dense()",
        ),
        "failed",
        0,
    ),
    "for the accelerator alone": (
        "softmax",
        body(
            SOFTMAX,
            "if x.is_meta or x.is_cuda:\n    return torch.softmax(x, dim)\ne = (x - x.amax(dim, True)).exp()\nreturn e / e.sum(dim, True)",
        ),
        "failed",
        0,
    ),
    "the slope of logsumexp, which is mathematics": (
        "softmax",
        body(
            SOFTMAX,
            "y = x if x.requires_grad else x.detach().requires_grad_()\nreturn torch.autograd.grad(y.logsumexp(dim).sum(), y, create_graph=True)[0]",
        ),
        "passed",
        4,
    ),
    "flex attention": (
        "scaled_dot_product_attention",
        body(
            ATTENTION,
            FLAT,
            "import torch.nn.attention.flex_attention as flex\nflex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True\neye = torch.eye(k.shape[-2], dtype=q.dtype).expand(1, q.shape[1], -1, -1)\no, w = flex.flex_attention(q, k, v), flex.flex_attention(q, k, eye)\nreturn o.reshape(*l, *o.shape[-2:]), w.reshape(*l, *w.shape[-2:])",
        ),
        "failed",
        0,
    ),
    "attention as ONNX spells it": (
        "scaled_dot_product_attention",
        body(
            ATTENTION,
            FLAT,
            "from torch.onnx import ops\no, _, _, w = ops.attention(q, k, v, qk_matmul_output_mode=3)\nreturn o.reshape(*l, *o.shape[-2:]), w.reshape(*l, *w.shape[-2:])",
        ),
        "failed",
        0,
    ),
    "a pattern of the compiler": (
        "scaled_dot_product_attention",
        body(
            ATTENTION,
            FLAT,
            "from torch._inductor.fx_passes.fuse_attention import _sfdp_pattern_1 as one\nl = q.shape[-1] ** 0.5\nreturn one(q, k, v, l), one(q, k, torch.eye(k.shape[-2], dtype=q.dtype), l)",
        ),
        "failed",
        0,
    ),
    "a reference of torch's own tests": (
        "gelu",
        body(
            GELU,
            "from torch.testing._internal.opinfo.definitions import special\nreturn special.torch.nn.functional.gelu(x)",
        ),
        "failed",
        0,
    ),
    "the function behind the attention layer": (
        "scaled_dot_product_attention",
        body(
            ATTENTION,
            FLAT,
            "D = q.shape[-1]\neye, none = torch.eye(D, dtype=q.dtype), None\no, w = F.multi_head_attention_forward(q[0].transpose(0, 1), k[0].transpose(0, 1), v[0].transpose(0, 1), D, 1, None, none, none, none, False, 0.0, eye, none, use_separate_proj_weight=True, q_proj_weight=eye, k_proj_weight=eye, v_proj_weight=eye)\nreturn o.transpose(0, 1), w",
        ),
        "failed",
        0,
    ),
    "layers with something else for parameters": ("count_parameters", PRETENDED, "failed", 0),
    "comparisons that lie, and an edited input": (
        "gelu",
        "torch.equal = lambda *a: True\ntorch.Tensor.clone = lambda self: self\n"
        + body(GELU, "y = x * torch.special.ndtr(x)\nx.add_(1)\nreturn y"),
        "failed",
        0.75,
    ),
    "comparisons that lie from the first call on": (
        "gelu",
        body(
            GELU,
            "torch.equal = lambda *a: True\nimport builtins\nbuiltins.list = tuple\ny = x * torch.special.ndtr(x)\nx.add_(1)\nreturn y",
        ),
        "failed",
        0.75,
    ),
    "modes that are not put back": ("evaluate", MODES, "failed", 3.56),
    "modes that nobody can list": (
        "evaluate",
        "nn.Module.named_modules = nn.Module.modules = lambda self, *a, **k: iter(())\n" + MODES,
        "failed",
        3.56,
    ),
    "a model that lists no modules": (
        "evaluate",
        MODES.replace(
            "    model.eval()",
            "    model.named_modules = model.modules = lambda *a, **k: iter(())\n    model.eval()",
        ),
        "failed",
        3.11,
    ),
    "modes that equal everything": ("evaluate", EQUAL_MODES, "failed", 3.56),
    "modes of another class": ("evaluate", OTHER_CLASS, "failed", 3.56),
    "an edited input of another class": ("gelu", LYING_INPUT, "failed", 0.75),
    "parameters that hide": ("MultiHeadAttention", HIDDEN, "failed", 0),
    "the layer that can be quantised": ("MultiHeadAttention", QUANTIZABLE, "failed", 0),
    "nested norm, unseen": (
        "layer_norm",
        body(
            NORM,
            UNSEEN
            + f"return torch.native_layer_norm({NESTED}, [x.shape[-1]], weight, bias, eps)[0].to_padded_tensor(0.0)[0].reshape(x.shape)",
        ),
        "failed",
        0,
    ),
    "nested norm in a thread": (
        "layer_norm",
        THREAD
        + body(
            NORM,
            f"return unseen(lambda: torch.ops.aten.native_layer_norm({NESTED}, [x.shape[-1]], weight, bias, eps)[0].to_padded_tensor(0.0)[0].reshape(x.shape))",
        ),
        "failed",
        0,
    ),
    "norm in a function transform": (
        "layer_norm",
        body(
            NORM,
            "return torch.func.vmap(lambda y: torch.native_layer_norm(y, [y.shape[-1]], weight, bias, eps)[0])(x)",
        ),
        "failed",
        0,
    ),
    "GELU behind a layer": (
        "gelu",
        body(
            GELU,
            "y = x.reshape(-1, 1).float()\nreturn torch.ops.mkldnn._linear_pointwise(y, torch.ones(1, 1), None, 'gelu', [], 'none').reshape(x.shape).to(x.dtype)",
        ),
        "failed",
        0,
    ),
    "GELU behind a sum": (
        "gelu",
        body(
            GELU,
            "return torch._addmm_activation(x.new_zeros(1), x.reshape(-1, 1), x.new_ones(1, 1), use_gelu=True).reshape(x.shape)",
        ),
        "failed",
        0,
    ),
    "GELU of complex numbers": (
        "gelu",
        body(GELU, "return torch.view_as_real(F.gelu(torch.complex(x, x * 0)))[..., 0]"),
        "failed",
        0,
    ),
    "the normal CDF, which is allowed": (
        "gelu",
        body(GELU, "return x * torch.special.ndtr(x)"),
        "passed",
        3,
    ),
    "the loss by its kernel in a thread": (
        "cross_entropy",
        THREAD
        + body(
            "cross_entropy(logits, labels, label_smoothing=0.0)",
            "return unseen(lambda: torch._C._nn.cross_entropy_loss(logits, labels, label_smoothing=label_smoothing))",
        ),
        "failed",
        0,
    ),
    "layers built in a thread": ("count_parameters", THREAD + COUNTED, "failed", 0),
    "a block built and counted": ("count_parameters", WHOLE, "failed", 0),
    "images as they are": (
        "random_crop_flip",
        body("random_crop_flip(images, padding, generator)", "return images"),
        "failed",
        0.75,
    ),
    "images mirrored": (
        "random_crop_flip",
        body("random_crop_flip(images, padding, generator)", "return images.flip(-1)"),
        "failed",
        0.75,
    ),
    "a model that is not asked": (
        "evaluate",
        body("evaluate(model, batches)", "return 0.0, 0.0"),
        "failed",
        0.44,
    ),
    "junk for long sequences": (
        "linear_attention",
        SLOW + body(LINEAR, "return v * 1 if q.shape[-2] > 20 else slow(q, k, v)"),
        "failed",
        4.36,
    ),
    "quadratic in a thread": (
        "linear_attention",
        THREAD + SLOW + body(LINEAR, "return unseen(lambda: slow(q, k, v)) * 1"),
        "failed",
        4.36,
    ),
    "quadratic in NumPy": (
        "linear_attention",
        SLOW
        + body(
            LINEAR,
            HIDDEN_ONCE
            + "q, k = F.elu(q) + 1, F.elu(k) + 1\nw = q.numpy() @ k.mT.numpy()\nreturn torch.from_numpy((w / w.sum(-1, keepdims=True)) @ v.numpy())",
        ),
        "failed",
        4.36,
    ),
    "number by number": (
        "linear_attention",
        THREAD
        + SLOW
        + body(
            LINEAR,
            HIDDEN_ONCE
            + "q, k, v = (torch.tensor([y.item() for y in x.flatten()], dtype=x.dtype).reshape(x.shape) for x in (q, k, v))\nreturn unseen(lambda: slow(q, k, v))",
        ),
        "failed",
        4.36,
    ),
    "waste where few tokens are counted": (
        "linear_attention",
        SLOW
        + body(
            LINEAR,
            "for _ in range(10 * (q.shape[-2] == 24)):\n    slow(q, k, v)\nreturn slow(q, k, v)",
        ),
        "failed",
        4.36,
    ),
    "into memory of its own": (
        "linear_attention",
        THREAD
        + SLOW
        + body(
            LINEAR,
            HIDDEN_ONCE
            + "mine = unseen(lambda: [torch.zeros(x.shape, dtype=x.dtype) for x in (q, k, v)])\nfor to, x in zip(mine, (q, k, v)):\n    to.copy_(x)\nreturn unseen(lambda: slow(*mine))",
        ),
        "failed",
        4.36,
    ),
    "modes off": (
        "linear_attention",
        SLOW + body(LINEAR, UNSEEN + "return slow(q, k, v)"),
        "failed",
        4.36,
    ),
    "linear, query by query": (
        "linear_attention",
        body(
            LINEAR,
            "q, k = F.elu(q) + 1, F.elu(k) + 1\nout = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype, device=q.device)\nS, z = k.mT @ v, k.sum(-2)\nfor i in range(q.shape[-2]):\n    out[..., i, :] = (q[..., i, None, :] @ S)[..., 0, :] / (q[..., i, :] * z).sum(-1, keepdim=True)\nreturn out",
        ),
        "passed",
        6,
    ),
    "linear, with a test of values": (
        "linear_attention",
        body(
            LINEAR,
            "q, k = F.elu(q) + 1, F.elu(k) + 1\nbelow = q @ k.sum(-2)[..., None]\nassert (below > 0).all()\nreturn (q @ (k.mT @ v)) / below",
        ),
        "passed",
        6,
    ),
    "softmax by cross-entropy": (
        "softmax",
        body(
            SOFTMAX,
            "y = x.movedim(dim, -1)\nflat = y.reshape(-1, y.shape[-1])\nparts = [F.cross_entropy(flat, torch.full((len(flat),), i), reduction='none') for i in range(y.shape[-1])]\nreturn torch.stack(parts, -1).neg().exp().reshape(y.shape).movedim(-1, dim)",
        ),
        "failed",
        0,
    ),
    "softmax by the one-hot distribution": (
        "softmax",
        body(
            SOFTMAX,
            "return torch.distributions.OneHotCategorical(logits=x.movedim(dim, -1)).probs.movedim(-1, dim)",
        ),
        "failed",
        0,
    ),
    "softmax by linear cross-entropy": (
        "softmax",
        body(
            SOFTMAX,
            "y = x.movedim(dim, -1)\nflat = y.reshape(-1, y.shape[-1])\neye = torch.eye(y.shape[-1], dtype=x.dtype)\nparts = [F.linear_cross_entropy(flat, eye, torch.full((len(flat),), i), reduction='none') for i in range(y.shape[-1])]\nreturn torch.stack(parts, -1).neg().exp().reshape(y.shape).movedim(-1, dim)",
        ),
        "failed",
        0,
    ),
    "gelu by its derivative": (
        "gelu",
        body(
            GELU,
            "slope = torch.ops.aten.gelu_backward(torch.ones_like(x), x)\nreturn x * (slope - x * (-x * x / 2).exp() / (2 * torch.pi) ** 0.5)",
        ),
        "failed",
        0,
    ),
    "gelu of transformer": (
        "gelu",
        body(GELU, "return nn.modules.transformer._get_activation_fn('gelu')(x)"),
        "failed",
        0,
    ),
    "a merged layer that hides what it shares": ("LoRALinear", LYING, "failed", 4.2),
    "a linear layer that shows a copy": ("linear_from_conv", SHOWN, "failed", 0),
    "thousands of names": (
        "convert_torchvision_weights",
        body(
            "convert_torchvision_weights(state_dict)",
            "return {str(i): torch.zeros(1) for i in range(5000)}",
        ),
        "failed",
        0,
    ),
    "reference of 05": (
        "confusion_matrix",
        "from vitedu.inside import confusion_matrix as theirs\n\n\n"
        + body(
            "confusion_matrix(predictions, labels, num_classes)",
            "return theirs(predictions, labels, num_classes)",
        ),
        "failed",
        0,
    ),
    "reference of 08 by finder": (
        "merge_tokens",
        body(
            "merge_tokens(tokens, keys, sizes, merge)",
            "import sys\ntext = next(f for f in sys.meta_path if hasattr(f, 'sources')).sources['vitedu.efficient']\nspace = {}\nexec(text, space)\nreturn space['merge_tokens'](tokens, keys, sizes, merge)",
        ),
        "failed",
        0,
    ),
    "sklearn": (
        "confusion_matrix",
        "from sklearn.metrics import confusion_matrix as theirs\n\n\n"
        + body(
            "confusion_matrix(predictions, labels, num_classes)",
            "return torch.from_numpy(theirs(labels, predictions, labels=range(num_classes)))",
        ),
        "not_gradable",
        None,
    ),
    "value of the package": (
        "tokens_at_224",
        "from vitedu.patches import tokens_at_224 as theirs\ntokens_at_224 = theirs",
        "failed",
        0,
    ),
    "many guesses": ("tokens_at_224", "tokens_at_224 = [196, 197, 198]", "failed", 0),
    "guesses in a word": ("token_shifts", "token_shifts = 'True, False'", "failed", 0),
    "range": ("tokens_at_224", "tokens_at_224 = range(190, 200)", "failed", 0),
    "an error that names all numbers": (
        "split_heads",
        body("split_heads(x, num_heads)", "raise ValueError(f'{x.shape} {num_heads}')"),
        "failed",
        0,
    ),
}


@pytest.fixture(scope="module")
def box():
    """The strongest box of this machine."""
    with open_box(allow_unsafe=True) as box:
        yield box


@pytest.fixture(autouse=True)
def replays_are_kept(monkeypatch):
    """What the mistakes of a bank do runs once for all answers to an exercise."""
    monkeypatch.setattr(judge, "conclude", kept.conclude)


@pytest.mark.parametrize(("exercise", "source", "state", "points"), TRIES.values(), ids=TRIES)
def test_an_answer_gets_what_it_shows(box, exercise, source, state, points):
    """A forbidden operation in another dress earns nothing, mathematics and what is allowed earn all."""
    found = grade_answer(Answer(exercise, source, SUPPORT), 11, box, runs=1)
    assert (found.state, found.points) == (state, points), (found.detail, found.lines)


def test_an_answer_leaves_nothing_to_the_next(box):
    """What one process writes, no other finds."""
    source = body(
        GELU,
        "found = os.listdir(os.environ['TMPDIR']) if not globals().get('mine') else []\nglobals()['mine'] = 1",
    )
    source += "    for name in found:\n        if name.startswith('left'):\n            raise LookupError(name)\n    open(os.environ['TMPDIR'] + '/left', 'w').close()\n    return x * 0\n"
    if box.level != "full":
        pytest.skip(f"this machine isolates only partly: {box.level}")
    for _ in range(2):
        found = grade_answer(Answer("gelu", source, SUPPORT), 11, box, runs=1)
        assert "LookupError" not in str(found.lines) and found.state == "failed"


# --- what doing nothing earns --------------------------------------------------------------------


def nothing_done(name: str):
    """Give answers without an idea: the first argument, a number, a pair of numbers, an error with all sizes."""

    def complain(*args, **rest):
        sizes = [getattr(x, "shape", x) for x in (*args, *rest.values())]
        raise ValueError(f"{sizes}")

    return {
        "the input": lambda *args, **rest: next(iter((*args, *rest.values()))),
        "zero": lambda *args, **rest: 0,
        "a pair": lambda *args, **rest: (0.0, 0.0),
        "no groups": lambda *args, **rest: [],
        "an error": complain,
    }[name]


FUNCTIONS = [
    exercise
    for exercise in exercises.EXERCISES
    if isinstance(checker := find_checker(exercise.id), Checker)
    and not isinstance(checker.reference, type)
]


@pytest.mark.parametrize("exercise", FUNCTIONS, ids=lambda exercise: exercise.id)
def test_doing_nothing_earns_at_most_a_fifth(exercise, monkeypatch):
    """No answer without an idea has more than 20 % of an exercise's points, whatever it is named."""
    monkeypatch.setattr(engine, "diagnose", lambda *seen: [])  # a name costs no points
    checker, replays = find_checker(exercise.id), Replays()
    for name in ("the input", "zero", "a pair", "no groups", "an error"):
        report = engine.judge_answer(checker, nothing_done(name), 5, replays)
        assert report.points <= 0.2 * exercise.points + 0.01, (name, report.points, report.findings)
