"""Forbidden calls that hide, and facts that an answer forges about itself.

What the worker says of an answer beyond its values is a claim. The last table holds what cannot be helped there, with the
reason; a person is told of each.
"""

from attacks import VALUE, Attack, called

GELU = "def gelu(x):\n    return {}\n"
NORM = "def layer_norm(x, weight, bias, eps=1e-6):\n    {}\n    return {}\n"
MHA = """class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"{{embed_dim}} columns, {{num_heads}} heads")
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=qkv_bias)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        y = x.transpose(0, 1)
        {} self.both({}, y)

    def both(self, function, y):
        out, weights = function(
            y, y, y, y.shape[-1], self.num_heads, self.qkv.weight, self.qkv.bias, None, None, False, 0.0,
            self.proj.weight, self.proj.bias, average_attn_weights=False,
        )
        return out.transpose(0, 1), weights
"""
PROBES = "import vitedu.checks.probing as probing\n"

FORBIDDEN = {
    "plainly": Attack(
        called("pass", "torch.softmax(x, dim)"), "nothing", flags=("forbidden_name",)
    ),
    "by_its_kernel": Attack(called("pass", "torch.ops.aten._softmax(x, dim, False)"), "nothing"),
    "by_a_spelled_name": Attack(
        called("pass", "getattr(torch, 'so' + 'ftmax')(x, dim)"), "nothing", flags=("dangerous",)
    ),
    "of_the_c_module": Attack(
        called("pass", "torch._C._VariableFunctions.softmax(x, dim)"), "nothing"
    ),
    "of_a_layer": Attack(called("pass", "nn.Softmax(dim)(x)"), "nothing"),
    "of_the_logarithm": Attack(called("pass", "F.log_softmax(x, dim).exp()"), "nothing"),
    "of_the_gumbel_one": Attack(called("pass", "F.gumbel_softmax(x, dim=dim)"), "nothing"),
    "of_the_masked_one": Attack(called("pass", "torch.masked.softmax(x, dim)"), "nothing"),
    "of_the_decomposition": Attack(
        called("from torch._decomp.decompositions import _softmax", "_softmax(x, dim, False)"),
        "nothing",
    ),
    "of_the_python_reference": Attack(called("pass", "torch._refs.softmax(x, dim)"), "nothing"),
    "of_the_table_of_decompositions": Attack(
        called(
            "from torch._decomp import decomposition_table as table",
            "table[torch.ops.aten._softmax.default](x, dim, False)",
        ),
        "nothing",
    ),
    "of_attention": Attack(
        called(
            "y = x.movedim(dim, -1)\neye = torch.eye(y.shape[-1], dtype=x.dtype)\ny = y.reshape(1, 1, -1, y.shape[-1])",
            "F.scaled_dot_product_attention(y, eye[None, None], eye[None, None], scale=1.0).reshape(x.movedim(dim, -1).shape).movedim(-1, dim)",
        ),
        "nothing",
    ),
    "of_flash_attention": Attack(
        called(
            "y = x.movedim(dim, -1)\neye = torch.eye(y.shape[-1], dtype=x.dtype)[None, None]\n"
            "flat = y.reshape(1, 1, -1, y.shape[-1])\n"
            "out = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(flat, eye, eye, scale=1.0)[0]",
            "out.reshape(y.shape).movedim(-1, dim)",
        ),
        "nothing",
    ),
    "of_attention_layers": Attack(
        MHA.format("return", "F.multi_head_attention_forward"),
        "nothing",
        "MultiHeadAttention",
    ),
    "of_attention_layers_under_no_mode": Attack(
        MHA.format(
            "with torch._C.DisableTorchFunction():\n            return",
            "F.multi_head_attention_forward",
        ),
        "nothing",
        "MultiHeadAttention",
        flags=("forbidden_name",),
    ),
    "scripted": Attack(
        "@torch.jit.script\ndef one(x: torch.Tensor, dim: int):\n    return torch.softmax(x, dim)\n\n\ndef softmax(x, dim=-1):\n    return one(x, dim)\n",
        "nothing",
    ),
    "traced": Attack(
        called(
            "f = torch.jit.trace(lambda y: torch.softmax(y, dim), x, check_trace=False)", "f(x)"
        ),
        "nothing",
    ),
    "in_a_thread": Attack(
        called(
            "import threading\nout = []\nthread = threading.Thread(target=lambda: out.append(torch.softmax(x, dim)))\nthread.start()\nthread.join()",
            "out[0]",
        ),
        "nothing",
    ),
    "under_no_mode": Attack(
        called(
            "from torch.utils._python_dispatch import _disable_current_modes\nwith _disable_current_modes(), torch._C.DisableTorchFunction():\n    y = torch.softmax(x, dim)",
            "y",
        ),
        "nothing",
    ),
    "after_popping_the_modes": Attack(
        called(
            "from torch.overrides import _pop_mode\nfrom torch.utils._python_dispatch import _pop_mode as pop\ntry:\n    while True:\n        pop()\nexcept BaseException:\n    pass",
            "torch.softmax(x, dim)",
        ),
        ("nothing", "protocol"),
    ),
    "with_blinded_probes": Attack(
        PROBES
        + "probing.watched = lambda seen, run: run()\nprobing._Kernels.__torch_dispatch__ = lambda self, f, t, a=(), k=None: f(*a, **(k or {}))\n\n\n"
        + called("probing", "torch.softmax(x, dim)"),
        "nothing",
    ),
    "with_a_library_of_its_own": Attack(
        "library = torch.library.Library('aten', 'IMPL')\n\n\n"
        + called(
            "import torch.library\ntry:\n    library.impl('_softmax', lambda x, dim, half: torch.ops.aten._softmax.default.redispatch(torch._C.DispatchKeySet(torch._C.DispatchKey.CPU), x, dim, half), 'CPU')\nexcept BaseException:\n    pass",
            "torch.softmax(x, dim)",
        ),
        "nothing",
    ),
    "after_the_refusal_was_deleted": Attack(
        called(
            "import ctypes, gc\nfor thing in gc.get_objects():\n    if type(thing).__name__ == 'Library' and type(thing).__module__ == 'torch.library':\n"
            "        thing._destroy()\n",
            "torch.softmax(x, dim)",
        ),
        ("nothing", "crashed", "protocol"),
    ),
    "deaf_to_errors": Attack(
        called("try:\n    return torch.softmax(x, dim)\nexcept BaseException:\n    pass"), "nothing"
    ),
    "gelu_by_the_python_reference": Attack(
        GELU.format("torch._refs.nn.functional.gelu(x)"), "nothing", "gelu"
    ),
    "gelu_in_a_fused_kernel": Attack(
        "def gelu(x):\n    y = x.reshape(-1, 1).float()\n"
        "    return torch.ops.mkldnn._linear_pointwise(y, torch.ones(1, 1), None, 'gelu', [], 'none').reshape(x.shape).to(x.dtype)\n",
        ("nothing", "less"),
        "gelu",
    ),
    "norm_by_the_decomposition": Attack(
        NORM.format(
            "mean = 0", "torch._refs.native_layer_norm(x, x.shape[-1:], weight, bias, eps)[0]"
        ),
        "nothing",
        "layer_norm",
    ),
    "cross_entropy_in_a_thread": Attack(
        "def cross_entropy(logits, labels, label_smoothing=0.0):\n    import threading\n    out = []\n"
        "    t = threading.Thread(target=lambda: out.append(F.cross_entropy(logits, labels, label_smoothing=label_smoothing)))\n"
        "    t.start()\n    t.join()\n    return out[0]\n",
        "nothing",
        "cross_entropy",
    ),
    "model_of_another_library": Attack(
        "from timm.models.vision_transformer import VisionTransformer as Theirs\n\n\n"
        "class VisionTransformer(Theirs):\n    def __init__(self, config):\n"
        "        super().__init__(config.image_size, config.patch_size, config.in_channels, config.num_classes, embed_dim=config.embed_dim,\n"
        "                         depth=config.depth, num_heads=config.num_heads, mlp_ratio=config.mlp_ratio, qkv_bias=config.qkv_bias)\n",
        ("import",),
        "VisionTransformer",
    ),
    "softmax_of_another_library": Attack(
        "from scipy.special import softmax as theirs\n\n\n"
        + called("pass", "torch.from_numpy(theirs(x.detach().numpy(), dim))"),
        ("import",),
    ),
    "nothing_drawn": Attack(
        "def random_crop_flip(images, padding, generator):\n    return images\n",
        0.75,
        "random_crop_flip",
    ),
    "only_on_the_cpu": Attack(
        called(
            "if x.device.type != 'cpu':\n    raise RuntimeError('no')", f"{VALUE} + torch.zeros(1)"
        ),
        "less",
    ),
}

# forged by an answer whose values are wrong: nothing is gained
FORGED = {
    "all_is_well": Attack(
        "import vitedu.grading.box.worker as worker\n\nbefore = worker.write_observation\n\n\n"
        "def forged(seen):\n    seen.error, seen.operations, seen.undecided = None, frozenset(), True\n"
        "    seen.types['output'], seen.devices['output'] = 'tensor', 'cpu'\n"
        "    seen.modified, seen.detached, seen.gradient_error = (), False, ''\n    seen.printed = 'passed'\n    return before(seen)\n\n\n"
        "worker.write_observation = forged\n\n\ndef softmax(x, dim=-1, forged=forged, worker=worker):\n    return x * 0\n",
        "zeros",
        flags=("dangerous",),
    ),
    "nothing_ran": Attack(
        "import vitedu.grading.box.worker as worker\nfrom vitedu.checks.probing import Observation\n\nworker.Session._observe = lambda self, request, tensors: worker.write_observation(Observation(undecided=True))\n\n\n"
        "def softmax(x, dim=-1, worker=worker):\n    return x * 0\n",
        "zeros",
    ),
    "every_input_as_output": Attack(
        "import vitedu.grading.box.worker as worker\n\nbefore = worker.write_observation\n\n\n"
        "def forged(seen):\n    seen.arrays = {name: torch.full_like(value, float('nan')) for name, value in seen.arrays.items()}\n    return before(seen)\n\n\n"
        "worker.write_observation = forged\n\n\ndef softmax(x, dim=-1, worker=worker):\n    return x * 0\n",
        "zeros",
    ),
    "gradients_of_another_shape": Attack(
        "import vitedu.grading.box.worker as worker\n\nbefore = worker.write_observation\n\n\n"
        "def forged(seen):\n    seen.gradients = {name: torch.zeros(7) for name in seen.gradients}\n    return before(seen)\n\n\n"
        f"worker.write_observation = forged\n\n\ndef softmax(x, dim=-1, worker=worker):\n    return {VALUE}\n",
        "full",
        flags=("dangerous",),
    ),
    "never_attempted": Attack(
        "import vitedu.grading.box.worker as worker\nfrom vitedu.checks.answers import Look\n\nworker.write_look = lambda look: {**vars(Look(idle=True)), 'refusals': []}\n\n\n"
        "def softmax(x, dim=-1, worker=worker):\n    return x * 0\n",
        "zeros",
    ),
    "modes_that_are_never_put_back": Attack(
        "import vitedu.checks.probing as probing\n\nbefore = probing.DRIVERS['evaluation']\n\n\n"
        "def forged(answer, case, seen):\n    before(answer, case, seen)\n"
        "    for name in seen.facts:\n        if name.endswith('in the mode it was in before'):\n            seen.facts[name] = 'as before'\n\n\n"
        "probing.DRIVERS['evaluation'] = forged\n\n\n"
        "@torch.no_grad()\ndef evaluate(model, batches, probing=probing):\n    model.eval()\n    correct, total, count = 0, 0.0, 0\n"
        "    for images, labels in batches:\n        logits = model(images)\n"
        "        total += float(F.cross_entropy(logits, labels, reduction='sum'))\n"
        "        correct += int((logits.argmax(-1) == labels).sum())\n        count += len(labels)\n    return total / count, correct / count\n",
        "less",
        "evaluate",
        flags=("dangerous",),
    ),
    "a_name_that_is_missing": Attack(
        "def softmax(x, dim=-1):\n    raise NameError(\"name 'secret' is not defined\")\n",
        "nothing",
    ),
}

# Known and accepted: (why, answer). Full points, and a person is told.
LIMITS = {
    "a forged fact": (
        "whether modes are put back is no value that an input decides: what says so runs beside the answer. The worker puts the "
        "probes back after each call; an answer that finds what does that may stop it one day. This one does not, and the scan sees it",
        Attack(
            "import vitedu.checks.probing as probing\nfrom vitedu.grading.box.seal import Seal\n\nSeal.restore.__code__ = (lambda self: None).__code__\nbefore = probing.DRIVERS['evaluation']\n\n\n"
            "def forged(answer, case, seen):\n    before(answer, case, seen)\n"
            "    for name in seen.facts:\n        if name.endswith('in the mode it was in before'):\n            seen.facts[name] = 'as before'\n\n\n"
            "probing.DRIVERS['evaluation'] = forged\n\n\n"
            "@torch.no_grad()\ndef evaluate(model, batches, probing=probing):\n    model.eval()\n    correct, total, count = 0, 0.0, 0\n"
            "    for images, labels in batches:\n        logits = model(images)\n"
            "        total += float(F.cross_entropy(logits, labels, reduction='sum'))\n"
            "        correct += int((logits.argmax(-1) == labels).sum())\n        count += len(labels)\n    return total / count, correct / count\n",
            "less",
            "evaluate",
            flags=("dangerous",),
        ),
    ),
    "a forged cost": (
        "how much work a call does is counted beside the answer, as above",
        Attack(
            "import vitedu.checks.probing as probing\nfrom vitedu.grading.box.seal import Seal\n\nSeal.restore.__code__ = (lambda self: None).__code__\nbefore = probing.DRIVERS['growth']\n\n\n"
            "def forged(answer, case, seen):\n    before(answer, case, seen)\n"
            "    for name in seen.facts:\n        seen.facts[name] = 'about four times the work'\n\n\nprobing.DRIVERS['growth'] = forged\n\n\n"
            "def linear_attention(q, k, v, both=(probing, Seal)):\n    q, k = F.elu(q) + 1, F.elu(k) + 1\n    w = q @ k.mT\n"
            "    return (w / w.sum(-1, keepdim=True)) @ v\n",
            "full",
            "linear_attention",
            flags=("dangerous",),
        ),
    ),
    "another norm of torch's": (
        "with other axes each of them is layer norm; whoever sees that has understood it, and the checks take it for a right answer",
        Attack(
            NORM.format(
                "D = x.shape[-1]",
                "F.group_norm(x.reshape(-1, D), 1, None, None, eps).reshape(x.shape) * weight + bias",
            ),
            "full",
            "layer_norm",
        ),
    ),
    "an error on other devices": (
        "no accelerator is here, and what stands for one cannot run all that a right answer may do; what fails there is not "
        "held against an answer, and a person is told",
        Attack(
            called("if x.device.type != 'cpu':\n    1 / 0", f"{VALUE} + torch.zeros(1)"),
            "full",
            flags=("undecided",),
        ),
    ),
    "torch's own text, read again": (
        "a copy of somebody's right code is right code; the scan sees where it comes from",
        Attack(
            called(
                "import types, torch._decomp.decompositions as theirs\ncode = theirs.__spec__.loader.get_code(theirs.__spec__.name)\n"
                "code = next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == '_softmax')",
                "types.FunctionType(code, vars(theirs))(x, dim, False)",
            ),
            "full",
            flags=("dangerous",),
        ),
    ),
    "an identity of mathematics": (
        "x - logsumexp(x), or the derivative of logsumexp, is a formula that a student may know; only softmax and its kin are "
        "ruled out in the text",
        Attack(called("pass", "(x - x.logsumexp(dim, keepdim=True)).exp()"), "full"),
    ),
}
