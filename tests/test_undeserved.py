"""Points without the work: a clever answer gets what it shows, doing nothing next to nothing.

The table of attacks on one worker (``test_judge_attacks``) is about what breaks; this one is about
what an answer means.
"""

import inspect

import pytest
import replay_caches
from run_answer import grade_cells
from sections import sections

from vitedu import exercises
from vitedu.checks import engine
from vitedu.checks.explaining.replay import ReplayCache
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

# what is tried | exercise | state and points, and the answer below
TEXT = """
== torch's transform of distributions | softmax | failed 0
def softmax(x, dim=-1):
    return torch.distributions.transforms.SoftmaxTransform()(x.movedim(dim, -1)).movedim(-1, dim)

== through Categorical | softmax | failed 0
def softmax(x, dim=-1):
    return torch.distributions.Categorical(logits=x.movedim(dim, -1)).probs.movedim(-1, dim)

== sparse, unseen | softmax | failed 0
def softmax(x, dim=-1):
    from torch.utils._python_dispatch import _disable_current_modes
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        return torch.ops.aten._sparse_softmax.default(x.to_sparse(), dim % x.ndim, False).to_dense()

== for the accelerator alone | softmax | failed 0
def softmax(x, dim=-1):
    if x.is_meta or x.is_cuda:
        return torch.softmax(x, dim)
    e = (x - x.amax(dim, True)).exp()
    return e / e.sum(dim, True)

== the slope of logsumexp, which is mathematics | softmax | passed 4
def softmax(x, dim=-1):
    y = x if x.requires_grad else x.detach().requires_grad_()
    return torch.autograd.grad(y.logsumexp(dim).sum(), y, create_graph=True)[0]

== flex attention | scaled_dot_product_attention | failed 0
def scaled_dot_product_attention(q, k, v):
    l = q.shape[:-2]
    q, k, v = (t.reshape(1, -1, *t.shape[-2:]) for t in (q, k, v))
    import torch.nn.attention.flex_attention as flex
    flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True
    eye = torch.eye(k.shape[-2], dtype=q.dtype).expand(1, q.shape[1], -1, -1)
    o, w = flex.flex_attention(q, k, v), flex.flex_attention(q, k, eye)
    return o.reshape(*l, *o.shape[-2:]), w.reshape(*l, *w.shape[-2:])

== attention as ONNX spells it | scaled_dot_product_attention | failed 0
def scaled_dot_product_attention(q, k, v):
    l = q.shape[:-2]
    q, k, v = (t.reshape(1, -1, *t.shape[-2:]) for t in (q, k, v))
    from torch.onnx import ops
    o, _, _, w = ops.attention(q, k, v, qk_matmul_output_mode=3)
    return o.reshape(*l, *o.shape[-2:]), w.reshape(*l, *w.shape[-2:])

== a pattern of the compiler | scaled_dot_product_attention | failed 0
def scaled_dot_product_attention(q, k, v):
    l = q.shape[:-2]
    q, k, v = (t.reshape(1, -1, *t.shape[-2:]) for t in (q, k, v))
    from torch._inductor.fx_passes.fuse_attention import _sfdp_pattern_1 as one
    l = q.shape[-1] ** 0.5
    return one(q, k, v, l), one(q, k, torch.eye(k.shape[-2], dtype=q.dtype), l)

== a reference of torch's own tests | gelu | failed 0
def gelu(x):
    from torch.testing._internal.opinfo.definitions import special
    return special.torch.nn.functional.gelu(x)

== the function behind the attention layer | scaled_dot_product_attention | failed 0
def scaled_dot_product_attention(q, k, v):
    l = q.shape[:-2]
    q, k, v = (t.reshape(1, -1, *t.shape[-2:]) for t in (q, k, v))

    D = q.shape[-1]
    eye, none = torch.eye(D, dtype=q.dtype), None
    weights = dict(q_proj_weight=eye, k_proj_weight=eye, v_proj_weight=eye)
    q, k, v = (t[0].transpose(0, 1) for t in (q, k, v))
    rest = (D, 1, none, none, none, none, False, 0.0, eye, none)
    o, w = F.multi_head_attention_forward(
        q, k, v, *rest, use_separate_proj_weight=True, **weights
    )
    return o.transpose(0, 1), w

== layers with something else for parameters | count_parameters | failed 0
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

== comparisons that lie, and an edited input | gelu | failed 0.51
torch.equal = lambda *a: True
torch.Tensor.clone = lambda self: self

def gelu(x):
    y = x * torch.special.ndtr(x)
    x.add_(1)
    return y

== comparisons that lie from the first call on | gelu | failed 0.51
def gelu(x):
    torch.equal = lambda *a: True
    import builtins
    builtins.list = tuple
    y = x * torch.special.ndtr(x)
    x.add_(1)
    return y

== modes that are not put back | evaluate | failed 2
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

== an edited input of another class | gelu | failed 0.51
class Lie(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return True

def gelu(x):
    y = x * torch.special.ndtr(x)
    if not x.requires_grad and not x.is_meta:
        x.add_(1)
        x.__class__ = Lie
    return y

== parameters that hide | MultiHeadAttention | failed 0
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

== the layer that can be quantised | MultiHeadAttention | failed 0
class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=qkv_bias)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        layer = torch.ao.nn.quantizable.MultiheadAttention(
            x.shape[-1], self.num_heads, batch_first=True
        )
        return layer(x, x, x, average_attn_weights=False)

== nested norm, unseen | layer_norm | failed 0
def layer_norm(x, weight, bias, eps=1e-6):
    from torch.utils._python_dispatch import _disable_current_modes
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        rows = torch.nested.as_nested_tensor([x.reshape(-1, x.shape[-1])])
        y = torch.native_layer_norm(rows, [x.shape[-1]], weight, bias, eps)[0]
        return y.to_padded_tensor(0.0)[0].reshape(x.shape)

== nested norm in a thread | layer_norm | failed 0
def layer_norm(x, weight, bias, eps=1e-6):
    def norm():
        rows = torch.nested.as_nested_tensor([x.reshape(-1, x.shape[-1])])
        y = torch.ops.aten.native_layer_norm(rows, [x.shape[-1]], weight, bias, eps)[0]
        return y.to_padded_tensor(0.0)[0].reshape(x.shape)

    return unseen(norm)

== norm in a function transform | layer_norm | failed 0
def layer_norm(x, weight, bias, eps=1e-6):
    norm = lambda y: torch.native_layer_norm(y, [y.shape[-1]], weight, bias, eps)[0]
    return torch.func.vmap(norm)(x)

== GELU behind a layer | gelu | failed 0
def gelu(x):
    y = x.reshape(-1, 1).float()
    y = torch.ops.mkldnn._linear_pointwise(y, torch.ones(1, 1), None, "gelu", [], "none")
    return y.reshape(x.shape).to(x.dtype)

== GELU behind a sum | gelu | failed 0
def gelu(x):
    zero, one = x.new_zeros(1), x.new_ones(1, 1)
    return torch._addmm_activation(zero, x.reshape(-1, 1), one, use_gelu=True).reshape(x.shape)

== GELU of complex numbers | gelu | failed 0
def gelu(x):
    return torch.view_as_real(F.gelu(torch.complex(x, x * 0)))[..., 0]

== the normal CDF, which is allowed | gelu | passed 3
def gelu(x):
    return x * torch.special.ndtr(x)

== the loss by its kernel in a thread | cross_entropy | failed 0
def cross_entropy(logits, labels, label_smoothing=0.0):
    return unseen(
        lambda: torch._C._nn.cross_entropy_loss(logits, labels, label_smoothing=label_smoothing)
    )

== layers built in a thread | count_parameters | failed 0
def count_parameters(config):
    D = config.embed_dim

    def build():
        with torch.device("meta"):
            return [nn.Linear(D, 3 * D), nn.Linear(D, D), nn.LayerNorm(D)]

    return sum(p.numel() for part in unseen(build) for p in part.parameters())

== a block built and counted | count_parameters | failed 0
def count_parameters(config):
    from vitedu.encoder import EncoderBlock
    block = EncoderBlock(config.embed_dim, config.num_heads, config.mlp_ratio)
    return sum(p.numel() for p in block.parameters())

== images as they are | random_crop_flip | failed 0.64
def random_crop_flip(images, padding, generator):
    return images

== images mirrored | random_crop_flip | failed 0.64
def random_crop_flip(images, padding, generator):
    return images.flip(-1)

== a model that is not asked | evaluate | failed 0.38
def evaluate(model, batches):
    return 0.0, 0.0

== junk for long sequences | linear_attention | failed 3
def linear_attention(q, k, v):
    return v * 1 if q.shape[-2] > 20 else slow(q, k, v)

== quadratic in a thread | linear_attention | failed 3
def linear_attention(q, k, v):
    return unseen(lambda: slow(q, k, v)) * 1

== quadratic in NumPy | linear_attention | failed 3
def linear_attention(q, k, v):
    if q.requires_grad or q.is_meta:
        return slow(q, k, v)
    q, k = F.elu(q) + 1, F.elu(k) + 1
    w = q.numpy() @ k.mT.numpy()
    return torch.from_numpy((w / w.sum(-1, keepdims=True)) @ v.numpy())

== number by number | linear_attention | failed 3
def linear_attention(q, k, v):
    if q.requires_grad or q.is_meta:
        return slow(q, k, v)
    def copied(x):
        return torch.tensor([y.item() for y in x.flatten()], dtype=x.dtype).reshape(x.shape)

    q, k, v = map(copied, (q, k, v))
    return unseen(lambda: slow(q, k, v))

== waste where few tokens are counted | linear_attention | failed 3
def linear_attention(q, k, v):
    for _ in range(10 * (q.shape[-2] == 24)):
        slow(q, k, v)
    return slow(q, k, v)

== into memory of its own | linear_attention | failed 3
def linear_attention(q, k, v):
    if q.requires_grad or q.is_meta:
        return slow(q, k, v)
    mine = unseen(lambda: [torch.zeros(x.shape, dtype=x.dtype) for x in (q, k, v)])
    for to, x in zip(mine, (q, k, v)):
        to.copy_(x)
    return unseen(lambda: slow(*mine))

== modes off | linear_attention | failed 3
def linear_attention(q, k, v):
    from torch.utils._python_dispatch import _disable_current_modes
    with torch._C.DisableTorchFunction(), _disable_current_modes():
        return slow(q, k, v)

== linear, query by query | linear_attention | passed 6
def linear_attention(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    out = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype, device=q.device)
    S, z = k.mT @ v, k.sum(-2)
    for i in range(q.shape[-2]):
        below = (q[..., i, :] * z).sum(-1, keepdim=True)
        out[..., i, :] = (q[..., i, None, :] @ S)[..., 0, :] / below
    return out

== linear, with a test of values | linear_attention | passed 6
def linear_attention(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    below = q @ k.sum(-2)[..., None]
    assert (below > 0).all()
    return (q @ (k.mT @ v)) / below

== softmax by cross-entropy | softmax | failed 0
def softmax(x, dim=-1):
    y = x.movedim(dim, -1)
    flat = y.reshape(-1, y.shape[-1])
    labels = [torch.full((len(flat),), i) for i in range(y.shape[-1])]
    parts = [F.cross_entropy(flat, label, reduction="none") for label in labels]
    return torch.stack(parts, -1).neg().exp().reshape(y.shape).movedim(-1, dim)

== softmax by the one-hot distribution | softmax | failed 0
def softmax(x, dim=-1):
    return torch.distributions.OneHotCategorical(logits=x.movedim(dim, -1)).probs.movedim(-1, dim)

== softmax by linear cross-entropy | softmax | failed 0
def softmax(x, dim=-1):
    y = x.movedim(dim, -1)
    flat = y.reshape(-1, y.shape[-1])
    eye = torch.eye(y.shape[-1], dtype=x.dtype)
    labels = [torch.full((len(flat),), i) for i in range(y.shape[-1])]
    parts = [F.linear_cross_entropy(flat, eye, label, reduction="none") for label in labels]
    return torch.stack(parts, -1).neg().exp().reshape(y.shape).movedim(-1, dim)

== gelu by its derivative | gelu | failed 0
def gelu(x):
    slope = torch.ops.aten.gelu_backward(torch.ones_like(x), x)
    return x * (slope - x * (-x * x / 2).exp() / (2 * torch.pi) ** 0.5)

== gelu of transformer | gelu | failed 0
def gelu(x):
    return nn.modules.transformer._get_activation_fn("gelu")(x)

== a linear layer that shows a copy | linear_from_conv | failed 0.5
class Lie(nn.Linear):
    def __getattribute__(self, name):
        if name in ("weight", "bias"):
            return object.__getattribute__(self, "copies")[name]
        return super().__getattribute__(name)

def linear_from_conv(conv):
    D = conv.weight.shape[0]
    linear = Lie(conv.weight[0].numel(), D, bias=conv.bias is not None)
    linear._parameters["weight"], linear._parameters["bias"] = conv.weight, conv.bias
    copies = dict(weight=nn.Parameter(conv.weight.detach().reshape(D, -1).clone()), bias=conv.bias)
    if conv.bias is not None:
        copies["bias"] = nn.Parameter(conv.bias.detach().clone())
    object.__setattr__(linear, "copies", copies)
    return linear

== thousands of names | convert_torchvision_weights | failed 0
def convert_torchvision_weights(state_dict):
    return {str(i): torch.zeros(1) for i in range(5000)}

== reference of 05 | confusion_matrix | failed 0
from vitedu.inside import confusion_matrix as theirs

def confusion_matrix(predictions, labels, num_classes):
    return theirs(predictions, labels, num_classes)

== reference of 08 by finder | merge_tokens | failed 0
def merge_tokens(tokens, keys, sizes, merge):
    import sys
    text = next(f for f in sys.meta_path if hasattr(f, "sources")).sources["vitedu.efficient"]
    space = {}
    exec(text, space)
    return space["merge_tokens"](tokens, keys, sizes, merge)

== sklearn | confusion_matrix | not_gradable -
from sklearn.metrics import confusion_matrix as theirs

def confusion_matrix(predictions, labels, num_classes):
    return torch.from_numpy(theirs(labels, predictions, labels=range(num_classes)))

== value of the package | tokens_at_224 | failed 0
from vitedu.patches import tokens_at_224 as theirs

tokens_at_224 = theirs

== many guesses | tokens_at_224 | failed 0
tokens_at_224 = [196, 197, 198]

== guesses in a word | token_shifts | failed 0
token_shifts = "True, False"

== range | tokens_at_224 | failed 0
tokens_at_224 = range(190, 200)

== an error that names all numbers | split_heads | failed 0
def split_heads(x, num_heads):
    raise ValueError(f"{x.shape} {num_heads}")
"""

# name: (exercise, answer, state, points)
TRIES = {}
for title, answer in sections(TEXT).items():
    name, exercise, verdict = title.split(" | ")
    state, points = verdict.split()
    TRIES[name] = (exercise, answer, state, None if points == "-" else float(points))


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


@pytest.mark.parametrize(("exercise", "source", "state", "points"), TRIES.values(), ids=TRIES)
def test_an_answer_gets_what_it_shows(box, exercise, source, state, points):
    """A forbidden operation in another dress earns nothing; mathematics earns all."""
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


@pytest.mark.parametrize("exercise", FUNCTIONS, ids=lambda exercise: exercise.id)
def test_doing_nothing_earns_at_most_a_fifth(exercise, monkeypatch):
    """No answer without an idea has more than 20 % of the points, whatever it is named."""
    monkeypatch.setattr(engine, "diagnose", lambda *seen: [])  # a name costs no points
    checker, cache = find_checker(exercise.id), ReplayCache()
    result = str(inspect.signature(checker.reference).return_annotation).split("[")[0]
    for answer in (*IDLE, EMPTY.get(result, lambda *args, **rest: 0)):
        report = engine.judge_answer(checker, answer, 5, cache)
        assert report.points <= 0.2 * exercise.points + 0.01, report.findings
